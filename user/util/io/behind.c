/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * behind.c - see behind.h. The queue is a list of chunks. The thread has a descriptor of its own, and
 * frees what it uses itself: a write(2) that does not end, as to a disk that is gone, keeps nobody here.
 * To a pipe it writes only as much as finds room, so that it can be ended, and what is written is known.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../now.h"
#include "../thread.h"
#include "behind.h"

#define CHUNK_BYTES (256u << 10)
#define FULL_BYTES (1u << 20)	/* with so many bytes in the queue the owner should wait, */
#define ROOM_BYTES (256u << 10) /* until no more than these are left */
#define STALL_NS 1000000000ULL	/* as out_wait() has it */
#define LOOK_NS 20000000ULL	/* time between two looks at whether to stop */
#define LEAVE_NS 100000000ULL	/* wait for the thread when everything is dropped */

/* where it writes; eventfds: for the owner, and to end the thread's waiting */
enum { TO, ROOM, QUIT, FDS };

struct chunk {
	struct chunk *next;
	size_t len;
	char data[CHUNK_BYTES];
};

struct behind {
	int fds[FDS];
	bool is_file;
	bool full;	  /* atomic */
	int error;	  /* atomic */
	uint64_t written; /* atomic */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct chunk *first, *last, *spare;
	uint64_t bytes;	   /* bytes that wait, including those that are being written */
	uint64_t moved_ns; /* time of the last write */
	bool over, dropped, ended, left;
};

static void lock(struct behind *b)
{
	pthread_mutex_lock(&b->lock);
}

static void unlock(struct behind *b)
{
	pthread_mutex_unlock(&b->lock);
}

static void signal_fd(int fd)
{
	while (eventfd_write(fd, 1) < 0 && errno == EINTR)
		;
}

static void release(struct behind *b)
{
	struct chunk *next;

	for (struct chunk *c = b->first; c; c = next) {
		next = c->next;
		free(c);
	}
	free(b->spare);
	for (int i = 0; i < FDS; i++)
		if (b->fds[i] >= 0)
			close(b->fds[i]);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* ---- the thread ---- */

/* Waits until a pipe, a socket or a terminal takes PIPE_BUF bytes. Returns 0 or -errno. */
static int await_room(const struct behind *b)
{
	struct pollfd fds[2] = { { .fd = b->fds[TO], .events = POLLOUT },
				 { .fd = b->fds[QUIT], .events = POLLIN } };

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return fds[1].revents ? -ESHUTDOWN : 0;
}

/* Some of the bytes. Returns their number or -errno. */
static ssize_t write_some(const struct behind *b, const char *from, size_t n)
{
	int err = b->is_file ? 0 : await_room(b);
	ssize_t put;

	if (err)
		return err;
	/* other programs may write to it, too: a write of this size is not mixed with theirs,
	 * and it ends with a line */
	if (!b->is_file && n > PIPE_BUF) {
		const char *end = memrchr(from, '\n', PIPE_BUF);

		n = end ? (size_t)(end - from) + 1 : PIPE_BUF;
	}
	put = write(b->fds[TO], from, n);
	if (put > 0)
		return put;
	/* another program has filled a pipe that is non-blocking */
	if (put < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	return put < 0 ? -errno : -EIO;
}

/* Notes that n bytes have been written, or that an error came instead. The lock is held. */
static void note(struct behind *b, ssize_t n)
{
	bool was_full = b->full;

	if (n < 0)
		__atomic_store_n(&b->error, (int)n, __ATOMIC_RELEASE);
	if (n > 0) {
		b->bytes -= (uint64_t)n;
		b->moved_ns = now_ns();
		__atomic_store_n(&b->written, b->written + (uint64_t)n, __ATOMIC_RELEASE);
	}
	if (b->bytes <= ROOM_BYTES || n < 0)
		__atomic_store_n(&b->full, false, __ATOMIC_RELEASE);
	if (n < 0 || (was_full && !b->full))
		signal_fd(b->fds[ROOM]);
	pthread_cond_broadcast(&b->changed);
}

/* Writes a chunk, which is in no list, without the lock. */
static void write_chunk(struct behind *b, struct chunk *c)
{
	size_t at = 0;

	while (at < c->len && !b->error) {
		ssize_t n = write_some(b, c->data + at, c->len - at);

		lock(b);
		if (b->dropped)
			n = -ESHUTDOWN;
		note(b, n);
		unlock(b);
		at += n > 0 ? (size_t)n : 0;
	}
}

static void *behind_run(void *arg)
{
	struct behind *b = arg;
	bool left;

	lock(b);
	for (;;) {
		struct chunk *c = b->error ? NULL : b->first;

		if (!c && b->over)
			break;
		if (!c) {
			pthread_cond_wait(&b->changed, &b->lock);
			continue;
		}
		b->first = c->next;
		if (!b->first)
			b->last = NULL;
		unlock(b);
		write_chunk(b, c);
		lock(b);
		if (b->spare)
			free(c);
		else
			b->spare = c;
	}
	b->ended = true;
	left = b->left;
	pthread_cond_broadcast(&b->changed);
	unlock(b);
	if (left)
		release(b);
	return NULL;
}

/* ---- its owner ---- */

struct behind *behind_open(int fd, bool is_file)
{
	struct behind *b = calloc(1, sizeof(*b));
	pthread_condattr_t attr;

	if (!b)
		return NULL;
	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&b->changed, &attr);
	pthread_condattr_destroy(&attr);
	b->is_file = is_file;
	b->fds[TO] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	b->fds[ROOM] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->fds[QUIT] = eventfd(0, EFD_CLOEXEC);
	if (b->fds[TO] >= 0 && b->fds[ROOM] >= 0 && b->fds[QUIT] >= 0 &&
	    !thread_start(NULL, "ct-output", 0, behind_run, b))
		return b;
	release(b);
	return NULL;
}

/* Waits for some time. The lock is held, and released meanwhile. */
static void await(struct behind *b, uint64_t ns)
{
	uint64_t until = now_ns() + ns;
	struct timespec t = { .tv_sec = (time_t)(until / 1000000000),
			      .tv_nsec = (long)(until % 1000000000) };

	pthread_cond_timedwait(&b->changed, &b->lock, &t);
}

/* Waits until at most so many bytes are in the queue. The lock is held. Returns 0 or -errno. */
static int await_bytes(struct behind *b, uint64_t most, const volatile int *stop)
{
	uint64_t since = now_ns();

	while (b->bytes > most && !b->error) {
		int stopping = stop ? *stop : 0;

		if (stopping > 1)
			return -ESHUTDOWN;
		if (!stopping)
			since = now_ns();
		else if (b->moved_ns > since)
			since = b->moved_ns;
		if (now_ns() > since + STALL_NS)
			return -ETIMEDOUT;
		await(b, LOOK_NS);
	}
	return b->error;
}

/* Returns room for some bytes at the end of the queue; NULL if there is no memory. */
static struct chunk *behind_room(struct behind *b)
{
	struct chunk *c = b->last;

	if (c && c->len < sizeof(c->data))
		return c;
	c = b->spare ? b->spare : malloc(sizeof(*c));
	b->spare = NULL;
	if (!c)
		return NULL;
	c->next = NULL;
	c->len = 0;
	if (b->last)
		b->last->next = c;
	else
		b->first = c;
	b->last = c;
	return c;
}

int behind_put(struct behind *b, const void *data, size_t n, const volatile int *stop)
{
	const char *from = data;
	int err;

	lock(b);
	err = await_bytes(b, BEHIND_MOST, stop);
	while (n && !err) {
		struct chunk *c = behind_room(b);
		size_t part = c ? sizeof(c->data) - c->len : 0;

		if (!c) {
			err = -ENOMEM;
			break;
		}
		part = part < n ? part : n;
		memcpy(c->data + c->len, from, part);
		c->len += part;
		b->bytes += part;
		from += part;
		n -= part;
	}
	if (b->bytes > FULL_BYTES)
		__atomic_store_n(&b->full, true, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&b->changed);
	unlock(b);
	return err;
}

bool behind_full(const struct behind *b)
{
	return __atomic_load_n(&b->full, __ATOMIC_ACQUIRE);
}

int behind_fd(const struct behind *b)
{
	return b->fds[ROOM];
}

void behind_seen(struct behind *b)
{
	eventfd_t n;

	eventfd_read(b->fds[ROOM], &n);
}

int behind_error(const struct behind *b)
{
	return __atomic_load_n(&b->error, __ATOMIC_ACQUIRE);
}

uint64_t behind_written(const struct behind *b)
{
	return __atomic_load_n(&b->written, __ATOMIC_ACQUIRE);
}

int behind_close(struct behind *b, const volatile int *stop, uint64_t *written)
{
	uint64_t until;
	bool ended;
	int err;

	lock(b);
	err = await_bytes(b, 0, stop);
	b->over = true;
	b->dropped = err != 0;
	pthread_cond_broadcast(&b->changed);
	if (err)
		signal_fd(b->fds[QUIT]);
	until = now_ns() + LEAVE_NS;
	while (!b->ended && (!err || now_ns() < until))
		await(b, LOOK_NS);
	*written = b->written;
	ended = b->ended;
	b->left = !ended;
	unlock(b);
	if (ended)
		release(b);
	return err;
}
