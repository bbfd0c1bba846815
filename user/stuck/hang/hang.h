/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hang.h - finds hangs in repeated looks at processes: ranks that wait in a collective for one that does
 * not come, collectives that all ranks have begun and that do not end, threads that stay inside a call.
 * A rank that others wait for while it is at work is no hang, and is named as such.
 *
 * Knows no process, no source and no clock: what a look saw, and when, is given to it. One incident is
 * all that has a process in common. What it is given is untrusted.
 */
#ifndef CT_HANG_H
#define CT_HANG_H

#include "../../nccl/nccl_job.h"

enum hang_kind {
	HANG_CALL,   /* a thread is inside a call, and nothing says more */
	HANG_ALL_IN, /* all ranks have begun the same collectives, and the last does not end */
	HANG_DIFFER, /* ranks do not call the same collectives, or not with the same arguments */
	HANG_ABSENT, /* ranks have not begun a collective that others wait in */
	HANG_CIRCLE, /* ranks wait for each other in a circle */
	HANG_RANK_ENDED, /* no hang: a signal has ended a process (endings.h) */
	HANG_KINDS
};

/* What a process is at that others wait for. */
enum hang_doing {
	HANG_UNKNOWN,
	HANG_ENDED,    /* there is no such process any more */
	HANG_STOPPED,  /* by a signal */
	HANG_DEBUGGED, /* by a debugger */
	HANG_LOCK,     /* a thread is inside a call, and holds Python's lock */
	HANG_INSIDE,   /* a thread is inside a call */
	HANG_WAITS,
	HANG_AT_WORK, /* from here on it goes on elsewhere */
	HANG_COMPUTES = HANG_AT_WORK,
	HANG_FILES,	/* it reads or writes */
	HANG_CHILD,	/* a program that it has started computes */
	HANG_OTHER_CALL /* its calls of CUDA return, or work of its device completes */
};

/* A process at a look. */
struct hang_proc {
	uint32_t pid;	/* as users see it */
	uint64_t began; /* its begin in any unit: another process with the number has another one */
	char name[16];
	char state;	 /* as ps(1) shows it; 0: it is gone */
	uint32_t tracer; /* the process that traces it, but for ourselves; 0: none */
	uint32_t holder; /* the thread that holds Python's lock; 0: none, or not known */
	char wait[32];	 /* where in the kernel the main thread sleeps; "": not known */
	uint64_t cpu_ns, child_ns, io_bytes;
};

/* A thread that is inside a call. */
struct hang_call {
	uint32_t pid, tid;
	uint64_t since_ns; /* it began then, or earlier */
	char name[64];
};

struct hang_look {
	uint64_t at_ns;
	const struct hang_proc *procs; /* of all communicators and calls */
	size_t nprocs;
	const struct hang_call *calls;
	size_t ncalls;
	const struct nccl_job *job; /* sorted; still_ns is 0 if it is less than the time of a hang */
	/* do calls that were seen differ in what ranks ask for, or wait in a circle? NULL: not known */
	bool (*differs)(void *ctx, uint64_t hash);
	bool (*circles)(void *ctx, uint64_t hash);
	void *ctx;
};

#define HANG_PIDS_MAX 256
#define HANG_CULPRITS_MAX 8

struct hang_culprit {
	uint32_t pid, tid; /* tid: HANG_LOCK, HANG_INSIDE */
	int rank;	   /* -1: not known */
	enum hang_doing doing;
	uint32_t tracer;
	char name[16], inside[64], wait[32];
};

struct hang_incident {
	uint64_t number; /* from 1; the same as long as it lasts */
	enum hang_kind kind;
	bool at_work; /* all that is waited for is at work: no hang */
	bool hung;    /* it is or was a hang */
	bool fresh;   /* this look found it, or found that it is a hang by now: it is said once */
	uint64_t since_ns;
	/* the communicator; 0: none */
	uint64_t hash;
	int nranks, waiting, seen;	  /* ranks; those that wait, and those of this machine */
	char collective[NCCL_KIND_BYTES]; /* "": not known */
	uint64_t sequence;
	uint32_t pids[HANG_PIDS_MAX];
	size_t npids;
	struct hang_culprit culprits[HANG_CULPRITS_MAX];
	size_t nculprits, culprits_in_all;
};

struct hang;

struct hang *hang_open(uint64_t over_ns); /* NULL: no memory */
void hang_close(struct hang *);		  /* takes NULL */

/* A call of the process has returned, or (work) work of its device has completed, at that time. */
void hang_progress(struct hang *, uint32_t pid, uint64_t at_ns, bool work);

/* What a look saw. *list: the incidents now, valid until the next look. Returns their number or -ENOMEM. */
int hang_look(struct hang *, const struct hang_look *, const struct hang_incident **list);
/* The incidents that the last look did not find any more; likewise. */
size_t hang_ended(const struct hang *, const struct hang_incident **list);

/* The hang that the last look found and in which the process has a part; NULL: none. Valid until the next look. */
const struct hang_incident *hang_of(const struct hang *, uint32_t pid);
/* The communicator in which a look saw the process as a rank, and the rank; 0: none did. */
uint64_t hang_seat(const struct hang *, uint32_t pid, int *rank);
/* The processes that a look saw as ranks of the communicator. Returns how many, `most` at most. */
size_t hang_ranks(const struct hang *, uint64_t hash, uint32_t *pids, size_t most);

#endif
