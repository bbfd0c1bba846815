/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * talk.h - the socket to cudatrace: hooks_wire.h has the messages. Nothing here waits without a limit,
 * and the connection is closed if the peer does not follow the protocol. Only one thread at a time
 * may use these functions: that of the hooks, while there is one.
 */
#ifndef CT_HOOKS_TALK_H
#define CT_HOOKS_TALK_H

#include <stdbool.h>

#include "../common/descriptor.h"
#include "../../wire/hooks_wire.h"

/* "v1 path=PATH key=HEX" or "v1 fd=N". 0 or -errno. */
int talk_connect(const char *text, int wait_ms);
/* Closes the socket that such a text names, which is not wanted. */
void talk_refuse(const char *text);
/* This socket is the connection from now on: a forked child's, which has no key, or the one that there
 * was, in another descriptor table. */
void talk_child(int fd);
void talk_moved(int fd);
void talk_close(void);
/* The connection is in a descriptor table that the caller does not have. */
void talk_forget(void);
struct held talk_held(void);
/* The process of the peer, if it is known; 0: it is not. */
void talk_peer(int pid);
/* Is the peer stopped, as by SIGSTOP? Then it answers nobody. Without libc, for the program's threads.
 * False if that is not known. */
bool talk_is_stopped(void);
int talk_fd(void); /* -1: the peer is gone */

int talk_put(const void *msg, size_t n, int wait_ms);
void talk_say(enum meet_level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int talk_hello(void);
void talk_bye(int err, __u32 kept);
/* Sends HOOKS_LOOK. Returns 0 or -errno. */
int talk_look(void);
/* Sends HOOKS_MAPPED or HOOKS_READ with this number. Returns 0 or -errno. */
int talk_ask(enum hooks_type, __u32 number);
/* Sends the socket of a child that was forked by this thread, at this time. Returns 0 or -errno. */
int talk_birth(int fd, __u32 tid, __u64 ns);

/* Reads the next message, for talk_message(), and a descriptor that came with it (-1: none; the
 * caller owns it). Returns the message's type; 0 if none came within the time; -errno if the peer
 * is gone or does not follow the protocol. */
int talk_get(int wait_ms, size_t *size, int *fd);
const void *talk_message(void);

#endif
