/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listener.h - how a descriptor comes from the thread of the hooks, which has a descriptor table of its own, to a
 * thread of the program, and how a forked child gets a connection. Who needs one listens on a socket, whose
 * address is in the area (struct hooks_listener), and wakes the thread of the hooks, which connects to it. The
 * program's table has these sockets for that time alone.
 */
#ifndef CT_HOOKS_DOOR_H
#define CT_HOOKS_DOOR_H

#include <stdbool.h>

#include "../../wire/hooks_wire.h"

/* Rings for the thread of the hooks, on a thread of the program; makes one system call. */
void bell_ring(struct hooks_area *);
/* The thread of the hooks: what the bell says now; and waits until it says something else. */
__u32 bell_look(const struct hooks_area *);
void bell_wait(struct hooks_area *, __u32 looked, int wait_ms);

enum listener_kind {
	LISTENER_CHILD, /* a forked child wants a connection to the user side, which gets the other end */
	LISTENER_LEAVE /* the thread of the hooks must end: it sends its descriptors over the connection */
};

/*
 * In a forked child, or in a program with one thread of its own: waits until the thread of the hooks has
 * connected. who: the caller sets kind, pid, tid and ns. reserved: NULL, or a listener that was reserved before the
 * fork. Returns a connected socket, or -errno; the thread of the hooks is told why a child got none.
 */
int listener_open(struct hooks_area *, struct hooks_listener *reserved,
		  const struct hooks_listener *who, int wait_ms);

/* Before fork(2): a listener for the child; NULL: there is none. After it, in the parent: whether the child has
 * not opened it yet, and whether it was answered; and gives it back if it was not opened. */
struct hooks_listener *listener_reserve(struct hooks_area *);
bool listener_is_reserved(const struct hooks_listener *);
bool listener_is_answered(const struct hooks_listener *);
void listener_release(struct hooks_listener *);

/* From now on nobody is connected: who waits, and who listens later, is told at once. */
void listeners_close(struct hooks_area *);

/* The thread of the hooks: the next one that waits; NULL: nobody. It must be answered. */
struct hooks_listener *listener_next(struct hooks_area *);
/* Returns a socket that is connected to who waits, or -errno. */
int listener_connect(struct hooks_listener *);
/* It was answered: err is 0, or says why not. */
void listener_done(struct hooks_listener *, int err);

#endif
