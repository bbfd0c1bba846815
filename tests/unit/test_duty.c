/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_duty.c - for how much of the time probes are on: --duty is what is used, --max-cost lowers
 * it while the probes cost more than that, raises it when there is room, and leaves a program
 * alone that costs less.
 */
#include <math.h>

#include "../../user/source/muted/duty.h"
#include "unit.h"

#define SECOND 1000000000ULL
#define PAIR_NS 1000

static struct duty d;
static struct duty_seen seen;

/* A second of a program that uses a whole CPU: hits of probes that stay, and calls that those on
 * duty would see if they were on all the time. */
static double second(uint64_t kept, uint64_t full)
{
	double share = seen.sampled_from ? d.now : 0, want;

	seen.at_ns += SECOND;
	seen.cpu_ns += SECOND;
	seen.kept += kept + (seen.sampled_from ? 0 : full);
	if (seen.sampled_from) {
		/* windows without their coming and going */
		seen.windows += 2;
		seen.window_ns += (uint64_t)(share * SECOND);
		seen.on_ns += (uint64_t)(share * SECOND);
		seen.sampled += (uint64_t)(share * (double)full);
	}
	want = duty_look(&d, &seen);
	if (want < d.now || want > d.now)
		duty_set(&d, want, seen.windows);
	return d.now;
}

static void begin(double duty, double max_cost)
{
	duty_open(&d, duty, max_cost, PAIR_NS, 1000);
	seen = (struct duty_seen){ .at_ns = 100 * SECOND };
	duty_look(&d, &seen);
}

static bool near(double have, double want)
{
	return fabs(have - want) <= want * 0.01;
}

static void test_fixed(void)
{
	begin(0.05, 0);
	seen.sampled_from = seen.at_ns;
	for (int i = 0; i < 100; i++)
		CHECK(near(second(1000, 900000), 0.05));
	/* what it costs is known all the same: 1000 and 45 000 hits of 1 us a second */
	CHECK(near(d.cost, 0.046));
	CHECK(!d.over);
	/* 25 ms in half a second, and with the coming of probes, in somewhat more */
	CHECK(duty_window_ns(&d) == 25000000);
	CHECK(duty_stretch_ns(&d, &(struct duty_seen){ 0 }) == 760000000);
	/* without options: 10 ms in half a second */
	begin(0, 0);
	CHECK(duty_window_ns(&d) == 10000000);
	CHECK(duty_stretch_ns(&d, &(struct duty_seen){ 0 }) == 500000000);
	/* a low one: long stretches */
	begin(0.002, 0);
	CHECK(duty_window_ns(&d) == 20000000);
	CHECK(duty_stretch_ns(&d, &(struct duty_seen){ 0 }) == 16500000000);
}

static void test_quiet(void)
{
	begin(0, 0.01);
	for (int i = 0; i < 100; i++)
		second(5000, 0);
	CHECK(near(d.cost, 0.005));
	CHECK(!d.over);
	CHECK(d.rate == 1000);
}

static void test_busy(void)
{
	double first;

	begin(0, 0.01);
	CHECK(near(second(1000, 400000), DUTY_MOST));
	CHECK(d.over && near(d.cost, 0.401));
	/* what begins: as much as keeps the limit */
	first = duty_first(&d);
	CHECK(near(first, 0.8 * 0.01 / 0.401));
	duty_set(&d, first, 0);
	seen.sampled_from = seen.at_ns;
	for (int i = 0; i < 50; i++)
		second(1000, 400000);
	CHECK(d.cost <= 0.01);
	CHECK(d.now <= first && d.now > first / 2);
	/* ten times as many calls: it follows, and not by one look alone */
	first = d.now;
	second(1000, 4000000);
	CHECK(d.cost > 0.01 && d.over);
	for (int i = 0; i < 50; i++)
		second(1000, 4000000);
	CHECK(d.cost <= 0.01 && !d.over);
	CHECK(d.now >= DUTY_LEAST && d.now < first / 5);
	/* fewer again: it rises, twofold at a time and never above the most */
	for (int i = 0; i < 4; i++) {
		first = d.now;
		CHECK(second(1000, 40) <= first * 2.001);
	}
	for (int i = 0; i < 200; i++)
		second(1000, 40);
	CHECK(d.now > DUTY_MOST / 2);
}

/* With both, --duty is the most. */
static void test_both(void)
{
	begin(0.05, 0.01);
	seen.sampled_from = seen.at_ns;
	for (int i = 0; i < 200; i++)
		second(0, 1000);
	CHECK(near(d.now, 0.05));
	for (int i = 0; i < 200; i++)
		second(0, 1000000);
	CHECK(d.now < 0.0101 && d.cost <= 0.01);
}

/* What stays costs too much: rarer functions are to go too, and no duty helps. */
static void test_kept(void)
{
	begin(0, 0.01);
	for (int i = 0; i < 10; i++)
		second(100000, 0);
	CHECK(d.over && near(d.kept_cost, 0.1));
	CHECK(d.rate == DUTY_RATE_LEAST);
	seen.sampled_from = seen.at_ns;
	for (int i = 0; i < 50; i++)
		second(100000, 100000);
	CHECK(near(d.now, DUTY_LEAST));
}

/* Breakpoints that come and go are part of the cost, and a program that does not run has none. */
static void test_odd(void)
{
	begin(0.05, 0);
	seen.sampled_from = seen.at_ns;
	seen.switched += 1000; /* of 30 us */
	second(0, 0);
	CHECK(near(d.cost, 0.03));
	begin(0, 0.01);
	for (int i = 0; i < 10; i++) {
		seen.at_ns += SECOND;
		CHECK(near(duty_look(&d, &seen), DUTY_MOST));
	}
	CHECK(d.cost < 0);
	CHECK(!d.over);
	CHECK(near(duty_first(&d), DUTY_MOST));
}

int main(void)
{
	RUN(test_fixed);
	RUN(test_quiet);
	RUN(test_busy);
	RUN(test_both);
	RUN(test_kept);
	RUN(test_odd);
	return unit_end();
}
