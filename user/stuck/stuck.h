/* SPDX-License-Identifier: BSD-2-Clause */
/* stuck.h - `cudatrace stuck` from beginning to end. */
#ifndef CT_STUCK_H
#define CT_STUCK_H

#include "../request/request.h"
#include "../source/source.h"

#define STUCK_SOME \
	4 /* the exit status when some thread is inside a call for so long, or a rank absent */
#define STUCK_UNDECIDED 5 /* when none is known to be, but it cannot be told of some thread */

/* The options that only `cudatrace stuck` has. */
struct stuck_options {
	uint64_t over_ns; /* inside a call for longer than this */
	bool watch;	  /* look again and again */
	bool merge;	  /* the answers of several machines, from files */
};

/* Of a recording: what the sink does, which is lent to a replay. */
struct stuck_stored {
	uint64_t over_ns;
	bool json;
};

struct asked;
/* Prints what all of its communicators come to; `shown`: what asked_print() returned. */
void stuck_sum(const struct asked *, int shown, struct out *);

/* Prints the threads that are inside a CUDA call for over_ns, once or, with `watch`, until
 * SIGINT. Returns the exit status: 0 for none, STUCK_SOME, STUCK_UNDECIDED, 1 after an error. */
int stuck_run(const struct request *, const struct stuck_options *, const struct source_ops *);

#endif
