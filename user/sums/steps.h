/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps.h - the steps of each process's program, and what the GPU did in each: `stat --by step`.
 *
 * A process that ended keeps its steps until the end, also if another one has its number.
 *
 * Steps come from ranges that say so, or else from the period of the operators or launches of a
 * thread. Memory is bounded; what found no room is counted. Knows no format.
 */
#ifndef CT_STEPS_H
#define CT_STEPS_H

#include "../event/event.h"
#include "overlap.h"

/* What the steps of a process were told by. */
enum steps_how {
	STEPS_NONE,
	STEPS_RANGE,	 /* ranges of the asked name */
	STEPS_PROFILER,	 /* ProfilerStep#N, of torch.profiler */
	STEPS_OPTIMIZER, /* from the end of Optimizer.step#... to the next one */
	STEPS_OPERATORS, /* the period of the operators of a thread */
	STEPS_LAUNCHES,	 /* the period of its launches */
	STEPS_HOW_END
};
const char *steps_how_word(enum steps_how); /* "profiler", as JSON has it */

struct step {
	uint64_t number; /* N of ProfilerStep#N, else from 1 on */
	uint64_t start_ns, end_ns;
	uint64_t ns[OVERLAP_END]; /* add up to its length; all 0 without device work */
	uint64_t kernels;	  /* that began in it */
	/* of the products whose kernels began in it, and the time that the device would have needed
	 * for them at least; negative: not known of all of them */
	double flop, least_ns;
};

/* A process's. */
struct steps_of {
	uint32_t pid, shown_pid, rank; /* rank: CT_UNKNOWN: none */
	uint64_t start_boottime_ns;    /* of the process */
	uint32_t leader_tid, tid; /* as shown: of its first thread; of the one with the steps */
	char comm[CT_COMM_LEN];
	enum steps_how how;
	double confidence; /* of a period; also of one that was too low */
	uint64_t period;   /* operators or launches in a step */
	struct step *list; /* by start */
	size_t n;
	size_t unseen;	/* further steps, in which something may be missing */
	size_t entered; /* and those in which an agent came into the program */
	uint64_t median_ns;
	bool device;			  /* there is device work of the process */
	bool products;			  /* there are products of matrices with known FLOP */
	uint64_t devices;		  /* that it used: bits, of the first 64 */
	bool beats;			  /* there are operators or launches of the process */
	size_t work, nwork, beat, nbeats; /* its own places in the lists */
};

/* Which share of what its devices could compute at most the products of steps used, in steps that took
 * `ns` together; negative: not known. */
double steps_use(const struct steps_of *, double least_ns, uint64_t ns);

/* What device work does. */
enum overlap_class steps_class(const struct event *);

struct steps;
#define STEPS_MAX 4194304
/* name: a glob that steps' ranges match; NULL: by all there is. max: pieces of device work; a
 * quarter as many operators and launches, and a sixteenth as many ranges. NULL: no memory. */
struct steps *steps_open(const char *name, size_t max);
void steps_close(struct steps *);
/* Returns 1 if the event was used, 0 if not, or -ENOMEM. */
int steps_event(struct steps *, const struct event *);
/* Finds the steps; no event may follow. Returns 0 or -ENOMEM. */
int steps_finish(struct steps *);
/* Before steps_finish(): steps in which something may be missing (event/holes) are not judged, and are not in the lists. */
void steps_holes(struct steps *, const struct holes *);
const struct steps_of *steps_list(const struct steps *, size_t *n);
/* True if there is no room for the next piece of some sort. */
bool steps_full(const struct steps *);
/* Gives room for more; max: as in steps_open(), and not less than before. */
void steps_widen(struct steps *, size_t max);
/* Device work, operators and ranges for which there was no room. Steps after the first are left
 * out. */
uint64_t steps_no_room(const struct steps *);

/* What one step had more of than the others on average. */
struct steps_more {
	const char *work, *op;	  /* untrusted bytes; NULL: none is longer */
	uint64_t work_ns, op_ns;  /* by how much */
	enum overlap_class class; /* the part that grew most */
	uint64_t class_ns;
};
/* Returns 0 or -ENOMEM. Needs two steps at least. */
int steps_compare(const struct steps *, const struct steps_of *, size_t step, struct steps_more *);
#define STEPS_OPS 3
/* What the operators in steps took on the host, the outermost ones of all threads. */
struct steps_ops {
	uint64_t all_ns, ns[STEPS_OPS];
	const char *name[STEPS_OPS]; /* the most time first; untrusted bytes; NULL: no more */
};
/* Returns 0 or -ENOMEM. */
int steps_operators(const struct steps *, const struct steps_of *, struct steps_ops *);
/* The places of the slowest steps, the slowest first. NULL: no memory; the caller frees it. */
size_t *steps_slowest(const struct steps_of *);

#endif
