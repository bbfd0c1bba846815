/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * door.h - how a descriptor comes from the agent's thread, which has a descriptor table of its own, to a
 * thread of the program, and how a forked child gets a connection. Who needs one opens a door: a listening
 * socket, whose address it writes into the area (struct hooks_door). It rings, and the agent's thread comes
 * in. The program's table has these sockets for that time alone.
 */
#ifndef CT_HOOKS_DOOR_H
#define CT_HOOKS_DOOR_H

#include <stdbool.h>

#include "../../wire/hooks_wire.h"

/* Rings for the agent's thread, on a thread of the program; makes one system call. */
void bell_ring(struct hooks_area *);
/* The agent's thread: what the bell says now; and waits until it says something else. */
__u32 bell_look(const struct hooks_area *);
void bell_wait(struct hooks_area *, __u32 looked, int wait_ms);

enum door_kind {
	DOOR_CHILD, /* a forked child wants a connection to the user side, which gets the visitor's end */
	DOOR_LEAVE /* the agent's thread must end: it sends its descriptors through the door */
};

/*
 * In a forked child, or in a program with one thread of its own: waits until the agent's thread has come
 * in. who: the caller sets kind, pid, tid and ns. reserved: NULL, or a door that was reserved before the
 * fork. Returns a connected socket, or -errno; the agent's thread is told why a child got none.
 */
int door_open(struct hooks_area *, struct hooks_door *reserved, const struct hooks_door *who,
	      int wait_ms);

/* Before fork(2): a door for the child; NULL: there is none. After it, in the parent: whether the child has
 * not opened it yet, and whether it was answered; and gives it back if it was not opened. */
struct hooks_door *door_reserve(struct hooks_area *);
bool door_is_reserved(const struct hooks_door *);
bool door_is_answered(const struct hooks_door *);
void door_release(struct hooks_door *);

/* From now on nobody comes in: who waits, and who opens a door later, is told at once. */
void doors_close(struct hooks_area *);

/* The agent's thread: the next one that waits; NULL: nobody. It must be answered. */
struct hooks_door *door_next(struct hooks_area *);
/* Returns a socket that is connected to who waits, or -errno. */
int door_enter(struct hooks_door *);
/* It was answered: err is 0, or says why not. */
void door_done(struct hooks_door *, int err);

#endif
