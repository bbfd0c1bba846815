/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * duty.h - decides for which share of the time the probes of frequently called functions are on:
 * the share that --duty gives, or the share that keeps the cost below --max-cost. Compares the cost
 * of the probes (hits times the measured cost of an empty pair) with the CPU time of the traced
 * processes. It only computes: it knows no probe, no process and no clock.
 */
#ifndef CT_DUTY_H
#define CT_DUTY_H

#include "../../util/types.h"

#define DUTY_QUERIES 0.02 /* without options: only of functions of class query */
#define DUTY_LEAST 0.001
#define DUTY_MOST 0.5 /* --max-cost gives no more: windows need stretches between them */
/* One window lies in each stretch, at a random instant of it. */
#define DUTY_WINDOW_NS 10000000ULL
#define DUTY_STRETCH_NS 500000000ULL
/* With a duty or a limit a window is no shorter than this: the probes of a window are on for some
 * 10 ms before it opens, while the kernel waits for its grace periods, and for 3 ms behind it. */
#define DUTY_WINDOW_LEAST_NS 20000000ULL
#define DUTY_COMING_NS 13000000ULL /* until it was measured */
#define DUTY_GOING_NS 3000000ULL
/* what one window costs a process for each function: the kernel writes a breakpoint into its
 * memory and takes it out again (docs/stat.md has what was measured) */
#define DUTY_SWITCH_NS 30000ULL
/* a duty is used for at least so many windows: with fewer, their variance is unknown */
#define DUTY_WINDOWS 8
#define DUTY_LOOK_NS 1000000000ULL
#define DUTY_RATE_LEAST 50 /* calls a second: rarer functions keep their probes */

/* What was seen since tracing began. */
struct duty_seen {
	uint64_t at_ns;	       /* CLOCK_MONOTONIC */
	uint64_t cpu_ns;       /* of the traced processes */
	uint64_t kept;	       /* hits of probes that are on all the time */
	uint64_t sampled;      /* hits in windows */
	uint64_t window_ns;    /* length of all windows */
	uint64_t on_ns;	       /* for how long probes were on for them */
	uint64_t windows;      /* their number */
	uint64_t switched;     /* windows of functions in processes: breakpoints set and unset */
	uint64_t sampled_from; /* when the first probes were taken off; 0: never */
};

struct duty {
	bool given;	 /* there is a duty or a limit */
	double most;	 /* of the time; what --duty says, or DUTY_MOST */
	double max_cost; /* of the CPU time; 0: there is no limit */
	uint64_t pair_ns;
	double now;	  /* of the time: in use */
	double cost;	  /* of the CPU time, at the last look; below 0: not known yet */
	double kept_cost; /* that part of it which no duty lowers */
	bool over;	  /* there is a limit, and it was passed at the last look */
	uint64_t rate;	  /* functions with so many calls a second are to be on duty */
	uint64_t windows; /* how many there were when the duty was last changed */
	struct duty_seen last;
};

/* duty, max_cost: as in struct capture_plan. rate: the first one. */
void duty_open(struct duty *, double duty, double max_cost, uint64_t pair_ns, uint64_t rate);
/* Computes the cost of the probes since the last look. Returns the duty to use. If it differs from
 * `now`, call duty_set(). */
double duty_look(struct duty *, const struct duty_seen *);
/* The first duty when functions begin to be sampled, from the cost of all probes at the last
 * look. */
double duty_first(const struct duty *);
void duty_set(struct duty *, double duty, uint64_t windows);

uint64_t duty_window_ns(const struct duty *);
/* The time in which probes are attached and detached is part of the duty. */
uint64_t duty_stretch_ns(const struct duty *, const struct duty_seen *);
/* What the probes have cost since tracing began, ns. */
double duty_cost_ns(const struct duty *, const struct duty_seen *);

#endif
