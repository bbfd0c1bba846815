/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_inbox.c - see agent_inbox.h. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../again.h"
#include "agent_inbox.h"
#include "../../util/now.h"
#include "../../util/thread.h"

#define FULL_MS 2 /* between two looks whether there is room again */

struct message {
	struct message *next;
	uint64_t at_ns; /* when it came */
	size_t sent;	/* bytes that the peer sent */
	size_t len;	/* of bytes[] */
	char bytes[];
};

struct agent_inbox {
	int fd, ready, wake; /* the socket; readable with messages; ends the thread */
	size_t message_max, max_bytes;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	struct message *first, *last;
	size_t bytes;
	bool gone; /* the peer: no more will come */
	bool stop;
};

static _Atomic size_t all_bytes; /* of every inbox */

static void signal_fd(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* False: the thread is to end. */
static bool has_room(struct agent_inbox *b)
{
	bool room = false, stop = false;

	while (!room && !stop) {
		pthread_mutex_lock(&b->lock);
		room = b->bytes < b->max_bytes &&
		       (!b->first || atomic_load(&all_bytes) < AGENT_INBOXES_BYTES);
		stop = b->stop;
		pthread_mutex_unlock(&b->lock);
		if (!room && !stop)
			poll(NULL, 0, FULL_MS);
	}
	return !stop;
}

/* Takes m; NULL: the peer has gone. */
static void agent_inbox_put(struct agent_inbox *b, struct message *m)
{
	bool first;

	pthread_mutex_lock(&b->lock);
	first = !b->first;
	if (!m) {
		b->gone = true;
	} else {
		m->next = NULL;
		if (b->last)
			b->last->next = m;
		else
			b->first = m;
		b->last = m;
		b->bytes += sizeof(*m) + m->len;
		atomic_fetch_add(&all_bytes, sizeof(*m) + m->len);
	}
	pthread_mutex_unlock(&b->lock);
	if (first || !m)
		signal_fd(b->ready);
}

static void *agent_inbox_run(void *arg)
{
	struct agent_inbox *b = arg;
	struct pollfd p[2] = { { .fd = b->fd, .events = POLLIN },
			       { .fd = b->wake, .events = POLLIN } };
	char *room = malloc(b->message_max);
	ssize_t n = room ? 1 : 0;

	while (n > 0 && has_room(b)) {
		struct message *m;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			break;
		n = recv(b->fd, room, b->message_max, MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || again(errno))) {
			n = 1;
			continue;
		}
		if (n <= 0)
			break;
		m = malloc(sizeof(*m) + ((size_t)n < b->message_max ? (size_t)n : b->message_max));
		if (!m)
			break;
		m->at_ns = now_ns();
		m->sent = (size_t)n;
		m->len = m->sent < b->message_max ? m->sent : b->message_max;
		memcpy(m->bytes, room, m->len);
		agent_inbox_put(b, m);
	}
	free(room);
	agent_inbox_put(b, NULL);
	return NULL;
}

struct agent_inbox *agent_inbox_open(int fd, size_t message_max, size_t max_bytes)
{
	struct agent_inbox *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->fd = fd;
	b->message_max = message_max;
	b->max_bytes = max_bytes;
	b->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&b->lock, NULL);
	if (b->ready >= 0 && b->wake >= 0 &&
	    !thread_start(&b->thread, "ct-agents", 0, agent_inbox_run, b))
		return b;
	if (b->ready >= 0)
		close(b->ready);
	if (b->wake >= 0)
		close(b->wake);
	pthread_mutex_destroy(&b->lock);
	free(b);
	return NULL;
}

void agent_inbox_close(struct agent_inbox *b)
{
	struct message *next;

	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_mutex_unlock(&b->lock);
	signal_fd(b->wake);
	pthread_join(b->thread, NULL);
	for (struct message *m = b->first; m; m = next) {
		next = m->next;
		free(m);
	}
	atomic_fetch_sub(&all_bytes, b->bytes);
	close(b->ready);
	close(b->wake);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

int agent_inbox_fd(const struct agent_inbox *b)
{
	return b->ready;
}

uint64_t agent_inbox_since(struct agent_inbox *b)
{
	uint64_t since;

	pthread_mutex_lock(&b->lock);
	since = b->first ? b->first->at_ns : UINT64_MAX;
	pthread_mutex_unlock(&b->lock);
	return since;
}

ssize_t agent_inbox_take(struct agent_inbox *b, void *msg)
{
	struct message *m;
	uint64_t count;
	bool gone;
	ssize_t n;

	pthread_mutex_lock(&b->lock);
	m = b->first;
	gone = b->gone;
	if (m) {
		b->first = m->next;
		b->bytes -= sizeof(*m) + m->len;
		atomic_fetch_sub(&all_bytes, sizeof(*m) + m->len);
		if (!b->first)
			b->last = NULL;
	}
	/* while there is something, or the peer has gone, the descriptor stays readable */
	if (!b->first && !gone && read(b->ready, &count, sizeof(count)) < 0)
		count = 0;
	pthread_mutex_unlock(&b->lock);
	if (!m)
		return gone ? 0 : -EAGAIN;
	n = (ssize_t)m->sent;
	memcpy(msg, m->bytes, m->len);
	free(m);
	return n;
}
