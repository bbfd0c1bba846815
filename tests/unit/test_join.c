/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_join.c - device work finds its call whatever comes first; calls have their numbers and
 * places; a joined trace replays equal; what is remembered is bounded.
 */
#include <errno.h>

#include "../../user/event/holes/holes.h"
#include "../../user/event/join/join.h"
#include "../../user/event/join/join_calls.h"
#include "../../user/event/join/join_causes.h"
#include "make_call.h"
#include "make_device.h"
#include "unit.h"

#define MS 1000000ULL
#define US 1000ULL

/* ---- what join hands on ---- */

struct seen {
	uint16_t kind, func;
	uint32_t tid, number, device, context, stream, stack, correlation, scope;
	uint64_t start_ns, call_ns, cause_end_ns;
	bool cause, inferred;
};

struct taker {
	struct seen *seen;
	size_t n, cap;
	char *stored; /* the records, one after the other */
	size_t len, room;
	int error; /* that take() returns */
};

static int take(void *ctx, struct event *ev)
{
	struct taker *t = ctx;
	const struct ct_hdr *h = ev->rec;
	struct seen s = { .kind = h->kind,
			  .tid = h->tid,
			  .number = ev->number,
			  .device = ev->device,
			  .context = ev->context,
			  .stream = ev->stream,
			  .start_ns = h->start_ns };

	if (record_check(h, h->size))
		CHECK(!"join hands on a record that is malformed");
	if (h->kind == CT_KERNEL || h->kind == CT_COPY || h->kind == CT_SET ||
	    h->kind == CT_GRAPH) {
		const struct ct_work *w = (const struct ct_work *)h;

		s.func = w->func;
		s.call_ns = w->call_ns;
		s.stack = w->stack;
		s.scope = w->scope;
		s.correlation = w->correlation;
		s.inferred = h->flags & CT_F_INFERRED;
		s.cause = ev->cause;
		if (ev->cause) {
			s.cause_end_ns = ev->cause->end_ns;
			if (ev->cause->start_ns != w->call_ns || ev->cause->tid != h->tid ||
			    ev->cause->func != w->func)
				CHECK(!"the record and the cause differ");
		}
	} else if (h->kind == CT_CALL) {
		s.func = ((const struct ct_call *)h)->func;
	}
	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 256;
		t->seen = realloc(t->seen, t->cap * sizeof(*t->seen));
	}
	t->seen[t->n++] = s;
	if (t->len + h->size > t->room) {
		t->room = (t->len + h->size) * 2;
		t->stored = realloc(t->stored, t->room);
	}
	memcpy(t->stored + t->len, h, h->size);
	t->len += h->size;
	return t->error;
}

static void taker_free(struct taker *t)
{
	free(t->seen);
	free(t->stored);
	memset(t, 0, sizeof(*t));
}

static struct join *begin(struct taker *t, bool no_calls)
{
	struct join_opts opts = { .no_calls = no_calls, .places = true };

	memset(t, 0, sizeof(*t));
	return join_open(&opts, take, t);
}

static const struct seen *last(const struct taker *t)
{
	static const struct seen none;

	return t->n ? &t->seen[t->n - 1] : &none;
}

static int give(struct join *j, const void *rec)
{
	const struct ct_hdr *h = rec;

	CHECK(!record_check(h, h->size));
	return join_record(j, h);
}

/* ---- the records ---- */

static int row(const char *name)
{
	return api_next(name, -1);
}

static struct ct_call *call_of(struct made_call *m, const char *name, uint32_t pid, uint32_t tid,
			       uint64_t start_ns, uint64_t end_ns)
{
	struct ct_call *c = make_call(m, name, CT_CALL, 0, 0, U(0), U(0), U(0), U(0), U(0), U(0),
				      U(0), U(0), U(0), U(0), U(0));

	c->h.pid = pid;
	c->h.tid = tid;
	c->h.start_ns = start_ns;
	c->h.end_ns = end_ns;
	return c;
}

static int give_call(struct join *j, const char *name, uint32_t pid, uint32_t tid,
		     uint64_t start_ns, uint64_t end_ns)
{
	struct made_call m;

	return give(j, call_of(&m, name, pid, tid, start_ns, end_ns));
}

static int give_cause(struct join *j, uint32_t pid, uint32_t tid, uint32_t correlation,
		      uint64_t start_ns, uint64_t end_ns)
{
	struct made_device m;

	return give(j, make_cause(&m, pid, tid, correlation, row("cudaLaunchKernel"), start_ns,
				  end_ns));
}

static int give_kernel(struct join *j, uint32_t pid, uint32_t correlation, uint64_t start_ns,
		       uint64_t end_ns)
{
	struct made_device m;

	return give(j,
		    make_kernel(&m, MAKE_AT(pid, 0, 1, 7, correlation, start_ns, end_ns), 1, 1, 1));
}

static int give_process(struct join *j, int kind, uint32_t pid, uint64_t boottime_ns)
{
	struct ct_process p = {
		.h = { .size = sizeof(p), .kind = (uint16_t)kind, .pid = pid, .tid = pid },
		.start_boottime_ns = boottime_ns
	};
	int err = join_process(j, &p.h);

	return err ? err : give(j, &p);
}

static struct join_counts counts_of(const struct join *j)
{
	struct join_counts c;

	join_counts(j, &c);
	return c;
}

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

static int give_tail(struct join *j, uint32_t pid, uint64_t from_ns, uint64_t to_ns)
{
	struct ct_tail t = { .h = { .size = sizeof(t),
				    .kind = CT_TAIL,
				    .pid = pid,
				    .start_ns = from_ns,
				    .end_ns = to_ns },
			     .kinds = 1u << CT_KERNEL | 1u << CT_COPY };

	return give(j, &t);
}

/* A launch, and, if it is to have one, its kernel. */
static void give_launch(struct join *j, uint32_t pid, uint32_t tid, uint32_t id, uint64_t at_ms,
			bool ran)
{
	give_call(j, "cudaLaunchKernel", pid, tid, at_ms * MS, at_ms * MS + 9000);
	if (!ran)
		return;
	give_cause(j, pid, tid, id, at_ms * MS + 1000, at_ms * MS + 8000);
	give_kernel(j, pid, id, at_ms * MS + 20000, at_ms * MS + 30000);
}

/* The process at 10, and what is told of it in the end. */
static uint64_t tail_after(struct join *j, struct taker *t, uint64_t now_ms)
{
	uint64_t before = counts_of(j).tail;
	size_t n = t->n;

	CHECK(!give_tail(j, 10, 1000 * MS, now_ms * MS) && t->n == n);
	CHECK(!join_flush(j, UINT64_MAX));
	CHECK((counts_of(j).tail != before) == (last(t)->kind == CT_LOST));
	return counts_of(j).tail - before;
}

static void test_tail(void)
{
	struct made_call m;
	struct ct_call *c;
	struct taker t;
	struct join *j = begin(&t, false);

	/* of each thread those that have none, a second before its last that has one and on */
	give_launch(j, 10, 11, 1, 2000, false);
	for (uint32_t i = 0; i < 10; i++)
		give_launch(j, 10, 11, 2 + i, 4000 + i, i != 3 && i < 8);
	give_launch(j, 10, 12, 20, 4000, false);
	/* before the agent, another process's, of a kind that was not asked for, one that
	 * failed, one of nothing */
	give_launch(j, 10, 13, 21, 900, false);
	give_launch(j, 99, 14, 22, 4000, false);
	give_call(j, "cudaMemsetAsync", 10, 12, 4001 * MS, 4002 * MS);
	give_call(j, "cudaDeviceSynchronize", 10, 12, 4003 * MS, 4004 * MS);
	give_call(j, "cudaLaunchHostFunc", 10, 12, 4005 * MS, 4006 * MS);
	c = call_of(&m, "cudaLaunchKernel", 10, 12, 4007 * MS, 4008 * MS);
	c->ret = 700;
	give(j, c);
	c = call_of(&m, "cudaLaunchKernel", 10, 12, 4009 * MS, 4010 * MS);
	c->h.flags |= CT_F_UNFINISHED;
	give(j, c);
	c = call_of(&m, "cudaMemcpyAsync", 10, 12, 4011 * MS, 4012 * MS);
	c->words[2] = 0;
	give(j, c);
	CHECK(tail_after(j, &t, 5000) == 4);
	/* it is told once */
	CHECK(!join_flush(j, UINT64_MAX) && counts_of(j).tail == 4);
	join_close(j);
	taker_free(&t);

	/* with a size the copy counts; while a graph is made nothing does */
	j = begin(&t, false);
	c = call_of(&m, "cudaMemcpyAsync", 10, 11, 2000 * MS, 2001 * MS);
	c->words[2] = 4096;
	give(j, c);
	give_call(j, "cudaStreamBeginCapture", 10, 11, 2002 * MS, 2003 * MS);
	give_launch(j, 10, 11, 1, 2004, false);
	give_launch(j, 10, 12, 2, 2004, false);
	give_call(j, "cudaStreamEndCapture", 10, 11, 2006 * MS, 2007 * MS);
	give_launch(j, 10, 11, 3, 2008, false);
	CHECK(tail_after(j, &t, 3000) == 3);
	join_close(j);
	taker_free(&t);

	/* a kernel whose launch is not known is that of one of them */
	j = begin(&t, false);
	for (uint32_t i = 0; i < 5; i++)
		give_launch(j, 10, 11, 1 + i, 2000 + i, false);
	give_kernel(j, 10, 77, 2001 * MS, 2002 * MS);
	CHECK(tail_after(j, &t, 3000) == 4 && counts_of(j).unmatched == 1);
	join_close(j);
	taker_free(&t);
}

/* It is counted when all that was on the way is there, and no later; a program that is exec'd
 * does not change it. */
static void test_tail_waits(void)
{
	struct taker t;
	struct join *j = begin(&t, false);

	CHECK(!give_process(j, CT_PROCESS, 10, 7));
	CHECK(!join_flush(j, 5000 * MS));
	give_launch(j, 10, 11, 1, 4990, false);
	give_launch(j, 10, 11, 2, 4991, false);
	CHECK(!give_tail(j, 10, 4000 * MS, 5000 * MS));
	CHECK(!join_flush(j, 5001 * MS));
	/* one of them comes late */
	give_cause(j, 10, 11, 1, 4990 * MS + 1000, 4990 * MS + 8000);
	give_kernel(j, 10, 1, 4990 * MS + 20000, 4990 * MS + 30000);
	CHECK(!join_flush(j, 6250 * MS) && !counts_of(j).tail);
	CHECK(!join_flush(j, 6252 * MS));
	CHECK_EQ(1, counts_of(j).tail);
	CHECK_EQ(CT_LOST, last(&t)->kind);
	join_close(j);
	taker_free(&t);

	j = begin(&t, false);
	CHECK(!give_process(j, CT_PROCESS, 10, 7));
	give_launch(j, 10, 10, 1, 4990, false);
	give_launch(j, 10, 10, 2, 4991, false);
	{
		struct ct_process p = { .h = { .size = sizeof(p),
					       .kind = CT_EXEC,
					       .pid = 10,
					       .tid = 10,
					       .start_ns = 4995 * MS },
					.start_boottime_ns = 7 };

		CHECK(!join_process(j, &p.h) && !give(j, &p));
	}
	/* what the program before had sent comes now */
	give_cause(j, 10, 10, 2, 4991 * MS + 1000, 4991 * MS + 8000);
	give_kernel(j, 10, 2, 4991 * MS + 20000, 4991 * MS + 30000);
	CHECK(last(&t)->cause);
	CHECK_EQ(4991 * MS, last(&t)->call_ns);
	CHECK_EQ(2, last(&t)->number);
	give_launch(j, 10, 10, 1, 5200, false);
	CHECK(tail_after(j, &t, 5300) == 1);
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

static void give_exit(struct join *j, uint32_t pid, uint64_t at_ns)
{
	struct ct_exit e = { .h = { .size = sizeof(e),
				    .kind = CT_EXIT,
				    .pid = pid,
				    .tid = pid,
				    .start_ns = at_ns,
				    .end_ns = at_ns } };

	CHECK(!give(j, &e));
}

/* A process's last work may come after its end, and after many others have begun. */
static void test_ended(void)
{
	struct taker t;
	struct join *j = begin(&t, false);

	give_process(j, CT_PROCESS, 10, 1);
	give_call(j, "cudaLaunchKernel", 10, 11, 1000, 9000);
	give_cause(j, 10, 11, 77, 2000, 8000);
	give_exit(j, 10, 40000);
	for (uint32_t i = 0; i < 1000; i++) {
		give_process(j, CT_PROCESS, 1000 + i, 2 + i);
		give_exit(j, 1000 + i, (1 + i) * MS);
	}
	give_kernel(j, 10, 77, 20000, 30000);
	CHECK_EQ(CT_KERNEL, last(&t)->kind);
	CHECK_EQ(1000, last(&t)->call_ns);
	CHECK(counts_of(j).matched == 1 && counts_of(j).unmatched == 0);
	/* after some seconds it is forgotten, as all that have ended are */
	for (uint32_t i = 0; i < 20000; i++) {
		give_process(j, CT_PROCESS, 10000 + i, 2000 + i);
		give_exit(j, 10000 + i, (1000 + i) * MS);
	}
	CHECK(join_bytes(j) < (size_t)16 << 20);
	give_kernel(j, 10, 77, 20000, 30000);
	CHECK(!join_flush(j, UINT64_MAX));
	CHECK_EQ(1, counts_of(j).unmatched);
	join_close(j);
	taker_free(&t);
}

/* Entry probes alone tell when calls begin: the cause is the last that began before. */
static void test_no_return(void)
{
	struct made_call m;
	struct taker t;
	struct join *j = begin(&t, false);
	struct ct_call *c;

	for (uint64_t i = 1; i <= 3; i++) {
		c = call_of(&m, "cudaLaunchKernel", 10, 11, i * 10000, i * 10000);
		c->h.flags |= CT_F_NO_RETURN;
		give(j, c);
	}
	give_cause(j, 10, 11, 77, 21000, 28000);
	give_kernel(j, 10, 77, 40000, 50000);
	CHECK_EQ(CT_KERNEL, last(&t)->kind);
	CHECK_EQ(20000, last(&t)->call_ns);
	CHECK_EQ(2, last(&t)->number);
	CHECK(!last(&t)->cause_end_ns);
	join_close(j);
	taker_free(&t);
}

/* What a thread did after tracing stopped has no records: work of that time belongs to no call
 * before it, and is not of this trace. */
static void test_stopped(void)
{
	struct made_call m;
	struct taker t;
	struct join *j = begin(&t, false);
	struct ct_call *c = call_of(&m, "cudaLaunchKernel", 10, 11, 10000, 10000);

	c->h.flags |= CT_F_NO_RETURN;
	give(j, c);
	c = call_of(&m, "cudaLaunchKernel", 10, 12, 10000, 30000);
	c->h.flags |= CT_F_UNFINISHED;
	give(j, c);
	join_stopped(j, 30000);
	/* before: of the call that was under way */
	give_cause(j, 10, 11, 77, 11000, 12000);
	give_kernel(j, 10, 77, 20000, 30000);
	CHECK_EQ(CT_KERNEL, last(&t)->kind);
	CHECK_EQ(10000, last(&t)->call_ns);
	CHECK_EQ(1, last(&t)->number);
	give_cause(j, 10, 12, 78, 11000, 12000);
	give_kernel(j, 10, 78, 20000, 30000);
	CHECK_EQ(CT_KERNEL, last(&t)->kind);
	CHECK_EQ(10000, last(&t)->call_ns);
	CHECK_EQ(2, last(&t)->number);
	/* of one that CUPTI saw return after the end */
	give_cause(j, 10, 12, 82, 11000, 90000);
	give_kernel(j, 10, 82, 40000, 50000);
	CHECK_EQ(CT_KERNEL, last(&t)->kind);
	CHECK_EQ(2, last(&t)->number);
	/* after: of calls that nobody saw, and of one that was under way when the agent left */
	give_cause(j, 10, 11, 79, 31000, 32000);
	give_kernel(j, 10, 79, 40000, 50000);
	give_cause(j, 10, 12, 80, 31000, 32000);
	give_kernel(j, 10, 80, 40000, 50000);
	give_kernel(j, 10, 0, 40000, 50000);
	join_flush(j, UINT64_MAX);
	CHECK_EQ(5, t.n);
	/* what was lost of the time before is a kernel without its call */
	give_kernel(j, 10, 0, 20000, 25000);
	give_kernel(j, 10, 81, 40000, 50000);
	join_flush(j, UINT64_MAX);
	CHECK_EQ(7, t.n);
	CHECK_EQ(3, counts_of(j).matched);
	CHECK_EQ(2, counts_of(j).unmatched);
	join_close(j);
	taker_free(&t);
}

/* In a process that runs calls have records from one moment on: work that was asked for before is not of
 * this trace. */
static void test_began(void)
{
	static uint64_t launches[CT_MAX_FUNCS / 64], none[CT_MAX_FUNCS / 64];
	const uint64_t began = 500 * MS, soon = began + MS, later = began + 300 * MS;
	static const struct {
		const char *what;
		uint64_t cause_ns, work_ns;   /* cause_ns 0: the cause never came */
		bool captured, called, after; /* a call around it; one behind it */
		bool shown;
	} cases[] = {
		{ "before", 499 * MS, 600 * MS, true, false, true, false },
		{ "before, without its cause", 0, 499 * MS, true, false, true, false },
		{ "within", 501 * MS, 600 * MS, true, true, true, true },
		{ "without its cause", 0, 501 * MS, true, false, true, true },
		{ "the call was under way", 501 * MS, 600 * MS, true, false, true, false },
		{ "the call was under way, alone", 501 * MS, 600 * MS, true, false, false, false },
		{ "of a function that is not seen", 501 * MS, 600 * MS, false, false, true, true },
		{ "lost later", 800 * MS, 900 * MS, true, false, true, true },
	};
	int func = row("cudaLaunchKernel");

	launches[func / 64] = 1ULL << (func % 64);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct taker t;
		struct join *j = begin(&t, false);
		size_t calls = cases[i].called + (size_t)cases[i].after;

		CASE_ROW("%s", cases[i].what);
		join_began(j, began, cases[i].captured ? launches : none);
		if (cases[i].called)
			give_call(j, "cudaLaunchKernel", 10, 11, cases[i].cause_ns - US,
				  cases[i].cause_ns + 2 * US);
		if (cases[i].cause_ns)
			give_cause(j, 10, 11, 77, cases[i].cause_ns, cases[i].cause_ns + US);
		if (cases[i].after)
			give_call(j, "cudaLaunchKernel", 10, 11, cases[i].cause_ns + MS,
				  cases[i].cause_ns + 2 * MS);
		give_kernel(j, 10, 77, cases[i].work_ns, cases[i].work_ns + US);
		CHECK(!join_flush(j, soon) && !join_flush(j, later));
		CHECK(!join_flush(j, UINT64_MAX));
		CHECK_EQ(calls + cases[i].shown, t.n);
		CHECK_EQ(cases[i].shown, counts_of(j).matched + counts_of(j).unmatched);
		join_close(j);
		taker_free(&t);
	}
}

/* Work that was asked for before the end is waited for, if it may come. */
static void test_awaited(void)
{
	struct made_call m;
	struct taker t;
	struct join *j = begin(&t, false);
	struct ct_call *c;

	join_kernels(j);
	for (uint64_t i = 1; i <= 10; i++)
		give_launch(j, 10, 10, (uint32_t)i, 10000 + 10 * i, i > 3);
	give_launch(j, 10, 11, 11, 5000, false); /* long ago */
	give_launch(j, 12, 12, 1, 10000, false); /* no agent */
	c = call_of(&m, "cudaLaunchKernel", 10, 13, 10090 * MS, 10100 * MS);
	c->h.flags |= CT_F_UNFINISHED;
	give(j, c);
	CHECK_EQ(0, join_awaited(j)); /* it has not ended */
	join_stopped(j, 10100 * MS);
	CHECK_EQ(3, join_awaited(j));
	give_cause(j, 10, 10, 1, 10010 * MS + US, 10010 * MS + 2 * US);
	give_kernel(j, 10, 1, 10010 * MS, 10011 * MS);
	CHECK_EQ(2, join_awaited(j));
	/* the agent is gone */
	CHECK(!give_tail(j, 10, 1, 10100 * MS));
	CHECK_EQ(0, join_awaited(j));
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

/* ---- anything in any order ---- */

static uint64_t seed = 88172645463325252ULL;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
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

/* ---- where calls work ---- */

static const struct seen *placed(struct join *j, struct taker *t, const char *name, uint32_t tid,
				 ...)
{
	static uint64_t at = 1000;
	struct made_call m;
	struct ct_call *c;
	va_list ap;

	va_start(ap, tid);
	c = make_callv(&m, row(name), CT_CALL, 0, 0, ap);
	va_end(ap);
	c->h.pid = 10;
	c->h.tid = tid;
	c->h.start_ns = at += 100;
	c->h.end_ns = at + 50;
	give(j, c);
	return last(t);
}

#define PLACE(d, c, s) \
	(p->device == (uint32_t)(d) && p->context == (uint32_t)(c) && p->stream == (uint32_t)(s))

static void test_where(void)
{
	static const uint64_t context = 0xc1, primary = 0xc0;
	static const int32_t one = 1;
	struct made_device m;
	struct taker t;
	struct join *j = begin(&t, false);
	const struct seen *p;

	make_nmemory = 0;
	make_mem(0x1000, &context, 8);
	make_mem(0x2000, &primary, 8);
	make_mem(0x3000, &one, 4);
	/* nothing known: not 0 */
	p = placed(j, &t, "cudaMalloc", 11, U(0x9000), U(4));
	CHECK(PLACE(-1, -1, -1));
	/* a device is set: its context is known once the agent has told of one */
	placed(j, &t, "cudaSetDevice", 11, U(1));
	p = placed(j, &t, "cudaMalloc", 11, U(0x9000), U(4));
	CHECK(PLACE(1, -1, -1));
	p = placed(j, &t, "cudaMalloc", 12, U(0x9000), U(4)); /* another thread */
	CHECK(PLACE(-1, -1, -1));
	give(j, make_context(&m, 10, 2, 1, 7, primary, 1));
	p = placed(j, &t, "cudaMemsetAsync", 11, U(1), U(2), U(3), U(0));
	CHECK(PLACE(1, 2, 7)); /* stream 0 is the context's null stream */
	p = placed(j, &t, "cudaMemsetAsync", 11, U(1), U(2), U(3), U(2));
	CHECK(PLACE(1, 2, -1)); /* the per-thread one is not known */
	/* told again, as after an attach: still the only one */
	give(j, make_context(&m, 10, 2, 1, 7, primary, 1));
	p = placed(j, &t, "cudaMalloc", 11, U(0x9000), U(4));
	CHECK(PLACE(1, 2, -1));
	/* a stream says where it is, also in a thread of which nothing is known */
	give(j, make_stream(&m, 10, 13, 2, 0x5500, 1, 1));
	p = placed(j, &t, "cudaMemsetAsync", 12, U(1), U(2), U(3), U(0x5500));
	CHECK(PLACE(1, 2, 13));
	p = placed(j, &t, "cudaMemsetAsync", 12, U(1), U(2), U(3), U(0x5508));
	CHECK(PLACE(-1, -1, -1));
	/* a context of the driver's: of its device, pushed; popped: what was before is not known
	 * by its handle */
	placed(j, &t, "cuCtxCreate_v2", 11, U(0x1000), U(0), U(3));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(3, -1, -1));
	give(j, make_context(&m, 10, 5, 3, 9, context, 1));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(3, 5, -1));
	placed(j, &t, "cuCtxPushCurrent_v2", 11, U(primary));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(1, 2, -1));
	placed(j, &t, "cuCtxPopCurrent_v2", 11, U(0x2000));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(3, 5, -1));
	placed(j, &t, "cuCtxPopCurrent_v2", 11, U(0x1000));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(-1, -1, -1));
	/* set, asked, destroyed */
	placed(j, &t, "cuCtxSetCurrent", 11, U(context));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(3, 5, -1));
	placed(j, &t, "cuCtxDestroy_v2", 11, U(context));
	p = placed(j, &t, "cuMemAlloc_v2", 11, U(0x9000), U(4));
	CHECK(PLACE(-1, -1, -1));
	placed(j, &t, "cudaGetDevice", 12, U(0x3000));
	p = placed(j, &t, "cudaMalloc", 12, U(0x9000), U(4));
	CHECK(PLACE(1, -1, -1)); /* the device: which of its contexts is not said */
	placed(j, &t, "cuCtxGetCurrent", 12, U(0x2000));
	p = placed(j, &t, "cudaMalloc", 12, U(0x9000), U(4));
	CHECK(PLACE(1, 2, -1));
	placed(j, &t, "cuDevicePrimaryCtxRetain", 12, U(0x1000), U(6));
	placed(j, &t, "cuCtxSetCurrent", 12, U(context));
	p = placed(j, &t, "cudaMalloc", 12, U(0x9000), U(4));
	CHECK(p->device == 6);
	/* two contexts of one device: which one cudaSetDevice means is not known */
	give(j, make_context(&m, 10, 8, 1, 21, 0xc8, 1));
	placed(j, &t, "cudaSetDevice", 13, U(1));
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(1, -1, -1));
	placed(j, &t, "cudaDeviceReset", 13);
	give(j, make_context(&m, 10, 9, 1, 23, 0xc9, 1));
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(1, -1, -1));
	/* a reset ends a device's only context; a failed call says nothing; another program
	 * knows nothing */
	placed(j, &t, "cudaSetDevice", 13, U(5));
	give(j, make_context(&m, 10, 20, 5, 30, 0xd0, 1));
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(5, 20, -1));
	placed(j, &t, "cudaDeviceReset", 13);
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(5, -1, -1));
	give(j, make_context(&m, 10, 21, 5, 31, 0xd1, 1));
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(5, 21, -1));
	{
		struct made_call mc;
		struct ct_call *c = make_call(&mc, "cudaSetDevice", CT_CALL, 0, 101, U(99));

		c->h.pid = 10;
		c->h.tid = 13;
		give(j, c);
	}
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(5, 21, -1));
	/* a call that changes it whose end was not seen: not known; so too when records were
	 * lost, for all threads */
	for (int lost = 0; lost < 3; lost++) {
		struct made_call mc;
		struct ct_call *c = make_call(&mc, lost ? "cudaMalloc" : "cudaSetDevice", CT_CALL,
					      0, 0, U(5), U(4));
		struct ct_lost gap = { .h = { .size = sizeof(gap), .kind = CT_LOST },
				       .cause = CT_LOSS_RING,
				       .count = 1 };

		placed(j, &t, "cudaSetDevice", 13, U(5));
		p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
		CHECK(PLACE(5, 21, -1));
		c->h.pid = 10;
		c->h.tid = lost ? 14 : 13;
		c->h.flags = lost ? 0 : CT_F_UNFINISHED | CT_F_PENDING;
		give(j, c);
		p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
		CHECK(PLACE(5, 21, -1)); /* it has not returned yet */
		c->h.flags = lost ? 0 : CT_F_UNFINISHED;
		c->h.lost = lost == 1;
		if (lost == 2)
			join_record(j, &gap.h);
		else
			give(j, c);
		p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
		CHECK(PLACE(-1, -1, -1));
		/* a kernel that was launched before tells nothing of after */
		give(j, make_kernel(&m, MAKE_AT(10, 1, 2, 7, 13, 5000, 6000), 1, 1, 1));
		p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
		CHECK(PLACE(-1, -1, -1));
	}
	placed(j, &t, "cudaSetDevice", 13, U(5));
	give_process(j, CT_EXEC, 10, 1);
	p = placed(j, &t, "cudaMalloc", 13, U(0x9000), U(4));
	CHECK(PLACE(-1, -1, -1));
	join_close(j);
	taker_free(&t);

	/* a thread of which nothing was told is where its kernels ran; one that was told of is
	 * where it was told */
	j = begin(&t, false);
	give(j, make_context(&m, 10, 2, 1, 7, primary, 1));
	for (uint32_t tid = 11; tid < 13; tid++) {
		if (tid == 12)
			placed(j, &t, "cudaSetDevice", 12, U(6));
		p = placed(j, &t, "cudaLaunchKernel", tid, U(1), U(1), U(1), U(1), U(1), U(0), U(0),
			   U(0));
		CHECK(PLACE(tid == 12 ? 6 : -1, -1, -1));
		give(j, make_cause(&m, 10, tid, tid, row("cudaLaunchKernel"), p->start_ns + 10,
				   p->start_ns + 20));
		give(j, make_kernel(&m, MAKE_AT(10, 1, 2, 7, tid, 5000, 6000), 1, 1, 1));
		CHECK(last(&t)->kind == CT_KERNEL && last(&t)->tid == tid);
		p = placed(j, &t, "cudaMemsetAsync", tid, U(1), U(2), U(3), U(0));
		CHECK(tid == 12 ? PLACE(6, -1, -1) : PLACE(1, 2, 7));
	}
	placed(j, &t, "cudaSetDevice", 11, U(6));
	p = placed(j, &t, "cudaMalloc", 11, U(0x9000), U(4));
	CHECK(PLACE(6, -1, -1));
	join_close(j);
	taker_free(&t);

	/* when not all such calls come, none is believed; what the agent tells of streams holds */
	{
		struct join_opts opts = { 0 };

		j = join_open(&opts, take, &t);
	}
	give(j, make_context(&m, 10, 2, 1, 7, primary, 1));
	give(j, make_stream(&m, 10, 13, 2, 0x5500, 1, 1));
	placed(j, &t, "cudaSetDevice", 11, U(1));
	p = placed(j, &t, "cudaMalloc", 11, U(0x9000), U(4));
	CHECK(PLACE(-1, -1, -1));
	p = placed(j, &t, "cudaMemsetAsync", 11, U(1), U(2), U(3), U(0x5500));
	CHECK(PLACE(1, 2, 13));
	join_close(j);
	taker_free(&t);
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

/* Which processes gave work to a device, and were never heard of by an agent. */
static void test_unheard(void)
{
	struct ct_call_count call_count = {
		.h = { .size = sizeof(call_count), .kind = CT_CALL_COUNT, .pid = 16, .end_ns = 1 },
		.func = (uint16_t)row("cuLaunchKernel"),
		.sums = { .calls = 2, .failed = 2 }
	};
	struct made_device m;
	struct taker t;
	struct join *j = begin(&t, false);

	/* calls that give no device work, and work that is told of */
	CHECK(!give_call(j, "cudaFree", 10, 10, 1 * MS, 2 * MS));
	CHECK(!give_process(j, CT_PROCESS, 11, 5));
	give_launch(j, 11, 11, 1, 3, true);
	CHECK(!give_call(j, "cudaDeviceSynchronize", 12, 12, 1 * MS, 2 * MS));
	CHECK(counts_of(j).unheard == 0);
	join_close(j);
	taker_free(&t);

	j = begin(&t, false);
	for (uint32_t pid = 11; pid < 15; pid++)
		CHECK(!give_call(j, "cudaLaunchKernel", pid, pid, 1 * MS, 2 * MS));
	CHECK(counts_of(j).unheard == 4);
	CHECK(!give_kernel(j, 12, 7, 3 * MS, 4 * MS));
	CHECK(!give_cause(j, 13, 13, 7, 1 * MS, 2 * MS));
	CHECK(!give(j, make_device(&m, 14, 0, 5 * MS, "a GPU")));
	CHECK(counts_of(j).unheard == 1 && counts_of(j).one_unheard == 11);
	/* what the kernel side counted says the same, but for calls that failed */
	CHECK(!give(j, &call_count));
	CHECK(counts_of(j).unheard == 1);
	call_count.sums.calls = 3;
	CHECK(!give(j, &call_count));
	CHECK(counts_of(j).unheard == 2);
	/* another process with a number is another one; another program is not */
	CHECK(!give_process(j, CT_PROCESS, 11, 5));
	CHECK(!give_process(j, CT_EXEC, 11, 5));
	CHECK(counts_of(j).unheard == 2);
	CHECK(!give_process(j, CT_PROCESS, 11, 6));
	CHECK(counts_of(j).unheard == 2);
	CHECK(!give_call(j, "cudaLaunchKernel", 11, 11, 11 * MS, 12 * MS));
	CHECK(counts_of(j).unheard == 3);
	join_close(j);
	taker_free(&t);
}

/* The row of a process that join stated at the end; NULL: none. */
static const struct ct_hole *stated(const struct taker *t, uint32_t pid)
{
	const struct ct_hole *found = NULL;

	for (size_t at = 0; at < t->len; at += ((const struct ct_hdr *)(t->stored + at))->size) {
		const struct ct_hdr *h = (const struct ct_hdr *)(t->stored + at);

		if (h->kind == CT_HOLE && h->pid == pid)
			found = (const struct ct_hole *)h;
	}
	return found;
}

/* Launches whose kernels never came are a number, and processes of which no agent spoke are named. */
static void test_missing(void)
{
	struct taker t;
	struct join *j = begin(&t, false);
	const struct ct_hole *h;

	for (uint64_t i = 1; i <= 10; i++)
		give_launch(j, 10, 10, (uint32_t)i, 10 * i, i > 3);
	for (uint64_t i = 1; i <= 5; i++)
		give_launch(j, 11, 11, (uint32_t)i, 10 * i, true);
	/* a launch that is captured has no kernel of its own */
	CHECK(!give_call(j, "cudaStreamBeginCapture", 11, 11, 60 * MS, 61 * MS));
	give_launch(j, 11, 11, 9, 62, false);
	CHECK(!give_call(j, "cudaStreamEndCapture", 11, 11, 63 * MS, 64 * MS));
	give_launch(j, 12, 12, 1, 10, false);
	give_launch(j, 12, 12, 2, 20, false);
	CHECK(!give_call(j, "cudaFree", 13, 13, 1 * MS, 2 * MS));
	CHECK(!join_flush(j, UINT64_MAX));
	/* nobody asked for device work */
	CHECK(!join_end(j) && !stated(&t, 10));
	join_kernels(j);
	CHECK(!join_end(j));
	h = stated(&t, 10);
	if (CHECK(h && h->reason == CT_HOLE_NO_RECORD && h->layer == CT_HOLE_DEVICE))
		CHECK_EQ(3, h->count);
	CHECK(!stated(&t, 11) && !stated(&t, 13) && !stated(&t, 0));
	h = stated(&t, 12);
	if (CHECK(h && h->reason == CT_HOLE_NO_AGENT && h->state == CT_HOLE_UNSEEN))
		CHECK_EQ(2, h->count);
	join_close(j);
	taker_free(&t);
}

/* The process uses CUPTI itself. */
static int give_taken(struct join *j, uint32_t pid, uint64_t from_ms, uint64_t until_ms)
{
	struct ct_hole hole = hole_of(pid, CT_HOLE_DEVICE, CT_HOLE_TAKEN, CT_HOLE_PROFILER);

	hole_when(&hole, from_ms * MS, until_ms ? until_ms * MS : CT_HOLE_OPEN);
	return give(j, &hole);
}

/* Launches of the time in which the process profiled itself are said once: not as launches without a
 * record, whichever comes first. */
static void test_missing_once(void)
{
	for (int late = 0; late < 2; late++) {
		struct taker t;
		struct join *j = begin(&t, false);
		const struct ct_hole *h;
		uint32_t id = 0;

		CASE_ROW("%s", late ? "calls first" : "hole first");
		join_kernels(j);
		for (uint64_t at = 10; at < 100; at += 10) /* one of them has no kernel */
			give_launch(j, 10, 10, ++id, at, at != 50);
		if (!late)
			CHECK(!give_taken(j, 10, 100, 0));
		for (uint64_t at = 100; at < 200; at += 10)
			give_launch(j, 10, 10, ++id, at, false);
		if (late)
			CHECK(!give_taken(j, 10, 100, 0));
		CHECK(!give_taken(j, 10, 100, 200));
		give_launch(j, 10, 10, ++id, 190, false);
		for (uint64_t at = 200; at < 300; at += 10)
			give_launch(j, 10, 10, ++id, at, at != 220 && at != 230);
		CHECK(!join_flush(j, UINT64_MAX));
		CHECK(!join_end(j));
		h = stated(&t, 10);
		if (CHECK(h && h->reason == CT_HOLE_NO_RECORD))
			CHECK_EQ(3, h->count);
		join_close(j);
		taker_free(&t);
	}
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
	RUN(test_orders);
	RUN(test_no_wait);
	RUN(test_waiting);
	RUN(test_no_calls);
	RUN(test_nodes);
	RUN(test_tail);
	RUN(test_tail_waits);
	RUN(test_nested);
	RUN(test_parts);
	RUN(test_scoped);
	RUN(test_ended);
	RUN(test_no_return);
	RUN(test_stopped);
	RUN(test_began);
	RUN(test_awaited);
	RUN(test_numbers);
	RUN(test_stored_numbers);
	RUN(test_reuse);
	RUN(test_inferred);
	RUN(test_interleavings);
	RUN(test_where);
	RUN(test_bounds);
	RUN(test_hostile);
	RUN(test_unheard);
	RUN(test_missing);
	RUN(test_missing_once);
	RUN(test_errors);
	return unit_end();
}
