/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bounded.h - work that may never end, with a time limit: reading what other users' programs serve
 * (FUSE, userfaultfd), or what is on a server that does not answer. Knows no domain.
 *
 * A worker does it. If it takes too long the worker is left behind, with the job, and frees the job
 * if it ever comes back. A worker has our memory and our descriptors but is a process of its own,
 * because a thread that waits for FUSE cannot be killed and a program does not end before its last
 * thread has ended. So nobody can keep us from continuing, and nobody from ending.
 */
#ifndef CT_BOUNDED_H
#define CT_BOUNDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOUNDED_OF_OWNER 4 /* workers left behind on behalf of one owner */
#define BOUNDED_IN_ALL 32
#define BOUNDED_LATE_NICE 10	  /* by how much nicer a worker is that was left behind */
#define BOUNDED_NOBODY UINT32_MAX /* for when the owner is not known */

/* Allocated by malloc, as the first member of the struct that the work needs. That struct must
 * hold all that `run` uses, because the caller may be gone by then. */
struct bounded_job {
	/* called by a worker, with all signals blocked; must not write messages */
	void (*run)(struct bounded_job *);
	/* called by a worker that was left behind: frees the job and what it holds */
	void (*drop)(struct bounded_job *);
	/* `drop` hands in the result: a job that was left behind is not given up */
	bool later;
	/* set with -ETIMEDOUT if a signal ended the worker in the middle of the job. What it was
	 * doing is not known, so the job is left as it is, and never freed. */
	bool crashed;
	/* Bytes by which our memory may grow while the job runs; 0: no limit. Beyond it malloc()
	 * fails, only in this worker. Memory that other threads take meanwhile counts, too.
	 * `measure` says how much writable memory of its own this process has, as RLIMIT_DATA
	 * counts it; 0: that is not known, and there is no limit. */
	uint64_t (*measure)(void);
	uint64_t grow_max;
	int64_t grew;		  /* set when the job is done, if there is such a limit */
	bool no_memory;		  /* set with `crashed` if it called bounded_no_memory() */
	struct bounded_job *next; /* the list of jobs that are left so; for bounded.c only */
};

/*
 * Has a worker run the job and waits for at most limit_ms. `owner` says on whose behalf, as a
 * user's number: what one owner holds up does not keep others from being served. Returns
 *   0           the job was run and is the caller's again;
 *   -ETIMEDOUT  it takes longer: it is the worker's now and must not be touched;
 *   -EBUSY      too many are left behind already, it was not begun: the caller's;
 *   -ENOMEM     no worker could be made: the caller's.
 */
int bounded_run(struct bounded_job *, uint32_t owner, unsigned int limit_ms);

/* For a library that cannot continue when malloc() fails: ends the worker that runs a job. */
__attribute__((noreturn)) void bounded_no_memory(void);

/* Ends the workers that wait for work. Those that are left behind stay: as they share our table
 * of descriptors, all descriptors from 3 on are closed when there are any, so that no probe
 * outlives us. For the very end of main(). */
void bounded_close(void);

struct bounded_counts {
	uint64_t jobs;	   /* jobs that were run or begun */
	uint64_t left;	   /* jobs that were not done within their time, ever */
	uint64_t refused;  /* jobs that were not begun, because of those */
	uint64_t crashed;  /* workers that were ended by a signal, or had no memory */
	unsigned int held; /* workers that are left behind now */
};
void bounded_counts(struct bounded_counts *);

#endif
