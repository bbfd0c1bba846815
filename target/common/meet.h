/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * meet.h - how an object in the target communicates with cudatrace: the text that says where to
 * connect ("v1 fd=3", "v1 path=... key=..."), the connection, the messages. The agent and the hooks
 * each have a copy of this code. Nothing here waits without a limit. Times are CLOCK_MONOTONIC.
 */
#ifndef CT_MEET_H
#define CT_MEET_H

#include "descriptor.h"
#include "../../wire/meet_msg.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* Where to connect. */
struct meet {
	int fd; /* a socket that the process already has; -1: none */
	char path[108], key[MEET_KEY];
};

uint64_t meet_now(void);
/* Returns whether the calling thread, and those that it makes, may read the processor's clock, by which libc
 * takes times, too. */
bool meet_may_take_times(void);

/* The value of `name` in the text, unescaped. Returns its length, 0 when it is not there, -EINVAL
 * when it does not fit. */
int meet_word(const char *text, const char *name, char *out, size_t size);
/* Reads from the text where to connect. Returns 0, -EPROTO or -EINVAL. */
int meet_parse(const char *text, struct meet *);
/* Connects, at most until the given time. Returns 0, and the socket is held; or -errno. */
int meet_connect(const struct meet *, uint64_t until_ns, struct held *);

/* Sends one packet, and waits at most wait_ms. Returns 0, -EAGAIN, or -EPIPE if the peer is gone. */
int meet_put(const struct held *, const void *msg, size_t n, int wait_ms);
/* The same over a socket that the caller has, with a descriptor. */
int meet_put_fd(int to, const void *msg, size_t n, int wait_ms, int fd);
/* Sends a message of this type with a text for the user; a long text is cut. Returns as meet_put(). */
int meet_say(const struct held *, unsigned int type, enum meet_level, const char *fmt, va_list)
	__attribute__((format(printf, 4, 0)));

/* Receives the next message into `msg`, which has room for MEET_MSG_MAX bytes, and a descriptor
 * that came with it (fd -1: none; the caller's). `check` returns a message's type, or -1. Returns
 * the type; 0 if no message came within the time; -EPIPE if the peer is gone or does not follow the
 * protocol. */
int meet_get(const struct held *, void *msg, int wait_ms, int (*check)(const void *, size_t),
	     size_t *size, int *fd);

/* Starts a thread that blocks all signals, so that none of the program's signals reaches it.
 * Returns 0 or -errno. */
int meet_thread(void *(*run)(void *), void *arg);

#endif
