/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_estimator.c - the estimate of calls that nothing counted, on simulated programs whose
 * calls are known: in at least 90 of 100 runs the interval holds the truth, and it is narrow
 * where the windows saw much.
 */
#include <math.h>
#include <string.h>

#include "../../user/source/muted/estimator.h"
#include "random.h"
#include "unit.h"

#define RUNS 200
#define SECONDS 20
#define TICK_NS 100000.0 /* of the simulation */
#define TICKS (SECONDS * 10000)
#define WINDOW 100   /* ticks */
#define STRETCH 5000 /* ticks */

static uint64_t state;

static double uniform(void)
{
	random_next(&state);
	return (double)(state >> 11) / 9007199254740992.0;
}

/* A number of independent events of which `mean` are expected. */
static double poisson(double mean)
{
	double limit = exp(-mean), p = 1;
	int n = -1;

	if (mean > 50)
		return floor(fmax(0, mean + sqrt(mean) * sqrt(-2 * log(uniform() + 1e-18)) *
						     cos(6.283185307 * uniform())) +
			     0.5);
	do {
		p *= uniform();
		n++;
	} while (p > limit);
	return n;
}

/* What a program does in each tick: calls that are sampled, and others. */
static float calls[TICKS], others[TICKS];

static void make_poisson(void)
{
	for (int t = 0; t < TICKS; t++) {
		calls[t] = (float)poisson(30);
		others[t] = (float)poisson(4);
	}
}

/* A step of 11 ms, 8 of them on the host. */
static void make_periodic(void)
{
	int at = (int)(uniform() * 110);

	for (int t = 0; t < TICKS; t++) {
		bool busy = (t + at) % 110 < 80;

		calls[t] = busy ? 57 : 0;
		others[t] = busy ? 7 : 0;
	}
}

/* It works for 5 to 100 ms and waits for as long, again and again. */
static void make_bursts(void)
{
	bool busy = false;
	int left = 0;

	for (int t = 0; t < TICKS; t++) {
		if (!left--) {
			busy = !busy;
			left = 50 + (int)(uniform() * 950);
		}
		calls[t] = busy ? (float)poisson(80) : 0;
		others[t] = busy ? (float)poisson(2) : 0;
	}
}

/* A step of 150 ms: launches all through it, and its allocations in one burst. */
static void make_train(void)
{
	int at = (int)(uniform() * 1500);

	for (int t = 0; t < TICKS; t++) {
		calls[t] = (float)poisson(0.7);
		others[t] = (t + at) % 1500 ? 0 : 9;
	}
}

/* Few calls, each for itself. */
static void make_few(void)
{
	for (int t = 0; t < TICKS; t++) {
		calls[t] = (float)poisson(0.02);
		others[t] = (float)poisson(0.05);
	}
}

struct run {
	double truth, shown;
	struct ct_estimated e;
};

/* One run: windows at random instants, one in each stretch. `by_work`: no other calls are known,
 * the program's work is measured. */
static struct run run(void (*make)(void), uint64_t seed, bool by_work)
{
	struct estimator_windows w = { 0 };
	struct estimator_rest rest = { 0 };
	struct run r = { 0 };

	state = seed * 0x9e3779b97f4a7c15ULL + RANDOM_SEED;
	make();
	for (int s = 0; s + STRETCH <= TICKS; s += STRETCH) {
		int from = s + (int)(uniform() * (STRETCH - WINDOW));
		double x = 0, other = 0, work = 0;

		for (int t = s; t < s + STRETCH; t++) {
			/* it works as long as it calls something, or all the time */
			double ns = make == make_bursts && !calls[t] ? 0 : TICK_NS;

			if (t >= from && t < from + WINDOW) {
				x += calls[t];
				other += others[t];
				work += ns;
			} else {
				r.truth += calls[t];
				rest.r += others[t];
				rest.ns += ns;
			}
		}
		estimator_add(&w, x, by_work ? 0 : other, work);
		/* the simulated probes cost nothing */
		rest.by_time = make == make_train;
		rest.hits += x;
		rest.window_ns += work;
		rest.pair_ns = 0.1;
	}
	if (by_work)
		rest.r = -1;
	r.e = estimator_estimate(&w, &rest);
	return r;
}

static bool holds(const struct run *r)
{
	return r->truth >= (double)(r->e.calls - r->e.below) &&
	       r->truth <= (double)(r->e.calls + r->e.above);
}

static double width(const struct run *r)
{
	return (double)(r->e.below > r->e.above ? r->e.below : r->e.above) / r->truth;
}

static void covers(const char *name, void (*make)(void), bool by_work, double widest)
{
	double sum = 0, bias = 0;
	int held = 0;

	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct run r = run(make, seed, by_work);

		held += holds(&r);
		sum += width(&r);
		bias += ((double)r.e.calls - r.truth) / r.truth;
	}
	if (held * 100 < RUNS * 90 || sum / RUNS > widest || fabs(bias / RUNS) > widest / 4)
		printf("%s%s: %d of %d hold the truth, mean width %.3f, mean error %.4f\n", name,
		       by_work ? " by work" : "", held, RUNS, sum / RUNS, bias / RUNS);
	CHECK(held * 100 >= RUNS * 90);
	CHECK(sum / RUNS <= widest);
	CHECK(fabs(bias / RUNS) <= widest / 4);
}

/* In the windows the probes slow the program down: it does less of everything, and the ratio is
 * as it was. */
static void test_slowed(void)
{
	struct estimator_windows w = { 0 };
	struct estimator_rest rest = { .r = 57000, .ns = 1e9 };
	struct ct_estimated e;

	for (int i = 0; i < 10; i++)
		estimator_add(&w, 4000, 500, 1e7);
	e = estimator_estimate(&w, &rest);
	CHECK(e.calls == 8 * 57000 && e.below < e.calls / 50);
	/* by work it cannot be known how much slower it is: 1 us of a call's 2.5 us at the most,
	 * say the calls' own durations... */
	w.r = 0;
	rest = (struct estimator_rest){ .r = -1,
					.ns = 1e9,
					.hits = 40000,
					.window_ns = 1e8,
					.timed = 40000,
					.spent_ns = 40000 * 300.0,
					.pair_ns = 400 };
	e = estimator_estimate(&w, &rest);
	CHECK(e.calls - e.below <= 435000 && e.calls - e.below >= 400000 && e.calls == 500000);
	CHECK(e.calls + e.above >= 625000 && e.calls + e.above <= 650000);
	/* ...and where these are not known, it may be four times what an empty pair took */
	rest.timed = 0;
	e = estimator_estimate(&w, &rest);
	CHECK(e.calls + e.above >= 1100000 && e.calls + e.above <= 1150000);
}

/*
 * A tight loop: with probes a call takes 2 us, without them 8 ns. How much of the 2 us is the
 * probes cannot be told, whatever an empty pair took when nothing else ran: there were at least
 * so many calls as the windows saw, in proportion, and at most one every 5 ns.
 */
static void test_tight(void)
{
	static const double pairs[] = { 0, 300, 700, 1100, 1300, 1990, 5000 };

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		struct estimator_rest rest = { .r = -1,
					       .ns = 8e8,
					       .hits = 100000,
					       .window_ns = 2e8,
					       .timed = 100000,
					       .spent_ns = 100000 * 700.0,
					       .pair_ns = pairs[i] };
		struct estimator_windows w = { 0 };
		struct ct_estimated e;

		for (int k = 0; k < 20; k++)
			estimator_add(&w, 5000, 0, 1e7);
		e = estimator_estimate(&w, &rest);
		CHECK(e.calls - e.below > 350000 && e.calls - e.below <= 800000);
		CHECK(e.calls + e.above >= 100000000 ||
		      (pairs[i] == 300 && e.calls + e.above > 900000));
		/* the lower bound is what is told */
		CHECK(pairs[i] == 300 || e.below * 2 < e.above);
	}
}

/* Windows of 10 ms that are read as 8 or 12, all of them, because the clock is that late: the
 * interval has what is true in between. */
static void test_clock(void)
{
	for (int n = 2; n <= 40; n++) {
		for (double read = 8e6; read <= 12e6; read += 4e6) {
			struct estimator_rest rest = { .r = -1,
						       .ns = 20e6 * n,
						       .hits = 1000.0 * n,
						       .window_ns = read * n,
						       .pair_ns = 1,
						       .tick_ns = 4e6 };
			struct estimator_windows w = { 0 };
			struct ct_estimated e;

			for (int i = 0; i < n; i++)
				estimator_add(&w, 1000, 0, read);
			e = estimator_estimate(&w, &rest);
			CHECK(e.calls - e.below <= 2000 * n && e.calls + e.above >= 2000 * n);
			/* of few windows nothing is made but what is possible */
			CHECK(n >= 4 ||
			      (e.below == e.calls &&
			       e.calls + e.above == (int64_t)(20e6 * n / ESTIMATOR_BARE_NS)));
			CHECK(n < 4 || e.calls - e.below > 900 * n);
		}
	}
}

/* A process that has ended may have worked since its clock was read last, or not: the lower end
 * does without, the upper one has it. */
static void test_ended(void)
{
	struct estimator_rest rest = { .r = -1,
				       .ns = 1e9,
				       .most_ns = 2e9,
				       .hits = 1000,
				       .window_ns = 1e8,
				       .timed = 1000,
				       .spent_ns = 1e5,
				       .pair_ns = 50 };
	struct estimator_windows w = { 0 };
	struct ct_estimated e;

	for (int i = 0; i < 10; i++)
		estimator_add(&w, 1000, 0, 1e7);
	e = estimator_estimate(&w, &rest);
	CHECK(e.calls - e.below <= 100000 && e.calls - e.below > 90000);
	CHECK(e.calls + e.above >= 200000 && e.calls + e.above < 220000);
	/* all of its time went by unread: it made none, or many */
	rest.ns = 0;
	e = estimator_estimate(&w, &rest);
	CHECK(!e.calls && !e.below && e.above >= 200000);
	/* other calls were made in windows alone: time is what there is */
	rest = (struct estimator_rest){ .r = 0, .ns = 1e9 };
	w.r = 100;
	e = estimator_estimate(&w, &rest);
	CHECK(e.calls - e.below > 0);
}

/* Little is known, and no more than that is said. */
static void test_little(void)
{
	struct estimator_windows none = { 0 }, one = { 0 }, quiet = { 0 };
	struct estimator_rest rest = { .r = -1, .ns = 1e8, .rate = 0.001 };
	struct ct_estimated e = estimator_estimate(&none, &rest);

	/* the rate before the first window, and anything from nothing to one call after the other */
	CHECK(e.calls == 100000 && e.below == 100000 && e.calls + e.above == 20000000);
	estimator_add(&one, 5000, 0, 1e7);
	e = estimator_estimate(&one, &rest);
	CHECK(e.calls == 50000 && e.below == 50000 && e.calls + e.above == 20000000);
	/* nothing went by */
	rest.ns = 0;
	e = estimator_estimate(&one, &rest);
	CHECK(!e.calls && !e.below && !e.above);
	/* no process of its own: nothing is known to call it */
	rest = (struct estimator_rest){ .r = -1, .ns = 1e8 };
	e = estimator_estimate(&none, &rest);
	CHECK(!e.calls && !e.above);
	/* it called before, at a rate that is not known, and then nothing looked: none may have
	 * followed, or many */
	rest.called = true;
	e = estimator_estimate(&none, &rest);
	CHECK(!e.calls && !e.below && e.above == 20000000);
	/* it called before, and in no window since */
	rest = (struct estimator_rest){ .r = -1, .ns = 1e9, .rate = 0.001 };
	for (int i = 0; i < 10; i++)
		estimator_add(&quiet, 0, 0, 1e7);
	e = estimator_estimate(&quiet, &rest);
	CHECK(!e.calls && !e.below && e.above == 30);
	/* no number of a file or of a kernel makes it more than a word */
	rest = (struct estimator_rest){ .r = 1e300, .ns = 1e300, .rate = 1e300 };
	estimator_add(&one, 1e300, 1, 1);
	e = estimator_estimate(&one, &rest);
	CHECK(e.calls >= 0 && e.below >= 0 && e.above >= 0);
}

/* Processes that lived for a moment, of which a window saw one call: they say nothing about the
 * rest of their time, of which nearly all such processes had none in a window. */
static void test_short_lives(void)
{
	struct estimator_rest rest = { .r = -1, .ns = 8e5, .by_time = true, .times = 50 };
	struct estimator_windows in_none = { .n = 16, .x = 1, .xx = 1 }, one = { 0 }, three = { 0 };
	struct ct_estimated e = estimator_estimate(&in_none, &rest);

	CHECK(!e.calls && !e.below && e.above == 160000);
	estimator_add(&one, 1, 0, 100);
	e = estimator_estimate(&one, &rest);
	CHECK(e.calls == 50 && e.below == 50 && e.calls + e.above == 160000);
	estimator_add(&three, 0, 0, 100);
	estimator_add(&three, 2, 0, 100);
	estimator_add(&three, 0, 0, 100);
	e = estimator_estimate(&three, &rest);
	CHECK(e.calls == 100 && e.below == 100);
	/* a rate that does not say more than this is believed */
	rest.ns = 4000;
	e = estimator_estimate(&one, &rest);
	CHECK(e.calls == 40 && e.below == 40);
}

int main(void)
{
	RUN(covers, "poisson", make_poisson, false, 0.05);
	RUN(covers, "poisson", make_poisson, true, 0.05);
	RUN(covers, "periodic", make_periodic, false, 0.05);
	RUN(covers, "periodic", make_periodic, true, 0.3);
	RUN(covers, "bursts", make_bursts, false, 0.25);
	RUN(covers, "bursts", make_bursts, true, 0.1);
	RUN(covers, "train", make_train, false, 0.1);
	RUN(covers, "few", make_few, false, 1.0);
	RUN(covers, "few", make_few, true, 0.5);
	RUN(test_slowed);
	RUN(test_tight);
	RUN(test_clock);
	RUN(test_ended);
	RUN(test_little);
	RUN(test_short_lives);
	return unit_end();
}
