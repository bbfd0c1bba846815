/* SPDX-License-Identifier: BSD-2-Clause */
/* test_top.c - what top shows: the model with planted counts, rows, columns, keys, blocks of text. */
#include <errno.h>
#include <unistd.h>

#include "../../user/event/device.h"
#include "../../user/top/batch.h"
#include "../../user/top/columns.h"
#include "../../user/top/keys.h"
#include "../../user/top/model.h"
#include "holes_made.h"
#include "unit.h"

#define SECOND 1000000000ULL

static struct process procs[8];

static const struct process *proc(uint32_t pid, uint32_t start, const char *comm)
{
	struct process *p = &procs[pid % 8];

	*p = (struct process){ .pid = pid,
			       .shown_pid = pid,
			       .start_boottime_ns = (uint64_t)start << 10 };
	snprintf(p->comm, sizeof(p->comm), "%s", comm);
	return p;
}

static uint16_t func(const char *name)
{
	int i = api_next(name, -1);

	CHECK(i >= 0);
	return (uint16_t)i;
}

static struct ct_call_count count(uint32_t pid, uint32_t start, const char *name, uint64_t calls,
				  uint64_t ns)
{
	return (struct ct_call_count){
		.h = { .size = sizeof(struct ct_call_count), .kind = CT_CALL_COUNT, .pid = pid },
		.func = func(name),
		.start = start,
		.sums = { .calls = calls, .timed = calls, .ns = ns },
	};
}

static void plant(struct top_model *m, const struct ct_call_count *t, const char *comm)
{
	struct event ev = { .rec = &t->h, .proc = proc(t->h.pid, t->start, comm) };

	CHECK(model_event(m, &ev) == 1);
}

/* A refresh with one process's calls of one function. */
static void step(struct top_model *m, uint64_t now, uint32_t pid, uint32_t start, uint64_t calls,
		 uint64_t ns, uint16_t flags)
{
	struct ct_call_count t = count(pid, start, "cudaMalloc", calls, ns);

	t.h.flags = flags;
	model_begin(m);
	plant(m, &t, "app");
	model_end(m, now);
}

static struct top_row *rows;

static long all(struct top_model *m, enum top_sort sort)
{
	struct top_query q = { .sort = sort };

	return model_rows(m, &q, &rows);
}

static void test_rates(void)
{
	struct top_model *m = model_open(10 * SECOND, 0);

	step(m, 12 * SECOND, 7, 1, 500, SECOND, 0);
	CHECK(m->interval_ns == 2 * SECOND);
	CHECK(all(m, TOP_BY_API) == 1);
	CHECK(rows[0].period.calls == 500 && rows[0].total.calls == 500);
	CHECK(model_rate(m, rows[0].period.calls) == 250);
	CHECK(model_percent(m, rows[0].period.api_ns) == 50);
	CHECK_TEXT("app", rows[0].label);
	/* only what is new counts */
	step(m, 13 * SECOND, 7, 1, 520, SECOND + SECOND / 4, 0);
	CHECK(all(m, TOP_BY_API) == 1);
	CHECK(rows[0].period.calls == 20 && rows[0].total.calls == 520);
	CHECK(model_percent(m, rows[0].period.api_ns) == 25);
	/* nothing new */
	step(m, 14 * SECOND, 7, 1, 520, SECOND + SECOND / 4, 0);
	if (CHECK_EQ(1, all(m, TOP_BY_API))) {
		CHECK_EQ(0, rows[0].period.calls);
		CHECK_EQ(520, rows[0].total.calls);
	}
	model_close(m);
}

static void test_missed(void)
{
	struct top_model *m = model_open(0, 0);
	struct ct_call_count t = count(7, 1, "cudaMalloc", 150, 0);

	step(m, SECOND, 7, 1, 100, 0, 0);
	/* a refresh that broke off: what it brought belongs to the next, and is not counted twice */
	model_begin(m);
	plant(m, &t, "app");
	CHECK(model_pending(m));
	step(m, 3 * SECOND, 7, 1, 200, 0, 0);
	CHECK(!model_pending(m));
	if (CHECK_EQ(1, all(m, TOP_BY_API))) {
		CHECK_EQ(100, rows[0].period.calls);
		CHECK_EQ(2 * SECOND, m->interval_ns);
	}
	/* the kernel side began anew: all of it is new */
	step(m, 4 * SECOND, 7, 1, 30, 0, 0);
	if (CHECK_EQ(1, all(m, TOP_BY_API))) {
		CHECK_EQ(30, rows[0].period.calls);
		CHECK_EQ(230, rows[0].total.calls);
	}
	model_close(m);
}

static void test_ends(void)
{
	struct top_model *m = model_open(0, 0);

	step(m, SECOND, 7, 1, 100, 0, 0);
	step(m, 2 * SECOND, 7, 1, 110, 0, CT_F_LAST);
	if (CHECK_EQ(1, all(m, TOP_BY_API))) {
		CHECK(rows[0].ended);
		CHECK_EQ(10, rows[0].period.calls);
	}
	/* its number again, another process: the counts of the first are not taken off */
	step(m, 3 * SECOND, 7, 2, 5, 0, 0);
	if (CHECK_EQ(1, all(m, TOP_BY_API))) {
		CHECK(!rows[0].ended);
		CHECK_EQ(2, rows[0].start);
		CHECK_EQ(5, rows[0].period.calls);
	}
	CHECK(m->total.calls == 115 && m->nprocs == 1);
	/* both at once: two rows, each its own */
	{
		struct ct_call_count old = count(7, 2, "cudaMalloc", 6, 0),
				     new = count(7, 3, "cudaMalloc", 9, 0);

		old.h.flags = CT_F_LAST;
		model_begin(m);
		plant(m, &old, "app");
		plant(m, &new, "new");
		model_end(m, 4 * SECOND);
		CHECK(all(m, TOP_BY_CALLS) == 2);
		CHECK_EQ(3, rows[0].start);
		CHECK_EQ(9, rows[0].period.calls);
		CHECK_EQ(2, rows[1].start);
		CHECK_EQ(1, rows[1].period.calls);
		CHECK_TEXT("new", rows[0].label);
		CHECK_TEXT("app", rows[1].label);
	}
	/* gone without a last word: shown as ended once, then forgotten */
	step(m, 5 * SECOND, 9, 1, 1, 0, 0);
	if (CHECK_EQ(2, all(m, TOP_BY_PID))) {
		CHECK_EQ(7, rows[0].id);
		CHECK(rows[0].ended);
		CHECK_EQ(9, rows[1].id);
	}
	/* it was only missed */
	{
		struct ct_call_count back = count(7, 3, "cudaMalloc", 12, 0),
				     other = count(9, 1, "cudaMalloc", 1, 0);

		model_begin(m);
		plant(m, &back, "new");
		plant(m, &other, "app");
		model_end(m, 6 * SECOND);
		if (CHECK_EQ(2, all(m, TOP_BY_PID))) {
			CHECK(!rows[0].ended);
			CHECK_EQ(3, rows[0].period.calls);
		}
	}
	step(m, 7 * SECOND, 9, 1, 1, 0, 0);
	step(m, 8 * SECOND, 9, 1, 1, 0, 0);
	CHECK(all(m, TOP_BY_PID) == 1 && rows[0].id == 9);
	/* a reading that brought nothing at all says nothing of anybody */
	model_begin(m);
	model_end(m, 9 * SECOND);
	CHECK(all(m, TOP_BY_PID) == 1 && !rows[0].ended);
	model_close(m);
}

static void test_kinds(void)
{
	struct top_model *m = model_open(0, 0);
	struct ct_call_count up = count(7, 1, "cudaMemcpy", 4, 10),
			     down = count(7, 1, "cudaMemcpyAsync", 2, 10);
	struct ct_call_count named = count(7, 1, "cuMemcpyHtoD_v2", 1, 10),
			     sync = count(7, 1, "cudaDeviceSynchronize", 3, SECOND / 2);
	struct ct_call_count launch = count(7, 1, "cudaLaunchKernel", 1000, SECOND / 4),
			     graph = count(7, 1, "cudaGraphLaunch", 10, 0);
	struct ct_call_count bad = count(7, 1, "cudaFree", 9, 0);

	up.sub = 1;
	up.sums.bytes = 4096;
	down.sub = 2 | CT_SUB_STREAM;
	down.sums.bytes = 1000;
	named.sums.bytes = 64;
	bad.sums.failed = 8;
	model_begin(m);
	plant(m, &up, "app");
	plant(m, &down, "app");
	plant(m, &named, "app");
	plant(m, &sync, "app");
	plant(m, &launch, "app");
	plant(m, &graph, "app");
	plant(m, &bad, "app");
	model_end(m, SECOND);
	CHECK(all(m, TOP_BY_API) == 1);
	CHECK_EQ(1029, rows[0].period.calls);
	CHECK_EQ(1010, rows[0].period.launches);
	CHECK_EQ(8, rows[0].period.failed);
	CHECK(rows[0].period.htod == 4160 && rows[0].period.dtoh == 1000);
	CHECK(rows[0].period.sync_ns == SECOND / 2 && rows[0].period.api_ns == SECOND * 3 / 4 + 30);
	CHECK(m->period.calls == 1029 && m->period.htod == 4160);
	/* its functions */
	{
		struct top_query q = {
			.view = TOP_FUNCTIONS, .pid = 7, .start = 1, .sort = TOP_BY_API
		};

		CHECK(model_rows(m, &q, &rows) == 7);
		CHECK_TEXT("cudaDeviceSynchronize", rows[0].label);
		CHECK_TEXT("cudaLaunchKernel", rows[1].label);
		q.filter = "MEMCPY";
		q.sort = TOP_BY_NAME;
		CHECK(model_rows(m, &q, &rows) == 3);
		CHECK_TEXT("cuMemcpyHtoD_v2", rows[0].label);
		CHECK_TEXT("cudaMemcpyAsync", rows[2].label);
		q.reverse = true;
		CHECK(model_rows(m, &q, &rows) == 3);
		CHECK_TEXT("cudaMemcpyAsync", rows[0].label);
		q.start = 2; /* not this process */
		CHECK(model_rows(m, &q, &rows) == 0);
	}
	model_close(m);
}

/* Counts told apart by kernel and by thread are of the same calls: they are never counted twice. */
static void test_parts(void)
{
	struct top_model *m = model_open(0, 0);
	struct ct_call_count before = count(7, 1, "cudaLaunchKernel", 100, 100), k1 = before,
			     k2 = before, t1 = before;
	struct kernel_name name = { .mangled = "_Z3addv", .full = "add()", .brief = "add" };
	struct event ev = { .kernel = &name };
	struct top_query q = { .view = TOP_KERNELS, .pid = 7, .start = 1, .sort = TOP_BY_CALLS };

	k1.how = k2.how = CT_BY_KERNEL;
	k1.by = 0x1000;
	k2.by = 0x2000;
	k1.sums.calls = 30;
	k2.sums.calls = 50;
	t1.how = CT_BY_THREAD;
	t1.by = 71;
	t1.sums.calls = 8;
	model_begin(m);
	plant(m, &before, "app");
	ev.rec = &k1.h;
	ev.proc = proc(7, 1, "app");
	CHECK(model_event(m, &ev) == 1);
	plant(m, &k2, "app");
	plant(m, &t1, "app");
	model_end(m, SECOND);
	CHECK(all(m, TOP_BY_API) == 1 && rows[0].period.launches == 188);
	CHECK(model_rows(m, &q, &rows) == 2);
	CHECK_TEXT("0x2000", rows[0].label);
	CHECK(rows[0].period.calls == 50);
	CHECK_TEXT("add", rows[1].label);
	/* its name is known later; two handles of one kernel are one row */
	model_begin(m);
	k2.sums.calls = 60;
	ev.rec = &k2.h;
	CHECK(model_event(m, &ev) == 1);
	model_end(m, 2 * SECOND);
	if (CHECK_EQ(1, model_rows(m, &q, &rows))) {
		CHECK_EQ(10, rows[0].period.calls);
		CHECK_EQ(90, rows[0].total.calls);
	}
	q.view = TOP_THREADS;
	if (CHECK_EQ(1, model_rows(m, &q, &rows))) {
		CHECK_EQ(71, rows[0].id);
		CHECK_EQ(8, rows[0].total.calls);
	}
	q.view = TOP_FUNCTIONS;
	CHECK(model_rows(m, &q, &rows) == 1 && rows[0].total.calls == 198);
	model_close(m);
}

static void test_device(void)
{
	struct top_model *m = model_open(0, 0);
	struct ct_kernel k = { .w.h = { .size = sizeof(k),
					.kind = CT_KERNEL,
					.pid = 7,
					.start_ns = 100,
					.end_ns = 300 } };
	struct ct_memory mem = { .w.h = { .size = sizeof(mem), .kind = CT_MEMORY, .pid = 7 },
				 .bytes = 1000,
				 .op = CT_MEMORY_ALLOC,
				 .memory = CT_MEM_DEVICE };
	struct kernel_name name = { .mangled = "k", .full = "k\x1b[31m", .brief = "k\x1b[31m" };
	struct event ev = { .rec = &k.w.h, .proc = proc(7, 1, "app"), .kernel = &name };
	struct top_query q = { .view = TOP_KERNELS, .pid = 7, .start = 1, .sort = TOP_BY_GPU };

	CHECK(!m->device);
	CHECK(model_event(m, &ev) == 1);
	/* at the same time as the first: it adds 50 ns of a busy device, and 200 of work */
	k.w.h.start_ns = 150;
	k.w.h.end_ns = 350;
	CHECK(model_event(m, &ev) == 1);
	/* a time that cannot be */
	k.w.h.flags = CT_F_NO_TIME;
	CHECK(model_event(m, &ev) == 1);
	k.w.h.flags = 0;
	k.w.h.start_ns = 900;
	CHECK(model_event(m, &ev) == 1);
	ev.rec = &mem.w.h;
	CHECK(model_event(m, &ev) == 1);
	mem.op = CT_MEMORY_FREE;
	mem.bytes = 1500;
	CHECK(model_event(m, &ev) == 1);
	mem.bytes = ~0ULL;
	CHECK(model_event(m, &ev) == 0);
	model_begin(m);
	model_end(m, 1000);
	CHECK(m->device);
	if (CHECK_EQ(1, all(m, TOP_BY_GPU))) {
		CHECK_EQ(400, rows[0].period.gpu_ns);
		CHECK_EQ(250, rows[0].period.busy_ns);
	}
	CHECK(rows[0].has_memory && rows[0].memory == -500);
	CHECK(model_rows(m, &q, &rows) == 1 && rows[0].period.gpu_ns == 400);
	CHECK_TEXT("k\\033[31m", rows[0].label);
	model_close(m);
}

/* A reading of one function's sums of memory. */
static void hold(struct top_model *m, uint64_t now, const char *name, uint64_t calls,
		 uint64_t bytes, uint64_t not_held)
{
	struct ct_call_count t = count(7, 1, name, calls, calls);

	t.sums.bytes = bytes;
	t.sums.shared = not_held;
	model_begin(m);
	plant(m, &t, "app");
	model_end(m, now);
	CHECK(all(m, TOP_BY_PID) == 1);
}

/* Memory by the counts: what was taken and is remembered, less what was given back, until a
 * device tells of it. */
static void test_held(void)
{
	struct top_model *m = model_open(0, 0);
	struct ct_memory mem = { .w.h = { .size = sizeof(mem), .kind = CT_MEMORY, .pid = 7 },
				 .bytes = 70,
				 .op = CT_MEMORY_ALLOC,
				 .memory = CT_MEM_DEVICE };
	struct ct_process exec = { .h = { .size = sizeof(exec), .kind = CT_EXEC, .pid = 7 } };
	struct event ev = { .rec = &exec.h, .proc = proc(7, 1, "app") };

	hold(m, 1, "cudaMalloc", 5, 5000, 0);
	CHECK(!rows[0].has_memory); /* not asked for: frees may be missing */
	model_close(m);

	m = model_open(0, 0);
	m->count_memory = true;
	hold(m, 1, "cudaStreamQuery", 5, 0, 0);
	CHECK(!rows[0].has_memory);
	hold(m, 2, "cudaMalloc", 5, 5000, 1000);
	CHECK(rows[0].has_memory && rows[0].memory == 4000);
	hold(m, 3, "cudaFree", 2, 3000, 0);
	CHECK(rows[0].memory == 1000);
	hold(m, 4, "cudaFree", 3, 4000, 0);
	CHECK(rows[0].has_memory && rows[0].memory == 0);
	/* pinned memory is not the device's */
	hold(m, 5, "cudaMallocHost", 1, 9000, 0);
	CHECK(rows[0].memory == 0);
	hold(m, 6, "cuMemAlloc_v2", 1, 600, 0);
	CHECK(rows[0].memory == 600);
	/* the kernel side began anew */
	hold(m, 7, "cudaFree", 1, 100, 0);
	CHECK(rows[0].memory == 500);
	/* another program holds nothing of what the one before did */
	CHECK(model_event(m, &ev) == 0);
	hold(m, 8, "cuMemAlloc_v2", 2, 800, 0);
	CHECK(rows[0].memory == 200);
	/* the device knows better */
	ev.rec = &mem.w.h;
	CHECK(model_event(m, &ev) == 1);
	hold(m, 9, "cudaMalloc", 6, 9000, 1000);
	CHECK(rows[0].memory == 70);
	CHECK(model_event(m, &(struct event){ .rec = &exec.h, .proc = ev.proc }) == 0);
	hold(m, 10, "cudaMalloc", 6, 9000, 1000);
	CHECK(rows[0].memory == 70);
	model_close(m);
}

static void test_bounds(void)
{
	struct top_model *m = model_open(0, 3);
	struct ct_call_count t[5];

	model_begin(m);
	for (uint32_t i = 0; i < 5; i++) {
		t[i] = count(100 + i, 1, "cudaMalloc", 10, 0);
		plant(m, &t[i], "app");
	}
	model_end(m, SECOND);
	CHECK(m->no_room == 20 && m->period.calls == 30);
	/* what ended makes room */
	model_begin(m);
	for (uint32_t i = 0; i < 3; i++) {
		t[i].h.flags = CT_F_LAST;
		plant(m, &t[i], "app");
	}
	model_end(m, 2 * SECOND);
	model_begin(m);
	model_end(m, 3 * SECOND);
	model_begin(m);
	plant(m, &t[3], "app");
	plant(m, &t[4], "app");
	model_end(m, 4 * SECOND);
	CHECK(!m->no_room);
	if (CHECK_EQ(2, all(m, TOP_BY_PID)))
		CHECK_EQ(10, rows[0].period.calls);
	model_close(m);
}

/* Many processes that come and go: none is forgotten while it lives, nothing is counted twice. */
static void test_many(void)
{
	struct top_model *m = model_open(0, 0);
	uint64_t calls = 0;

	for (uint32_t round = 1; round <= 20; round++) {
		model_begin(m);
		for (uint32_t i = 0; i < 1000; i++) {
			uint32_t life = i % 7 + 1, born = (round - 1) / life * life,
				 age = round - born;
			struct ct_call_count t =
				count(1000 + i, born + 1, "cudaMalloc", age * 3, age);

			t.h.flags = age == life ? CT_F_LAST : 0;
			plant(m, &t, "many");
			calls += 3;
		}
		model_end(m, round * SECOND);
		CHECK(m->total.calls == calls && m->period.calls == 3000);
		if (CHECK_EQ(1000, all(m, TOP_BY_PID))) {
			CHECK_EQ(1000, rows[0].id);
			CHECK_EQ(1999, rows[999].id);
		}
	}
	model_close(m);
}

static void metric(struct metric_table *t, uint32_t id, const char *name)
{
	__u64 buf[16] = { 0 };
	struct ct_metric *m = (struct ct_metric *)buf;

	*m = (struct ct_metric){ .h = { .size = sizeof(buf), .kind = CT_METRIC },
				 .id = id,
				 .name_len = (uint16_t)strlen(name) };
	memcpy(m->text, name, strlen(name));
	CHECK(!metric_table_record(t, &m->h));
}

static struct ct_value value(uint32_t id, double v, uint32_t flags)
{
	struct ct_value r = { .metric = id, .flags = flags };

	memcpy(&r.bits, &v, sizeof(v));
	return r;
}

static void test_gpus(void)
{
	struct top_model *m = model_open(0, 0);
	struct metric_table *metrics = metric_table_open();
	__u64 device[32] = { 0 }, sample[32] = { 0 };
	struct ct_device *d = (struct ct_device *)device;
	struct ct_counter *c = (struct ct_counter *)sample;
	struct event ev = { .rec = &d->h, .proc = proc(0, 0, "?"), .metrics = metrics };

	*d = (struct ct_device){ .h = { .size = sizeof(device), .kind = CT_DEVICE },
				 .id = 1,
				 .memory_bytes = 2048,
				 .name_len = 10 };
	memcpy(d->name, "NVIDIA\x07 H2", 10);
	CHECK(model_event(m, &ev) == 1);
	d->id = 0;
	CHECK(model_event(m, &ev) == 1);
	d->h.pid = 7; /* a process's own numbering */
	CHECK(model_event(m, &ev) == 0);
	if (CHECK_EQ(2, m->ngpus)) {
		CHECK_EQ(0, m->gpus[0].index);
		CHECK_EQ(1, m->gpus[1].index);
		CHECK(m->gpus[1].util < 0);
	}
	CHECK_TEXT("NVIDIA\\007 H2", m->gpus[1].name);
	metric(metrics, 1, "gpu");
	metric(metrics, 2, "mem_used");
	metric(metrics, 3, "power");
	metric(metrics, 4, "tensor");
	*c = (struct ct_counter){ .h = { .size = sizeof(sample), .kind = CT_COUNTER },
				  .device = 1,
				  .n = 5 };
	c->values[0] = value(1, 83.5, 0);
	c->values[1] = value(2, 1024, 0);
	c->values[2] = value(3, 0.0 / 0.0, 0);
	c->values[3] = value(4, 250, CT_VALUE_SUSPECT);
	c->values[4] = value(99, 1, 0); /* nobody told its name */
	ev.rec = &c->h;
	CHECK(model_event(m, &ev) == 1);
	CHECK(m->gpus[1].util == 83.5);
	CHECK(m->gpus[1].memory == 1024);
	CHECK(m->gpus[1].power < 0);
	CHECK(m->gpus[0].util < 0);
	for (uint32_t i = 0; i < 200; i++) {
		c->device = i;
		model_event(m, &ev);
	}
	CHECK(m->ngpus == 64);
	metric_table_close(metrics);
	model_close(m);
}

static void test_columns(void)
{
	const struct column *cols[COLUMNS_MAX];
	char buf[32];
	static const struct {
		double v;
		const char *count, *bytes;
	} numbers[] = {
		{ 0, "0", "0" },
		{ 0.25, "0.25", "0" },
		{ 1, "1", "1" },
		{ 12.34, "12.3", "12" },
		{ 1023, "1023", "1023" },
		{ 9999, "9999", "9.8K" },
		{ 12345, "12.3k", "12.1K" },
		{ 999960, "1000k", "976.5K" },
		{ 1.5e6, "1500k", "1.4M" },
		{ 1e12, "1000G", "931.3G" },
	};

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		columns_count(buf, sizeof(buf), numbers[i].v);
		CHECK(strlen(buf) <= 6);
		columns_bytes(buf, sizeof(buf), numbers[i].v);
		CHECK(strlen(buf) <= 6);
	}
	columns_count(buf, sizeof(buf), 12345);
	CHECK_TEXT("12.3k", buf);
	columns_bytes(buf, sizeof(buf), 1536);
	CHECK_TEXT("1.5K", buf);
	columns_bytes(buf, sizeof(buf), 1023);
	CHECK_TEXT("1023", buf);
	columns_percent(buf, sizeof(buf), 1234.5);
	CHECK_TEXT("1234", buf);
	columns_time(buf, sizeof(buf), 999.6);
	CHECK_TEXT("1.0us", buf);
	CHECK_EQ(13, columns_pick(TOP_PROCESSES, 200, true, cols)); /* with USER and CONTAINER */
	CHECK_EQ(11, columns_pick(TOP_PROCESSES, 120, true, cols));
	CHECK(columns_pick(TOP_PROCESSES, 40, false, cols) == 4);
	CHECK_TEXT("PID", cols[0]->title);
	CHECK_TEXT("CALLS/s", cols[1]->title);
	CHECK(columns_pick(TOP_PROCESSES, 1, false, cols) == 1);
	for (unsigned int w = 20; w < 120; w++) {
		unsigned int used = 1 + COLUMNS_NAME_MIN;
		int n = columns_pick(TOP_PROCESSES, w, false, cols);

		for (int i = 0; i < n; i++)
			used += cols[i]->width;
		CHECK(used <= w);
	}
}

static void test_keys(void)
{
	struct top_model *m = model_open(0, 0);
	struct top_screen s;

	model_begin(m);
	for (uint32_t i = 0; i < 30; i++) {
		struct ct_call_count t = count(100 + i, 1, "cudaMalloc", 100 - i, 100 - i);

		plant(m, &t, i == 3 ? "python3" : "app");
	}
	model_end(m, SECOND);
	keys_open(&s, SECOND, TOP_BY_API);
	s.page = 10;
	CHECK(!keys_rows(&s, m));
	if (CHECK_EQ(30, s.nrows))
		CHECK_EQ(100, s.rows[0].id);
	CHECK(keys_press(&s, TOP_KEY_UP) == KEYS_DRAW && s.at == 0);
	CHECK_EQ(KEYS_DRAW, keys_press(&s, TOP_KEY_END));
	CHECK_EQ(29, s.at);
	CHECK_EQ(20, s.first);
	CHECK_EQ(KEYS_DRAW, keys_press(&s, TOP_KEY_PAGE_UP));
	CHECK_EQ(19, s.at);
	CHECK_EQ(19, s.first);
	/* the chosen one stays chosen when the order changes */
	if (CHECK_EQ(KEYS_DRAW, keys_press(&s, 'r'))) {
		CHECK(!keys_rows(&s, m));
		CHECK_EQ(119, s.rows[s.at].id);
		CHECK_EQ(10, s.at);
	}
	if (CHECK_EQ(KEYS_DRAW, keys_press(&s, 'P'))) {
		CHECK(!keys_rows(&s, m));
		if (CHECK_EQ(0, s.at))
			CHECK_EQ(100, s.rows[0].id);
	}
	CHECK(keys_press(&s, '>') == KEYS_DRAW && s.sort[TOP_PROCESSES] == TOP_BY_CALLS);
	CHECK(keys_press(&s, '<') == KEYS_DRAW && s.sort[TOP_PROCESSES] == TOP_BY_PID);
	CHECK(keys_press(&s, '<') == KEYS_DRAW && s.sort[TOP_PROCESSES] == TOP_BY_PID);
	/* a filter */
	keys_press(&s, '/');
	for (const char *c = "PYTx"; *c; c++)
		CHECK(keys_press(&s, *c) == KEYS_DRAW);
	CHECK_EQ(KEYS_DRAW, keys_press(&s, TOP_KEY_BACK));
	CHECK_EQ(KEYS_DRAW, keys_press(&s, TOP_KEY_ENTER));
	CHECK(!s.editing);
	CHECK(!keys_rows(&s, m));
	if (CHECK_EQ(1, s.nrows))
		CHECK_EQ(103, s.rows[0].id);
	/* its functions, and back: the filter is not the functions' */
	CHECK_EQ((KEYS_DRAW | KEYS_VIEW), keys_press(&s, TOP_KEY_ENTER));
	CHECK_EQ(TOP_FUNCTIONS, s.view);
	CHECK_EQ(103, s.pid);
	CHECK_TEXT("103 python3", s.whose);
	CHECK_EQ(CT_BY_FUNCTION, keys_count_by(&s));
	CHECK(!keys_rows(&s, m));
	CHECK_EQ(1, s.nrows);
	CHECK_EQ((KEYS_DRAW | KEYS_VIEW), keys_press(&s, 'k'));
	CHECK_EQ(CT_BY_KERNEL, keys_count_by(&s));
	CHECK_EQ(103, s.pid);
	CHECK(keys_press(&s, 't') == (KEYS_DRAW | KEYS_VIEW) && keys_count_by(&s) == CT_BY_THREAD);
	CHECK(keys_press(&s, TOP_KEY_ESCAPE) == (KEYS_DRAW | KEYS_VIEW) && s.view == TOP_PROCESSES);
	CHECK(!keys_rows(&s, m));
	if (CHECK_EQ(30, s.nrows))
		CHECK_EQ(103, s.rows[s.at].id);
	/* an abandoned filter leaves the one before */
	keys_press(&s, '/');
	keys_press(&s, 'z');
	CHECK(keys_press(&s, TOP_KEY_ESCAPE) == KEYS_DRAW && !*s.filter);
	/* a filter of any length */
	keys_press(&s, '/');
	for (int i = 0; i < 500; i++)
		keys_press(&s, 'x');
	CHECK(strlen(s.filter) == sizeof(s.filter) - 1);
	keys_press(&s, TOP_KEY_ESCAPE);
	/* a character of UTF-8 is taken away whole */
	keys_press(&s, '/');
	keys_press(&s, 0xc3);
	keys_press(&s, 0xa9);
	keys_press(&s, TOP_KEY_BACK);
	CHECK(!*s.filter);
	keys_press(&s, TOP_KEY_ENTER);
	CHECK(keys_press(&s, ' ') == KEYS_DRAW && s.paused);
	CHECK(keys_press(&s, ' ') == (KEYS_DRAW | KEYS_READ) && !s.paused);
	CHECK(keys_press(&s, '+') == (KEYS_DRAW | KEYS_INTERVAL) && s.interval_ns == 1500000000);
	for (int i = 0; i < 50; i++)
		keys_press(&s, '-');
	CHECK(s.interval_ns == 100000000);
	for (int i = 0; i < 500; i++)
		keys_press(&s, '+');
	CHECK(s.interval_ns == 60 * SECOND);
	CHECK_EQ(KEYS_DRAW, keys_press(&s, '?'));
	CHECK(s.help);
	CHECK_EQ(KEYS_DRAW, keys_press(&s, 'r'));
	CHECK(!s.help);
	CHECK(keys_press(&s, 'q') == KEYS_QUIT);
	/* nothing to open */
	s.nrows = 0;
	CHECK(keys_press(&s, TOP_KEY_ENTER) == 0 && s.view == TOP_PROCESSES);
	free(s.rows);
	model_close(m);
}

/* What a batch of --format json looks like, to the byte. */
static void test_batch(void)
{
	struct top_model *m = model_open(0, 0);
	struct draw_head head = { .host = "h\"x",
				  .realtime_s = 86400,
				  .own_percent = 0.5,
				  .cost_percent = 1.25,
				  .probe_ns = 1000 };
	struct holes *holes;
	struct top_screen s;
	char path[] = "/tmp/test_top.XXXXXX";
	int fd = mkstemp(path);
	struct out out;
	char *got;

	unlink(path);
	step(m, SECOND, 7, 1, 500, SECOND / 2, 0);
	keys_open(&s, SECOND, TOP_BY_API);
	CHECK(!keys_rows(&s, m));
	CHECK(fd >= 0);
	CHECK(!out_open_fd(&out, fd, "test"));
	batch_json(&out, &s, m, &head);
	batch_text(&out, &s, m, &head);
	head.no_queries = true;
	head.holes = holes = holes_of_unprobed(3, 1, 2500000, false);
	batch_json(&out, &s, m, &head);
	batch_text(&out, &s, m, &head);
	CHECK(!out_close(&out));
	got = calloc(1, 65536);
	CHECK(pread(fd, got, 65535, 0) > 0);
	unit_golden("top_batch.txt", got);
	free(got);
	close(fd);
	free(s.rows);
	model_close(m);
	holes_close(holes);
}

int main(void)
{
	RUN(test_rates);
	RUN(test_missed);
	RUN(test_ends);
	RUN(test_kinds);
	RUN(test_parts);
	RUN(test_device);
	RUN(test_held);
	RUN(test_bounds);
	RUN(test_many);
	RUN(test_gpus);
	RUN(test_columns);
	RUN(test_keys);
	RUN(test_batch);
	free(rows);
	return unit_end();
}
