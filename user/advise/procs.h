/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * procs.h - the processes and threads that rules keep something for: bounded. Rules make their findings at the end,
 * also of processes that have ended by then: so they are in no event/registry, and are found by pid and start.
 */
#ifndef CT_ADVISE_PROCS_H
#define CT_ADVISE_PROCS_H

#include "rule.h"
#include "../util/table/hash_map.h"

struct procs {
	struct advise_process *at[PROCS_MAX];
	uint32_t n;
	struct advise_process *last; /* the one that was asked for before */
	struct hash_map threads;     /* struct thread */
};

/* Returns the process of the event, and makes it if there is none yet. NULL: there are PROCS_MAX already, or there
 * is no memory. */
struct advise_process *procs_find(struct procs *, const struct event *);
/* The same for a thread; the result is valid until the next thread is made. NULL: there are THREADS_MAX already,
 * or there is no memory. */
struct thread *procs_thread(struct procs *, const struct advise_process *, uint32_t tid);
void procs_free(struct procs *);

#endif
