/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join_procs.h - inside join: the processes that have calls or device work, and their latest graph
 * launches.
 */
#ifndef CT_JOIN_PROCS_H
#define CT_JOIN_PROCS_H

#include "../registry.h"
#include "join_calls.h"

#define JOIN_LAUNCHES 64 /* graph launches remembered for each process; a power of two */

struct join_launch {
	struct join_call call;
	uint32_t tid, stream; /* stream CT_UNKNOWN: not known */
};

/* What is to be counted for a process whose agent is gone before it sent all its records. */
struct join_tail {
	uint8_t expects;	 /* JOIN_EXPECTS_* */
	uint32_t id;		 /* id of the process at that time */
	uint64_t from_ns, to_ns; /* only calls in this time are counted */
	/* when all records that were on the way have arrived; 0: not known yet */
	uint64_t due_ns;
	/* number of device records since then whose call is not known: each belongs to one of
	 * the calls without a device record */
	uint64_t lone;
};

#define JOIN_CAPTURES 8 /* threads of a process that are remembered while they capture graphs */

struct join_proc {
	struct registered r; /* held: its tail is to be counted */
	/* never reused: an exec changes it, and another process with the same pid gets another
	 * one */
	uint32_t id;
	uint32_t was_id;     /* the id before this one; 0: none */
	uint64_t renewed_ns; /* with was_id: when the id changed */
	uint32_t number;     /* of its last call */
	uint32_t nodes;	     /* of graphs that wait for their calls */
	bool asked;	     /* calls of it succeeded that should have device records */
	bool heard;	     /* device records came from it, or an agent's records about devices */
	/* launches that each have a kernel's record, of which none was captured or failed, and
	 * the kernels that came, without those of graphs */
	uint64_t launched, kernels;
	uint64_t reported; /* launches without a record that CT_LOST records have counted */
	/* when the process last used CUPTI itself, so that no device record was made: not after
	 * taken_until_ns (CT_HOLE_OPEN: it still does); 0: it never did */
	uint64_t taken_ns, taken_until_ns;
	bool left;	    /* its agent is gone: no more device records come */
	uint32_t nlaunches; /* number of launches ever; only the newest are stored */
	struct join_launch *launches;
	uint32_t capturing[JOIN_CAPTURES]; /* thread ids; 0: none */
	struct join_tail tail;
};

struct join_procs;
struct join_procs *join_procs_open(void); /* NULL: no memory */
void join_procs_close(struct join_procs *);
/* Finds the process of a pid, or makes one. NULL: no memory. */
struct join_proc *join_procs_get(struct join_procs *, uint32_t pid);
/* Handles a record that says that a process began, was reported again, became another program, or has
 * ended. It gets a new id if it is not the process that it was. One that has ended is remembered for
 * JOIN_PROCS_NS more, because its last device work may come later, and then until room is needed. */
#define JOIN_PROCS_NS 5000000000ULL
void join_procs_record(struct join_procs *, const struct ct_hdr *);
/* The id that the process had at a moment. */
static inline uint32_t join_procs_id(const struct join_proc *p, uint64_t at_ns)
{
	return p->was_id && at_ns < p->renewed_ns ? p->was_id : p->id;
}
/* Notes that a thread begins or ends the capture of its calls into a graph. */
void join_procs_capture(struct join_proc *, uint32_t tid, bool begins);
bool join_procs_captures(const struct join_proc *, uint32_t tid);
/* Finds a process whose tail is due. A process without a due time gets one: `wait_ns` from now.
 * NULL: none. */
struct join_proc *join_procs_due(struct join_procs *, uint64_t now_ns, uint64_t wait_ns);
/* True if the process used CUPTI itself at that time. */
static inline bool join_procs_taken(const struct join_proc *p, uint64_t at_ns)
{
	return p->taken_ns && at_ns >= p->taken_ns && at_ns < p->taken_until_ns;
}
/* Number of processes with `asked` and without `heard` so far; *first: one of them. */
uint64_t join_procs_unheard(const struct join_procs *, uint32_t *first);
/* At least so many launches of the process have no device record, beside those that were reported. */
uint64_t join_procs_missing(const struct join_proc *);
/* Hands out each process, and at last, with a pid of 0, what came of those that were forgotten: once of those that
 * were heard, once of the others. */
int join_procs_each(const struct join_procs *, int (*each)(void *ctx, const struct join_proc *),
		    void *ctx);
void join_procs_launch(struct join_proc *, const struct join_launch *);
/* Finds the latest graph launch that began before the work, on the work's stream if that is
 * known. NULL: none. */
const struct join_launch *join_procs_launched(const struct join_proc *, const struct ct_work *);
size_t join_procs_bytes(const struct join_procs *);

#endif
