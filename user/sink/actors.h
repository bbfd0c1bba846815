/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * actors.h - the processes and threads that a sink has met, so that it introduces each of them once. Knows no format.
 */
#ifndef CT_ACTORS_H
#define CT_ACTORS_H

#include "../event/event.h"

struct actor {
	uint32_t pid, tid;	     /* initial namespace; tid 0: the process */
	uint32_t shown_pid, shown_tid;
	uint64_t start_boottime_ns;  /* of the process: a pid alone is reused */
	char comm[CT_COMM_LEN + 1];  /* of the process */
	bool introduced;	     /* false until the sink sets it; again when the process has a new name */
	void *own;		     /* the sink's; given to the `drop` of actors_forget() */
	struct actor *process;	     /* of a thread */
};

struct actors;
struct actors *actors_open(void); /* NULL: no memory */
/* drop: called for each, may be NULL. */
void actors_close(struct actors *, void (*drop)(struct actor *));
/* The thread of the event; it and its process are made if they are new. NULL: no memory. */
struct actor *actors_of(struct actors *, const struct event *);
/* Calls fn for each until it returns other than 0, and returns that. */
int actors_each(struct actors *, int (*fn)(void *ctx, struct actor *), void *ctx);
/* So many are known that it is time to forget them. */
bool actors_is_full(const struct actors *);
void actors_forget(struct actors *, void (*drop)(struct actor *));

#endif
