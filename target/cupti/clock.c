/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock.c - device times on CLOCK_MONOTONIC. There are two ways. Either CUPTI calls our clock: this
 * is exact, but some versions then give kernels without times. Or CUPTI keeps its own clock, and
 * the difference is measured: CUPTI's clock is read between two readings of ours, a hundred times,
 * and the closest pair is used. This is repeated every second, because CUPTI's own clock is
 * CLOCK_REALTIME, which is slewed and set. A time is corrected by the last difference measured
 * before it.
 */
#include "agent_state.h"

#include <pthread.h>
#include <time.h>

#define TRIES 100
#define KEPT 256 /* a power of two: seconds of history, more than a record can be late */

static struct {
	uint64_t cupti_ns;
	int64_t distance_ns; /* add to CUPTI's */
} marks[KEPT];
static _Atomic uint32_t nmarks;
static _Atomic bool settled;

uint64_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

void clock_reset(void)
{
	atomic_store(&nmarks, 0);
	atomic_store(&settled, false);
}

static uint64_t realtime(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

void clock_measure(void)
{
	uint64_t best = UINT64_MAX, at = 0;
	int64_t distance = 0;
	uint32_t n;

	if (agent.clock != AGENT_CLOCK_OFFSET)
		return;
	for (int i = 0; i < TRIES; i++) {
		uint64_t a = clock_now(), c = 0, b;

		/* what it is on Linux, as long as CUPTI does not tell */
		if (activity_time(&c) || !c)
			c = realtime();
		b = clock_now();
		if (b - a >= best)
			continue;
		best = b - a;
		at = c;
		distance = (int64_t)(a + (b - a) / 2 - c);
	}
	n = atomic_load(&nmarks);
	marks[n % KEPT].cupti_ns = at;
	marks[n % KEPT].distance_ns = distance;
	atomic_store_explicit(&nmarks, n + 1, memory_order_release);
}

void clock_settle(void)
{
	if (agent.clock != AGENT_CLOCK_OFFSET || atomic_exchange(&settled, true))
		return;
	atomic_store(&nmarks, 0);
	clock_measure();
}

uint64_t clock_ns(uint64_t cupti_ns)
{
	uint32_t n = atomic_load_explicit(&nmarks, memory_order_acquire), i, least;

	if (agent.clock != AGENT_CLOCK_OFFSET || !cupti_ns || !n)
		return cupti_ns;
	/* one slot is left out: it may be written now */
	least = n > KEPT - 1 ? n - (KEPT - 1) : 0;
	for (i = n - 1; i > least && marks[i % KEPT].cupti_ns > cupti_ns; i--)
		;
	return cupti_ns + (uint64_t)marks[i % KEPT].distance_ns;
}
