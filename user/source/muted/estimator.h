/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * estimator.h - estimates how many calls were made while nothing counted them, from short windows
 * in which every call was counted.
 *
 * The windows begin at random instants, one in each stretch of time, so a periodic program cannot
 * have its calls always between them. Two measures say how much of a process's activity lies
 * outside the windows:
 *
 *   - calls of other functions, which are counted all the time (the ratio estimator). This is
 *     correct even if the probes slow the program down in a window, and it is used if a process
 *     makes such calls. If such calls come in bursts (the allocations of a step), so that many
 *     windows have none, and the time is known exactly, time is the better measure;
 *   - time. In a window the probes slow the program down, and their cost is known only within
 *     bounds: an empty pair of probes was measured before, on an idle machine, and the calls' own
 *     durations include about half of the cost of their probes. The interval reaches from the
 *     lowest possible cost to the highest. If the probes may have taken nearly all of a window, the
 *     duration of a call without them is unknown: the interval then reaches up to one call every
 *     ESTIMATOR_BARE_NS.
 *
 * The interval holds the truth in 95 of 100 cases: Student's t over the variance between the
 * windows, and at least that of counts that come independently. With less than two windows (four if
 * the measure is time) no variance is known: then the interval holds everything that is possible.
 * If the upper end is more than twice the lower one, the estimate is the lower bound, because no
 * value in the middle is more likely than the others. Knows no BPF and no process.
 */
#ifndef CT_ESTIMATOR_H
#define CT_ESTIMATOR_H

#include "../../util/types.h"
#include "../../../wire/cudatrace.h"

#define ESTIMATOR_BARE_NS 5 /* no call takes less */

/* What was seen in the windows so far, as sums, sums of squares and sums of products. x: calls; r:
 * calls of other functions; w: length in ns. */
struct estimator_windows {
	uint32_t n;
	double x, xx, xr, xw, r, rr, w, ww;
};
void estimator_add(struct estimator_windows *, double x, double r, double w);

/* The activity outside the windows, and what else is known. */
struct estimator_rest {
	double r; /* calls of other functions */
	/* the time that was certainly used, and the time that may have been used */
	double ns, most_ns;
	/* the maximum delay of readings of the time that a process has used */
	double tick_ns;
	/* calls per ns before the first window, when all calls were counted; 0: not known */
	double rate;
	bool called; /* the function was called then, or in a window */
	/* ns is elapsed time and not CPU time. It is exact, so calls of other functions are not
	 * used if they come in bursts */
	bool by_time;
	/* of the process, in all windows together: */
	double hits, window_ns; /* calls that hit a pair of probes; total length of the windows */
	/* the calls whose duration is known, and the sum of the durations */
	double timed, spent_ns;
	double pair_ns; /* what an empty pair of probes cost a call; 0: not known */
	/* On average there is so many times as much time as windows; 0: not known. A process of which
	 * a window saw only the end, or the begin, has a much greater share of its time outside
	 * windows, but others like it were missed by all windows. */
	double times;
};
/* The calls that nothing counted; a process that made none has zeros. */
struct ct_estimated estimator_estimate(const struct estimator_windows *,
				       const struct estimator_rest *);

#endif
