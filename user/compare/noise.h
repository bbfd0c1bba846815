/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * noise.h - is a difference between two series of runs more than noise? Medians, their spread,
 * and the rank test of Mann, Whitney and Wilcoxon, which asks nothing of how the noise is
 * distributed. Knows numbers alone.
 */
#ifndef CT_NOISE_H
#define CT_NOISE_H

#include "../util/types.h"

double noise_median(const double *v, size_t n); /* NAN: n is 0, or there is no memory */
/* How far runs lie from their median: the median distance, times 1.4826 (so that it is the
 * standard deviation where the noise is normal), as a share of the median. NAN: of a single run,
 * or of a median of 0. */
double noise_spread(const double *v, size_t n);

/*
 * The chance that runs of `now` rank as high among all as they do if nothing but noise told them
 * from those of `base`. Exact, ties included, up to NOISE_EXACT runs together, beyond by the
 * normal distribution. 1: no memory, or a side is empty.
 */
#define NOISE_EXACT 40
double noise_p_above(const double *base, size_t nbase, const double *now, size_t nnow);
/* The least that can come out of it with so many runs. */
double noise_p_least(size_t nbase, size_t nnow);

#endif
