/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_join_missing.c - what join makes of records that did not come: an agent that was gone before its
 * process ended, a trace that begins or ends in the middle, processes that no agent was in.
 */
#include "make_join.h"

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
	CHECK_EQ(5, t.n);
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
		bool second; /* CUPTI saw an earlier call of the thread, which had no work */
	} cases[] = {
		{ "before", 499 * MS, 600 * MS, true, false, true, false },
		{ "before, without its cause", 0, 499 * MS, true, false, true, false },
		{ "ran when calls began to be seen", 0, 500 * MS - US / 2, true, false, true,
		  false },
		{ "within", 501 * MS, 600 * MS, true, true, true, true },
		{ "without its cause", 0, 501 * MS, true, false, true, true },
		{ "the call was under way", 501 * MS, 600 * MS, true, false, true, false },
		{ "the call was under way, alone", 501 * MS, 600 * MS, true, false, false, false },
		{ "of a function that is not seen", 501 * MS, 600 * MS, false, false, true, true },
		{ "the same, and the thread had no processor", 800 * MS, 900 * MS, true, false,
		  true, false },
		{ "lost within", 800 * MS, 900 * MS, true, false, true, true, true },
		{ "lost later", 1600 * MS, 1700 * MS, true, false, true, true },
	};
	int func = row("cudaLaunchKernel");

	launches[func / 64] = 1ULL << (func % 64);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct taker t;
		struct join *j = begin(&t, false);
		size_t calls = cases[i].called + (size_t)cases[i].after, bytes;

		CASE_ROW("%s", cases[i].what);
		join_began(j, began, cases[i].captured ? launches : none);
		if (cases[i].called)
			give_call(j, "cudaLaunchKernel", 10, 11, cases[i].cause_ns - US,
				  cases[i].cause_ns + 2 * US);
		if (cases[i].second)
			give_cause(j, 10, 11, 76, began + US, began + 2 * US);
		if (cases[i].cause_ns)
			give_cause(j, 10, 11, 77, cases[i].cause_ns, cases[i].cause_ns + US);
		if (cases[i].after)
			give_call(j, "cudaLaunchKernel", 10, 11, cases[i].cause_ns + MS,
				  cases[i].cause_ns + 2 * MS);
		bytes = join_bytes(j);
		give_kernel(j, 10, 77, cases[i].work_ns, cases[i].work_ns + US);
		/* there may be a lot that had ended before, and it is not held */
		CHECK(cases[i].work_ns + US >= began || join_bytes(j) == bytes);
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

/* Nothing waits for work that has no record because the process profiles itself. */
static void test_awaited_taken(void)
{
	struct taker t;
	struct join *j = begin(&t, false);

	join_kernels(j);
	for (uint64_t i = 1; i <= 9; i++)
		give_launch(j, 10, 10, (uint32_t)i, 10000 + 10 * i, i == 1);
	join_stopped(j, 10100 * MS);
	CHECK_EQ(8, join_awaited(j));
	CHECK(!give_taken(j, 10, 10050, 0));
	CHECK_EQ(3, join_awaited(j));
	CHECK(!give_taken(j, 10, 10050, 10080));
	CHECK_EQ(2, join_awaited(j));
	join_close(j);
	taker_free(&t);
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
		/* nor does a kernel of that time stand in for one that is missing */
		give_launch(j, 10, 10, ++id, 195, true);
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

int main(void)
{
	RUN(test_tail);
	RUN(test_tail_waits);
	RUN(test_ended);
	RUN(test_no_return);
	RUN(test_stopped);
	RUN(test_began);
	RUN(test_awaited);
	RUN(test_unheard);
	RUN(test_missing);
	RUN(test_awaited_taken);
	RUN(test_missing_once);
	return unit_end();
}
