/* SPDX-License-Identifier: BSD-2-Clause */
/* meet.c - see meet.h. */
#include "compat.h"

#include "meet.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX 1024 /* bytes of a text for the user */

uint64_t meet_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

bool meet_may_take_times(void)
{
	int may = PR_TSC_ENABLE;

	return prctl(PR_GET_TSC, &may, 0, 0, 0) || may == PR_TSC_ENABLE;
}

/* ---- the words ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

int meet_word(const char *text, const char *name, char *out, size_t size)
{
	size_t len = strlen(name), n = 0;

	for (const char *at = text; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL) {
		if (strncmp(at, name, len) || at[len] != '=')
			continue;
		for (at += len + 1; *at && *at != ' '; at++) {
			char c = *at;

			if (c == '%') {
				if (hex(at[1]) < 0 || hex(at[2]) < 0)
					return -EINVAL;
				c = (char)(hex(at[1]) << 4 | hex(at[2]));
				at += 2;
			}
			if (!c || n + 1 >= size)
				return -EINVAL;
			out[n++] = c;
		}
		break;
	}
	out[n] = '\0';
	return (int)n;
}

/* The descriptor that the word `fd` names. Returns -ENOENT when there is no such word, -EINVAL when
 * it is no number. */
static int socket_word(const char *text)
{
	char number[16];
	int n = meet_word(text, "fd", number, sizeof(number)), fd = 0;

	if (n <= 0)
		return -ENOENT;
	for (int i = 0; i < n; i++) {
		if (number[i] < '0' || number[i] > '9' || i > 8)
			return -EINVAL;
		fd = fd * 10 + number[i] - '0';
	}
	return fd;
}

int meet_parse(const char *text, struct meet *m)
{
	char key[MEET_KEY + 1];

	*m = (struct meet){ .fd = -1 };
	if (strncmp(text, "v1 ", 3))
		return -EPROTO;
	m->fd = socket_word(text);
	if (m->fd != -ENOENT)
		return m->fd < 0 ? m->fd : 0;
	m->fd = -1;
	if (meet_word(text, "path", m->path, sizeof(m->path)) <= 0 ||
	    meet_word(text, "key", key, sizeof(key)) != MEET_KEY)
		return -EINVAL;
	memcpy(m->key, key, MEET_KEY);
	return 0;
}

/* ---- the connection ---- */

/* Returns whether it is a socket of the expected kind. Another descriptor is not ours to close. */
static bool is_ours(int fd)
{
	socklen_t len = sizeof(int);
	int type = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_SEQPACKET;
}

/* Returns a connected socket, or -errno. Waits, at most until the given time, in the kernel's queue
 * for a place in the backlog. Peers that connect later are behind us in this queue, also if many
 * try to block us. */
static int connect_to(const char *path, uint64_t until_ns)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, err = 0;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	while (!err) {
		uint64_t now = meet_now(), left_us = now < until_ns ? (until_ns - now) / 1000 : 0;
		struct timeval wait = { .tv_sec = (time_t)(left_us / 1000000),
					.tv_usec = (suseconds_t)(left_us % 1000000) };

		if (!left_us)
			err = -EAGAIN;
		else if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)))
			err = -errno;
		else if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
			return fd;
		else if (errno != EAGAIN && errno != EINTR)
			err = -errno; /* nobody listens there any more */
	}
	close(fd);
	return err;
}

int meet_connect(const struct meet *m, uint64_t until_ns, struct held *held)
{
	int fd = m->fd;

	if (fd >= 0 && !is_ours(fd))
		return -EPROTO;
	if (fd < 0)
		fd = connect_to(m->path, until_ns);
	if (fd < 0)
		return fd;
	held_take(held, fd);
	return 0;
}

/* ---- sending ---- */

/* Sends one packet. Returns 0, -EAGAIN: there is no room, or -EPIPE: the peer is gone. */
static int send_one(int to, const struct msghdr *m, size_t n)
{
	ssize_t sent;

	do
		sent = sendmsg(to, m, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent == (ssize_t)n)
		return 0;
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? -EAGAIN : -EPIPE;
}

/* Waits for room at most until that time. The wait ends early: until there is room, a message can be
 * read, or the peer is gone. */
static int wait_for_room(int to, uint64_t until_ns)
{
	struct pollfd p = { .fd = to, .events = POLLOUT };
	uint64_t now = meet_now(), left_ms;

	if (now >= until_ns)
		return -EAGAIN;
	left_ms = (until_ns - now) / 1000000 + 1;
	poll(&p, 1, left_ms < 20 ? (int)left_ms : 20);
	return 0;
}

int meet_put(const struct held *h, const void *msg, size_t n, int wait_ms)
{
	uint64_t until = meet_now() + (uint64_t)wait_ms * 1000000;
	struct iovec io = { (void *)msg, n };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
	int err = 0, to;

	/* the descriptor is checked each time, because the program may close it meanwhile */
	while (!err && (to = held_fd(h)) >= 0) {
		err = send_one(to, &m, n);
		if (err != -EAGAIN)
			return err;
		err = wait_for_room(to, until);
	}
	return err ? err : -EPIPE;
}

int meet_put_fd(int to, const void *msg, size_t n, int wait_ms, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec io = { (void *)msg, n };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	uint64_t until = meet_now() + (uint64_t)wait_ms * 1000000;
	int err;

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(int));
	do
		err = send_one(to, &m, n);
	while (err == -EAGAIN && !wait_for_room(to, until));
	return err;
}

int meet_say(const struct held *h, unsigned int type, enum meet_level level, const char *fmt,
	     va_list args)
{
	union {
		struct meet_say say;
		char room[sizeof(struct meet_say) + TEXT_MAX];
	} m = { .say = { .h = { .type = (__u16)type }, .level = (__u16)level } };
	int n = vsnprintf(m.say.text, TEXT_MAX, fmt, args);

	if (n < 0)
		return -EINVAL;
	m.say.len = (__u16)(n < TEXT_MAX ? n : TEXT_MAX - 1);
	m.say.h.size = (__u32)sizeof(m.say) + m.say.len;
	return meet_put(h, &m, m.say.h.size, 1000);
}

/* ---- receiving ---- */

/* Receives one packet if one is there. Returns its bytes, 0 also for one that is too long, or -errno. */
static ssize_t receive(int from, void *msg, int *fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec io = { msg, MEET_MSG_MAX };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&m);
	/* there is room for a second one, which would stay open in the program */
	for (size_t at = CMSG_LEN(0); c && c->cmsg_level == SOL_SOCKET &&
				      c->cmsg_type == SCM_RIGHTS && at + sizeof(int) <= c->cmsg_len;
	     at += sizeof(int)) {
		int one;

		memcpy(&one, (const char *)c + at, sizeof(one));
		if (*fd < 0)
			*fd = one;
		else
			close(one);
	}
	return m.msg_flags & MSG_TRUNC ? 0 : n;
}

int meet_get(const struct held *h, void *msg, int wait_ms, int (*check)(const void *, size_t),
	     size_t *size, int *fd)
{
	uint64_t until = meet_now() + (uint64_t)wait_ms * 1000000, now;
	int from;

	*fd = -1;
	while ((from = held_fd(h)) >= 0) {
		struct pollfd p = { .fd = from, .events = POLLIN };
		ssize_t n = receive(from, msg, fd);
		int type;

		if (n == -EAGAIN || n == -EWOULDBLOCK) {
			now = meet_now();
			if (now >= until)
				return 0;
			poll(&p, 1, (int)((until - now) / 1000000) + 1);
			continue;
		}
		type = n <= 0 ? -1 : check(msg, (size_t)n);
		if (type < 0)
			break;
		*size = (size_t)n;
		return type;
	}
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EPIPE;
}

/* ---- threads ---- */

int meet_thread(void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_detach(thread);
	return -err;
}
