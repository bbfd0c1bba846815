/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_conn.c - see agent_conn.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../util/msg.h"
#include "../../util/now.h"
#include "../again.h"
#include "agent_conn.h"
#include "agent_process.h"
#include "agent_tids.h"

#define SAYS_MAX 32 /* texts of one process that are passed on */
#define SEND_MS 1000
/* Connections that have not greeted, which is done at once: of one process, and of all that are not
 * known as the program's. */
#define SILENT_EACH 4
#define SILENT_NEIGHBOURS 16

int agent_conn_open(struct agent_conn *c, int fd, const struct agent_conn_who *who)
{
	*c = (struct agent_conn){ .fd = fd,
				  .pid = who->pid,
				  .uid = who->uid,
				  .keyed = who->key,
				  .neighbour = who->neighbour,
				  .opened_ns = now_ns() };
	if (who->key)
		memcpy(c->key, who->key, MEET_KEY);
	c->tids = agent_tids_open(c->pid, &c->inner);
	return c->tids ? 0 : -ENOMEM;
}

void agent_conn_close(struct agent_conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	agent_tids_close(c->tids);
	c->tids = NULL;
}

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

int agent_conn_put(struct agent_conn *c, const void *msg, size_t n, int pass)
{
	union control control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
					    .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS } };
	struct iovec io = { (void *)msg, n };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
	struct pollfd room = { .fd = c->fd, .events = POLLOUT };
	uint64_t until = now_ns() + SEND_MS * 1000000ULL;

	if (pass >= 0) {
		memcpy(CMSG_DATA(&control.head), &pass, sizeof(int));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
	}
	for (;;) {
		if (sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n)
			return 0;
		if (errno == EINTR)
			continue;
		if ((errno != EAGAIN && errno != EWOULDBLOCK) || now_ns() > until)
			return -errno;
		poll(&room, 1, 50);
	}
}

void agent_conn_stop(struct agent_conn *c, unsigned int type)
{
	struct meet_head h = { .size = sizeof(h), .type = (__u16)type };

	/* if there is no room for eight bytes, the end of the connection says the same */
	if (send(c->fd, &h, sizeof(h), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		shutdown(c->fd, SHUT_WR);
}

/* The first descriptor of a message; -1: it has none. There is room for more than one, and what the kernel has
 * put there is ours to close. */
static int take_fd(struct msghdr *m)
{
	int first = -1, fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(fd) <= c->cmsg_len; at += sizeof(fd)) {
			memcpy(&fd, (const char *)c + at, sizeof(fd));
			if (first < 0)
				first = fd;
			else
				close(fd);
		}
	}
	return first;
}

ssize_t agent_conn_get(struct agent_conn *c, void *msg, int *fd)
{
	union control control;
	struct iovec io = { msg, MEET_MSG_MAX };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	while (n < 0 && again(errno));
	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	*fd = take_fd(&m);
	return n;
}

const char *agent_conn_greet(struct agent_conn *c, const struct meet_hello *h, uint32_t magic,
			     uint32_t version)
{
	if (c->greeted || h->magic != magic || h->version != version)
		return "the greeting";
	if (c->keyed && memcmp(h->key, c->key, MEET_KEY))
		return "the key";
	if (h->pid != (uint32_t)c->inner && h->pid != (uint32_t)c->pid)
		return "the process id";
	c->greeted = true;
	c->ahead_ns = agent_process_ahead_ns(c->pid);
	return NULL;
}

bool agent_conn_say(struct agent_conn *c, const struct meet_say *msg)
{
	char copy[1024], whose[32], *said = copy;
	struct meet_say s;
	size_t n;

	memcpy(&s, msg, sizeof(s));
	if (c->says++ >= SAYS_MAX)
		return false;
	n = s.len < sizeof(copy) - 1 ? s.len : sizeof(copy) - 1;
	for (size_t i = 0; i < n; i++) {
		char byte = msg->text[i];

		copy[i] = (unsigned char)byte < ' ' || byte == 0x7f ? '?' : byte;
	}
	copy[n] = '\0';
	snprintf(whose, sizeof(whose), "process %d: ", (int)c->pid);
	if (!strncmp(copy, whose, strlen(whose)))
		said += strlen(whose);
	if (s.level == MEET_VERB)
		msg_verb("%s%s", whose, said);
	else if (s.level == MEET_NOTE)
		msg_note("%s%s", whose, said);
	else if (s.level == MEET_WARN)
		msg_warn("%s%s", whose, said);
	else
		msg_error("%s%s", whose, said);
	return true;
}

/* The oldest connection that has not greeted, of a process (0: any), of neighbours alone or of all, of a
 * user (NULL: any); n: how many there are. -1: none. */
static int oldest_silent(const struct agent_conns *all, pid_t pid, bool neighbours,
			 const uid_t *user, int *n)
{
	const struct agent_conn *oldest = NULL;
	int found = -1;

	*n = 0;
	for (int i = 0; i < all->n; i++) {
		const struct agent_conn *c = all->at(all->ctx, i);

		if (c->greeted || (pid && c->pid != pid) || (neighbours && !c->neighbour) ||
		    (user && c->uid != *user))
			continue;
		(*n)++;
		if (!oldest || c->opened_ns < oldest->opened_ns) {
			oldest = c;
			found = i;
		}
	}
	return found;
}

static int count_user(const struct agent_conns *all, uid_t uid)
{
	int n = 0;

	for (int i = 0; i < all->n; i++)
		n += all->at(all->ctx, i)->uid == uid;
	return n;
}

static int find_surplus(const struct agent_conns *all, const struct agent_conn_who *who)
{
	int n, i = oldest_silent(all, who->pid, false, NULL, &n);

	if (n >= SILENT_EACH)
		return i;
	i = who->neighbour ? oldest_silent(all, 0, true, NULL, &n) : -1;
	if (i >= 0 && n >= SILENT_NEIGHBOURS)
		return i;
	if (all->n < AGENT_CONNS_MAX && count_user(all, who->uid) < AGENT_CONNS_MAX - all->n)
		return -ENOENT;
	i = oldest_silent(all, 0, false, all->n < AGENT_CONNS_MAX ? &who->uid : NULL, &n);
	return i >= 0 ? i : -EMFILE;
}

int agent_conns_surplus(const struct agent_conns *all, const struct agent_conn_who *who)
{
	int i = find_surplus(all, who);

	if (i >= 0)
		msg_warn("process %d: one of its connections to the agents' socket is closed: it "
			 "sent nothing, and too many such connections are open",
			 (int)all->at(all->ctx, i)->pid);
	return i;
}
