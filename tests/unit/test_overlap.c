/* SPDX-License-Identifier: BSD-2-Clause */
/* test_overlap.c - how windows on devices are split, against a picture of each nanosecond. */
#include "../../user/sums/overlap.h"
#include "unit.h"

#define WINDOWS 64
#define LENGTH 2000 /* ns */

static uint64_t got[WINDOWS][OVERLAP_END], settled;

static void keep(void *ctx, uint64_t tag, const uint64_t ns[OVERLAP_END])
{
	(void)ctx;
	if (!CHECK(tag < WINDOWS))
		return;
	memcpy(got[tag], ns, sizeof(got[tag]));
	settled |= 1ULL << tag;
}

static struct overlap *begin(size_t max, uint64_t slack)
{
	struct overlap *o = overlap_open(max, slack, keep, NULL);

	CHECK(o);
	memset(got, 0, sizeof(got));
	settled = 0;
	return o;
}

static void check_window(int tag, uint64_t compute, uint64_t collective, uint64_t copy,
			 uint64_t idle)
{
	CHECK_EQ(compute, got[tag][OVERLAP_COMPUTE]);
	CHECK_EQ(collective, got[tag][OVERLAP_COLLECTIVE]);
	CHECK_EQ(copy, got[tag][OVERLAP_COPY]);
	CHECK_EQ(idle, got[tag][OVERLAP_IDLE]);
}

/* A collective that a kernel covers in part, and a copy that both cover. */
static void test_split(void)
{
	struct overlap *o = begin(100, 10);

	CHECK(!overlap_window(o, 1, 0, 0, 100));
	CHECK(!overlap_work(o, 1, OVERLAP_COLLECTIVE, 20, 60));
	CHECK(!overlap_work(o, 1, OVERLAP_COPY, 10, 70));
	CHECK(!overlap_work(o, 1, OVERLAP_COMPUTE, 40, 50));
	CHECK(!overlap_work(o, 2, OVERLAP_COMPUTE, 0, 100)); /* another device's */
	CHECK(!overlap_window(o, 1, 1, 20, 60));
	CHECK(!overlap_window(o, 3, 2, 5, 10)); /* a device that did nothing */
	CHECK(!overlap_settle(o));
	check_window(0, 10, 30, 20, 40);
	check_window(1, 10, 30, 0, 0);
	check_window(2, 0, 0, 0, 5);
	CHECK_EQ(0, overlap_late(o));
	overlap_close(o);
}

/* What is old is settled when there is no room, and what comes later for that time is counted. */
static void test_bounded(void)
{
	struct overlap *o = begin(8, 100);

	CHECK(!overlap_window(o, 1, 0, 0, 50));
	for (uint64_t i = 0; i < 40; i++)
		CHECK(!overlap_work(o, 1, OVERLAP_COMPUTE, i * 100, i * 100 + 10));
	CHECK_EQ(1, settled);
	check_window(0, 10, 0, 0, 40);
	CHECK_EQ(0, overlap_late(o));
	CHECK(!overlap_work(o, 1, OVERLAP_COMPUTE, 20, 30));
	CHECK_EQ(1, overlap_late(o));
	/* one long window does not stop it */
	CHECK(!overlap_window(o, 1, 1, 3000, 1000000));
	for (uint64_t i = 40; i < 80; i++)
		CHECK(!overlap_work(o, 1, OVERLAP_COMPUTE, i * 100, i * 100 + 10));
	CHECK_EQ(3, settled);
	overlap_close(o);
}

static uint64_t seed = 1;

static uint64_t below(uint64_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

/* Random work and windows on two devices, in any order, against a picture. */
static void test_random(void)
{
	static uint8_t picture[2][LENGTH];
	uint64_t windows[WINDOWS][3];

	for (int round = 0; round < 200; round++) {
		struct overlap *o = begin(1000, 10);

		memset(picture, OVERLAP_IDLE, sizeof(picture));
		for (int i = 0; i < WINDOWS; i++) {
			uint64_t from = below(LENGTH), device = below(2);
			enum overlap_class class = (enum overlap_class)below(OVERLAP_IDLE);
			uint64_t to = from + below(LENGTH - from < 200 ? LENGTH - from : 200);

			CHECK(!overlap_work(o, device, class, from, to));
			for (uint64_t t = from; t < to; t++)
				if (picture[device][t] > class)
					picture[device][t] = (uint8_t) class;
			windows[i][0] = below(2);
			windows[i][1] = below(LENGTH);
			windows[i][2] = windows[i][1] + below(LENGTH - windows[i][1]);
			CHECK(!overlap_window(o, windows[i][0], (uint64_t)i, windows[i][1],
					      windows[i][2]));
		}
		CHECK(!overlap_settle(o));
		CHECK_EQ(UINT64_MAX, settled);
		for (int i = 0; i < WINDOWS; i++) {
			uint64_t ns[OVERLAP_END] = { 0 };

			for (uint64_t t = windows[i][1]; t < windows[i][2]; t++)
				ns[picture[windows[i][0]][t]]++;
			check_window(i, ns[0], ns[1], ns[2], ns[3]);
		}
		overlap_close(o);
	}
}

int main(void)
{
	RUN(test_split);
	RUN(test_bounded);
	RUN(test_random);
	return unit_end();
}
