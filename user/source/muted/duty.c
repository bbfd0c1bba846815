/* SPDX-License-Identifier: BSD-2-Clause */
/* duty.c - see duty.h. */
#include <math.h>

#include "duty.h"

/* aims below the limit, so that the noise of a period does not pass it */
#define AIM 0.8
/* a duty that is so much off is changed; upwards at most twofold at a time */
#define TOO_HIGH 1.2
#define TOO_LOW 1.5
#define RISE 2.0
#define CPU_LEAST_NS 1000000ULL /* of less no share can be told */

void duty_open(struct duty *d, double duty, double max_cost, uint64_t pair_ns, uint64_t rate)
{
	*d = (struct duty){ .most = duty > 0	   ? duty
				    : max_cost > 0 ? DUTY_MOST
						   : DUTY_QUERIES,
			    .max_cost = max_cost,
			    .given = duty > 0 || max_cost > 0,
			    .pair_ns = pair_ns,
			    .cost = -1,
			    .rate = rate };
	d->now = d->most;
}

void duty_set(struct duty *d, double duty, uint64_t windows)
{
	d->now = duty;
	d->windows = windows;
}

/* Of the calls that were counted in windows, and those that hit a probe that was about to come or
 * to go. */
static double sampled_ns(const struct duty *d, const struct duty_seen *s)
{
	double on = s->window_ns ? (double)s->on_ns / (double)s->window_ns : 1;

	return (double)s->sampled * on * (double)d->pair_ns +
	       (double)s->switched * (double)DUTY_SWITCH_NS;
}

double duty_cost_ns(const struct duty *d, const struct duty_seen *s)
{
	return (double)s->kept * (double)d->pair_ns + sampled_ns(d, s);
}

static double duty_wanted(const struct duty *d, double full)
{
	double room = AIM * d->max_cost - d->kept_cost, want = full > 0 ? room / full : d->most;

	if (room <= 0)
		want = DUTY_LEAST;
	want = fmin(fmax(want, DUTY_LEAST), d->most);
	if (want < d->now && d->now > want * TOO_HIGH)
		return want;
	/* room that functions which stay need is not given away */
	if (want >= d->now * TOO_LOW)
		return fmin(d->now * RISE, want);
	return d->now;
}

double duty_first(const struct duty *d)
{
	if (d->max_cost <= 0 || d->cost <= 0)
		return d->now;
	return fmin(d->now, fmax(AIM * d->max_cost / d->cost, DUTY_LEAST));
}

double duty_look(struct duty *d, const struct duty_seen *s)
{
	double cpu_ns = (double)(s->cpu_ns - d->last.cpu_ns), sampled, share;
	bool any = s->sampled_from && s->windows > d->last.windows;

	if (!d->last.at_ns) {
		d->last = *s;
		return d->now;
	}
	/* where windows are rare, a period has some of them */
	if (s->at_ns - d->last.at_ns < DUTY_LOOK_NS || cpu_ns < (double)CPU_LEAST_NS ||
	    (s->sampled_from && s->windows < d->last.windows + 2))
		return d->now;
	sampled = fmax(sampled_ns(d, s) - sampled_ns(d, &d->last), 0) / cpu_ns;
	d->kept_cost = (double)(s->kept - d->last.kept) * (double)d->pair_ns / cpu_ns;
	d->cost = d->kept_cost + sampled;
	share = (double)(s->on_ns - d->last.on_ns) /
		(double)(s->at_ns -
			 (s->sampled_from > d->last.at_ns ? s->sampled_from : d->last.at_ns));
	d->last = *s;
	if (d->max_cost <= 0)
		return d->now;
	d->over = d->cost > d->max_cost;
	/* what stays costs too much by itself: rarer functions are to go too */
	if (d->kept_cost > d->max_cost && d->rate > DUTY_RATE_LEAST)
		d->rate = d->rate / 2 > DUTY_RATE_LEAST ? d->rate / 2 : DUTY_RATE_LEAST;
	if (!any || share <= 0 || s->windows < d->windows + DUTY_WINDOWS)
		return d->now;
	/* what they would cost if they were on all the time */
	return duty_wanted(d, sampled / fmin(share, 1));
}

uint64_t duty_window_ns(const struct duty *d)
{
	double ns = d->now * (double)DUTY_STRETCH_NS;
	uint64_t least = d->given ? DUTY_WINDOW_LEAST_NS : DUTY_WINDOW_NS;

	return ns > (double)least ? (uint64_t)ns : least;
}

uint64_t duty_stretch_ns(const struct duty *d, const struct duty_seen *s)
{
	double beside = !d->given    ? 0
			: s->windows ? (double)(s->on_ns - s->window_ns) / (double)s->windows
				     : (double)DUTY_COMING_NS,
	       ns = ((double)duty_window_ns(d) + beside) / d->now;

	return ns > (double)DUTY_STRETCH_NS ? (uint64_t)ns : DUTY_STRETCH_NS;
}
