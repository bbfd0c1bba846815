/* SPDX-License-Identifier: BSD-2-Clause */
/* estimator.c - see estimator.h. */
#include <math.h>

#include "estimator.h"

/* calls of other functions in the windows from which on they are the better measure */
#define REFERENCES_MIN 8
#define BURSTS_MIN 16 /* windows from which on references that come in bursts say something */
#define BURSTS 1.5    /* their mean square against the square of their mean */
#define BUSY_MAX 0.9  /* of a window that probes may take for its rate to say anything */
/* What a pair of probes costs, by what an empty one was measured to cost: at least, mostly, and
 * at most (docs/stat.md has what was measured); and by what calls last between the two. */
#define COST_LEAST 0.5
#define COST_MOSTLY 1.25
#define COST_SURELY 2.0
#define COST_MOST 4.0
#define COST_SPENT 3.0
#define WINDOWS_MIN 4 /* a rate by time of fewer says little: two may agree by chance */
#define WIDE 2.0      /* an interval whose ends are so many times apart has no middle */
#define NONE_SEEN 3.0 /* what was seen not once may have happened three times over, at 95 % */

/* Student's t for 95 %, two-sided, by degrees of freedom from 1 on. */
static double student(uint32_t freedom)
{
	static const double t[] = { 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23,
				    2.20,  2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09,
				    2.08,  2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04 };

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

/* The half width of the interval around x / z * rest, where z is the measure and zz, xz its
 * square's and product's sums. */
static double half_width(const struct estimator_windows *s, double z, double zz, double xz,
			 double rest)
{
	double ratio = s->x / z, k = rest / z;
	double between = (s->xx - 2 * ratio * xz + ratio * ratio * zz) / (s->n - 1) * s->n;

	return student(s->n - 1) * sqrt(fmax(between, s->x) * (k * k + k));
}

/* What is possible at all: from nothing to one call after the other. */
static struct ct_estimated bounds(double calls, double ns)
{
	double most = ns / ESTIMATOR_BARE_NS;

	calls = fmin(calls, most);
	return (struct ct_estimated){ .calls = whole(calls),
				      .below = whole(calls),
				      .above = whole(most - calls) };
}

/* What few windows say about the time outside them. */
static double by_few(const struct estimator_windows *s, const struct estimator_rest *rest)
{
	double calls = s->w > 0 ? s->x / s->w * rest->ns : 0;

	return rest->times > 0 ? fmin(calls, s->x * rest->times) : calls;
}

/* From low to high, where `likely` is in between: or the lower bound. */
static struct ct_estimated between(double low, double likely, double high)
{
	low = fmax(low, 0);
	likely = high > WIDE * low ? low : fmin(fmax(likely, low), high);
	return (struct ct_estimated){ .calls = whole(likely),
				      .below = whole(likely - low),
				      .above = whole(high - likely) };
}

/* The share of the windows that probes took. */
struct busy {
	double least, mostly, most;
};
static struct busy busy_of(const struct estimator_rest *rest)
{
	double pairs = rest->window_ns > 0 ? rest->hits * rest->pair_ns / rest->window_ns : 0;
	struct busy b = { COST_LEAST * pairs, COST_MOSTLY * pairs, COST_MOST * pairs };

	if (pairs <= 0)
		return (struct busy){ 0, 0, 1 };
	if (rest->timed * 2 > rest->hits)
		b.most = fmax(fmin(b.most, COST_SPENT * rest->spent_ns / rest->timed * rest->hits /
						   rest->window_ns),
			      COST_SURELY * pairs);
	b.least = fmin(b.least, COST_LEAST);
	b.mostly = fmin(b.mostly, BUSY_MAX);
	return b;
}

/* By how much the length of all windows together may be wrong: each is the difference of two
 * readings, which are late by up to a tick. This is not only chance: a reading is exact where the
 * reader has just taken the CPU from the process, as happens more often at one end. */
static double clock_error(const struct estimator_windows *s, double tick_ns)
{
	return fmin(tick_ns * (s->n / 2.0 + 2 * sqrt(s->n / 6.0)), 0.9 * s->w);
}

static struct ct_estimated by_time(const struct estimator_windows *s,
				   const struct estimator_rest *rest)
{
	double wrong_ns = clock_error(s, rest->tick_ns), rate = s->x / s->w,
	       ns = fmax(rest->ns - wrong_ns - rest->tick_ns, 0);
	double slow = rate * rest->ns,
	       half = half_width(s, s->w, s->ww, s->xw, rest->ns) / fmax(slow, 1);
	double most_ns = fmax(rest->ns, rest->most_ns), most = most_ns / ESTIMATOR_BARE_NS,
	       high = most;
	struct busy busy = busy_of(rest);

	if (busy.most < BUSY_MAX)
		high = fmin(most, s->x / (s->w - wrong_ns) * (most_ns + wrong_ns + rest->tick_ns) /
					  (1 - busy.most) * (1 + half));
	return between(fmin(most, s->x / (s->w + wrong_ns) * ns / (1 - busy.least) * (1 - half)),
		       slow / (1 - busy.mostly), high);
}

static bool is_few(const struct estimator_windows *s)
{
	return s->n < WINDOWS_MIN || s->w <= 0;
}

struct ct_estimated estimator_estimate(const struct estimator_windows *s,
				       const struct estimator_rest *rest)
{
	bool counted = s->x > 0 || rest->rate > 0 || rest->called,
	     references = s->r >= REFERENCES_MIN && rest->r > 0,
	     bursts = rest->by_time && s->rr * s->n > BURSTS * s->r * s->r;
	double most_ns = fmax(rest->ns, rest->most_ns);
	double calls, half;

	if (most_ns <= 0)
		return (struct ct_estimated){ 0 };
	if (s->n < 2)
		return counted ? bounds(s->n && s->x > 0 ? by_few(s, rest) : rest->rate * rest->ns,
					most_ns)
			       : (struct ct_estimated){ 0 };
	if (s->x <= 0)
		return (struct ct_estimated){
			.above = counted ? whole(NONE_SEEN *
						 (references ? rest->r / s->r : most_ns / s->w))
					 : 0
		};
	if (references && bursts) {
		struct ct_estimated e = is_few(s) ? bounds(by_few(s, rest), most_ns)
						  : by_time(s, rest);

		/* only a lower bound: the references say more, if there are some windows */
		if (s->n < BURSTS_MIN || e.below || (double)e.above <= WIDE * (double)e.calls)
			return e;
	} else if (!references) {
		return is_few(s) ? bounds(by_few(s, rest), most_ns) : by_time(s, rest);
	}
	calls = s->x / s->r * rest->r;
	half = half_width(s, s->r, s->rr, s->xr, rest->r);
	return (struct ct_estimated){ .calls = whole(calls),
				      .below = whole(fmin(calls, half)),
				      .above = whole(half) };
}
