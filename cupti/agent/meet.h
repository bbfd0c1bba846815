/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * meet.h - how an object in the target finds cudatrace: the words that it was given ("v1 fd=3",
 * "v1 path=... key=..."), the connection, and one packet sent. For the agent and for hooks/. Nothing
 * here waits without a limit. Times are CLOCK_MONOTONIC.
 */
#ifndef CT_MEET_H
#define CT_MEET_H

#include "held.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t meet_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline int meet_hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* The value of `name` in the text, unescaped. Returns its length, 0 when it is not there,
 * -EINVAL when it does not fit. */
static inline int meet_word(const char *text, const char *name, char *out, size_t size)
{
	size_t len = strlen(name), n = 0;

	for (const char *at = text; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL) {
		if (strncmp(at, name, len) || at[len] != '=')
			continue;
		for (at += len + 1; *at && *at != ' '; at++) {
			char c = *at;

			if (c == '%') {
				if (meet_hex(at[1]) < 0 || meet_hex(at[2]) < 0)
					return -EINVAL;
				c = (char)(meet_hex(at[1]) << 4 | meet_hex(at[2]));
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
static inline int meet_fd(const char *text)
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

/* Is it a socket as was agreed? Another one is not ours to close. */
static inline int meet_is_ours(int fd)
{
	socklen_t len = sizeof(int);
	int type = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_SEQPACKET;
}

/* Returns a connected socket, or -errno. Waits, at most until the given time, in the kernel's queue
 * for a place in the backlog. Peers that come later, also many that want to keep us out, are behind
 * us in this queue. */
static inline int meet_connect(const char *path, uint64_t until_ns)
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

/* Sends one packet, and waits at most wait_ms. 0; -EAGAIN; -EPIPE: the peer is gone. */
static inline int meet_put(const struct held *h, const void *msg, size_t n, int wait_ms)
{
	uint64_t until = meet_now() + (uint64_t)wait_ms * 1000000;
	int fd;

	while ((fd = held_fd(h)) >= 0) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };

		if (send(fd, msg, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS)
			return -EPIPE;
		if (meet_now() >= until)
			return -EAGAIN;
		/* until there is room, a message can be read, or the peer is gone */
		poll(&p, 1, wait_ms < 20 ? wait_ms : 20);
	}
	return -EPIPE;
}

#endif
