/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * estimator.h - how many calls were made while nothing counted them, told from short windows in
 * which each was counted.
 *
 * The windows begin at random instants, one in each stretch of time, so a program that repeats
 * itself cannot fall between them. Two measures say how much of what a process did lies outside the
 * windows:
 *
 *   - calls of other functions, which are counted all the time (the ratio estimator): right
 *     however much the probes slow the program
 *     down in a window, and used where a process makes such calls;
 *     Where such calls come in bursts (the allocations of a step), so that many windows have
 *     none, and the time is known exactly, time is the better one;
 *   - time: in a window the program is slowed down by the probes, and what they cost it is known
 *     within bounds alone: an empty pair of
 *     probes was measured before, on an idle machine, and the calls' own durations hold about
 *     half of what theirs cost. The interval
 *     reaches from the least of that to the most. Where the probes may have taken nearly all of
 *     a window, the time that a call takes
 *     without them cannot be told: the interval then reaches up to one call every
 *     ESTIMATOR_BARE_NS.
 *
 * The interval holds the truth in 95 of 100 cases: Student's t over the variance between the
 * windows, and at least that of counts that come independently. With less than two windows, by
 * time with less than four, no variance is known: then the interval is what is possible at all.
 * Where the upper end is more than twice the lower one, the estimate is the lower bound: nothing
 * in the middle is likelier than the rest. Knows no BPF and no process.
 */
#ifndef CT_ESTIMATOR_H
#define CT_ESTIMATOR_H

#include "../../util/types.h"

#define ESTIMATOR_BARE_NS 5 /* no call takes less */

/* What the windows so far saw: x: calls; r: calls of other functions; w: length in ns. Sums,
 * sums of squares and of products. */
struct estimator_windows {
	uint32_t n;
	double x, xx, xr, xw, r, rr, w, ww;
};
void estimator_add(struct estimator_windows *, double x, double r, double w);

/* What went by outside of them, and what is known beside. */
struct estimator_rest {
	double r;	    /* calls of other functions */
	double ns, most_ns; /* time: what is known to have been used, and what may have been */
	/* readings of the time that a process has used are late by so much at the most */
	double tick_ns;
	/* calls per ns when all were counted, before the first window; 0: not known */
	double rate;
	bool called; /* it was called then, or in a window */
	/* ns is time and not CPU time: exact, so that references which come in bursts are passed
	 * over */
	bool by_time;
	/* of the process, in all windows together: */
	double hits, window_ns; /* calls that hit a pair of probes; how long the windows were */
	double timed, spent_ns; /* of those whose duration is known, the number and the sum */
	double pair_ns;		/* what an empty pair of probes cost a call; 0: not known */
};
/* The calls that nothing counted; a process that made none has zeros. */
struct ct_estimated estimator_estimate(const struct estimator_windows *,
				       const struct estimator_rest *);

#endif
