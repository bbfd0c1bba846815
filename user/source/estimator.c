/* SPDX-License-Identifier: BSD-2-Clause */
/* estimator.c - see estimator.h. */
#include <math.h>

#include "estimator.h"

#define REFERENCES_MIN 8  /* calls of other functions in the windows from which on they are the better measure */
#define BUSY_MAX 0.9	  /* of a window that probes may take for its rate to say anything */
#define BUSY_DOUBT 1.6	  /* probes may cost so many times what an empty pair costs */
#define NONE_SEEN 3.0	  /* what was seen not once may have happened three times over, at 95 % */

/* Student's t for 95 %, two-sided, by degrees of freedom from 1 on. */
static double student(uint32_t freedom)
{
	static const double t[] = { 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
				    2.12,  2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04 };

	return freedom <= ARRAY_LEN(t) ? t[freedom - 1] : 2.0;
}

void estimator_add(struct estimator_windows *s, double x, double r, double w)
{
	s->n++;
	s->x += x;
	s->xx += x * x;
	s->xr += x * r;
	s->xw += x * w;
	s->r += r;
	s->rr += r * r;
	s->w += w;
	s->ww += w * w;
}

static int64_t whole(double v)
{
	return v < 0 ? 0 : v < 4e18 ? (int64_t)(v + 0.5) : (int64_t)4e18;
}

/* The half width of the interval around x / z * rest, where z is the measure and zz, xz its square's and product's sums. */
static double half_width(const struct estimator_windows *s, double z, double zz, double xz, double rest)
{
	double ratio = s->x / z, k = rest / z;
	double between = (s->xx - 2 * ratio * xz + ratio * ratio * zz) / (s->n - 1) * s->n;

	return student(s->n - 1) * sqrt(fmax(between, s->x) * (k * k + k));
}

/* What is possible at all: from nothing to one call after the other. */
static struct ct_estimated bounds(double calls, double ns)
{
	double most = ns / ESTIMATOR_BARE_NS;

	calls = calls < most ? calls : most;
	return (struct ct_estimated){ .calls = whole(calls), .below = whole(calls), .above = whole(most - calls) };
}

static struct ct_estimated by_time(const struct estimator_windows *s, const struct estimator_rest *rest)
{
	double slow = s->x / s->w * rest->ns, half = half_width(s, s->w, s->ww, s->xw, rest->ns);
	double busy = fmin(rest->busy, BUSY_MAX), calls = slow / (1 - busy), most = rest->ns / ESTIMATOR_BARE_NS, above;

	above = busy * BUSY_DOUBT < BUSY_MAX ? slow / (1 - busy * BUSY_DOUBT) : most;
	calls = fmin(calls, most);
	half /= 1 - busy;
	return (struct ct_estimated){ .calls = whole(calls), .below = whole(fmin(calls, calls - slow + half)),
				      .above = whole(fmin(fmax(above - calls, 0) + half, fmax(most - calls, 0))) };
}

struct ct_estimated estimator_estimate(const struct estimator_windows *s, const struct estimator_rest *rest)
{
	bool counted = s->x > 0 || rest->rate > 0, references = s->r >= REFERENCES_MIN && rest->r >= 0;
	double calls, half;

	if (rest->ns <= 0 || (references && rest->r <= 0))
		return (struct ct_estimated){ 0 };
	if (s->n < 2)
		return counted ? bounds((s->n && s->x > 0 ? s->x / s->w : rest->rate) * rest->ns, rest->ns) : (struct ct_estimated){ 0 };
	if (s->x <= 0)
		return (struct ct_estimated){ .above = counted ? whole(NONE_SEEN * (references ? rest->r / s->r : rest->ns / s->w)) : 0 };
	if (!references)
		return by_time(s, rest);
	calls = s->x / s->r * rest->r;
	half = half_width(s, s->r, s->rr, s->xr, rest->r);
	return (struct ct_estimated){ .calls = whole(calls), .below = whole(fmin(calls, half)), .above = whole(half) };
}
