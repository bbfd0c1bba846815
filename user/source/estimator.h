/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * estimator.h - how many calls were made while nothing counted them, told from short windows in which each was counted.
 *
 * The windows begin at random instants, one in each stretch of time, so a program that repeats itself cannot fall between them.
 * Two measures say how much of what a process did lies outside the windows:
 *
 *   - calls of other functions, which are counted all the time (the ratio estimator): right however much the probes slow the program
 *     down in a window, and used where a process makes such calls;
 *   - time: in a window the program is slowed down by the probes, by an unknown part of what they cost. The estimate assumes the
 *     measured cost of a probe; the interval reaches from none of it to more than that.
 *
 * The interval holds the truth in 95 of 100 cases: Student's t over the variance between the windows, and at least that of counts
 * that come independently. With less than two windows no variance is known: then the interval is what is possible at all.
 * Knows no BPF and no process.
 */
#ifndef CT_ESTIMATOR_H
#define CT_ESTIMATOR_H

#include "../util/types.h"

#define ESTIMATOR_BARE_NS 5 /* no call takes less */

/* What the windows so far saw: x: calls; r: calls of other functions; w: length in ns. Sums, sums of squares and of products. */
struct estimator_windows {
	uint32_t n;
	double x, xx, xr, xw, r, rr, w, ww;
};
void estimator_add(struct estimator_windows *, double x, double r, double w);

/* What went by outside of them, and what is known beside. */
struct estimator_rest {
	double r;	/* calls of other functions */
	double ns;	/* time */
	double busy;	/* 0..1: the share of the windows that the probes took, as far as it is known */
	double rate;	/* calls per ns when all were counted, before the first window; 0: not known */
};
/* The calls that nothing counted; a process that made none has zeros. */
struct ct_estimated estimator_estimate(const struct estimator_windows *, const struct estimator_rest *);

#endif
