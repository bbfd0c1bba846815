/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_advise.c - the rules of advise: each on a story in which it has to speak, with exact
 * numbers, and on ones that are close to it and in which it must not; the three forms of the
 * findings; records of dice.
 */
#include "../../user/sums/report.h"
#include "../../user/advise/advise.h"
#include "../../user/advise/alike.h"
#include "../../user/sums/spans.h"
#include "../../user/event/scopes/lineage.h"
#include "holes_made.h"
#include "make_play.h"

#define US 1000ULL
#define MS 1000000ULL
#define S 1000000000ULL
#define MIB 1048576ULL
#define PID 100

/* The story under way: one process, a clock that calls and pass() move. */
static struct {
	struct advice *a;
	struct sink *sink; /* instead of a, when not NULL */
	struct process_table *procs;
	const struct stack *stack;
	uint64_t now;
	uint32_t pid, tid; /* pid 0: PID */
	const struct advise_finding *findings;
	size_t n;
} st;

static struct made_call mc;
static struct made_device md;
static uint64_t answer; /* what calls put into their outputs */

static void begin(const char *rules)
{
	st.a = advise_open(rules);
	st.procs = process_table_open();
	st.now = 10 * S;
	st.tid = PID;
	st.pid = 0;
	st.stack = NULL;
	make_nmemory = 0;
	make_mem(0x1000, &answer, sizeof(answer));
}

static bool hostile; /* records that no source would hand on are left out */

static void give(struct event ev)
{
	int bad = record_check(ev.rec, ev.rec->size);

	if (bad && hostile)
		return;
	CHECK(!bad);
	process_table_record(st.procs, ev.rec);
	ev.proc = process_table_find(st.procs, ev.rec->pid);
	CHECK((st.sink ? st.sink->ops->event(st.sink, &ev) : advise_event(st.a, &ev)) >= 0);
}

static struct cause call(uint64_t took_ns, struct ct_call *c)
{
	struct cause cause = { st.now, st.now + took_ns, st.tid, c ? c->func : 0 };

	CHECK(c);
	if (!c)
		return cause;
	c->h.pid = st.pid ? st.pid : PID;
	c->h.tid = st.tid;
	c->h.start_ns = cause.start_ns;
	c->h.end_ns = st.now = cause.end_ns;
	give((struct event){ .rec = &c->h,
			     .stack = st.stack,
			     .device = CT_UNKNOWN,
			     .context = CT_UNKNOWN,
			     .stream = CT_UNKNOWN });
	return cause;
}

/* A process begins, as a rank of a job or as none. */
static void run_program(uint32_t pid, uint32_t rank, const char *comm)
{
	struct ct_process proc = { .h = { .size = sizeof(proc),
					  .kind = CT_PROCESS,
					  .pid = pid,
					  .tid = pid,
					  .start_ns = st.now,
					  .end_ns = st.now },
				   .ns_pid = pid };
	struct ct_process_info info = { .h = proc.h, .rank = rank, .world_size = 8 };

	snprintf(proc.comm, sizeof(proc.comm), "%s", comm);
	give((struct event){ .rec = &proc.h });
	info.h.kind = CT_PROCESS_INFO;
	info.h.size = sizeof(info);
	info.local_rank = rank;
	give((struct event){ .rec = &info.h });
}

#define CALL(took, name, ret, ...) call(took, make_call(&mc, name, CT_CALL, 0, ret, ##__VA_ARGS__))
#define LAUNCH(took, kernel)                                                                       \
	CALL(took, "cudaLaunchKernel", 0, U(kernel), 8 | U(1) << 32, U(1), 256 | U(1) << 32, U(1), \
	     U(0x6000), U(0), U(0))

static void pass(uint64_t ns)
{
	st.now += ns;
}

static void work(const struct cause *cause, const struct kernel_name *kernel)
{
	give((struct event){ .rec = &md.h,
			     .cause = cause,
			     .kernel = kernel,
			     .stack = st.stack,
			     .device = md.work.device,
			     .context = md.work.context,
			     .stream = md.work.stream });
}

static void end_finding(uint64_t min_cost_ns)
{
	st.findings = advise_finish(st.a, min_cost_ns, &st.n);
	CHECK(st.findings != NULL);
}

static void done(void)
{
	advise_close(st.a);
	process_table_close(st.procs);
	memset(&st, 0, sizeof(st));
}

/* The story's only finding. */
static void fires_at(const char *rule, uint64_t n, uint64_t cost_ns, uint64_t bytes,
		     enum advise_severity severity, int line)
{
	const struct advise_finding *f;

	end_finding(0);
	f = st.findings;
	unit_check(st.n == 1 && !strcmp(f->rule->name, rule), __FILE__, line,
		   "the rule speaks, and no other");
	if (st.n == 1 && (f->one.n != n || f->one.cost_ns != cost_ns || f->one.bytes != bytes ||
			  f->severity != severity))
		printf("  line %d: %s: n %llu, cost %llu, bytes %llu, "
		       "%s\n",
		       line, f->rule->name, (unsigned long long)f->one.n,
		       (unsigned long long)f->one.cost_ns, (unsigned long long)f->one.bytes,
		       advise_severity_name(f->severity));
	unit_check(st.n == 1 && f->one.n == n && f->one.cost_ns == cost_ns && f->one.bytes == bytes,
		   __FILE__, line, "its numbers");
	unit_check(st.n == 1 && f->severity == severity, __FILE__, line, "its severity");
	unit_check(st.n == 1 && f->evidence.len > 40 && !f->evidence.bad, __FILE__, line,
		   "its evidence");
	done();
}
#define FIRES(rule, n, cost, bytes, severity) fires_at(rule, n, cost, bytes, severity, __LINE__)

static void check_lines(const char *want, const struct text *got)
{
	char *copy = strndup(got->s ? got->s : "", got->len);

	CHECK_TEXT(want, copy ? copy : "no memory");
	free(copy);
}

static void silent_at(int line)
{
	end_finding(0);
	if (st.n)
		printf("  line %d: %s: "
		       "%.*s\n",
		       line, st.findings->rule->name, (int)st.findings->evidence.len,
		       st.findings->evidence.s);
	unit_check(!st.n, __FILE__, line, "no rule speaks");
	done();
}
#define SILENT() silent_at(__LINE__)

/* ---- copies ---- */

static void copy_record(const struct cause *cause, int kind, int src, int dst, uint64_t bytes,
			int flags, uint64_t took_ns)
{
	make_copy(&md, MAKE_AT(PID, 0, 1, 7, 1, st.now, st.now + took_ns), kind, src, dst, bytes);
	md.copy.flags = (uint8_t)flags;
	work(cause, NULL);
}

static void pageable(int n, int kind, int src, int dst, uint64_t bytes, int flags)
{
	begin("pageable-async-copy");
	for (int i = 0; i < n; i++) {
		struct cause c = CALL(300 * US, "cudaMemcpyAsync", 0, U(0xd000), U(0xa000),
				      U(bytes), U(1), U(0));

		copy_record(&c, kind, src, dst, bytes, flags, 200 * US);
		pass(1 * MS);
	}
}

static void test_pageable(void)
{
	pageable(5, CT_COPY_HTOD, CT_MEM_PAGEABLE, CT_MEM_DEVICE, MIB, CT_W_ASYNC);
	/* of 1.3 ms x 5 less the last pause */
	FIRES("pageable-async-copy", 5, 1500 * US, 5 * MIB, ADVISE_SERIOUS);
	pageable(3, CT_COPY_DTOH, CT_MEM_DEVICE, CT_MEM_PAGEABLE, 257, CT_W_ASYNC);
	FIRES("pageable-async-copy", 3, 900 * US, 771, ADVISE_SERIOUS);
	pageable(2, CT_COPY_HTOD, CT_MEM_PAGEABLE, CT_MEM_DEVICE, MIB, CT_W_ASYNC);
	SILENT();
	pageable(5, CT_COPY_HTOD, CT_MEM_PINNED, CT_MEM_DEVICE, MIB, CT_W_ASYNC);
	SILENT();
	pageable(5, CT_COPY_HTOD, CT_MEM_PAGEABLE, CT_MEM_DEVICE, MIB, 0);
	SILENT();
	pageable(5, CT_COPY_DTOH, CT_MEM_DEVICE, CT_MEM_PAGEABLE, 256, CT_W_ASYNC);
	SILENT();
}

/* One call that makes three copies. */
static void test_pageable_batch(void)
{
	struct cause c;

	begin("pageable-async-copy");
	c = CALL(300 * US, "cudaMemcpyAsync", 0, U(0xd000), U(0xa000), U(MIB), U(1), U(0));
	for (int i = 0; i < 3; i++)
		copy_record(&c, CT_COPY_HTOD, CT_MEM_PAGEABLE, CT_MEM_DEVICE, MIB, CT_W_ASYNC,
			    200 * US);
	FIRES("pageable-async-copy", 3, 300 * US, 3 * MIB, ADVISE_SERIOUS);
}

static void sync_copy(const char *name, uint64_t bytes, uint64_t kind, int n)
{
	begin("sync-copy");
	for (int i = 0; i < n; i++)
		CALL(100 * US, name, 0, U(0xd000), U(0xa000), bytes, kind, U(0));
}

/* The way is told by the device's record alone. */
static void default_copy(int kind, uint32_t dst_device, bool record)
{
	begin("sync-copy");
	for (int i = 0; i < 3; i++) {
		struct cause c = CALL(50 * US, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(4));

		make_copy(&md, MAKE_AT(PID, 0, 1, 7, 1, st.now, st.now + 10), kind, CT_MEM_DEVICE,
			  CT_MEM_DEVICE, MIB);
		md.copy.dst_device = dst_device;
		if (record)
			work(&c, NULL);
		/* the record of another call */
		c.start_ns++;
		if (record)
			work(&c, NULL);
	}
}

static void test_sync_copy(void)
{
	sync_copy("cudaMemcpy", MIB, 1, 4);
	FIRES("sync-copy", 4, 400 * US, 4 * MIB, ADVISE_SERIOUS);
	sync_copy("cudaMemcpy", 64001, 1, 3);
	FIRES("sync-copy", 3, 300 * US, 192003, ADVISE_SERIOUS);
	sync_copy("cudaMemcpy", 257, 2, 3);
	FIRES("sync-copy", 3, 300 * US, 771, ADVISE_SERIOUS);
	sync_copy("cuMemcpyHtoD_v2", MIB, 0, 1);
	for (int i = 0; i < 2; i++)
		CALL(100 * US, "cuMemcpyHtoD_v2", 0, U(0xd000), U(0xa000), U(MIB));
	CALL(10 * US, "cuMemcpyDtoD_v2", 0, U(0xd000), U(0xe000), U(MIB));
	FIRES("sync-copy", 2 + 1, 300 * US, 3 * MIB, ADVISE_SERIOUS);
	sync_copy("cudaMemcpy", 64000, 1, 5);
	SILENT();
	sync_copy("cudaMemcpy", MIB, 3, 5);
	SILENT();
	sync_copy("cudaMemcpy", 256, 2, 5);
	SILENT();
	sync_copy("cudaMemcpyAsync", MIB, 1, 5);
	SILENT();
	default_copy(CT_COPY_HTOD, 0, true);
	FIRES("sync-copy", 3, 150 * US, 3 * MIB, ADVISE_SERIOUS);
	default_copy(CT_COPY_DTOD, 1, true);
	FIRES("sync-copy", 3, 150 * US, 3 * MIB, ADVISE_SERIOUS);
	default_copy(CT_COPY_DTOD, 0, true);
	SILENT();
	default_copy(CT_COPY_HTOD, 0, false);
	SILENT();
}

static void sync_set(int memory, int flags)
{
	begin("sync-memset");
	for (int i = 0; i < 3; i++) {
		struct cause c = CALL(20 * US, "cudaMemset", 0, U(0xd000), U(0), U(4096));

		make_set(&md, MAKE_AT(PID, 0, 1, 7, 1, st.now, st.now + 10), memory, 0, 4096);
		md.set.flags = (uint8_t)flags;
		work(&c, NULL);
	}
}

static void test_sync_set(void)
{
	sync_set(CT_MEM_MANAGED, 0);
	FIRES("sync-memset", 3, 60 * US, 12288, ADVISE_SERIOUS);
	sync_set(CT_MEM_PINNED, 0);
	FIRES("sync-memset", 3, 60 * US, 12288, ADVISE_SERIOUS);
	sync_set(CT_MEM_DEVICE, 0);
	SILENT();
	sync_set(CT_MEM_MANAGED, CT_W_ASYNC);
	SILENT();
}

static void small_copies(int rows, int each, uint64_t bytes)
{
	begin("small-copies");
	for (int i = 0; i < rows; i++) {
		for (int k = 0; k < each; k++)
			CALL(2 * US, "cudaMemcpyAsync", 0, U(0xd000), U(0xa000), bytes, U(1), U(0));
		LAUNCH(5 * US, 0x5000);
	}
}

static void test_small_copies(void)
{
	small_copies(20, 6, 1024);
	/* five of each row's six */
	FIRES("small-copies", 120, 200 * US, 120 * 1024, ADVISE_SERIOUS);
	small_copies(16, 6, 1024);
	SILENT();
	small_copies(100, 3, 1024);
	SILENT();
	small_copies(20, 6, 16385);
	SILENT();
	begin("small-copies");
	for (int i = 0; i < 200; i++) /* to and fro */
		CALL(2 * US, "cudaMemcpyAsync", 0, U(0xd000), U(0xa000), U(1024), U(1 + i % 2),
		     U(0));
	SILENT();
}

static void roundtrip(int n, uint64_t back_from, uint64_t back_bytes)
{
	begin("host-roundtrip");
	for (int i = 0; i < n; i++) {
		CALL(5 * US, "cudaMemcpy", 0, U(0xa000), U(0xd000), U(4096), U(2));
		CALL(7 * US, "cudaMemcpy", 0, U(0xe000), back_from, back_bytes, U(1));
	}
}

static void test_roundtrip(void)
{
	roundtrip(10, 0xa000, 4096);
	FIRES("host-roundtrip", 10, 120 * US, 40960, ADVISE_NOTE);
	roundtrip(9, 0xa000, 4096);
	SILENT();
	roundtrip(10, 0xb000, 4096);
	SILENT();
	roundtrip(10, 0xa000, 4095);
	SILENT();
}

/* Two pinned buffers, of which the host fills one while the device works on the other's: it may
 * be as right as it is, whatever it costs. */
static void test_double_buffering(void)
{
	begin("host-roundtrip");
	for (int i = 0; i < 200; i++) {
		uint64_t host = 0xa0000 + (uint64_t)(i & 1) * 0x10000,
			 device = 0xd0000 + (uint64_t)(i & 1) * 0x10000;

		CALL(900 * US, "cudaMemcpyAsync", 0, U(device), U(host), U(65536), U(1), U(i & 1));
		CALL(900 * US, "cudaMemcpyAsync", 0, U(host), U(device), U(65536), U(2), U(i & 1));
	}
	FIRES("host-roundtrip", 198, 198 * 1800 * US, 198 * 65536ULL, ADVISE_NOTE);
}

/* ---- waits ---- */

static void sync_each(int n, int launches, int others)
{
	begin("sync-after-launch");
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < launches; k++)
			LAUNCH(5 * US, 0x5000);
		CALL(100 * US, "cudaDeviceSynchronize", 0);
		pass(7 * US);
	}
	for (int i = 0; i < others; i++) {
		for (int k = 0; k < 2; k++)
			LAUNCH(5 * US, 0x5000);
		CALL(100 * US, "cudaDeviceSynchronize", 0);
	}
}

static void test_sync_each(void)
{
	sync_each(12, 1, 0);
	/* the last wait is followed by nothing */
	FIRES("sync-after-launch", 11, 11 * 12 * US, 0, ADVISE_WARNING);
	sync_each(10, 1, 0);
	SILENT();
	sync_each(50, 2, 0);
	SILENT();
	sync_each(12, 1, 13);
	SILENT();
	/* what follows is a copy that waits for itself: its own time is not lost */
	begin("sync-after-launch");
	for (int i = 0; i < 12; i++) {
		LAUNCH(5 * US, 0x5000);
		CALL(100 * US, "cudaDeviceSynchronize", 0);
		pass(7 * US);
		CALL(MS, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(1));
	}
	FIRES("sync-after-launch", 12, 12 * 7 * US, 0, ADVISE_NOTE);
	/* each thread waits for one launch of its own among many of the others' */
	begin("sync-after-launch");
	for (int i = 0; i < 40; i++) {
		st.tid = PID + (uint32_t)i % 2;
		LAUNCH(5 * US, 0x5000);
	}
	CALL(100 * US, "cudaDeviceSynchronize", 0);
	SILENT();
}

static void readback(int n, uint64_t bytes, bool async)
{
	begin("small-readback");
	for (int i = 0; i < n; i++) {
		LAUNCH(5 * US, 0x5000);
		if (async) {
			CALL(3 * US, "cudaMemcpyAsync", 0, U(0xa000), U(0xd000), bytes, U(2), U(0));
			CALL(50 * US, "cudaStreamSynchronize", 0, U(0));
		} else {
			CALL(50 * US, "cudaMemcpy", 0, U(0xa000), U(0xd000), bytes, U(2));
		}
		pass(10 * US);
	}
}

static void test_readback(void)
{
	readback(12, 4, true);
	FIRES("small-readback", 11, 11 * 15 * US, 44, ADVISE_SERIOUS);
	readback(11, 256, false);
	FIRES("small-readback", 10, 10 * 15 * US, 2560, ADVISE_SERIOUS);
	readback(12, 257, true);
	SILENT();
	readback(10, 4, true);
	SILENT();
	begin("small-readback"); /* a launch after the copy: what is waited for is not the copy */
	for (int i = 0; i < 20; i++) {
		CALL(3 * US, "cudaMemcpyAsync", 0, U(0xa000), U(0xd000), U(4), U(2), U(0));
		LAUNCH(5 * US, 0x5000);
		CALL(50 * US, "cudaStreamSynchronize", 0, U(0));
	}
	SILENT();
}

static void polls(int rows, int each, int64_t ret)
{
	begin("polling");
	for (int i = 0; i < rows; i++) {
		for (int k = 0; k < each; k++)
			CALL(1 * US, "cudaEventQuery", ret, U(0x7000));
		LAUNCH(5 * US, 0x5000);
	}
}

static void waits(const char *name, int n, uint64_t first, uint64_t second)
{
	begin("polling");
	for (int i = 0; i < n; i++)
		CALL(1 * US, name, 0, i % 2 ? second : first);
}

static void test_polling(void)
{
	polls(100, 12, 600);
	FIRES("polling", 1200, 1200 * US, 0, ADVISE_SERIOUS);
	polls(100, 9, 600);
	SILENT();
	polls(83, 12, 600);
	SILENT();
	polls(100, 12, 0);
	SILENT();
	waits("cudaStreamSynchronize", 101, 0x5600, 0x5600);
	FIRES("polling", 100, 100 * US, 0, ADVISE_SERIOUS);
	waits("cudaDeviceSynchronize", 101, 1, 2);
	FIRES("polling", 100, 100 * US, 0, ADVISE_SERIOUS);
	waits("cudaStreamSynchronize", 300, 0x5600, 0x5700);
	SILENT();
	begin("polling");
	for (int i = 0; i < 200; i++) {
		st.tid = PID + 1;
		LAUNCH(5 * US, 0x5000);
		st.tid = PID;
		CALL(1 * US, "cudaDeviceSynchronize", 0);
	}
	SILENT();
}

/* ---- loops, failures, late loading ---- */

static void alloc_loop(int n, const char *take, const char *back, bool busy, uint64_t address)
{
	begin("alloc-in-loop");
	for (int i = 0; i < n; i++) {
		CALL(100 * US, take, 0, U(0x1000), U(4096), U(0));
		if (busy)
			LAUNCH(5 * US, 0x5000);
		CALL(50 * US, back, 0, address);
	}
}

static void test_alloc_loop(void)
{
	alloc_loop(21, "cudaMalloc", "cudaFree", true, 0xd000);
	FIRES("alloc-in-loop", 40, 20 * 150 * US, 0, ADVISE_SERIOUS);
	alloc_loop(21, "cudaHostAlloc", "cudaFreeHost", true, 0xd000);
	FIRES("alloc-in-loop", 40, 20 * 150 * US, 0, ADVISE_SERIOUS);
	alloc_loop(20, "cudaMalloc", "cudaFree", true, 0xd000);
	SILENT();
	/* nothing is done with it; nothing is freed; it is freed to a pool */
	alloc_loop(100, "cudaMalloc", "cudaFree", false, 0xd000);
	SILENT();
	alloc_loop(100, "cudaMalloc", "cudaFree", true, 0);
	SILENT();
	alloc_loop(100, "cudaMallocAsync", "cudaFreeAsync", true, 0xd000);
	SILENT();
	begin("alloc-in-loop");
	for (int i = 0; i < 200; i++)
		CALL(100 * US, i < 100 ? "cudaMalloc" : "cudaFree", 0, U(0x1000), U(4096));
	LAUNCH(5 * US, 0x5000);
	SILENT();
}

static void kernel_at(uint32_t stream, uint64_t start_ns, uint64_t took_ns)
{
	make_kernel(&md, MAKE_AT(PID, 0, 1, stream, 1, start_ns, start_ns + took_ns), 1, 8, 256);
	work(NULL, &play_axpy);
}

static void comes_in(uint64_t start_ns, uint64_t end_ns)
{
	struct ct_hdr h = { .size = sizeof(h),
			    .kind = CT_ENTERED,
			    .pid = PID,
			    .tid = st.tid,
			    .start_ns = start_ns,
			    .end_ns = end_ns };

	give((struct event){ .rec = &h });
}

/* If `now`, an agent is in the next call, or in the last one, for 45 ms; its record comes before that call, or after it
 * (late). Returns `now`. */
static bool comes_in_now(bool now, bool late, bool after)
{
	if (now && late && after)
		comes_in(st.now - 45 * MS - 10 * US, st.now - 10 * US);
	else if (now && !late && !after)
		comes_in(st.now + 10 * US, st.now + 45 * MS + 10 * US);
	return now;
}

/* What an agent took to come in is no time of the call, whichever of the two is reported first, nor of the
 * program. */
static void test_entered(void)
{
	for (int late = 0; late < 2; late++) {
		CASE_ROW("%s", late ? "after" : "before");
		begin("sync-copy");
		if (!late)
			comes_in(st.now + 1 * MS, st.now + 46 * MS);
		CALL(47 * MS, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(1));
		if (late)
			comes_in(st.now - 46 * MS, st.now - 1 * MS);
		for (int i = 0; i < 9; i++)
			CALL(2 * MS, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(1));
		end_finding(0);
		if (CHECK_EQ(1, st.n)) {
			CHECK_EQ(20 * MS, st.findings[0].one.cost_ns);
			CHECK_EQ(20 * MS, st.findings[0].places[0].cost_ns);
			CHECK_EQ(2 * MS, st.findings[0].places[0].took_ns);
			CHECK(st.findings[0].one.share > 0.99);
		}
		done();
		/* a wait for nothing: of a rule that keeps more than hits */
		begin("polling");
		for (int i = 0; i < 200; i++) {
			bool in = comes_in_now(i == 5, late, false);

			CALL(in ? 47 * MS : 2 * MS, "cudaDeviceSynchronize", 0);
			comes_in_now(in, late, true);
		}
		end_finding(0);
		for (unsigned int i = 0; i < st.n; i++)
			CHECK_EQ(2 * MS * st.findings[i].one.n, st.findings[i].one.cost_ns);
		CHECK(st.n);
		done();
		begin("launch-queue-full");
		for (int i = 0; i < 20; i++) {
			bool in = comes_in_now(i == 5, late, false);

			LAUNCH(in ? 47 * MS : 2 * MS, 0x5000);
			comes_in_now(in, late, true);
		}
		end_finding(0);
		if (CHECK_EQ(1, st.n)) {
			CHECK_EQ(19 * 2 * MS, st.findings[0].one.cost_ns);
			CHECK_EQ(2 * MS, st.findings[0].places[0].took_ns);
		}
		done();
		begin("growing-handles");
		for (int i = 0; i < 100; i++) {
			bool in = comes_in_now(i == 5, late, false);

			answer = 0xe0000 + (uint64_t)i * 4096;
			CALL(in ? 47 * MS : 2 * MS, "cudaMallocHost", 0, U(0x1000), U(4096));
			comes_in_now(in, late, true);
		}
		end_finding(0);
		if (CHECK_EQ(1, st.n))
			CHECK_EQ(2 * MS, st.findings[0].places[0].took_ns);
		done();
		/* the cause of device work */
		begin("sync-memset");
		for (int i = 0; i < 3; i++) {
			bool in = comes_in_now(i == 0, late, false);
			struct cause c = CALL(in ? 45 * MS + 20 * US : 20 * US, "cudaMemset", 0,
					      U(0xd000), U(0), U(4096));

			make_set(&md, MAKE_AT(PID, 0, 1, 7, 1, st.now, st.now + 10), CT_MEM_MANAGED,
				 0, 4096);
			comes_in_now(in, late, true);
			work(&c, NULL);
		}
		end_finding(0);
		if (CHECK_EQ(1, st.n))
			CHECK_EQ(60 * US, st.findings[0].one.cost_ns);
		done();
		/* what the host did while the device had nothing to do */
		begin("gpu-gaps");
		kernel_at(7, 10 * S, MS);
		kernel_at(7, 10 * S + 60 * MS, MS);
		st.now = 10 * S + 2 * MS;
		comes_in_now(true, late, false);
		CALL(47 * MS, "cudaMalloc", 0, U(0x1000), U(4096));
		comes_in_now(true, late, true);
		end_finding(0);
		CHECK(st.n && memmem(st.findings->evidence.s, st.findings->evidence.len,
				     "for 2.000 ms: cudaMalloc 2.000 ms;", 34));
		done();
	}
}

/* n turns, of which one in `kept` is given back at once. */
static void handles(int n, int kept, const char *make, const char *give)
{
	begin("growing-handles,create-in-loop");
	for (int i = 0; i < n; i++) {
		CALL(2 * US, make, 0, U(0x1000), U(0), U(0));
		if (i % kept == 0)
			CALL(1 * US, give, 0, U(0x5600));
		pass(10 * US);
	}
}

static void test_handles(void)
{
	static const char *const pairs[][2] = {
		{ "cudaStreamCreateWithFlags", "cudaStreamDestroy" },
		{ "cuEventCreate", "cuEventDestroy_v2" },
		{ "cudaGraphInstantiateWithFlags", "cudaGraphExecDestroy" },
		{ "cudaStreamEndCapture", "cudaGraphDestroy" },
		{ "cuModuleLoadData", "cuModuleUnload" },
	};

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		CASE_ROW("%s", pairs[i][0]);
		handles(900, 16, pairs[i][0], pairs[i][1]);
		FIRES("growing-handles", 843, 0, 0, ADVISE_WARNING);
	}
	handles(900, 16, "cudaStreamCreate", "cudaStreamDestroy");
	end_finding(0);
	CHECK_EQ(1, st.n);
	check_lines(
		"900 streams were made throughout the trace, and 57 were given back: 843 are left.",
		&st.findings[0].evidence);
	CHECK_EQ(900, st.findings[0].places[0].n);
	done();
	/* 63 are left; all at the begin; most are given back */
	handles(64, 64, "cudaStreamCreate", "cudaStreamDestroy");
	SILENT();
	handles(200, 1000, "cudaStreamCreate", "cudaStreamDestroy");
	pass(100 * MS);
	LAUNCH(5 * US, 0x5000);
	CALL(1 * US, "cudaStreamQuery", 0, U(0x5600));
	CALL(1 * US, "cudaStreamDestroy", 0, U(0x5600));
	SILENT();
	handles(300, 1, "cudaStreamCreate", "cudaStreamDestroy");
	FIRES("create-in-loop", 598, 897 * US, 0, ADVISE_SERIOUS);
	/* pinned host memory */
	begin("growing-handles");
	for (int i = 0; i < 100; i++) {
		answer = 0xe0000 + (uint64_t)i * 4096;
		CALL(2 * US, "cudaMallocHost", 0, U(0x1000), U(4096));
		pass(10 * US);
	}
	FIRES("growing-handles", 100, 0, 0, ADVISE_WARNING);
}

/* Four threads at once: the times add up to more than there was, and the share is all of it. */
static void test_share(void)
{
	begin("sync-copy");
	for (int i = 0; i < 40; i++) {
		st.tid = PID + (uint32_t)i % 4;
		CALL(4 * MS, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(1));
		st.now -= i % 4 == 3 ? 0 : 4 * MS;
	}
	end_finding(0);
	CHECK_EQ(1, st.n);
	CHECK_EQ(160 * MS, st.findings[0].one.cost_ns);
	CHECK(st.findings[0].one.share == 1);
	done();
}

static void test_create_loop(void)
{
	begin("create-in-loop");
	for (int i = 0; i < 21; i++) {
		CALL(2 * US, "cudaEventCreateWithFlags", 0, U(0x1000), U(2));
		CALL(1 * US, "cudaEventDestroy", 0, U(0x7000));
	}
	FIRES("create-in-loop", 40, 60 * US, 0, ADVISE_SERIOUS);
	begin("create-in-loop");
	for (int i = 0; i < 21; i++) {
		CALL(20 * US, "cudaStreamCreate", 0, U(0x1000));
		CALL(10 * US, "cudaStreamDestroy", 0, U(0x5600));
	}
	FIRES("create-in-loop", 40, 600 * US, 0, ADVISE_SERIOUS);
	/* many, but all together; twenty times, but of both kinds together */
	begin("create-in-loop");
	for (int i = 0; i < 200; i++)
		CALL(2 * US, i < 100 ? "cudaEventCreate" : "cudaEventDestroy", 0, U(0x1000));
	for (int i = 0; i < 15; i++) {
		CALL(2 * US, "cudaEventCreate", 0, U(0x1000));
		CALL(1 * US, "cudaEventDestroy", 0, U(0x7000));
		CALL(2 * US, "cudaStreamCreate", 0, U(0x1000));
		CALL(1 * US, "cudaStreamDestroy", 0, U(0x7000));
	}
	SILENT();
}

static void test_failed(void)
{
	begin("failed-calls");
	for (int i = 0; i < 3; i++)
		CALL(10 * US, "cudaMalloc", 2, U(0x1000), U(1) << 40);
	end_finding(0);
	CHECK(st.n == 1 && st.findings->evidence.len);
	CHECK(memmem(st.findings->evidence.s, st.findings->evidence.len,
		     "3 calls failed, most often cudaMalloc with cudaErrorMemoryAllocation (2), 3 "
		     "times.",
		     78));
	CHECK(!memmem(st.findings->evidence.s, st.findings->evidence.len, "same thread", 11));
	done();
	begin("failed-calls");
	LAUNCH(5 * US, 0x5000);
	CALL(5 * US, "cudaMemcpyAsync", 1, U(0xd000), U(0xa000), U(64), U(1), U(0));
	LAUNCH(5 * US, 0x5000);
	FIRES("failed-calls", 1, 5 * US, 0, ADVISE_SERIOUS);
	begin("failed-calls"); /* not all calls that ask for the last error are there */
	CALL(5 * US, "cudaMemcpyAsync", 1, U(0xd000), U(0xa000), U(64), U(1), U(0));
	LAUNCH(5 * US, 0x5000);
	advise_muted(st.a, (const char *const[]){ "cudaGetDevice", "cudaGetLastError", NULL });
	SILENT();
	/* it was asked for, it was another thread's work, it is no failure, the program ends */
	begin("failed-calls");
	CALL(5 * US, "cudaMemcpyAsync", 1, U(0xd000), U(0xa000), U(64), U(1), U(0));
	CALL(1 * US, "cudaGetLastError", 1);
	LAUNCH(5 * US, 0x5000);
	CALL(5 * US, "cudaMalloc", 2, U(0x1000), U(1) << 40);
	st.tid++;
	LAUNCH(5 * US, 0x5000);
	for (int i = 0; i < 5; i++)
		CALL(1 * US, "cudaEventQuery", 600, U(0x7000));
	for (int i = 0; i < 5; i++)
		CALL(1 * US, "cudaFree", 4, U(0xd000));
	for (int i = 0; i < 5; i++)
		CALL(1 * US, "cudaPointerGetAttributes", 1, U(0x1000), U(0x7000));
	SILENT();
}

static void late_load(uint64_t after_ns, bool calls, uint32_t type)
{
	begin("late-loading");
	LAUNCH(5 * US, 0x5000);
	pass(after_ns - 5 * US);
	if (calls)
		CALL(20 * MS, "cuModuleLoadData", 0, U(0x1000), U(0x9000));
	for (int i = 0; i < 3 && type; i++) {
		make_overhead(&md,
			      MAKE_AT(PID, CT_UNKNOWN, CT_UNKNOWN, CT_UNKNOWN, 0, st.now,
				      st.now + MS),
			      PID, type);
		pass(MS);
		give((struct event){ .rec = &md.h });
	}
	LAUNCH(5 * US, 0x5000);
}

static void test_late_load(void)
{
	late_load(4 * S, true, 5u << 16);
	FIRES("late-loading", 3, 20 * MS, 0, ADVISE_NOTE);
	late_load(3 * S, false, 1);
	FIRES("late-loading", 3, 3 * MS, 0, ADVISE_NOTE);
	late_load(2 * S, true, 5u << 16);
	SILENT();
	late_load(4 * S, false, 1u << 16);
	SILENT();
}

/* ---- leaks ---- */

static void ends(uint32_t pid)
{
	struct ct_exit e = { .h = { .size = sizeof(e),
				    .kind = CT_EXIT,
				    .pid = pid,
				    .tid = pid,
				    .start_ns = st.now,
				    .end_ns = st.now } };

	give((struct event){ .rec = &e.h });
}

/* Every `freed`th of n is given back (0: none) at once, all of the others after `later`. */
static void leaks(int n, int freed, int later)
{
	begin("leak");
	for (int i = 0; i < n; i++) {
		answer = 0xd0000 + (uint64_t)i * 4096;
		CALL(10 * US, "cudaMalloc", 0, U(0x1000), U(MIB));
		if (freed && i % freed == 0)
			CALL(10 * US, "cudaFree", 0, answer);
		if (later && i >= later)
			CALL(10 * US, "cudaFree", 0, 0xd0000 + (uint64_t)(i - later) * 4096);
		pass(10 * MS);
	}
}

static void test_leak(void)
{
	leaks(40, 0, 0);
	FIRES("leak", 40, 0, 40 * MIB, ADVISE_WARNING);
	leaks(40, 2, 0);
	FIRES("leak", 20, 0, 20 * MIB, ADVISE_WARNING);
	leaks(7, 0, 0);
	SILENT();
	leaks(40, 0, 5); /* the last five are held when the trace ends: that is no growth */
	SILENT();
	leaks(40, 0, 5);
	ends(PID);
	FIRES("leak", 5, 0, 5 * MIB, ADVISE_NOTE);
	leaks(40, 1, 0);
	ends(PID);
	SILENT();
	leaks(40, 0, 0);
	answer = 0; /* memory for what was at the begin alone: all in the first quarter */
	pass(10 * S);
	LAUNCH(5 * US, 0x5000);
	SILENT();
}

/* ---- launches ---- */

static void launch_bound(int n, uint64_t launch_ns, uint64_t kernel_ns, uint64_t node)
{
	begin("launch-bound");
	for (int i = 0; i < n; i++) {
		struct cause c = LAUNCH(launch_ns, 0x5000);

		make_kernel(&md, MAKE_AT(PID, 0, 1, 7, 1, st.now, st.now + kernel_ns), 1, 8, 256);
		md.work.graph_node = node;
		work(&c, &play_axpy);
	}
}

static void test_launch_bound(void)
{
	launch_bound(120, 5 * US, 2 * US, 0);
	FIRES("launch-bound", 120, 360 * US, 0, ADVISE_SERIOUS);
	launch_bound(99, 5 * US, 2 * US, 0);
	SILENT();
	launch_bound(120, 5 * US, 10 * US, 0);
	SILENT();
	launch_bound(120, 2 * US, 2 * US, 0);
	SILENT();
	launch_bound(120, 5 * US, 2 * US, 77);
	SILENT();
}

static void queue_full(int overheads, int launches, uint64_t launch_ns)
{
	begin("launch-queue-full");
	LAUNCH(1 * US, 0x5000);
	for (int i = 0; i < launches; i++)
		LAUNCH(launch_ns, 0x5000);
	for (int i = 0; i < overheads; i++) {
		make_overhead(&md, MAKE_AT(PID, 0, 1, 7, 0, st.now, st.now + 2 * MS), PID,
			      6u << 16);
		pass(2 * MS);
		give((struct event){ .rec = &md.h });
	}
	LAUNCH(1 * US, 0x5000);
}

static void test_queue_full(void)
{
	queue_full(5, 0, 0);
	FIRES("launch-queue-full", 5, 10 * MS, 0, ADVISE_WARNING);
	queue_full(0, 10, 500 * US);
	FIRES("launch-queue-full", 10, 5 * MS, 0, ADVISE_WARNING);
	queue_full(2, 9, 500 * US);
	SILENT();
	queue_full(0, 100, 499 * US);
	SILENT();
	begin("launch-queue-full"); /* a machine that is busy: never more than three in a row */
	for (uint64_t i = 0; i < 400; i++)
		LAUNCH(i % 4 ? 700 * US : 5 * US, 0x5000);
	SILENT();
	begin("launch-queue-full"); /* each a kernel's first */
	for (uint64_t i = 0; i < 20; i++)
		LAUNCH(500 * US, 0x5000 + i * 64);
	SILENT();
}

static void occupancy(uint32_t registers, uint32_t block, uint32_t grid, uint64_t took_ns,
		      bool device)
{
	begin("low-occupancy");
	if (device) {
		make_device(&md, PID, 0, st.now, "H200");
		give((struct event){ .rec = &md.h });
	}
	for (int i = 0; i < 5; i++) {
		make_kernel(&md, MAKE_AT(PID, 0, 1, 7, 1, st.now, st.now + took_ns), 1, grid,
			    block);
		md.kernel.registers = registers;
		pass(took_ns);
		work(NULL, &play_gemm);
	}
}

static void test_occupancy(void)
{
	occupancy(255, 128, 1000, 200 * US, true);
	FIRES("low-occupancy", 5, MS, 0, ADVISE_NOTE);
	occupancy(32, 256, 131, 200 * US, true);
	FIRES("low-occupancy", 5, MS, 0, ADVISE_NOTE);
	occupancy(32, 256, 132, 200 * US, true);
	SILENT();
	occupancy(255, 128, 1000, 99 * US, true);
	SILENT();
	occupancy(255, 128, 1000, 200 * US, false);
	SILENT();
}

/* ---- the device ---- */

/* Kernels one after the other, with a pause after each; the records in pairs that are out of order. */
static void kernels(const char *rules, int n, uint64_t took_ns, uint64_t pause_ns)
{
	begin(rules);
	for (int i = 0; i < n; i++)
		kernel_at(7, 10 * S + (uint64_t)(i ^ 1) * (took_ns + pause_ns), took_ns);
}

static void test_gaps(void)
{
	kernels("gpu-gaps", 10, MS, 3 * MS);
	FIRES("gpu-gaps", 9, 27 * MS, 0, ADVISE_SERIOUS);
	/* what CUPTI did in one of them is none of the program's */
	kernels("gpu-gaps", 10, MS, 3 * MS);
	make_overhead(&md,
		      MAKE_AT(PID, CT_UNKNOWN, CT_UNKNOWN, CT_UNKNOWN, 0, 10 * S + 1500 * US,
			      10 * S + 2000 * US),
		      PID, 1u << 16);
	give((struct event){ .rec = &md.h });
	FIRES("gpu-gaps", 9, 26500 * US, 0, ADVISE_SERIOUS);
	kernels("gpu-gaps", 10, MS, 999 * US);
	SILENT();
	kernels("gpu-gaps", 10, 30 * MS, 1500 * US);
	SILENT();
	/* what the host did meanwhile: in the gap of 3 ms 2 ms of a cudaMalloc, and 1 ms of nothing */
	begin("gpu-gaps");
	kernel_at(7, 10 * S, MS);
	kernel_at(7, 10 * S + 4 * MS, MS);
	st.now = 10 * S + 1500 * US;
	CALL(2 * MS, "cudaMalloc", 0, U(0x1000), U(4096));
	CALL(5 * MS, "cudaDeviceSynchronize", 0);
	end_finding(0);
	CHECK(st.n == 1);
	CHECK(st.n && memmem(st.findings->evidence.s, st.findings->evidence.len,
			     "for 2.500 ms: cudaMalloc 2.000 ms, cudaDeviceSynchronize 500.0 us; "
			     "for 500.0 us it was inside none.",
			     98));
	done();
	/* two of the nine gaps have a stretch that was not seen: they are none */
	{
		struct ct_hole r = hole_of(PID, CT_HOLE_DEVICE, CT_HOLE_UNSEEN, CT_HOLE_PROFILER);
		struct holes *holes = holes_open();

		kernels("gpu-gaps", 10, MS, 3 * MS);
		hole_when(&r, 10 * S + 2 * MS, 10 * S + 6 * MS);
		CHECK_EQ(0, holes_record(holes, &r.h, NULL));
		advise_holes(st.a, holes);
		FIRES("gpu-gaps", 7, 21 * MS, 0, ADVISE_SERIOUS);
		holes_close(holes);
	}
}

static void test_low_use(void)
{
	kernels("low-utilisation", 60, 100 * US, 400 * US);
	/* of 29.6 ms 6 ms busy */
	FIRES("low-utilisation", 30, 23600 * US, 0, ADVISE_SERIOUS);
	kernels("low-utilisation", 60, 300 * US, 200 * US);
	SILENT();
	kernels("low-utilisation", 28, 100 * US, 400 * US);
	SILENT();
	kernels("low-utilisation", 60, 10 * US, 100 * US);
	SILENT(); /* shorter than 10 ms */
}

static void default_stream(uint32_t flags, bool apart)
{
	begin("default-stream");
	make_context(&md, PID, 1, 0, 7, 0x5500, st.now);
	give((struct event){ .rec = &md.h });
	make_stream(&md, PID, 13, 1, 0x5600, flags, st.now);
	give((struct event){ .rec = &md.h });
	for (int i = 0; i < 25; i++) {
		bool null = apart ? i < 12 : i % 2;

		kernel_at(null ? 7 : 13, st.now, 50 * US);
		pass(80 * US);
	}
}

static void test_default_stream(void)
{
	default_stream(1, false);
	FIRES("default-stream", 12, 600 * US, 0, ADVISE_SERIOUS);
	default_stream(2, false);
	SILENT();
	default_stream(1, true);
	SILENT();
}

/* ---- collectives ---- */

static struct lineage *lineage;

/* A call of NCCL of 10 us, and its kernel. beside_ns: how long another kernel runs from the middle
 * of that on. */
static void collective(uint32_t id, uint64_t bytes, uint8_t flags, uint64_t kernel_ns,
		       uint64_t beside_ns)
{
	struct {
		struct ct_scope s;
		struct ct_collective c;
	} r = { .s = { .h = { .size = sizeof(r), .kind = CT_SCOPE_BEGIN, .pid = PID },
		       .id = id,
		       .kind = CT_SCOPE_COLLECTIVE },
		.c = { .bytes = bytes, .ranks = 2, .how = CT_COLLECTIVE_WHOLE, .flags = flags } };

	if (!kernel_ns)
		LAUNCH(5 * US, 0x5000);
	r.s.h.start_ns = r.s.h.end_ns = st.now;
	CHECK(!lineage_record(lineage, &r.s.h));
	if (kernel_ns) {
		make_kernel(&md, MAKE_AT(PID, 0, 1, 7, 1, st.now, st.now + kernel_ns), 1, 8, 256);
		give((struct event){ .rec = &md.h,
				     .lineage = lineage,
				     .scope = lineage_find(lineage, PID, id),
				     .scope_id = id });
	}
	if (beside_ns) {
		make_kernel(&md,
			    MAKE_AT(PID, 0, 1, 13, 1, st.now + kernel_ns / 2,
				    st.now + kernel_ns / 2 + beside_ns),
			    1, 8, 256);
		give((struct event){ .rec = &md.h, .lineage = lineage });
	}
	r.s.h.kind = CT_SCOPE_END;
	r.s.h.end_ns = st.now += 10 * US;
	give((struct event){ .rec = &r.s.h, .lineage = lineage });
	pass(2 * MS);
}

static void collectives(const char *rule, uint32_t n, uint64_t bytes, uint8_t flags,
			uint64_t kernel_ns, uint64_t beside_ns)
{
	lineage_close(lineage);
	lineage = lineage_open();
	begin(rule);
	for (uint32_t id = 1; id <= n; id++)
		collective(id, bytes, flags, kernel_ns, beside_ns);
}

static void test_tiny_collectives(void)
{
	collectives("tiny-collectives", 100, 65536, 0, 0, 0);
	FIRES("tiny-collectives", 100, 1 * MS, 6553600, ADVISE_NOTE);
	collectives("tiny-collectives", 120, 1024, 0, 30 * US, 0);
	FIRES("tiny-collectives", 120, 3600 * US, 122880, ADVISE_WARNING);
	collectives("tiny-collectives", 99, 1024, 0, 0, 0);
	SILENT();
	collectives("tiny-collectives", 100, 65537, 0, 0, 0);
	SILENT();
	/* what is in groups is launched together */
	collectives("tiny-collectives", 200, 1024, CT_COLLECTIVE_GROUPED, 0, 0);
	SILENT();
	collectives("tiny-collectives", 100, 1024, 0, 0, 0);
	for (uint32_t id = 101; id <= 202; id++)
		collective(id, MIB, 0, 0, 0);
	SILENT();
	lineage_close(lineage);
	lineage = NULL;
}

static void test_exposed_collectives(void)
{
	/* half of each is hidden */
	collectives("exposed-collectives", 20, MIB, 0, 1 * MS, 600 * US);
	FIRES("exposed-collectives", 20, 10 * MS, 0, ADVISE_SERIOUS);
	collectives("exposed-collectives", 20, MIB, 0, 1 * MS, 0);
	FIRES("exposed-collectives", 20, 20 * MS, 0, ADVISE_SERIOUS);
	collectives("exposed-collectives", 19, MIB, 0, 1 * MS, 0);
	SILENT();
	/* another kernel begins before the middle of the last one */
	collectives("exposed-collectives", 20, MIB, 0, 1 * MS, 600 * US);
	make_kernel(&md, MAKE_AT(PID, 0, 1, 13, 1, 10 * S, st.now), 1, 8, 256);
	give((struct event){ .rec = &md.h, .lineage = lineage });
	SILENT();
	lineage_close(lineage);
	lineage = NULL;
}

/* ---- steps ---- */

static void scope_over(uint8_t kind, const char *name, uint64_t from, uint64_t to)
{
	static uint32_t id;
	struct {
		struct ct_scope s;
		char text[24];
	} r = { .s = { .h = { .size = sizeof(r),
			      .kind = CT_SCOPE_BEGIN,
			      .pid = st.pid ? st.pid : PID,
			      .tid = st.pid ? st.pid : PID,
			      .start_ns = from,
			      .end_ns = from },
		       .id = ++id,
		       .kind = kind,
		       .text_len = (uint16_t)strlen(name) } };

	memcpy(r.text, name, strlen(name));
	CHECK(!lineage_record(lineage, &r.s.h));
	r.s.h.kind = CT_SCOPE_END;
	r.s.h.end_ns = to;
	give((struct event){ .rec = &r.s.h, .lineage = lineage });
}

/* n steps of 10 ms, the last one `longer`, of which an operator takes 1 ms and that; the GPU
 * computes for kernel_ns of each. */
static void steps(const char *rule, int n, uint64_t longer, uint64_t op_ns, uint64_t kernel_ns)
{
	lineage_close(lineage);
	lineage = lineage_open();
	begin(rule);
	for (int i = 1; i <= n; i++) {
		uint64_t at = st.now, took = 10 * MS + (i == n ? longer : 0);
		char name[24];

		snprintf(name, sizeof(name), "ProfilerStep#%d", i);
		make_kernel(&md, MAKE_AT(PID, 0, 1, 7, 1, at, at + kernel_ns), 1, 8, 256);
		give((struct event){ .rec = &md.h, .lineage = lineage });
		scope_over(CT_SCOPE_OPERATOR, "aten::copy_", at, at + op_ns + took - 10 * MS);
		scope_over(CT_SCOPE_RANGE, name, at, at + took);
		st.now += took;
	}
}

static void test_slow_steps(void)
{
	static const char evidence[] =
		"1 of 5 steps took at least 1.5 times as long as the median, 10.00 ms. The slowest "
		"is step 5 with 15.00 ms. The GPU was idle for 5.000 ms longer than in the other "
		"steps on average. On the host it spent 5.000 ms more in the operator aten::copy_.";

	steps("slow-steps", 5, 5 * MS, 1 * MS, 8 * MS);
	end_finding(0);
	if (CHECK_EQ(1, st.n) && CHECK_EQ(sizeof(evidence) - 1, st.findings[0].evidence.len))
		CHECK(!memcmp(evidence, st.findings[0].evidence.s, sizeof(evidence) - 1));
	done();
	steps("slow-steps", 5, 5 * MS, 1 * MS, 8 * MS);
	FIRES("slow-steps", 1, 5 * MS, 0, ADVISE_SERIOUS);
	steps("slow-steps", 5, 5 * MS - 1, 1 * MS, 8 * MS);
	SILENT();
	steps("slow-steps", 4, 5 * MS, 1 * MS, 8 * MS);
	SILENT();
	lineage_close(lineage);
	lineage = NULL;
}

static void test_host_bound_steps(void)
{
	steps("host-bound-steps", 5, 0, 5 * MS, 5 * MS);
	FIRES("host-bound-steps", 5, 25 * MS, 0, ADVISE_SERIOUS);
	steps("host-bound-steps", 5, 0, 5 * MS - 1, 5 * MS);
	SILENT();
	steps("host-bound-steps", 5, 0, 5 * MS, 5 * MS + 1);
	SILENT();
	lineage_close(lineage);
	lineage = NULL;
}

/* n steps of a process, of 1 ms; the third takes 2 ms. */
static void range_steps(uint32_t pid, int n)
{
	st.pid = pid;
	make_kernel(&md, MAKE_AT(pid, 0, 1, 7, 1, st.now, st.now + 1), 1, 8, 256);
	give((struct event){ .rec = &md.h, .lineage = lineage });
	for (int i = 1; i <= n; i++) {
		uint64_t took = i == 3 ? 2 * MS : MS;
		char name[24];

		snprintf(name, sizeof(name), "ProfilerStep#%d", i);
		scope_over(CT_SCOPE_RANGE, name, st.now, st.now + took);
		st.now += took;
	}
}

static bool says(const struct advise_finding *f, const char *words)
{
	return f->evidence.len && memmem(f->evidence.s, f->evidence.len, words, strlen(words));
}

/* Ranges of a process find room for 16384 steps, those of four processes for all there is; a rule
 * more takes no more of it. */
static void test_steps_are_bounded(void)
{
	static const char no_room[] =
		" Later steps were not looked at, because there was no room for them.";
	struct advise_totals totals;
	char program[CT_COMM_LEN];

	for (uint32_t full = 3; full <= 4; full++) {
		lineage_close(lineage);
		lineage = lineage_open();
		begin("slow-steps,host-bound-steps");
		for (uint32_t i = 0; i <= full; i++) {
			snprintf(program, sizeof(program), "program%u", i);
			run_program(PID + i, CT_UNKNOWN, program);
			range_steps(PID + i, i < full ? 16384 + 10 : 20);
		}
		end_finding(0);
		CHECK_EQ(3 + (full == 3) + (full == 4), st.n);
		for (size_t i = 0; i < st.n; i++) {
			const struct advise_finding *f = &st.findings[i];
			bool last = f->one.pid == PID + full;

			CHECK(!last || full == 3);
			CHECK(says(f, last ? "1 of 20 steps" : "1 of 16384 steps"));
			CHECK(says(f, no_room) == !last);
		}
		advise_totals(st.a, &totals);
		/* the last one's kernel and ranges find no room when four were before it */
		CHECK_EQ(full * 10 + (full == 4 ? 21 : 0), totals.steps_no_room);
		CHECK_EQ(0, totals.no_room);
		done();
	}
	lineage_close(lineage);
	lineage = NULL;
}

/* ---- products of matrices ---- */

/* n calls of cublasGemmEx, each with a kernel of this name, of 1 ms. */
static void gemms(const char *rule, uint32_t n, uint32_t type, uint64_t k, const char *name)
{
	struct kernel_name kernel = { .mangled = name, .full = name };
	struct {
		struct ct_scope s;
		struct ct_gemm g;
	} r = { .s = { .h = { .size = sizeof(r), .kind = CT_SCOPE_BEGIN, .pid = PID },
		       .kind = CT_SCOPE_GEMM },
		.g = { .flags = CT_GEMM_SHAPE, .m = 64, .n = 64, .k = k, .batch = 1 } };

	lineage_close(lineage);
	lineage = lineage_open();
	begin(rule);
	make_device(&md, PID, 0, st.now, "H200");
	((struct ct_device *)&md.h)->major = 9;
	give((struct event){ .rec = &md.h });
	r.g.a_type = r.g.b_type = r.g.d_type = type;
	for (r.s.id = 1; r.s.id <= n; r.s.id++) {
		r.s.h.start_ns = r.s.h.end_ns = st.now;
		CHECK(!lineage_record(lineage, &r.s.h));
		make_kernel(&md, MAKE_AT(PID, 0, 1, 7, 1, st.now, st.now + MS), 1, 8, 256);
		give((struct event){
			.rec = &md.h, .lineage = lineage, .kernel = &kernel, .scope_id = r.s.id });
		pass(2 * MS);
	}
}

static void test_gemm_shape(void)
{
	gemms("gemm-shape", 20, 2, 60, "nvjet_hsh_64x64");
	FIRES("gemm-shape", 20, 20 * MS, 0, ADVISE_WARNING);
	gemms("gemm-shape", 20, 3, 72, "some_int8_kernel");
	FIRES("gemm-shape", 20, 20 * MS, 0, ADVISE_WARNING);
	gemms("gemm-shape", 20, 2, 72, "nvjet_hsh_64x64");
	SILENT();
	gemms("gemm-shape", 19, 2, 60, "nvjet_hsh_64x64");
	SILENT();
	/* what does not use tensor cores anyway */
	gemms("gemm-shape", 20, 0, 61, "ampere_sgemm_128x64_tn");
	SILENT();
	lineage_close(lineage);
	lineage = NULL;
}

static void block(int64_t size, uint64_t allocated, uint64_t reserved, uint64_t device)
{
	CALL(0, "c10::reportMemoryUsageToProfiler", 0, U(0x1000), (uint64_t)size, allocated,
	     reserved, device);
}

/* n blocks of 1 MiB, of which each second one is given back, and as many of `bytes` for which there are new segments. */
static void blocks(uint64_t n, uint64_t bytes, uint64_t device)
{
	uint64_t held = 0, reserved = n * MIB;

	begin("fragmentation");
	CALL(US, "cudaMalloc", 0, U(0x1000), U(64));
	for (uint64_t i = 0; i < n; i++)
		block(MIB, held += MIB, reserved, device);
	for (uint64_t i = 0; i < n; i += 2)
		block(-(int64_t)MIB, held -= MIB, reserved, device);
	for (uint64_t i = 0; i < n / 2; i++)
		block((int64_t)bytes, held += bytes, reserved += bytes, device);
}

static void test_fragmentation(void)
{
	const uint64_t cuda = 1 | 3 << 8;

	/* 128 MiB were enough, 192 MiB were taken; after 64 blocks nothing was free any more */
	blocks(128, MIB, cuda);
	FIRES("fragmentation", 64, 0, 64 * MIB, ADVISE_WARNING);
	/* less than 64 MiB too much */
	blocks(126, MIB, cuda);
	SILENT();
	/* of another sort of device */
	blocks(128, MIB, 0 | 0xff << 8);
	SILENT();
	/* less than a fifth: what is large did not find room, but is most of it */
	blocks(128, 16 * MIB, cuda);
	SILENT();
	/* out of memory, and as much was free */
	blocks(8, MIB, cuda);
	CALL(0, "c10::reportOutOfMemoryToProfiler", 0, U(4 * MIB), U(8 * MIB), U(12 * MIB), cuda);
	FIRES("fragmentation", 5, 0, 4 * MIB, ADVISE_SERIOUS);
	blocks(2, MIB, cuda);
	CALL(0, "c10::reportOutOfMemoryToProfiler", 0, U(4 * MIB + 1), U(8 * MIB), U(12 * MIB),
	     cuda);
	CALL(0, "c10::reportOutOfMemoryToProfiler", 0, ~0ULL, U(8 * MIB), U(12 * MIB), cuda);
	SILENT();
	/* what cannot be true, and more devices than are followed */
	begin("fragmentation");
	block(INT64_MIN, 0, 0, cuda);
	block(1, 0, ~0ULL, cuda);
	for (uint64_t i = 0; i < 256; i++)
		block(512, 512, i << 20, 1 | i << 8);
	SILENT();
}

static void test_gemm_float32(void)
{
	gemms("gemm-float32", 20, 0, 64, "ampere_sgemm_128x64_tn");
	FIRES("gemm-float32", 20, 20 * MS, 0, ADVISE_SERIOUS);
	gemms("gemm-float32", 19, 0, 64, "ampere_sgemm_128x64_tn");
	SILENT();
	gemms("gemm-float32", 20, 0, 64, "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n");
	SILENT();
	gemms("gemm-float32", 20, 2, 64, "ampere_sgemm_128x64_tn");
	SILENT();
	lineage_close(lineage);
	lineage = NULL;
}

/* ---- several processes ---- */

/* What one allocates the other frees: neither is a loop. Each has its own copies. */
static void test_processes(void)
{
	begin("alloc-in-loop,sync-copy");
	for (int i = 0; i < 50; i++) {
		st.pid = 300;
		CALL(100 * US, "cudaMalloc", 0, U(0x1000), U(4096));
		LAUNCH(5 * US, 0x5000);
		st.pid = 301;
		LAUNCH(5 * US, 0x5000);
		CALL(50 * US, "cudaFree", 0, U(0xd000));
	}
	for (int i = 0; i < 8; i++) {
		st.pid = 300 + (uint32_t)(i % 4 == 0);
		CALL((i % 4 ? 100 : 900) * US, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(2));
	}
	CALL(900 * US, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(2));
	st.pid = 301;
	CALL(900 * US, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(2));
	end_finding(0);
	/* one finding, which is about the process in which it costs more */
	if (CHECK_EQ(1, st.n) && CHECK_EQ(2, st.findings[0].nall)) {
		CHECK_EQ(301, st.findings[0].one.pid);
		CHECK_EQ(3, st.findings[0].one.n);
		CHECK_EQ(2700 * US, st.findings[0].one.cost_ns);
		CHECK_EQ(300, st.findings[0].all[0].pid);
		CHECK_EQ(7, st.findings[0].all[0].n);
		CHECK_EQ(1500 * US, st.findings[0].all[0].cost_ns);
		CHECK_EQ(301, st.findings[0].all[1].pid);
		CHECK_EQ(2700 * US, st.findings[0].all[1].cost_ns);
		CHECK_EQ(0, st.findings[0].nwithout);
	}
	done();
}

/* More processes than are looked at: they are counted, and the first ones are what they were. */
static void test_bounds(void)
{
	struct advise_totals t;

	begin("sync-copy");
	for (uint32_t i = 0; i < 200; i++) {
		st.pid = 1000 + i;
		for (int k = 0; k < 3; k++)
			CALL(100 * US, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(2));
	}
	end_finding(0);
	advise_totals(st.a, &t);
	if (CHECK_EQ(1, st.n))
		CHECK_EQ(128, st.findings[0].nall);
	CHECK_EQ(128, t.processes);
	CHECK_EQ(128 * 3, t.calls);
	CHECK_EQ(72 * 3, t.no_room);
	done();
}

/* Another program in the same process: what the one before held is gone. */
static void test_exec(void)
{
	struct ct_process proc = {
		.h = { .size = sizeof(proc), .kind = CT_EXEC, .pid = PID, .tid = PID },
		.comm = "next"
	};

	leaks(40, 0, 0);
	proc.h.start_ns = proc.h.end_ns = st.now;
	give((struct event){ .rec = &proc.h });
	LAUNCH(5 * US, 0x5000);
	ends(PID);
	SILENT();
}

/* ---- spans ---- */

static void test_spans(void)
{
	struct spans s = { .n = 0 };
	uint64_t busy = 0, at = S;

	/* out of order by thousands of places, overlapping, with gaps below and above the quantum */
	for (int i = 0; i < 5000; i++)
		spans_add(&s, S + (uint64_t)(4999 - i) * 100 * US,
			  S + (uint64_t)(4999 - i) * 100 * US + 60 * US, 1, 2);
	for (int i = 0; i < 5000; i++)
		spans_add(&s, S + (uint64_t)i * 100 * US + 50 * US,
			  S + (uint64_t)i * 100 * US + 70 * US, 1, 2);
	CHECK(!spans_settle(&s));
	CHECK(s.n == 5000 && s.late == 0);
	for (uint32_t i = 0; i < s.n; i++)
		busy += s.at[i].busy_ns;
	CHECK(busy == 5000 * 70 * US);
	CHECK(s.at[0].start_ns == S && s.at[4999].end_ns == S + 4999 * 100 * US + 70 * US);
	spans_free(&s);
	/* more gaps than there is room for: what was busy is still exact, and the long gaps are
	 * there */
	busy = 0;
	for (int i = 0; i < 200000; i++) {
		spans_add(&s, at, at + 10 * US, 1, 2);
		at += i % 1000 == 999 ? 5 * MS : 40 * US;
	}
	CHECK(!spans_settle(&s));
	CHECK(s.n <= SPANS_MAX && s.quantum_ns == 30 * US);
	for (uint32_t i = 0; i < s.n; i++)
		busy += s.at[i].busy_ns;
	CHECK(busy == 200000 * 10 * US);
	at = 0;
	for (uint32_t i = 1; i < s.n; i++)
		at += s.at[i].start_ns - s.at[i - 1].end_ns > MS;
	CHECK(at == 199);
	spans_free(&s);
	/* an end before the start is none; the ends of time */
	CHECK(!spans_add(&s, 5, 4, 0, 0) && !s.nraw);
	CHECK(!spans_add(&s, 0, UINT64_MAX, 0, 0));
	CHECK(!spans_add(&s, UINT64_MAX, UINT64_MAX, 0, 0));
	CHECK(!spans_settle(&s));
	CHECK(s.n == 1);
	spans_free(&s);
}

/* ---- the same in several processes ---- */

/* A copy of each process, at one of two places. */
static void copies_at(uint32_t pid, uint64_t took_ns, const struct stack *stack)
{
	st.pid = st.tid = pid;
	st.stack = stack;
	for (int i = 0; i < 3; i++)
		CALL(took_ns, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(2));
}

static void test_alike(void)
{
	struct text said = { .s = NULL };

	/* other places, or other programs, are other findings */
	begin("sync-copy");
	for (uint32_t i = 0; i < 4; i++)
		run_program(300 + i, i, i == 3 ? "other" : "train");
	copies_at(300, MS, &play_stack);
	copies_at(301, MS, &play_stack);
	copies_at(302, 2 * MS, NULL);
	copies_at(303, 3 * MS, &play_stack);
	end_finding(0);
	if (CHECK_EQ(3, st.n)) {
		CHECK_EQ(303, st.findings[0].one.pid);
		CHECK_EQ(0, st.findings[0].nall);
		CHECK_EQ(0, st.findings[0].nwithout);
		CHECK_EQ(302, st.findings[1].one.pid);
		CHECK_EQ(2, st.findings[1].nwithout);
		CHECK_EQ(2, st.findings[2].nall);
		CHECK_EQ(1, st.findings[2].nwithout);
		CHECK_EQ(2, st.findings[2].without[0].rank);
	}
	done();

	/* of two none stands out; of three one may; a cheap one does, too */
	begin("sync-copy");
	copies_at(300, MS, NULL);
	copies_at(301, 9 * MS, NULL);
	end_finding(0);
	if (CHECK_EQ(1, st.n))
		CHECK(!st.findings[0].all[0].stands_out && !st.findings[0].all[1].stands_out);
	done();
	begin("sync-copy");
	for (uint32_t i = 0; i < 5; i++)
		copies_at(300 + i, i == 3 ? MS : 5 * MS, NULL);
	end_finding(0);
	if (CHECK_EQ(1, st.n) && CHECK_EQ(5, st.findings[0].nall)) {
		for (uint32_t i = 0; i < 5; i++)
			CHECK_EQ(i == 3, st.findings[0].all[i].stands_out);
		alike_say(&st.findings[0], &said);
		text_mem(&said, "", 1);
		CHECK_TEXT("The same in processes 301, 302, 303, 304: 3.000 ms to 15.00 ms each. "
			   "Process 303 stands out: 3.000 ms, where the median is 15.00 ms.",
			   said.s);
	}
	done();

	/* more ranks than a sentence names, with gaps */
	begin("sync-copy");
	for (uint32_t i = 0; i < 100; i++) {
		run_program(300 + i, i, "train");
		st.pid = st.tid = 300 + i;
		if (i % 4 != 3)
			copies_at(300 + i, MS, NULL);
		else
			LAUNCH(5 * US, 0x5000);
	}
	end_finding(0);
	said.len = 0;
	if (CHECK_EQ(1, st.n) && CHECK_EQ(75, st.findings[0].nall)) {
		CHECK_EQ(25, st.findings[0].nwithout);
		alike_say(&st.findings[0], &said);
		text_mem(&said, "", 1);
		CHECK_TEXT("The same in ranks 1-2, 4-6, 8-10, 12-14, 16-18, 20-22, 24-26, 28-30, "
			   "32-34, 36-38, 40-42, 44-46, 48-50, 52-54, 56-58, 60-62 and others: "
			   "3.000 ms each. Not in ranks 3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43, "
			   "47, 51, 55, 59, 63 and others.",
			   said.s);
	}
	text_free(&said);
	done();
}

/* ---- the list ---- */

/* A program with several sins, the last of which is the largest. */
static void sins(void)
{
	struct ct_process proc = { .h = { .size = sizeof(proc),
					  .kind = CT_PROCESS,
					  .pid = PID,
					  .tid = PID,
					  .start_ns = 10 * S,
					  .end_ns = 10 * S },
				   .ns_pid = 42,
				   .comm = "train\033[1m" };
	struct cause c;

	give((struct event){ .rec = &proc.h });
	st.stack = &play_stack;
	for (int i = 0; i < 25; i++) {
		answer = 0xd0000;
		CALL(100 * US, "cudaMalloc", 0, U(0x1000), U(4096));
		c = LAUNCH(5 * US, 0x5000);
		make_kernel(&md, MAKE_AT(PID, 0, 1, 7, 1, st.now, st.now + MS), 1, 8, 256);
		work(&c, &play_axpy);
		CALL(MS, "cudaMemcpy", 0, U(0xa000), U(0xd0000), U(4), U(2));
		CALL(50 * US, "cudaFree", 0, U(0xd0000));
		pass(2 * MS);
	}
	st.stack = NULL;
	CALL(5 * US, "cudaMemsetAsync", 1, U(0xd000), U(0), U(16), U(0));
	LAUNCH(5 * US, 0x5000);
	CALL(30 * MS, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(1));
	CALL(1 * MS, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(1));
	CALL(1 * MS, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(1));
}

/* Some queries were counted in windows: what is said of queries rests on the others. */
static const struct muted_sum sampled = { .counted = 5007, .unseen = { 239100, 4100, 3050 } };

/* Five ranks of a job, of which rank 2 waits longest for its copies and rank 4 makes none; rank 1 alone has calls that fail.
 * Another program does the same, and is not of the job. */
static void ranks(void)
{
	for (uint32_t rank = 0; rank < 6; rank++) {
		st.pid = st.tid = 200 + rank;
		st.now = 10 * S;
		run_program(st.pid, rank < 5 ? rank : CT_UNKNOWN, rank < 5 ? "train" : "other");
		st.stack = &play_stack;
		for (int i = 0; i < 4 && rank != 4; i++) {
			CALL((rank == 2 ? 90 : 10 + rank) * MS, "cudaMemcpy", 0, U(0xd000),
			     U(0xa000), U(MIB), U(2));
			pass(MS);
		}
		for (int i = 0; i < 8 && rank < 5; i++) {
			CALL(rank * US, "cudaMemcpy", 0, U(0xd000), U(0xa000 + 64 * i), U(16),
			     U(1));
			pass(MS);
		}
		if (rank == 1)
			CALL(5 * US, "cudaMemsetAsync", 1, U(0xd000), U(0), U(16), U(0));
		LAUNCH(5 * US, 0x5000);
		pass(S - st.now % S);
	}
	st.stack = NULL;
}

static void golden_story(const char *name, enum advise_format format, const char *rules,
			 uint64_t min_cost_ns, int status, bool muted, void (*story)(void))
{
	static const char *const names[] = { "cudaGetDevice", "cudaGetLastError", NULL };
	struct advise_options how = {
		.format = format, .rules = rules, .min_cost_ns = min_cost_ns, .fail = true
	};
	struct holes *holes = holes_of_unprobed(3, 1, 2500000, true);
	struct sink_end end = { .reason = "finished",
				.losses = { .holes = holes, .lost = { [CT_LOSS_RING] = 3 } },
				.muted = muted ? names : NULL,
				.muted_calls = muted ? sampled : (struct muted_sum){ 0 } };
	struct sink_opts opts = {
		.title = "app\007.ctrace", .version = "1", .start_ns = 10 * S, .own = &how
	};
	char path[] = "/tmp/ct_test_advise.XXXXXX", *text;
	struct sink sink = { .ops = &sink_advise };
	int fd = mkstemp(path);
	struct out out;

	begin(NULL);
	advise_close(st.a);
	st.a = NULL;
	CHECK(!out_open(&out, path, false));
	opts.out = &out;
	CHECK(!sink_advise.open(&sink, &opts));
	st.sink = &sink;
	story();
	CHECK(!sink_advise.close(&sink, &end));
	CHECK(!out_close(&out));
	CHECK_EQ(status, sink.status);
	done();
	text = unit_read(path);
	unit_golden(name, text ? text : "");
	free(text);
	unlink(path);
	close(fd);
	holes_close(holes);
}

static void golden_end(const char *name, enum advise_format format, const char *rules,
		       uint64_t min_cost_ns, int status, bool muted)
{
	golden_story(name, format, rules, min_cost_ns, status, muted, sins);
}

static void golden(const char *name, enum advise_format format, const char *rules,
		   uint64_t min_cost_ns, int status)
{
	golden_end(name, format, rules, min_cost_ns, status, false);
}

static void test_forms(void)
{
	golden_end("advise_muted.txt", ADVISE_TEXT, "leak,polling", 0, 0, true);
	golden_end("advise_muted.json", ADVISE_JSON, "leak,polling", 0, 0, true);
	golden("advise.txt", ADVISE_TEXT, NULL, 0, 1);
	golden("advise.md", ADVISE_MARKDOWN, NULL, 0, 1);
	golden("advise.json", ADVISE_JSON, NULL, 0, 1);
	golden("advise_few.txt", ADVISE_TEXT, "failed-calls,gpu-gaps", MS, 1);
	golden_story("advise_ranks.txt", ADVISE_TEXT, "sync-copy,failed-calls", 0, 1, false, ranks);
	golden_story("advise_ranks.md", ADVISE_MARKDOWN, "sync-copy,failed-calls", 0, 1, false,
		     ranks);
	golden_story("advise_ranks.json", ADVISE_JSON, "sync-copy,failed-calls", 0, 1, false,
		     ranks);
	golden("advise_none.txt", ADVISE_TEXT, "leak,polling", 0, 0);
}

/* Of a stack with Python's frames, these and at most two native frames inside them are shown;
 * stacks that differ only in hidden frames are one place. */
static void test_refused(void)
{
#define PY(f, l)                                                                           \
	{                                                                                  \
		.kind = CT_FRAME_PYTHON, .function = f, .file = "/x/site-packages/m/t.py", \
		.line = l                                                                  \
	}
#define NATIVE(f, o)                                                                 \
	{                                                                            \
		.kind = CT_FRAME_NATIVE, .function = f, .object = o, .address = 0x10 \
	}
	static const struct stack_frame f[] = {
		PY("load", 5),
		PY("<module>", 9),
		NATIVE(NULL, "/usr/lib/libffi.so.8"),
		NATIVE("ffi_call", "/usr/lib/libffi.so.8"),
		NATIVE("_PyEval_EvalFrameDefault", "/usr/bin/python3.11"),
		NATIVE("__libc_start_main", "/usr/lib/libc.so.6"),
		NATIVE("copy", "/x/ext.so"),
		NATIVE("walk", "/x/ext.so"),
	};
	static const struct stack_frame *const by_ctypes[] = { &f[2], &f[3], &f[0], &f[1], &f[5] },
					       *const by_other[] = { &f[3], &f[2], &f[3], &f[0],
								     &f[1] },
					       *const of_c[] = { &f[3], &f[6], &f[5] };
	const struct stack_frame *deep[24] = { &f[6] };
	static const char *const texts[] = { "load (m/t.py:5)\n<module> (m/t.py:9)",
					     ("copy (ext.so)\nwalk (ext.so)\n(18 native frames)\n"
					      "load (m/t.py:5)\n<module> (m/t.py:9)"),
					     "ffi_call (libffi.so.8)\ncopy (ext.so)" };
	const struct stack stacks[] = { { .id = 1, .nframes = 5, .frames = by_ctypes },
					{ .id = 2, .nframes = 24, .frames = deep },
					{ .id = 3, .nframes = 3, .frames = of_c },
					{ .id = 4, .nframes = 5, .frames = by_other } };

	for (int i = 1; i < 20; i++)
		deep[i] = &f[7];
	deep[20] = &f[3];
	deep[21] = &f[4];
	deep[22] = &f[0];
	deep[23] = &f[1];
	begin("sync-copy");
	for (int i = 0; i < 8; i++) {
		st.stack = &stacks[i % 4];
		CALL((4 - (unsigned int)i % 4) * MS, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB),
		     U(1));
	}
	end_finding(0);
	CHECK_EQ(1, st.n);
	CHECK_EQ(3, st.findings[0].nplaces);
	CHECK_EQ(4, st.findings[0].places[0].n); /* of stacks 1 and 4 */
	for (unsigned int i = 0; i < 3; i++)
		check_lines(texts[i], &st.findings[0].places[i].stack);
	done();
	/* all frames, with their whole paths */
	begin("sync-copy");
	advise_show_all(st.a);
	st.stack = &stacks[0];
	for (int i = 0; i < 8; i++)
		CALL(MS, "cudaMemcpy", 0, U(0xd000), U(0xa000), U(MIB), U(1));
	end_finding(0);
	CHECK_EQ(1, st.n);
	check_lines("0x10 (libffi.so.8)\nffi_call (libffi.so.8)\nload (/x/site-packages/m/t.py:5)\n"
		    "<module> (/x/site-packages/m/t.py:9)\n__libc_start_main (libc.so.6)",
		    &st.findings[0].places[0].stack);
	done();
#undef PY
#undef NATIVE
}

static void test_words(void)
{
	size_t len;

	CHECK(!advise_rules_bad("leak,polling", &len));
	CHECK_TEXT("lek,polling", advise_rules_bad("leak,lek,polling", &len));
	CHECK(len == 3);
	CHECK_TEXT("", advise_rules_bad("leak,", &len));
	for (unsigned int i = 0; advise_rule_at(i); i++) {
		const struct advise_rule *r = advise_rule_at(i);

		CHECK(r->name);
		CHECK(r->title);
		CHECK(r->cost);
		CHECK(r->todo);
		CHECK(r->needs);
		CHECK(strlen(r->title) <= 58);
		CHECK(!advise_rules_bad(r->name, &len));
	}
	CHECK(advise_rule_at(0));
}

static enum report_way call_way(const struct ct_call *c)
{
	return report_way_of(api_call_way(c));
}

static void test_ways(void)
{
	CHECK(call_way(make_call(&mc, "cudaMemcpy", CT_CALL, 0, 0, U(1), U(2), U(3), U(2))) ==
	      REPORT_DTOH);
	CHECK(call_way(make_call(&mc, "cudaMemcpy", CT_CALL, 0, 0, U(1), U(2), U(3), U(4))) ==
	      REPORT_UNKNOWN);
	CHECK(call_way(make_call(&mc, "cudaMemcpy", CT_CALL, 0, 0, U(1), U(2), U(3),
				 U(0xffffffff))) == REPORT_UNKNOWN);
	CHECK(call_way(make_call(&mc, "cuMemcpyHtoDAsync_v2", CT_CALL, 0, 0, U(1), U(2), U(3),
				 U(0))) == REPORT_HTOD);
	CHECK(call_way(make_call(&mc, "cuMemcpyDtoD_v2", CT_CALL, 0, 0, U(1), U(2), U(3))) ==
	      REPORT_DTOD);
	CHECK(call_way(make_call(&mc, "cudaMemcpyPeer", CT_CALL, 0, 0, U(1), U(0), U(2), U(1),
				 U(3))) == REPORT_PTOP);
	CHECK(call_way(make_call(&mc, "cuMemcpy", CT_CALL, 0, 0, U(1), U(2), U(3))) ==
	      REPORT_UNKNOWN);
}

/* ---- records of dice ---- */

static void test_rubbish(void)
{
	struct sink_end end = { .reason = "finished" };
	struct advise_options how = { .format = ADVISE_JSON };
	struct sink_opts opts = {
		.version = "test", .title = "dice", .start_ns = PLAY_START, .own = &how
	};
	unsigned int seed = 7;
	struct play p;
	struct out out;

	for (int round = 0; round < 3; round++) {
		how.format = (enum advise_format)round;
		CHECK(!out_open(&out, "/dev/null", false));
		opts.out = &out;
		play_begin(&p, &sink_advise, &opts);
		play_all(&p);
		for (int i = 0; i < 100000; i++)
			play_rubbish(&p, &seed);
		CHECK(p.given > 1000);
		CHECK(!play_end(&p, &end));
		CHECK(!out_close(&out));
	}
}

/* Times and shapes that no device has, in great numbers: all numbers stay numbers. */
static void test_hostile(void)
{
	unsigned int seed = 3;

	begin(NULL);
	hostile = true;
	make_device(&md, PID, 0, st.now, "?");
	md.device.warp_size = ~0u;
	give((struct event){ .rec = &md.h });
	for (int i = 0; i < 30000; i++) {
		uint64_t start = rand_r(&seed) % 3 ? (uint64_t)rand_r(&seed) << rand_r(&seed) % 34
						   : UINT64_MAX - 5;
		struct cause c = { start, (uint64_t)rand_r(&seed) << 32, PID,
				   (uint16_t)rand_r(&seed) };

		make_kernel(&md,
			    MAKE_AT((uint32_t)rand_r(&seed) % 400, (uint32_t)rand_r(&seed) % 40,
				    (uint32_t)rand_r(&seed) % 20, 7, 1, start,
				    rand_r(&seed) % 2 ? start + (uint64_t)rand_r(&seed) * 1000
						      : start / 2),
			    (uint64_t)rand_r(&seed) % 2000, ~0u,
			    1 + (uint32_t)rand_r(&seed) % 2000);
		md.kernel.registers = rand_r(&seed) % 2 ? ~0u : 1u << 27;
		md.kernel.static_shared = ~0u;
		work(rand_r(&seed) % 2 ? &c : NULL, rand_r(&seed) % 2 ? &play_gemm : NULL);
		st.now = start;
		st.tid = (uint32_t)rand_r(&seed);
		answer = (uint64_t)rand_r(&seed) % 64;
		CALL((uint64_t)rand_r(&seed) << 20, "cudaMalloc", 0, U(0x1000), U(~0ULL));
		CALL((uint64_t)rand_r(&seed) << 20, "cudaFree", 0, (uint64_t)rand_r(&seed) % 64);
	}
	end_finding(0);
	done();
	hostile = false;
}

int main(void)
{
	RUN(test_refused);
	RUN(test_words);
	RUN(test_ways);
	RUN(test_pageable);
	RUN(test_pageable_batch);
	RUN(test_sync_copy);
	RUN(test_sync_set);
	RUN(test_small_copies);
	RUN(test_roundtrip);
	RUN(test_double_buffering);
	RUN(test_sync_each);
	RUN(test_readback);
	RUN(test_polling);
	RUN(test_alloc_loop);
	RUN(test_create_loop);
	RUN(test_entered);
	RUN(test_handles);
	RUN(test_share);
	RUN(test_failed);
	RUN(test_late_load);
	RUN(test_leak);
	RUN(test_launch_bound);
	RUN(test_queue_full);
	RUN(test_occupancy);
	RUN(test_gaps);
	RUN(test_low_use);
	RUN(test_default_stream);
	RUN(test_tiny_collectives);
	RUN(test_exposed_collectives);
	RUN(test_gemm_shape);
	RUN(test_fragmentation);
	RUN(test_gemm_float32);
	RUN(test_slow_steps);
	RUN(test_steps_are_bounded);
	RUN(test_host_bound_steps);
	RUN(test_processes);
	RUN(test_bounds);
	RUN(test_exec);
	RUN(test_alike);
	RUN(test_spans);
	RUN(test_forms);
	RUN(test_rubbish);
	RUN(test_hostile);
	return unit_end();
}
