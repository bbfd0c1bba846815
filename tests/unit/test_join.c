/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_join.c - device work finds its call whatever comes first, and calls have their numbers. What happens with
 * much, and in any order, is in test_join_any.c.
 */
#include <errno.h>

#include "../../user/event/join/join_calls.h"
#include "../../user/event/join/join_causes.h"
#include "make_join.h"

/* ---- one launch, in each order ---- */

static void test_orders(void)
{
	static const char *const orders[] = { "LCK", "LKC", "CLK", "CKL", "KLC", "KCL" };

	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		struct taker t;
		struct join *j = begin(&t, false);

		for (const char *p = orders[i]; *p; p++) {
			if (*p == 'L')
				CHECK(!give_call(j, "cudaLaunchKernel", 10, 11, 1000, 9000));
			else if (*p == 'C')
				CHECK(!give_cause(j, 10, 11, 77, 2000, 8000));
			else
				CHECK(!give_kernel(j, 10, 77, 20000, 30000));
		}
		CHECK(!join_flush(j, 100 * MS));
		CHECK(!join_flush(j, 120 * MS));
		CHECK(t.n == 2);
		CHECK_EQ(CT_KERNEL, last(&t)->kind);
		CHECK(last(&t)->cause);
		CHECK_EQ(1, last(&t)->number);
		CHECK_EQ(1000, last(&t)->call_ns);
		CHECK_EQ(9000, last(&t)->cause_end_ns);
		CHECK_EQ(11, last(&t)->tid);
		CHECK(last(&t)->func == row("cudaLaunchKernel") && !last(&t)->inferred);
		CHECK_EQ(0, last(&t)->device);
		CHECK_EQ(1, last(&t)->context);
		CHECK_EQ(7, last(&t)->stream);
		CHECK_EQ(1, counts_of(j).matched);
		CHECK_EQ(0, counts_of(j).unmatched);
		CHECK(!counts_of(j).inferred);
		join_close(j);
		taker_free(&t);
	}
}

/* What is there at once goes on at once. */
static void test_no_wait(void)
{
	struct taker t;
	struct join *j = begin(&t, false);
	struct made_device m;

	give_call(j, "cudaLaunchKernel", 10, 11, 1000, 9000);
	give_cause(j, 10, 11, 77, 2000, 8000);
	give_kernel(j, 10, 77, 20000, 30000);
	CHECK(t.n == 2 && last(&t)->number == 1);
	/* no cause is expected for these */
	give(j, make_sync(&m, MAKE_AT(10, 0, 1, 7, 99, 1, 2), CT_SYNC_STREAM, CT_UNKNOWN));
	give(j, make_overhead(&m, MAKE_AT(10, 0, 1, 7, 99, 1, 2), 11, 1));
	give(j, make_marker(&m, 10, 11, 1, 2, CT_MARKER_MARK, "here", ""));
	give(j, make_device(&m, 10, 0, 1, "GPU"));
	give_kernel(j, 10, 0, 20000, 30000);
	CHECK(t.n == 7 && !last(&t)->cause);
	CHECK(counts_of(j).matched == 1 && counts_of(j).unmatched == 1);
	/* causes end here */
	give_cause(j, 10, 11, 78, 12000, 18000);
	CHECK(t.n == 7);
	join_close(j);
	taker_free(&t);
}

/* ---- waiting ends ---- */

static void test_waiting(void)
{
	struct taker t;
	struct join *j = begin(&t, false);

	/* without a cause: a second since it came */
	CHECK(!join_flush(j, 5000 * MS));
	give_kernel(j, 10, 77, 4900 * MS, 4901 * MS);
	for (uint64_t now = 5000; now < 5999; now += 10)
		CHECK(!join_flush(j, now * MS));
	CHECK(!t.n);
	CHECK(!join_flush(j, 6000 * MS));
	CHECK_EQ(1, t.n);
	CHECK(!last(&t)->cause);
	CHECK_EQ(CT_NO_FUNC, last(&t)->func);
	CHECK_EQ(0, last(&t)->call_ns);
	CHECK_EQ(0, last(&t)->number);
	CHECK(counts_of(j).unmatched == 1);

	/* with a cause, without a call: the cause itself, soon */
	give_cause(j, 10, 11, 78, 5990 * MS, 5991 * MS);
	give_kernel(j, 10, 78, 6000 * MS, 6001 * MS);
	CHECK(!join_flush(j, 6100 * MS));
	CHECK(t.n == 1);
	CHECK(!join_flush(j, 6240 * MS));
	CHECK(t.n == 1);
	CHECK(!join_flush(j, 6500 * MS));
	CHECK_EQ(2, t.n);
	CHECK(last(&t)->cause);
	CHECK_EQ(5990 * MS, last(&t)->call_ns);
	CHECK_EQ(11, last(&t)->tid);
	CHECK_EQ(0, last(&t)->number);
	CHECK(!last(&t)->cause_end_ns && last(&t)->func == row("cudaLaunchKernel"));
	CHECK(counts_of(j).matched == 1);

	/* at the end of everything, at once */
	give_kernel(j, 10, 79, 6000 * MS, 6001 * MS);
	CHECK(!join_flush(j, UINT64_MAX));
	CHECK(t.n == 3 && counts_of(j).unmatched == 2);
	join_close(j);
	taker_free(&t);

	/* what came before the first flush has waited since then */
	j = begin(&t, false);
	give_kernel(j, 10, 77, 1, 2);
	CHECK(!join_flush(j, 5000 * MS));
	CHECK(!join_flush(j, 5900 * MS));
	CHECK(!t.n);
	CHECK(!join_flush(j, 6000 * MS) && t.n == 0);
	for (int i = 1; i < 10; i++)
		CHECK(!join_flush(j, (6000 + 200 * (uint64_t)i) * MS));
	CHECK(t.n == 1);
	join_close(j);
	taker_free(&t);
}

/* Without records of calls the cause is all there will be. */
static void test_no_calls(void)
{
	struct taker t;
	struct join *j = begin(&t, true);

	give_cause(j, 10, 11, 77, 2000, 8000);
	give_kernel(j, 10, 77, 20000, 30000);
	CHECK_EQ(1, t.n);
	CHECK(last(&t)->cause);
	CHECK_EQ(2000, last(&t)->call_ns);
	CHECK_EQ(11, last(&t)->tid);
	CHECK_EQ(0, last(&t)->number);
	give_kernel(j, 10, 78, 20000, 30000);
	CHECK(t.n == 1);
	give_cause(j, 10, 12, 78, 2000, 8000);
	CHECK(!join_flush(j, 100 * MS) && !join_flush(j, 120 * MS));
	CHECK(t.n == 2 && last(&t)->tid == 12);
	join_close(j);
	taker_free(&t);
}

/* ---- what did not come ---- */

static int give_node(struct join *j, uint32_t pid, uint32_t tid, uint64_t id, uint64_t origin,
		     uint64_t at_ns)
{
	struct ct_node n = { .w = { .h = { .size = sizeof(n),
					   .kind = CT_NODE,
					   .pid = pid,
					   .tid = tid,
					   .start_ns = at_ns,
					   .end_ns = at_ns },
				    .func = CT_NO_FUNC } };

	n.w.graph_node = id;
	n.origin = origin;
	return give(j, &n);
}

/* A node of a graph gets the call of its thread that was under way. What the graph's replay did
 * waits until all nodes of the process have theirs, so that they come first. */
static void test_nodes(void)
{
	struct taker t;
	struct join *j = begin(&t, false);
	struct ct_kernel k = { 0 };

	CHECK(!join_flush(j, MS));
	CHECK(!give_node(j, 7, 8, 1, 0, 15 * US));
	CHECK(!give_node(j, 7, 8, 2, 1, 50 * US)); /* a copy has no call of its own */
	CHECK_EQ(1, t.n);
	CHECK(!give_call(j, "cudaGraphLaunch", 7, 8, 100 * US, 110 * US));
	CHECK(!give_cause(j, 7, 8, 5, 101 * US, 109 * US));
	k.w.h = (struct ct_hdr){ .size = sizeof(k), .kind = CT_KERNEL, .pid = 7 };
	k.w.h.start_ns = 105 * US;
	k.w.h.end_ns = 106 * US;
	k.w.correlation = 5;
	k.w.graph_node = 2;
	k.w.func = CT_NO_FUNC;
	CHECK(!give(j, &k));
	CHECK_EQ(2, t.n);
	k.w.h.pid = 9; /* another process's does not wait for them */
	k.w.correlation = 0;
	CHECK(!give(j, &k));
	CHECK_EQ(3, t.n);
	CHECK(!give_call(j, "cudaLaunchKernel", 7, 8, 10 * US, 20 * US));
	CHECK(!join_flush(j, 100 * MS));
	CHECK(!join_flush(j, 200 * MS));
	CHECK_EQ(6, t.n);
	CHECK_EQ(CT_NODE, t.seen[4].kind);
	CHECK_EQ(8, t.seen[4].tid);
	CHECK_EQ(1, t.seen[4].number - t.seen[1].number);
	CHECK_EQ(CT_KERNEL, t.seen[5].kind);
	join_close(j);
	taker_free(&t);
}

/* ---- calls inside calls ---- */

static bool even_rows(void *ctx, const struct ct_hdr *call)
{
	(void)ctx;
	return !(call->flags & CT_F_HIDDEN);
}

static void test_nested(void)
{
	struct made_call m;
	struct taker t;
	struct join *j = begin(&t, false);
	struct ct_call *c;

	/* runtime and driver records of one id: the outer is the cause, whichever comes first */
	for (uint32_t k = 0; k < 2; k++) {
		uint64_t at = 100000 * (k + 1);

		give_cause(j, 10, 11, 77 + k, at + (k ? 2000 : 3000), at + (k ? 8000 : 7000));
		give_cause(j, 10, 11, 77 + k, at + (k ? 3000 : 2000), at + (k ? 7000 : 8000));
		give_kernel(j, 10, 77 + k, at + 20000, at + 30000);
		c = call_of(&m, "cuLaunchKernel", 10, 11, at + 2500, at + 7500);
		c->depth = 1;
		give(j, c);
		CHECK(!join_flush(j, 100 * MS));
		give_call(j, "cudaLaunchKernel", 10, 11, at + 1000, at + 9000);
		CHECK(!join_flush(j, 140 * MS * (k + 1)));
		CHECK(last(&t)->kind == CT_KERNEL && last(&t)->call_ns == at + 1000);
		CHECK(last(&t)->func == row("cudaLaunchKernel") && last(&t)->number == 2 * k + 2);
	}
	/* parents first, as with --nested */
	give_call(j, "cudaLaunchKernel", 10, 11, 501000, 509000);
	c = call_of(&m, "cuLaunchKernel", 10, 11, 502500, 507500);
	c->depth = 1;
	give(j, c);
	give_cause(j, 10, 11, 80, 503000, 507000);
	give_kernel(j, 10, 80, 520000, 530000);
	CHECK_EQ(CT_KERNEL, last(&t)->kind);
	CHECK_EQ(501000, last(&t)->call_ns);
	CHECK_EQ(5, last(&t)->number);
	join_close(j);
	taker_free(&t);

	/* a call that is not shown is no cause while one inside it is */
	j = begin(&t, false);
	join_close(j);
	{
		struct join_opts opts = { .shown = even_rows };

		j = join_open(&opts, take, &t);
	}
	c = call_of(&m, "cuLaunchKernel", 10, 11, 2500, 7500);
	c->depth = 1;
	give(j, c);
	c = call_of(&m, "cudaLaunchKernel", 10, 11, 1000, 9000);
	c->h.flags |= CT_F_HIDDEN;
	give(j, c);
	CHECK(!last(&t)->number);
	give_cause(j, 10, 11, 77, 3000, 7000);
	give_kernel(j, 10, 77, 20000, 30000);
	CHECK_EQ(CT_KERNEL, last(&t)->kind);
	CHECK_EQ(2500, last(&t)->call_ns);
	CHECK_EQ(1, last(&t)->number);
	/* alone it is one, without a number and an end */
	c = call_of(&m, "cudaLaunchKernel", 10, 11, 11000, 19000);
	c->h.flags |= CT_F_HIDDEN;
	give(j, c);
	give_cause(j, 10, 11, 78, 13000, 17000);
	give_kernel(j, 10, 78, 20000, 30000);
	CHECK_EQ(11000, last(&t)->call_ns);
	CHECK_EQ(0, last(&t)->number);
	CHECK_EQ(0, last(&t)->cause_end_ns);
	join_close(j);
	taker_free(&t);
}

/* CUPTI sees calls of a runtime that is linked into a library, and has no probes: the call of the
 * driver inside is the work's, wherever the middle of the runtime's call is. */
static void test_parts(void)
{
	static const char *const orders[] = { "PCK", "CKP", "KPC" };
	struct taker t;
	struct join *j;

	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		/* the first launch of a module loads it: its middle is between two calls */
		for (int between = 0; between < 2; between++) {
			uint64_t load_end = between ? 4 * MS : 6 * MS;

			j = begin(&t, false);
			for (const char *p = orders[i]; *p; p++) {
				if (*p == 'C')
					CHECK(!give_cause(j, 10, 11, 77, 1 * MS, 10 * MS));
				if (*p == 'K')
					CHECK(!give_kernel(j, 10, 77, 11 * MS, 12 * MS));
				if (*p != 'P')
					continue;
				CHECK(!give_call(j, "cuLibraryLoadData", 10, 11, 2 * MS, load_end));
				CHECK(!give_call(j, "cuMemcpyHtoD_v2", 10, 11, load_end,
						 load_end + MS));
				CHECK(!join_flush(j, 20 * MS));
				CHECK(!join_flush(j, 40 * MS));
				CHECK(!give_call(j, "cuLaunchKernel", 10, 11, 8 * MS, 9 * MS));
			}
			CHECK(!join_flush(j, 60 * MS));
			CHECK(!join_flush(j, 80 * MS));
			CHECK_EQ(4, t.n);
			CHECK_EQ(CT_KERNEL, last(&t)->kind);
			CHECK_EQ(8 * MS, last(&t)->call_ns);
			CHECK_EQ(row("cuLaunchKernel"), last(&t)->func);
			CHECK_EQ(3, last(&t)->number);
			join_close(j);
			taker_free(&t);
		}
	}

	/* each kind of work has the call that makes such work; what is outside has none of it */
	j = begin(&t, false);
	give_call(j, "cuLaunchKernel", 10, 11, 900, 950);
	give_call(j, "cuMemcpyHtoDAsync_v2", 10, 11, 1100, 1200);
	give_call(j, "cuLaunchKernel", 10, 11, 1900, 1950);
	give_call(j, "cuLaunchKernel", 10, 11, 2010, 2050);
	give_cause(j, 10, 11, 77, 1000, 2000);
	give_kernel(j, 10, 77, 3000, 4000);
	CHECK_EQ(1900, last(&t)->call_ns);
	{
		struct made_device m;

		give(j, make_copy(&m, MAKE_AT(10, 0, 1, 7, 77, 3000, 4000), CT_COPY_HTOD,
				  CT_MEM_PINNED, CT_MEM_DEVICE, 64));
	}
	CHECK_EQ(CT_COPY, last(&t)->kind);
	CHECK_EQ(1100, last(&t)->call_ns);
	/* without one it is the call at that time, once all have come */
	give_call(j, "cuLibraryLoadData", 10, 11, 5100, 5900);
	give_cause(j, 10, 11, 78, 5000, 6000);
	give_kernel(j, 10, 78, 7000, 8000);
	CHECK_EQ(CT_CALL, last(&t)->kind);
	give_call(j, "cuLaunchKernel", 10, 11, 6100, 6200);
	CHECK(!join_flush(j, 100 * MS));
	CHECK(!join_flush(j, 120 * MS));
	CHECK_EQ(CT_KERNEL, last(&t)->kind);
	CHECK_EQ(5100, last(&t)->call_ns);
	join_close(j);
	taker_free(&t);
}

static int give_scoped_call(struct join *j, uint32_t scope, uint64_t start_ns, uint64_t end_ns)
{
	const uint64_t word = scope | (uint64_t)CT_SCOPE_BY_ID << 32;
	struct made_call m;
	struct ct_call *c = call_of(&m, "cudaLaunchKernel", 10, 11, start_ns, end_ns);

	memcpy((char *)c + c->h.size, &word, sizeof(word));
	c->h.size = (uint16_t)(c->h.size + sizeof(word));
	c->h.flags |= CT_F_SCOPE;
	return give(j, c);
}

/* With scopes, work is in the scope of its call, or in an unknown one, which is counted. */
static void test_scoped(void)
{
	struct taker t;
	struct join *j = begin(&t, false);

	/* without scopes it is in none */
	give_kernel(j, 10, 0, 1000, 2000);
	CHECK_EQ(CT_SCOPE_NONE, last(&t)->scope);
	CHECK_EQ(0, counts_of(j).unscoped);
	join_scoped(j);
	give_kernel(j, 10, 0, 1000, 2000);
	CHECK_EQ(CT_SCOPE_UNKNOWN, last(&t)->scope);
	CHECK_EQ(1, counts_of(j).unscoped);
	give_scoped_call(j, 5, 11000, 19000);
	give_cause(j, 10, 11, 77, 12000, 18000);
	give_kernel(j, 10, 77, 20000, 30000);
	CHECK_EQ(5, last(&t)->scope);
	give_scoped_call(j, CT_SCOPE_NONE, 21000, 29000);
	give_cause(j, 10, 11, 78, 22000, 28000);
	give_kernel(j, 10, 78, 30000, 40000);
	CHECK_EQ(CT_SCOPE_NONE, last(&t)->scope);
	CHECK_EQ(1, counts_of(j).unscoped);
	/* CUPTI told of a call that has no record */
	give_cause(j, 10, 11, 79, 32000, 38000);
	give_kernel(j, 10, 79, 40000, 50000);
	CHECK(!join_flush(j, UINT64_MAX));
	CHECK(last(&t)->cause);
	CHECK_EQ(CT_SCOPE_UNKNOWN, last(&t)->scope);
	CHECK_EQ(2, counts_of(j).unscoped);
	CHECK(counts_of(j).matched == 3 && counts_of(j).unmatched == 2);
	join_close(j);
	taker_free(&t);
}

/* ---- numbers, ids, processes ---- */

static void test_numbers(void)
{
	struct made_call m;
	struct taker t;
	struct join *j = begin(&t, false);
	struct ct_call *c;

	give_call(j, "cudaMalloc", 10, 11, 1, 2);
	CHECK(last(&t)->number == 1);
	give_call(j, "cudaGetDevice", 10, 12, 3, 4);
	CHECK(last(&t)->number == 2);
	give_call(j, "cudaMalloc", 20, 20, 5, 6);
	CHECK(last(&t)->number == 1);
	c = call_of(&m, "cudaMalloc", 10, 11, 7, 8);
	c->h.flags |= CT_F_UNFINISHED | CT_F_PENDING;
	give(j, c);
	CHECK(!last(&t)->number);
	c = make_call(&m, "cudaMalloc", CT_ENTER, 0, 0, U(0), U(0));
	c->h.pid = 10;
	give(j, c);
	CHECK(!last(&t)->number);
	give_call(j, "cudaMalloc", 10, 11, 9, 10);
	CHECK(last(&t)->number == 3);
	/* another program under the same number goes on; another process begins anew */
	give_process(j, CT_PROCESS, 10, 500);
	give_call(j, "cudaMalloc", 10, 11, 11, 12);
	CHECK(last(&t)->number == 4);
	give_process(j, CT_EXEC, 10, 500);
	give_call(j, "cudaMalloc", 10, 11, 13, 14);
	CHECK(last(&t)->number == 5);
	give_process(j, CT_PROCESS, 10, 500);
	give_call(j, "cudaMalloc", 10, 11, 15, 16);
	CHECK(last(&t)->number == 6);
	give_process(j, CT_PROCESS, 10, 501);
	give_call(j, "cudaMalloc", 10, 11, 17, 18);
	CHECK(last(&t)->number == 1);
	join_close(j);
	taker_free(&t);
}

static bool mallocs_only(void *ctx, const struct ct_hdr *call)
{
	(void)ctx;
	return ((const struct ct_call *)call)->func == row("cudaMalloc");
}

/* In a stored trace calls have the numbers that they had, whatever is shown of it now. */
static void test_stored_numbers(void)
{
	struct join_opts opts = { .shown = mallocs_only, .stored = true };
	struct made_call m;
	struct taker t = { 0 };
	struct join *j = join_open(&opts, take, &t);
	struct ct_call *c;

	give_call(j, "cudaFree", 10, 11, 1, 2);
	CHECK(last(&t)->number == 1);
	give_call(j, "cudaMalloc", 10, 11, 3, 4);
	CHECK(last(&t)->number == 2);
	give_call(j, "cudaFree", 10, 11, 5, 6);
	CHECK(last(&t)->number == 3);
	c = call_of(&m, "cudaSetDevice", 10, 11, 7, 8);
	c->h.flags |= CT_F_HIDDEN;
	give(j, c);
	CHECK(!last(&t)->number);
	give_call(j, "cudaMalloc", 10, 11, 9, 10);
	CHECK(last(&t)->number == 4);
	give_call(j, "cudaFree", 20, 20, 11, 12);
	CHECK(last(&t)->number == 1);
	/* what had no call then has none now, at once */
	give_kernel(j, 10, 77, 20, 30);
	CHECK(last(&t)->kind == CT_KERNEL && !last(&t)->cause);
	join_close(j);
	taker_free(&t);
}

static void test_reuse(void)
{
	struct taker t;
	struct join *j = begin(&t, false);
	struct ct_exit e = { .h = { .size = sizeof(e), .kind = CT_EXIT, .pid = 10, .tid = 10 } };

	/* a correlation id used again means the later call from then on */
	give_call(j, "cudaLaunchKernel", 10, 11, 1000, 9000);
	give_cause(j, 10, 11, 77, 2000, 8000);
	give_kernel(j, 10, 77, 20000, 30000);
	CHECK(last(&t)->call_ns == 1000);
	give_call(j, "cudaLaunchKernel", 10, 12, 101000, 109000);
	give_cause(j, 10, 12, 77, 102000, 108000);
	give_kernel(j, 10, 77, 120000, 130000);
	CHECK(last(&t)->call_ns == 101000 && last(&t)->tid == 12);
	/* the same cause twice, and work twice as of a graph's nodes */
	give_cause(j, 10, 12, 77, 102000, 108000);
	give_kernel(j, 10, 77, 130000, 140000);
	CHECK(last(&t)->call_ns == 101000 && last(&t)->number == 2);
	/* the same id in another process is another one */
	give_kernel(j, 20, 77, 120000, 130000);
	CHECK(!join_flush(j, UINT64_MAX));
	CHECK(!last(&t)->cause);
	/* work may come after the exit */
	give(j, &e);
	give_kernel(j, 10, 77, 150000, 160000);
	CHECK(last(&t)->call_ns == 101000);
	/* not when the number belongs to another process; what was held is of the one before */
	give_kernel(j, 10, 78, 150000, 160000);
	CHECK(last(&t)->correlation == 77);
	give_process(j, CT_PROCESS, 10, 600);
	if (CHECK(t.n > 2)) {
		CHECK_EQ(78, t.seen[t.n - 2].correlation);
		CHECK(!t.seen[t.n - 2].cause);
		CHECK_EQ(CT_PROCESS, last(&t)->kind);
	}
	give_kernel(j, 10, 77, 170000, 180000);
	CHECK(!join_flush(j, UINT64_MAX));
	CHECK(last(&t)->start_ns == 170000 && !last(&t)->cause);
	join_close(j);
	taker_free(&t);
}

/* ---- graphs ---- */

static void test_inferred(void)
{
	struct made_device m;
	struct made_call mc;
	struct taker t;
	struct join *j = begin(&t, false);
	struct ct_call *c;

	/* two streams: their numbers are known from the agent */
	give(j, make_context(&m, 10, 1, 0, 7, 0xc0, 1));
	give(j, make_stream(&m, 10, 13, 1, 0x5500, 1, 1));
	give(j, make_stream(&m, 10, 14, 1, 0x6600, 1, 1));
	for (int i = 0; i < 4; i++) {
		c = make_call(&mc, "cudaGraphLaunch", CT_CALL, 0, 0, U(0xe0),
			      U(i % 2 ? 0x6600 : 0x5500));
		c->h.pid = 10;
		c->h.tid = 11;
		c->h.start_ns = 1000 + 1000 * (uint64_t)i;
		c->h.end_ns = c->h.start_ns + 500;
		give(j, c);
		CHECK_EQ((i % 2 ? 14u : 13u), last(&t)->stream);
		CHECK_EQ(1, last(&t)->context);
		CHECK_EQ(0, last(&t)->device);
	}
	/* a node without an id: the latest launch on its stream that began before it */
	make_kernel(&m, MAKE_AT(10, 0, 1, 13, 0, 3800, 3900), 1, 1, 1);
	m.work.graph = 5;
	m.work.graph_node = 500;
	give(j, &m);
	CHECK(last(&t)->kind == CT_CALL);
	CHECK(!join_flush(j, 300 * MS) && !join_flush(j, 320 * MS));
	CHECK_EQ(CT_KERNEL, last(&t)->kind);
	CHECK(last(&t)->inferred);
	CHECK_EQ(3000, last(&t)->call_ns);
	CHECK_EQ(3, last(&t)->number);
	/* a wrong id, marked as such */
	make_graph(&m, MAKE_AT(10, 0, 1, 14, 4711, 2500, 2600), 5);
	m.work.h.flags = CT_F_INFERRED;
	give_cause(j, 10, 11, 4711, 1100, 1200);
	give(j, &m);
	CHECK(!join_flush(j, 300 * MS) && !join_flush(j, 400 * MS));
	CHECK(last(&t)->inferred);
	CHECK_EQ(2000, last(&t)->call_ns);
	CHECK_EQ(2, last(&t)->number);
	/* none began before */
	make_graph(&m, MAKE_AT(10, 0, 1, 14, 0, 100, 200), 5);
	give(j, &m);
	CHECK(!join_flush(j, UINT64_MAX));
	CHECK(!last(&t)->inferred);
	CHECK(!last(&t)->cause);
	CHECK_EQ(100, last(&t)->start_ns);
	CHECK_EQ(2, counts_of(j).inferred);
	CHECK_EQ(2, counts_of(j).matched);
	CHECK_EQ(1, counts_of(j).unmatched);
	/* a trusted id counts more than the time */
	give_cause(j, 10, 11, 80, 1100, 1200);
	make_graph(&m, MAKE_AT(10, 0, 1, 14, 80, 9000, 9900), 5);
	give(j, &m);
	CHECK(!last(&t)->inferred);
	CHECK_EQ(1000, last(&t)->call_ns);
	CHECK_EQ(1, last(&t)->number);
	join_close(j);
	taker_free(&t);
}

int main(void)
{
	RUN(test_orders);
	RUN(test_no_wait);
	RUN(test_waiting);
	RUN(test_no_calls);
	RUN(test_nodes);
	RUN(test_nested);
	RUN(test_parts);
	RUN(test_scoped);
	RUN(test_numbers);
	RUN(test_stored_numbers);
	RUN(test_reuse);
	RUN(test_inferred);
	return unit_end();
}
