/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join_procs.h - inside join: the processes that have calls or device work, and their latest launches of graphs.
 */
#ifndef CT_JOIN_PROCS_H
#define CT_JOIN_PROCS_H

#include "join_calls.h"

#define JOIN_LAUNCHES 64 /* graph launches remembered of a process; a power of two */

struct join_launch {
	struct join_call call;
	uint32_t tid, stream; /* stream CT_UNKNOWN: not known */
};

struct join_proc {
	uint32_t pid;	 /* 0: free */
	uint32_t id;	 /* never the same again: another after an exec, and for another process with the pid */
	uint32_t number; /* of its last call */
	bool exited;
	uint64_t start_boottime_ns; /* 0: not known */
	uint32_t nlaunches;	    /* ever; the newest are there */
	struct join_launch *launches;
};

struct join_procs;
struct join_procs *join_procs_open(void); /* NULL: no memory */
void join_procs_close(struct join_procs *);
/* The process of a pid, which may be new. Valid until the next call with another pid. NULL: no memory. */
struct join_proc *join_procs_get(struct join_procs *, uint32_t pid);
/* A process began, was told of again, or became another program: sets its id anew where it is not what it was. */
void join_procs_record(struct join_procs *, struct join_proc *, const struct ct_process *);
/* Would join_procs_record() set its id anew? */
bool join_procs_renews(const struct join_proc *, const struct ct_process *);
void join_procs_launch(struct join_proc *, const struct join_launch *);
/* The latest launch of a graph, on the work's stream as far as that is known, that began before the work. NULL: none. */
const struct join_launch *join_procs_launched(const struct join_proc *, const struct ct_work *);
size_t join_procs_bytes(const struct join_procs *);

#endif
