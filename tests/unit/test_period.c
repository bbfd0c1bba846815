/* SPDX-License-Identifier: BSD-2-Clause */
/* test_period.c - the period of sequences that were made with a known one. */
#include "../../user/sums/period.h"
#include "unit.h"

#define BEATS_MAX 65536

static struct beat beats[BEATS_MAX];
static size_t nbeats;
static uint64_t seed;

static uint32_t any(uint32_t below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % below;
}

static void begin(uint64_t from)
{
	seed = from;
	nbeats = 0;
}

static void beat(uint64_t symbol)
{
	uint64_t at = nbeats ? beats[nbeats - 1].end_ns + 10 : 1000;

	if (CHECK(nbeats < BEATS_MAX))
		beats[nbeats++] = (struct beat){ at, at + 5, symbol };
}

static struct period found(void)
{
	struct period p;

	CHECK_EQ(0, period_find(beats, nbeats, &p));
	return p;
}

/* Steps of 2 to 1000 random beats: the period is their length, and there are as many as were made. */
static void test_random(void)
{
	static const struct {
		uint32_t length, symbols, times;
	} rows[] = { { 2, 2, 5 },    { 3, 9, 3 },     { 10, 4, 20 },   { 37, 5, 30 },
		     { 100, 3, 40 }, { 500, 40, 50 }, { 1000, 200, 3 } };

	for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		for (uint64_t from = 1; from <= 10; from++) {
			uint64_t step[1000];
			struct period p;

			CASE_ROW("%u beats, seed %u", rows[r].length, (unsigned)from);
			begin(from);
			for (uint32_t i = 0; i < rows[r].length; i++)
				step[i] = any(rows[r].symbols);
			/* so that no part of it is a period */
			step[0] = 1000;
			for (uint32_t k = 0; k < rows[r].times; k++)
				for (uint32_t i = 0; i < rows[r].length; i++)
					beat(step[i]);
			p = found();
			CHECK_EQ(rows[r].length, p.length);
			CHECK_EQ(rows[r].times, p.n);
			CHECK(p.last_whole && p.confidence == 1.0);
			for (size_t i = 0; i < p.n; i++)
				CHECK_EQ(i * rows[r].length, p.starts[i]);
			period_free(&p);
		}
	}
}

/* A model of 48 equal layers: the period is the step, not the layer. */
static void test_layers(void)
{
	struct period p;

	begin(1);
	for (int step = 0; step < 12; step++) {
		beat(1);
		for (int i = 0; i < 48 * 6; i++)
			beat(10 + (uint64_t)i % 6);
		beat(2);
		for (int i = 0; i < 48 * 9; i++)
			beat(20 + (uint64_t)i % 9);
		for (int i = 0; i < 30; i++)
			beat(40);
	}
	p = found();
	CHECK_EQ(1 + 48 * 6 + 1 + 48 * 9 + 30, p.length);
	CHECK_EQ(12, p.n);
	CHECK(p.last_whole);
	period_free(&p);
}

/* What is before the first step, and what comes in each tenth step, moves no boundary. */
static void test_disturbed(void)
{
	struct period p;

	begin(7);
	for (uint64_t i = 0; i < 70; i++)
		beat(10000 + i);
	for (uint64_t step = 0; step < 40; step++) {
		for (uint64_t i = 0; i < 60; i++)
			beat(100 + i);
		for (uint64_t i = 0; step % 10 == 9 && i < 3; i++)
			beat(5000 + i);
	}
	p = found();
	CHECK_EQ(60, p.length);
	CHECK_EQ(40, p.n);
	CHECK(p.confidence > 0.8 && p.confidence < 1);
	for (size_t i = 0; i < p.n; i++)
		CHECK_EQ(100, beats[p.starts[i]].symbol);
	period_free(&p);
}

/* A step begins behind the long pause. */
static void test_pause(void)
{
	struct period p;

	begin(1);
	for (uint64_t i = 0; i < 100; i++) {
		beat(i % 10);
		if (i % 10 == 3)
			beats[nbeats - 1].end_ns -= 4;
		if (i % 10 == 4) {
			beats[nbeats - 1].start_ns += 100000;
			beats[nbeats - 1].end_ns += 100000;
		}
	}
	p = found();
	CHECK_EQ(10, p.length);
	CHECK_EQ(10, p.n);
	CHECK_EQ(4, p.starts[0]);
	CHECK(!p.last_whole);
	period_free(&p);
}

/* "None found" is an answer. */
static void test_none(void)
{
	struct period p;

	begin(1);
	p = found();
	CHECK(!p.length && !p.n);
	period_free(&p);
	for (int i = 0; i < 1000; i++)
		beat(3);
	p = found();
	CHECK(!p.length);
	period_free(&p);
	for (uint64_t from = 1; from <= 10; from++) {
		CASE_ROW("seed %u", (unsigned)from);
		begin(from);
		for (int i = 0; i < 5000; i++)
			beat(any(from < 5 ? 2 : 50));
		p = found();
		CHECK(!p.length && !p.n && p.confidence < PERIOD_CONFIDENT);
		period_free(&p);
	}
	/* seen twice is not often enough */
	begin(1);
	for (uint64_t i = 0; i < 100; i++)
		beat(i % 50);
	p = found();
	CHECK(!p.length);
	period_free(&p);
}

int main(void)
{
	RUN(test_random);
	RUN(test_layers);
	RUN(test_disturbed);
	RUN(test_pause);
	RUN(test_none);
	return unit_end();
}
