/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * talk.h - the socket to cudatrace: wire.h has the messages. Nothing here waits without a
 * limit, and a peer that does not keep to the protocol is left. Used by one thread at a time, but for
 * talk_ask().
 */
#ifndef CT_HOOKS_TALK_H
#define CT_HOOKS_TALK_H

#include "wire.h"

/* "v1 path=PATH key=HEX" or "v1 fd=N". 0 or -errno. */
int talk_connect(const char *text, int wait_ms);
void talk_close(void);
/* In a forked child, whose socket is the parent's: closes it, after a socket of the child's own was
 * sent over it. parent_tid: the thread that forked. 0, and the child is connected; or -errno. */
int talk_child(__u32 parent_tid);
int talk_fd(void); /* -1: the peer is gone */

int talk_put(const void *msg, size_t n, int wait_ms);
void talk_say(enum meet_level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int talk_hello(void);
void talk_bye(int err, __u32 kept);
/* On a thread of the program's, without libc: HOOKS_MAPPED or HOOKS_READ, with this number. 0 or
 * -errno. */
int talk_ask(enum hooks_type, __u32 number);

/* On a thread of the program's, without libc: the thread that reads is told that the peer is gone.
 * 0 or -errno. */
int talk_hang_up(void);

/* The next message, at talk_message(), and a descriptor that came with it (-1: none; the caller's).
 * Its type; 0: none within the time; -errno: the peer is gone, or breaks the protocol. */
int talk_get(int wait_ms, size_t *size, int *fd);
const void *talk_message(void);

#endif
