/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * noise.h - is a difference between two series of runs more than noise? Medians, their spread,
 * and the rank test of Mann, Whitney and Wilcoxon, which makes no assumption about the
 * distribution of the noise. Knows only numbers.
 */
#ifndef CT_NOISE_H
#define CT_NOISE_H

#include "../util/types.h"

double noise_median(const double *v, size_t n); /* NAN: n is 0, or there is no memory */
/* How far runs lie from their median: the median distance, times 1.4826 (so that it is the
 * standard deviation if the noise is normal), as a share of the median. NAN: a single run, or the
 * median is 0. */
double noise_spread(const double *v, size_t n);

/*
 * The chance that the runs of `now` rank at least as high among all runs as they do, if nothing but noise makes them differ from those of `base`. Exact, also with ties, for up to NOISE_EXACT runs in all;
 * for more runs by the normal distribution. 1: no memory, or a side is empty.
 */
#define NOISE_EXACT 40
double noise_p_above(const double *base, size_t nbase, const double *now, size_t nnow);
/* The smallest value that noise_p_above() can return with so many runs. */
double noise_p_least(size_t nbase, size_t nnow);

#endif
