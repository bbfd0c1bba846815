/* SPDX-License-Identifier: BSD-2-Clause */
/* procs.h - the processes and threads that rules keep something for: bounded. */
#ifndef CT_ADVISE_PROCS_H
#define CT_ADVISE_PROCS_H

#include "rule.h"
#include "../util/table/hashmap.h"

struct procs {
	struct advise_process *at[PROCS_MAX];
	uint32_t n;
	struct advise_process *last; /* the one that was asked for before */
	struct hashmap threads;	     /* struct thread */
};

/* That of the event, made when there is none yet. NULL: n is PROCS_MAX, or there is no memory. */
struct advise_process *procs_find(struct procs *, const struct event *);
/* Likewise a thread; valid until the next one is made. NULL: there are THREADS_MAX, or there
 * is no memory. */
struct thread *procs_thread(struct procs *, const struct advise_process *, uint32_t tid);
void procs_free(struct procs *);

#endif
