/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_device.c - what devices did, through all stages to the texts of the formats
 * (tests/golden): two processes, two devices, each kind of record, graphs, a copy between
 * devices, losses; what the filter shows of it; and rubbish.
 */
#include <unistd.h>

#include "../../user/event/device.h"
#include "../../user/stages/stages.h"
#include "make_call.h"
#include "make_device.h"
#include "random.h"
#include "unit.h"

#define MS 1000000ULL
#define START 1000000000ULL /* of the trace */

struct run {
	char path[64];
	struct out out;
	struct sink_opts opts;
	struct sink sink;
	struct filter filter;
	struct stages stages;
};

static void run_open(struct run *r, const struct sink_ops *ops)
{
	struct resolve_opts resolve = { 0 };

	snprintf(r->path, sizeof(r->path), "/tmp/ct_test_device.%d", (int)getpid());
	CHECK(!out_open(&r->out, r->path, false));
	r->opts.out = &r->out;
	r->opts.start_ns = START;
	r->opts.gpu = true;
	r->opts.version = "test";
	r->sink = (struct sink){ .ops = ops };
	r->filter.nested = true;
	CHECK(!ops->open(&r->sink, &r->opts));
	CHECK(!stages_open(&r->stages, &resolve, false, &r->filter, &r->sink, 0));
	join_places(r->stages.join);
	r->stages.nsinks = 1;
}

static char *run_close(struct run *r)
{
	struct sink_end end = { .reason = "finished", .uptime_ns = 5000000000 };
	struct join_counts counts;
	char *text;

	CHECK(!stages_flush(&r->stages, UINT64_MAX));
	join_counts(r->stages.join, &counts);
	end.matched = counts.matched;
	end.unmatched = counts.unmatched;
	end.inferred = counts.inferred;
	end.losses.lost[CT_LOSS_DEVICE] = 3;
	r->sink.ops->close(&r->sink, &end);
	CHECK(!out_close(&r->out));
	stages_close(&r->stages);
	text = unit_read(r->path);
	unlink(r->path);
	return text;
}

static void give(struct run *r, const void *rec)
{
	const struct ct_hdr *h = rec;

	CHECK(!record_check(h, h->size));
	CHECK(!stages_record(&r->stages, h));
}

/* ---- the script ---- */

static void process(struct run *r, int kind, uint32_t pid, const char *comm)
{
	struct ct_process p = { .h = { .size = sizeof(p),
				       .kind = (uint16_t)kind,
				       .pid = pid,
				       .tid = pid,
				       .start_ns = START,
				       .end_ns = START },
				.start_boottime_ns = 42,
				.ns_pid = pid,
				.ppid = 1 };

	memcpy(p.comm, comm, strlen(comm));
	give(r, &p);
}

static void lost(struct run *r, uint32_t cause, uint64_t count)
{
	struct ct_lost l = { .h = { .size = sizeof(l),
				    .kind = CT_LOST,
				    .start_ns = START,
				    .end_ns = START + 9 * MS },
			     .cause = cause,
			     .cpu = ~0u,
			     .count = count };

	give(r, &l);
}

/* A call of a process and, with an id, what CUPTI tells of it. */
static void call(struct run *r, uint32_t pid, uint32_t tid, uint32_t correlation, uint64_t at,
		 const char *name, ...)
{
	struct made_device d;
	struct made_call m;
	struct ct_call *c;
	va_list ap;

	va_start(ap, name);
	c = make_callv(&m, api_next(name, -1), CT_CALL, 0, 0, ap);
	va_end(ap);
	c->h.pid = pid;
	c->h.tid = tid;
	c->h.start_ns = START + at;
	c->h.end_ns = START + at + 5000;
	give(r, c);
	if (correlation)
		give(r, make_cause(&d, pid, tid, correlation, c->func, c->h.start_ns + 1000,
				   c->h.end_ns - 1000));
}

#define AT(pid, device, context, stream, id, from, ns) \
	MAKE_AT(pid, device, context, stream, id, START + (from), START + (from) + (ns))

/* A stack for the call of process 100 that is made next: its id rides at the end. */
static void call_with_stack(struct run *r)
{
	static uint64_t frame_room[16], stack_room[16];
	struct ct_frame *frame = (struct ct_frame *)frame_room;
	struct ct_stack *stack = (struct ct_stack *)stack_room;
	struct made_device d;
	struct made_call m;
	struct ct_call *c;
	uint64_t id = 1;

	*frame = (struct ct_frame){ .h = { .size = sizeof(*frame) + 24, .kind = CT_FRAME },
				    .id = 1,
				    .line = 42,
				    .address = 0x1234,
				    .function_len = 4,
				    .file_len = 5,
				    .object_len = 8 };
	memcpy(frame->strings, "stepapp.c/bin/app", 17);
	give(r, frame);
	*stack = (struct ct_stack){
		.h = { .size = sizeof(*stack) + 8, .kind = CT_STACK, .pid = 100 },
		.id = 1,
		.nframes = 1
	};
	stack->frames[0] = 1;
	give(r, stack);
	c = make_call(&m, "cudaLaunchKernel", CT_CALL, CT_F_STACK, 0, U(0x501000), 196 | U(1) << 32,
		      U(1), 256 | U(1) << 32, U(1), U(0), U(1024), U(0x5500));
	c->h.pid = 100;
	c->h.tid = 101;
	c->h.start_ns = START + 200000;
	c->h.end_ns = START + 207000;
	memcpy((char *)c + c->h.size, &id, 8);
	c->h.size += 8;
	give(r, c);
	give(r, make_cause(&d, 100, 101, 12, c->func, c->h.start_ns + 1000, c->h.end_ns - 1000));
}

static void play_definitions(struct run *r)
{
	struct made_device d;

	process(r, CT_PROCESS, 100, "train");
	process(r, CT_PROCESS, 200, "infer\x1b[2J");
	give(r, make_device(&d, 100, 0, START, "NVIDIA H200"));
	give(r, make_device(&d, 100, 1, START, "NVIDIA H200 \"\x1b[31m"));
	give(r, make_context(&d, 100, 1, 0, 7, 0xc1, START));
	give(r, make_context(&d, 100, 2, 1, 14, 0xc2, START));
	give(r, make_stream(&d, 100, 13, 1, 0x5500, 2, START));
	give(r, make_device(&d, 200, 0, START, "NVIDIA H200"));
	give(r, make_context(&d, 200, 1, 0, 7, 0xc1, START));
	give(r, make_device_name(&d, 100, 1, "_Z6vecAddPKfS0_Pfi"));
	give(r, make_device_name(&d, 200, 1, "k\x1b[31m\n\"\xff"));
	/* the machine's own device and clocks belong to no process */
	give(r, make_device(&d, 0, 0, START, "NVIDIA H200"));
	give(r, make_clock(&d, START, 1700000000000000000, 5000000000));
}

static void play_copies(struct run *r)
{
	struct made_device d;

	call(r, 100, 101, 0, 1000, "cudaSetDevice", U(0));
	call(r, 100, 101, 11, 100000, "cudaMemcpyAsync", U(0x7f0000), U(0x1000), U(1048576), U(1),
	     U(0x5500));
	make_copy(&d, AT(100, 0, 1, 13, 11, 110000, 42300), CT_COPY_HTOD, CT_MEM_PINNED,
		  CT_MEM_DEVICE, 1048576);
	d.copy.flags = CT_W_ASYNC;
	give(r, &d);
	call_with_stack(r);
	make_kernel(&d, AT(100, 0, 1, 13, 12, 210000, 3166), CT_HANDLE_DEVICE | 1, 196, 256);
	d.kernel.dynamic_shared = 1024;
	d.kernel.static_shared = 48;
	d.kernel.executed_shared = 102400;
	d.kernel.cluster[0] = 2;
	d.kernel.cluster[1] = d.kernel.cluster[2] = 1;
	d.kernel.launch = CT_LAUNCH_COOPERATIVE;
	d.kernel.local_per_thread = 16;
	d.kernel.queued_ns = START + 205000;
	d.work.channel = 3;
	give(r, &d);
	call(r, 100, 101, 13, 300000, "cudaMemsetAsync", U(0x7f0000), U(255), U(4096), U(0));
	give(r, make_set(&d, AT(100, 0, 1, 7, 13, 310000, 1000), CT_MEM_DEVICE, 255, 4096));
	/* from device to device */
	call(r, 100, 102, 0, 400000, "cuCtxSetCurrent", U(0xc2));
	call(r, 100, 102, 14, 410000, "cudaMemcpyPeerAsync", U(0x7f0000), U(1), U(0x8f0000), U(0),
	     U(65536), U(0));
	make_copy(&d, AT(100, 0, 1, 7, 14, 420000, 2000), CT_COPY_PTOP, CT_MEM_DEVICE,
		  CT_MEM_DEVICE, 65536);
	d.copy.dst_device = 1;
	d.copy.dst_context = 2;
	d.copy.count = 2;
	give(r, &d);
}

static void play_graph(struct run *r)
{
	struct made_device d;

	call(r, 100, 101, 15, 500000, "cudaGraphLaunch", U(0xe0), U(0x5500));
	make_kernel(&d, AT(100, 0, 1, 13, 15, 510000, 1500), CT_HANDLE_DEVICE | 1, 1, 32);
	d.work.graph = 5;
	d.work.graph_node = 21474836480;
	give(r, &d);
	make_copy(&d, AT(100, 0, 1, 13, 15, 520000, 1500), CT_COPY_DTOD, CT_MEM_DEVICE,
		  CT_MEM_DEVICE, 3000);
	d.work.graph = 5;
	d.work.graph_node = 21474836481;
	give(r, &d);
	/* as a whole, its id not to be trusted */
	make_graph(&d, AT(100, 0, 1, 13, 4711, 530000, 9000), 5);
	d.work.h.flags = CT_F_INFERRED;
	give(r, &d);
}

static void play_others(struct run *r)
{
	struct made_device d;

	give(r, make_sync(&d, AT(100, 0, 1, 13, 0, 600000, 5000), CT_SYNC_STREAM, CT_UNKNOWN));
	give(r, make_sync(&d, AT(100, CT_UNKNOWN, 1, CT_UNKNOWN, 0, 610000, 0), CT_SYNC_EVENT, 9));
	give(r, make_overhead(&d, AT(100, CT_UNKNOWN, CT_UNKNOWN, CT_UNKNOWN, 0, 620000, 40000),
			      101, 6 << 16));
	give(r, make_overhead(&d, AT(100, CT_UNKNOWN, CT_UNKNOWN, CT_UNKNOWN, 0, 620000, 40000),
			      101, 77));
	give(r, make_memory_op(&d, AT(100, 0, 1, CT_UNKNOWN, 0, 700000, 0), CT_MEMORY_ALLOC,
			       CT_MEM_DEVICE, 0x7f0000, 1048576));
	make_memory_op(&d, AT(100, 0, 1, 13, 0, 700000, 0), CT_MEMORY_FREE, CT_MEM_DEVICE, 0x7f0000,
		       1048576);
	d.memory.pool = 0x9000;
	d.memory.pool_bytes = 33554432;
	d.memory.pool_used = 1048576;
	give(r, &d);
	make_managed(&d, AT(100, 0, CT_UNKNOWN, CT_UNKNOWN, 0, 710000, 800), 1, 0x7e0000, 65536);
	d.managed.dst_device = 0;
	give(r, &d);
	give(r, make_managed(&d, AT(100, 0, CT_UNKNOWN, CT_UNKNOWN, 0, 720000, 0), 3, 0x7e0000, 2));
	give(r, make_marker(&d, 100, 101, START + 50000, START + 650000, CT_MARKER_PUSH_POP,
			    "step \"1\"\x1b[2J", "torch"));
	give(r, make_marker(&d, 100, 101, START + 50000, START + 50000, CT_MARKER_MARK, "", ""));
	give(r, make_metric(&d, 1, "sm_active", "%", CT_METRIC_PM));
	give(r, make_metric(&d, 2, "dram\x1b\"read", "GB/s", CT_METRIC_GPM));
	give(r, make_metric(&d, 3, "pcie_tx", "B/s", CT_METRIC_NVML));
	make_counter(&d, 0, START + 100000, START + 200000);
	make_value(&d, 1, 87.5, 0);
	make_value(&d, 2, 3120.25, 0);
	make_value(&d, 3, 140, CT_VALUE_SUSPECT);
	make_value(&d, 99, 1, 0); /* nobody said what this is */
	make_value(&d, 1, 12, 0); /* again */
	give(r, &d);
	give(r, make_event(&d, 1, START + 800000, CT_EVENT_XID, 79, "GPU has fallen off the bus"));
	give(r, make_event(&d, CT_UNKNOWN, START + 800000, CT_EVENT_TRUNCATED, 999, ""));
}

static void play_second(struct run *r)
{
	struct made_device d;

	call(r, 200, 200, 11, 900000, "cuLaunchKernel", U(0x77), U(1), U(1), U(1), U(32), U(1),
	     U(1), U(0), U(0), U(0), U(0));
	give(r,
	     make_kernel(&d, AT(200, 0, 1, 7, 11, 910000, 12345678), CT_HANDLE_DEVICE | 1, 1, 32));
	/* a kernel without a name, one without a time, one without a cause */
	call(r, 200, 200, 12, 1000000, "cuLaunchKernel", U(0x77), U(1), U(1), U(1), U(32), U(1),
	     U(1), U(0), U(0), U(0), U(0));
	make_kernel(&d, AT(200, 0, 1, 7, 12, 1001000, 0), CT_HANDLE_DEVICE | 2, 1, 32);
	d.work.h.flags = CT_F_NO_TIME;
	give(r, &d);
	give(r, make_kernel(&d, AT(200, 0, CT_UNKNOWN, CT_UNKNOWN, 0, 1100000, 1000),
			    CT_HANDLE_DEVICE | 1, 1, 32));
	lost(r, CT_LOSS_DEVICE, 3);
	lost(r, CT_LOSS_TAIL, 1);
	process(r, CT_EXEC, 200, "next");
	call(r, 200, 200, 0, 1200000, "cudaDeviceSynchronize");
}

static char *play(struct run *r, const struct sink_ops *ops)
{
	make_nmemory = 0;
	run_open(r, ops);
	play_definitions(r);
	play_copies(r);
	play_graph(r);
	CHECK(!stages_flush(&r->stages, START + 900 * MS) &&
	      !stages_flush(&r->stages, START + 920 * MS));
	play_others(r);
	play_second(r);
	return run_close(r);
}

static void golden(const char *name, const struct sink_ops *ops, const struct sink_opts *opts)
{
	struct run r = { .opts = *opts };
	char *text = play(&r, ops);

	unit_golden(name, text);
	free(text);
}

static void test_formats(void)
{
	struct sink_opts plain = { 0 }, tid = { .look.tid = true, .look.time = SINK_TIME_US },
			 mangled = { .look.mangled = true };

	golden("device_table.txt", &sink_table, &plain);
	golden("device_table_tid_us.txt", &sink_table, &tid);
	golden("device.jsonl", &sink_json, &plain);
	golden("device_count.txt", &sink_count, &plain);
	golden("device_cupti.txt", &sink_cupti, &plain);
	golden("device_cupti_mangled.txt", &sink_cupti, &mangled);
}

/* ---- what is shown ---- */

static int lines_with(const char *text, const char *what)
{
	int n = 0;

	for (const char *p = text; (p = strstr(p, what)); p++)
		n++;
	return n;
}

static char *filtered(struct filter f)
{
	struct run r = { .filter = f };

	return play(&r, &sink_table);
}

static void test_filter(void)
{
	static uint64_t none[CT_MAX_FUNCS / 64];
	char *text;

	/* -e has nothing to say about it, and causes are found all the same */
	text = filtered((struct filter){ .shown = none });
	CHECK_EQ(5, lines_with(text, "[kernel]"));
	CHECK_EQ(3, lines_with(text, "[memcpy"));
	CHECK(!lines_with(text, "cuda"));
	CHECK(lines_with(text, "delay=") == 8 && !lines_with(text, "correlation="));
	free(text);
	text = filtered((struct filter){ .calls.failed_only = true });
	CHECK(!lines_with(text, "["));
	free(text);
	text = filtered((struct filter){ .calls.min_duration_ns = 5000 });
	CHECK_EQ(1, lines_with(text, "[kernel]"));
	CHECK_EQ(1, lines_with(text, "[memcpy HtoD]"));
	CHECK(!lines_with(text, "[memset]"));
	CHECK(lines_with(text, "[graph]") == 1 && lines_with(text, "[overhead]") == 2);
	free(text);
	text = filtered((struct filter){ .calls.min_size_bytes = 65536 });
	CHECK(!lines_with(text, "[kernel]"));
	CHECK_EQ(2, lines_with(text, "[memcpy"));
	CHECK(!lines_with(text, "[memset]"));
	CHECK(lines_with(text, "[memory]") == 2);
	free(text);
	/* the thread that caused it */
	text = filtered((struct filter){ .tid = 102 });
	CHECK_EQ(1, lines_with(text, "[memcpy PtoP]"));
	CHECK_EQ(1, lines_with(text, "[memcpy"));
	CHECK(!lines_with(text, "[kernel]"));
	free(text);
	text = filtered((struct filter){ .comm_glob = "tr*" });
	CHECK_EQ(2, lines_with(text, "[kernel]"));
	CHECK_EQ(1, lines_with(text, "[counter]"));
	CHECK_EQ(2, lines_with(text, "[event]"));
	free(text);
}

/* ---- rubbish ---- */

static uint64_t seed = 0x9e3779b97f4a7c15ULL;

static uint64_t rnd(void)
{
	return random_next(&seed);
}

/* Records of device kinds with anything in them that record_check() lets pass. */
static void test_rubbish(void)
{
	static const struct sink_ops *const all[] = { &sink_table, &sink_json, &sink_count,
						      &sink_cupti, &sink_csv };
	int good = 0;

	for (size_t s = 0; s < ARRAY_LEN(all); s++) {
		struct run r = { 0 };
		char *text;

		run_open(&r, all[s]);
		for (int i = 0; i < 40000; i++) {
			static struct made_device whole;
			struct made_device *m;
			size_t size = 32 + rnd() % 60 * 8;

			for (size_t at = 0; at < size; at += 8) {
				uint64_t v = rnd() % 4 ? rnd() % 16 : rnd();

				memcpy(whole.room + at, &v, 8);
			}
			whole.h.size = (uint16_t)size;
			whole.h.kind = (uint16_t)(CT_KERNEL + rnd() % 15);
			if (rnd() % 10 == 0)
				whole.h.kind = rnd() % 2 ? CT_METRIC : CT_CAUSE;
			whole.h.pid = (uint32_t)(rnd() % 3);
			if (rnd() % 8)
				whole.h.end_ns = whole.h.start_ns + rnd() % 1000000;
			if (rnd() % 2)
				whole.work.func = CT_NO_FUNC;
			if (whole.h.kind == CT_COUNTER)
				whole.counter.n = (uint32_t)(rnd() % ((size - 40) / 16 + 1));
			/* in its exact size, so that a sanitizer sees the first byte too many */
			m = malloc(size);
			memcpy(m, whole.room, size);
			if (!record_check(m, size)) {
				good++;
				CHECK(!stages_record(&r.stages, &m->h));
			}
			free(m);
			if (rnd() % 512 == 0)
				CHECK(!stages_flush(&r.stages, rnd() % 2 ? rnd() : (uint64_t)i));
		}
		text = run_close(&r);
		for (const char *p = text; *p; p++) {
			if ((unsigned char)*p >= ' ' || *p == '\n')
				continue;
			CHECK(!"a control character in the output");
			break;
		}
		free(text);
	}
	CHECK(good > 100000);
}

static void test_words(void)
{
	CHECK_TEXT("HtoD", device_copy_kind(1));
	CHECK_TEXT("PtoP", device_copy_kind(10));
	CHECK_TEXT("unknown", device_copy_kind(11));
	CHECK_TEXT("managed_static", device_memory_kind(7));
	CHECK_TEXT("command_buffer_full", device_overhead_kind(6 << 16));
	CHECK_TEXT("unknown", device_overhead_kind(9 << 16));
	CHECK_TEXT("context", device_sync_type(4));
	CHECK_TEXT("bytes_DtoD", device_managed_kind(8));
	CHECK_TEXT("truncated", device_event_type(4));
}

int main(void)
{
	RUN(test_formats);
	RUN(test_filter);
	RUN(test_words);
	RUN(test_rubbish);
	return unit_end();
}
