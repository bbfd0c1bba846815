/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join_procs.h - inside join: the processes that have calls or device work, and their latest
 * launches of graphs.
 */
#ifndef CT_JOIN_PROCS_H
#define CT_JOIN_PROCS_H

#include "join_calls.h"

#define JOIN_LAUNCHES 64 /* graph launches remembered of a process; a power of two */

struct join_launch {
	struct join_call call;
	uint32_t tid, stream; /* stream CT_UNKNOWN: not known */
};

/* What is to be counted of a process whose agent is gone without having given out all. */
struct join_tail {
	bool pending;
	uint8_t expects;	 /* JOIN_EXPECTS_* */
	uint32_t id;		 /* of the process, as it was */
	uint64_t from_ns, to_ns; /* of calls in this time */
	uint64_t due_ns;	 /* then all that was on the way is there; 0: not known yet */
	/* device records since then whose call is not known: it is one of those without */
	uint64_t lone;
};

#define JOIN_CAPTURES 8 /* threads of a process that make graphs at once, of which that is known */

struct join_proc {
	uint32_t pid; /* 0: free */
	/* never the same again: another after an exec, and for another process with the pid */
	uint32_t id;
	uint32_t was_id;     /* the one before; 0: none */
	uint64_t renewed_ns; /* with was_id: until when */
	uint32_t number;     /* of its last call */
	bool exited;
	bool asked; /* calls of it succeeded that have device records */
	bool heard; /* device records came of it, or what an agent says of devices */
	uint64_t start_boottime_ns; /* 0: not known */
	uint32_t nlaunches;	    /* ever; the newest are there */
	struct join_launch *launches;
	uint32_t capturing[JOIN_CAPTURES]; /* thread ids; 0: none */
	struct join_tail tail;
};

struct join_procs;
struct join_procs *join_procs_open(void); /* NULL: no memory */
void join_procs_close(struct join_procs *);
/* The process of a pid, which may be new. Valid until the next call with another pid. NULL: no
 * memory. */
struct join_proc *join_procs_get(struct join_procs *, uint32_t pid);
/* A process began, was told of again, or became another program: sets its id anew where it is
 * not what it was. */
void join_procs_record(struct join_procs *, struct join_proc *, const struct ct_process *);
/* Would join_procs_record() set its id anew? */
bool join_procs_renews(const struct join_proc *, const struct ct_process *);
/* The id that it had at a moment. */
static inline uint32_t join_procs_id(const struct join_proc *p, uint64_t at_ns)
{
	return p->was_id && at_ns < p->renewed_ns ? p->was_id : p->id;
}
/* A thread begins to make a graph of its calls, or ends that. */
void join_procs_capture(struct join_proc *, uint32_t tid, bool begins);
bool join_procs_captures(const struct join_proc *, uint32_t tid);
/* A process whose tail is due; one whose due time is not known gets it: `wait_ns` from now.
 * NULL: none. */
struct join_proc *join_procs_due(struct join_procs *, uint64_t now_ns, uint64_t wait_ns);
/* How many processes asked and were not heard, ever; *first: one of them. */
uint64_t join_procs_unheard(const struct join_procs *, uint32_t *first);
void join_procs_launch(struct join_proc *, const struct join_launch *);
/* The latest launch of a graph, on the work's stream as far as that is known, that began before
 * the work. NULL: none. */
const struct join_launch *join_procs_launched(const struct join_proc *, const struct ct_work *);
size_t join_procs_bytes(const struct join_procs *);

#endif
