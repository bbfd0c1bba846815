/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_join_any.c - calls and device work in any order: each finds what belongs to it, a joined trace replays
 * equal, what is remembered is bounded, and rubbish does no harm.
 */
#include <errno.h>

#include "make_join.h"
#include "random.h"

/* ---- anything in any order ---- */

static uint64_t seed = RANDOM_SEED;

static uint64_t rnd(void)
{
	return random_next(&seed);
}

struct item {
	union {
		struct ct_hdr h;
		struct ct_cause cause;
		struct ct_kernel kernel;
		struct made_call call;
	};
};

#define LAUNCHES 600

/* What each kernel must find: told by its grid, which nothing else depends on. */
struct expected {
	uint64_t call_ns;
	uint32_t pid, tid;
};

static size_t make_items(struct item *items, struct expected *expected)
{
	uint64_t clock[6] = { 0 };
	struct made_device m;
	size_t n = 0;

	for (uint32_t i = 0; i < LAUNCHES; i++) {
		uint32_t thread = (uint32_t)(rnd() % 6), pid = 100 + thread / 3, tid = 200 + thread;
		uint64_t at = clock[thread] + 1 + rnd() % 3000, len = 200 + rnd() % 5000;

		clock[thread] = at + len + 1;
		expected[i] = (struct expected){ at, pid, tid };
		call_of(&items[n++].call, rnd() % 2 ? "cudaLaunchKernel" : "cuLaunchKernel", pid,
			tid, at, at + len);
		/* the two processes have the same correlation ids */
		make_cause(&m, pid, tid, i / 2 + 1 + LAUNCHES * (thread % 3), CT_NO_FUNC,
			   at + len / 4, at + len / 2);
		items[n++].cause = m.cause;
		make_kernel(&m,
			    MAKE_AT(pid, 0, 1, 7, i / 2 + 1 + LAUNCHES * (thread % 3), at + len * 2,
				    at + len * 3),
			    1, i, 1);
		items[n++].kernel = m.kernel;
	}
	return n;
}

/* Kernels of two launches with one correlation id of one thread cannot be told apart: ids are
 * made unique first. */
static void unique_ids(struct item *items, size_t n)
{
	uint32_t id[2] = { 0 };

	for (size_t i = 0; i < n; i += 3) {
		uint32_t c = ++id[items[i].h.pid - 100];

		items[i + 1].cause.correlation = items[i + 2].kernel.w.correlation = c;
	}
}

static void test_interleavings(void)
{
	static struct item items[LAUNCHES * 3];
	static struct expected expected[LAUNCHES];
	static uint32_t order[LAUNCHES * 3];

	for (int round = 0; round < 60; round++) {
		struct taker t;
		struct join *j = begin(&t, false);
		size_t n = make_items(items, expected), good = 0, kernels = 0;
		uint64_t now = 5 * MS;
		bool all_right = true;

		unique_ids(items, n);
		for (uint32_t i = 0; i < n; i++)
			order[i] = i;
		for (uint32_t i = (uint32_t)n - 1; i; i--) {
			/* far apart in every second round, near in the others */
			uint32_t k = round % 2 ? (uint32_t)(rnd() % (i + 1))
					       : i - (uint32_t)(rnd() % (i < 20 ? i + 1 : 20));
			uint32_t x = order[i];

			order[i] = order[k];
			order[k] = x;
		}
		for (uint32_t i = 0; i < n; i++) {
			CHECK(!give(j, &items[order[i]]));
			if (rnd() % 8 == 0) /* less than JOIN_CALL_NS, in all */
				CHECK(!join_flush(j, now += rnd() % MS));
		}
		CHECK(!join_flush(j, UINT64_MAX));
		for (size_t i = 0, at = 0; i < t.n; i++) {
			const struct ct_hdr *h = (const struct ct_hdr *)(t.stored + at);
			const struct ct_kernel *k = (const struct ct_kernel *)h;

			at += h->size;
			if (h->kind != CT_KERNEL)
				continue;
			kernels++;
			good += k->w.call_ns == expected[k->grid[0]].call_ns &&
				h->tid == expected[k->grid[0]].tid &&
				h->pid == expected[k->grid[0]].pid && t.seen[i].number;
			all_right &= t.seen[i].cause;
		}
		CHECK_EQ(LAUNCHES, kernels);
		CHECK_EQ(LAUNCHES, good);
		CHECK(all_right);
		CHECK(counts_of(j).matched == LAUNCHES && !counts_of(j).unmatched);
		CHECK(t.n == 2 * LAUNCHES);

		/* stored and replayed: the same events in the same order, nothing held */
		{
			struct taker again;
			struct join *r = begin(&again, false);
			bool same;

			join_stored(r);
			for (size_t at = 0; at < t.len;) {
				const struct ct_hdr *h = (const struct ct_hdr *)(t.stored + at);

				CHECK(!give(r, h));
				at += h->size;
			}
			same = again.n == t.n && again.len == t.len &&
			       !memcmp(again.stored, t.stored, t.len);
			for (size_t i = 0; same && i < t.n; i++)
				same = again.seen[i].number == t.seen[i].number &&
				       again.seen[i].cause_end_ns == t.seen[i].cause_end_ns;
			CHECK(same);
			CHECK(counts_of(r).matched == LAUNCHES);
			join_close(r);
			taker_free(&again);
		}
		join_close(j);
		taker_free(&t);
	}
}

/* ---- bounds and rubbish ---- */

static int drop(void *ctx, struct event *ev)
{
	uint64_t *n = ctx;

	n[ev->rec->kind < CT_KIND_END ? ev->rec->kind : 0]++;
	return 0;
}

/* 3 M launches without an end: what is remembered stays below 128 MiB, and everything comes out. */
static void test_bounds(void)
{
	static uint64_t n[CT_KIND_END];
	struct join_opts opts = { 0 };
	struct join *j = join_open(&opts, drop, n);
	struct made_call m;
	struct made_device d;
	struct ct_call *c = call_of(&m, "cudaLaunchKernel", 10, 11, 0, 0);
	size_t most = 0;

	for (uint32_t i = 0; i < 3000000; i++) {
		c->h.start_ns = i * 10ULL;
		c->h.end_ns = c->h.start_ns + 8;
		c->h.tid = i % 7 ? 11 : 1000 + i;
		c->h.pid = i % 1000 ? 10 : 5000 + i;
		join_record(j, &c->h);
		join_record(j, &make_cause(&d, 10, c->h.tid, i, CT_NO_FUNC, c->h.start_ns + 2,
					   c->h.start_ns + 5)
					->h);
		/* ids that nobody knows: held */
		join_record(
			j,
			&make_kernel(&d, MAKE_AT(10, 0, 1, 7, UINT32_MAX - i, 1, 2), 1, 1, 1)->w.h);
		if (i % 4096 == 0 && join_bytes(j) > most)
			most = join_bytes(j);
	}
	CHECK(most < (size_t)160 << 20);
	/* the newest are known still */
	memset(n, 0, sizeof(n));
	join_record(j, &make_kernel(&d, MAKE_AT(10, 0, 1, 7, 2999999, 1, 2), 1, 1, 1)->w.h);
	CHECK(n[CT_KERNEL] == 1 && counts_of(j).matched == 1);
	CHECK(!join_flush(j, UINT64_MAX));
	CHECK(counts_of(j).unmatched == 3000000);
	join_close(j);
}

/* One thread's calls in reverse, ends before starts, ids of nobody: nothing is lost and nothing
 * is slow. */
static void test_hostile(void)
{
	static uint64_t n[CT_KIND_END];
	struct join_opts opts = { 0 };
	struct join *j = join_open(&opts, drop, n);
	struct made_call m;
	struct made_device d;
	uint64_t works = 0;

	memset(n, 0, sizeof(n));
	for (uint32_t i = 0; i < 200000; i++) {
		struct ct_call *c = call_of(&m, rnd() % 2 ? "cudaLaunchKernel" : "cudaGraphLaunch",
					    10, 11, 1000000 - i, 2000000 - i);

		if (rnd() % 4 == 0)
			c->h.end_ns = rnd();
		if (rnd() % 4 == 0)
			c->h.start_ns = rnd();
		c->depth = (uint8_t)(rnd() % 3);
		join_record(j, &c->h);
		make_cause(&d, 10, 11, (uint32_t)(rnd() % 1000),
			   (int)(rnd() % (uint64_t)api_nfuncs), rnd() % 2000000, rnd());
		join_record(j, &d.h);
		make_kernel(&d,
			    MAKE_AT(10, 0, 1, 7, (uint32_t)(rnd() % 1000), rnd() % 1000,
				    UINT64_MAX),
			    1, 1, 1);
		d.work.graph = rnd() % 2;
		d.work.h.flags = (uint16_t)(rnd() % 4);
		if (rnd() % 8 == 0)
			d.work.call_ns = rnd();
		if (rnd() % 8 == 0)
			d.work.correlation = 0;
		works++;
		join_record(j, &d.h);
		if (rnd() % 1000 == 0)
			join_flush(j, rnd());
	}
	CHECK(!join_flush(j, UINT64_MAX));
	CHECK(n[CT_CALL] == 200000 && n[CT_KERNEL] == works);
	CHECK(counts_of(j).matched + counts_of(j).unmatched == works);
	join_close(j);
}

/* An error stops. */
static void test_errors(void)
{
	struct taker t;
	struct join *j = begin(&t, false);

	for (uint32_t i = 0; i < 10; i++)
		give_kernel(j, 10, 77 + i, 1, 2);
	t.error = -EPIPE;
	CHECK(join_flush(j, UINT64_MAX) == -EPIPE);
	CHECK_EQ(1, t.n);
	join_close(j);
	taker_free(&t);
	join_close(NULL);
}

int main(void)
{
	RUN(test_interleavings);
	RUN(test_bounds);
	RUN(test_hostile);
	RUN(test_errors);
	return unit_end();
}
