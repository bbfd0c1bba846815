/* SPDX-License-Identifier: BSD-2-Clause */
/* noise.c - see noise.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "noise.h"

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

double noise_median(const double *v, size_t n)
{
	double *sorted = n ? malloc(n * sizeof(*sorted)) : NULL, median;

	if (!sorted)
		return NAN;
	memcpy(sorted, v, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
	free(sorted);
	return median;
}

double noise_spread(const double *v, size_t n)
{
	double median = noise_median(v, n),
	       *far = n > 1 && median != 0 ? malloc(n * sizeof(*far)) : NULL, spread;

	if (!far)
		return NAN;
	for (size_t i = 0; i < n; i++)
		far[i] = fabs(v[i] - median);
	spread = 1.4826 * noise_median(far, n) / fabs(median);
	free(far);
	return spread;
}

/* ---- the rank test ---- */

struct ranked {
	double value;
	uint32_t rank; /* twice its rank; equal values share the mean of their ranks */
	bool now;
};

static int noise_by_rank(const void *pa, const void *pb)
{
	return by_value(&((const struct ranked *)pa)->value, &((const struct ranked *)pb)->value);
}

/* Returns the sum of t^3 - t over the groups of t equals. */
static double give_ranks(struct ranked *r, size_t n)
{
	double ties = 0;

	qsort(r, n, sizeof(*r), noise_by_rank);
	for (size_t i = 0, end; i < n; i = end) {
		double t;

		for (end = i + 1; end < n && r[end].value == r[i].value; end++)
			;
		t = (double)(end - i);
		ties += t * t * t - t;
		for (size_t k = i; k < end; k++)
			r[k].rank = (uint32_t)(i + end + 1);
	}
	return ties;
}

/* Of all ways to choose m of the n, the share whose ranks add up to `sum` or more. ways[k][s]:
 * of the ranks so far, how many choices of k have the sum s. */
static double exact(const struct ranked *r, size_t n, size_t m, uint32_t sum)
{
	size_t width = n * (n + 1) + 1;
	double *ways = calloc((m + 1) * width, sizeof(*ways)), all = 0, above = 0;

	if (!ways)
		return 1;
	ways[0] = 1;
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1 < m ? i + 1 : m; k > 0; k--)
			for (size_t s = width - 1; s >= r[i].rank; s--)
				ways[k * width + s] += ways[(k - 1) * width + s - r[i].rank];
	for (size_t s = 0; s < width; s++) {
		all += ways[m * width + s];
		above += s >= sum ? ways[m * width + s] : 0;
	}
	free(ways);
	return above / all;
}

static double normal(double n, double m, double sum, double ties)
{
	double all = n + m, mean = m * (all + 1) / 2;
	double variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));

	/* half a rank, since ranks are no continuum */
	return variance > 0 ? erfc((sum - mean - 0.5) / sqrt(2 * variance)) / 2 : 1;
}

double noise_p_above(const double *base, size_t nbase, const double *now, size_t nnow)
{
	size_t n = nbase + nnow;
	struct ranked *r = nbase && nnow ? calloc(n, sizeof(*r)) : NULL;
	uint64_t sum = 0;
	double ties, p;

	if (!r)
		return 1;
	for (size_t i = 0; i < n; i++) {
		r[i].now = i >= nbase;
		r[i].value = r[i].now ? now[i - nbase] : base[i];
	}
	ties = give_ranks(r, n);
	for (size_t i = 0; i < n; i++)
		sum += r[i].now ? r[i].rank : 0;
	p = n <= NOISE_EXACT ? exact(r, n, nnow, (uint32_t)sum)
			     : normal((double)nbase, (double)nnow, (double)sum / 2, ties);
	free(r);
	return p;
}

double noise_p_least(size_t nbase, size_t nnow)
{
	double ways = 1;

	if (!nbase || !nnow)
		return 1;
	for (size_t i = 1; i <= nnow; i++)
		ways *= (double)(nbase + i) / (double)i;
	return 1 / ways;
}
