/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make.c - writes the stored traces of tests/traces: make DIRECTORY. What is in each stands in
 * README.md there. Every byte of a record is fixed, so that another run gives the same records
 * (and, with the same zstd, the same files).
 */
#include <errno.h>
#include <zlib.h>

#include "../../user/trace/writer.h"
#include "../unit/make_call.h"
#include "../unit/make_muted.h"
#include "../unit/patch_trace.h"

#define T0 1000000000000ULL /* CLOCK_MONOTONIC of the begin */
#define REALTIME 1700000000000000000ULL
#define US 1000ULL
#define MS 1000000ULL

static struct writer *out;
static int failed;
static uint64_t now; /* after T0 */
static uint32_t pid, tid, correlation;

static void put(const void *rec)
{
	const struct ct_hdr *h = rec;

	if (record_check(rec, h->size)) {
		fprintf(stderr, "make: bad record of kind %u at %llu\n", h->kind,
			(unsigned long long)now);
		failed = 1;
	}
	failed |= writer_record(out, rec) != 0;
}

#define HEAD(rec, k, size_, from, to)                                \
	((struct ct_hdr){ .size = (uint16_t)(((size_) + 7) & ~7ULL), \
			  .kind = k,                                 \
			  .pid = pid,                                \
			  .tid = tid,                                \
			  .start_ns = T0 + (from),                   \
			  .end_ns = T0 + (to) })

static void head_text(char *text, size_t size, const char *host, uint64_t realtime,
		      const char *traced)
{
	snprintf(text, size,
		 "format 1\nversion 0.1.0\narch x86_64\nhost %s\nboot_id "
		 "00000000-0000-4000-8000-%012x\n"
		 "kernel 6.18.0 x86_64\ndriver 580.65.06\n"
		 "gpu 0000:19:00.0 NVIDIA H200 GPU-000102030405060708090a0b0c0d0e0f\n"
		 "gpu 0000:3b:00.0 NVIDIA H200 GPU-101112131415161718191a1b1c1d1e1f\n"
		 "start_ns %llu\nrealtime_offset_ns %llu\nclock_error_ns 250000\ntraced %s\narg "
		 "record\narg --\narg %s\npart 1\n",
		 host, host[4], T0, (unsigned long long)(realtime - T0), traced, traced);
}

static void clock_at(uint64_t realtime)
{
	struct ct_clock c = { .h = HEAD(c, CT_CLOCK, sizeof(c), now, now), .error_ns = 120 };

	c.h.pid = c.h.tid = 0;
	c.realtime_ns = realtime + now;
	c.boottime_ns = T0 + now + 5000 * MS;
	put(&c);
}

/* ---- definitions ---- */

static void process(uint32_t id, uint32_t shown, const char *comm, uint32_t rank)
{
	static const char cmdline[] = "python3\0train.py\0--steps=2";
	static const char exe[] = "/usr/bin/python3.11", container[] = "4f6a0c1e9b7d",
			  pod[] = "7c0f2a9e-train-0";
	struct ct_process p = { .start_boottime_ns = 5000 * MS + id,
				.cgroup_id = 4242,
				.uid = 1000,
				.gid = 1000,
				.ns_pid = shown,
				.ppid = 1 };
	union {
		struct ct_process_info i;
		char room[512];
	} info = { 0 };
	char *at = info.i.text;

	pid = tid = id;
	p.h = HEAD(p, CT_PROCESS, sizeof(p), now, now);
	snprintf(p.comm, sizeof(p.comm), "%s", comm);
	put(&p);
	info.i.h = HEAD(i, CT_PROCESS_INFO,
			sizeof(info.i) + sizeof(exe) + sizeof(cmdline) + sizeof(container) +
				sizeof(pod),
			now, now);
	info.i.rank = info.i.local_rank = rank;
	info.i.world_size = 2;
	info.i.exe_len = sizeof(exe) - 1;
	info.i.cmdline_len = sizeof(cmdline) - 1;
	info.i.container_len = sizeof(container) - 1;
	info.i.pod_len = sizeof(pod) - 1;
	at = (char *)memcpy(at, exe, sizeof(exe) - 1) + sizeof(exe) - 1;
	at = (char *)memcpy(at, cmdline, sizeof(cmdline) - 1) + sizeof(cmdline) - 1;
	at = (char *)memcpy(at, container, sizeof(container) - 1) + sizeof(container) - 1;
	memcpy(at, pod, sizeof(pod) - 1);
	put(&info.i);
}

/* A device as the process at hand numbers it; `gpu` is which of the two it is. */
static void device(uint32_t id, int gpu)
{
	static const char name[] = "NVIDIA H200";
	union {
		struct ct_device d;
		char room[sizeof(struct ct_device) + 16];
	} d = { .d = { .id = id,
		       .memory_bytes = 150754820096,
		       .bandwidth = 4917000000000,
		       .major = 9,
		       .minor = 0,
		       .multiprocessors = 132,
		       .clock_khz = 1980000,
		       .l2_bytes = 62914560,
		       .max_threads = 2048,
		       .max_warps = 64,
		       .max_blocks = 32,
		       .max_registers = 65536,
		       .max_shared = 233472,
		       .warp_size = 32,
		       .name_len = sizeof(name) - 1 } };

	d.d.h = HEAD(d, CT_DEVICE, sizeof(d.d) + sizeof(name) - 1, now, now);
	for (int i = 0; i < 16; i++)
		d.d.uuid[i] = (uint8_t)(i + 16 * gpu);
	memcpy(d.d.name, name, sizeof(name) - 1);
	put(&d.d);
}

static void context(uint32_t id, uint32_t dev, uint32_t null_stream)
{
	struct ct_context c = { .h = HEAD(c, CT_CONTEXT, sizeof(c), now, now),
				.id = id,
				.device = dev,
				.null_stream = null_stream,
				.parent = CT_UNKNOWN,
				.handle = 0x55aa00100000 + id,
				.api = 1 };

	put(&c);
}

static void stream(uint32_t id, uint32_t ctx, uint64_t handle, int priority, uint32_t flags)
{
	struct ct_stream s = { .h = HEAD(s, CT_STREAM, sizeof(s), now, now),
			       .id = id,
			       .context = ctx,
			       .handle = handle,
			       .priority = priority,
			       .flags = flags };

	put(&s);
}

static void name(uint64_t handle, uint8_t source, const char *text)
{
	union {
		struct ct_name n;
		char room[1024];
	} n = { .n = { .handle = handle, .len = (uint32_t)strlen(text), .source = source } };

	n.n.h = HEAD(n, CT_NAME, sizeof(n.n) + strlen(text), now, now);
	memcpy(n.n.name, text, strlen(text));
	put(&n.n);
}

static void frame(uint32_t id, uint8_t kind, const char *function, const char *file, uint32_t line,
		  const char *object)
{
	union {
		struct ct_frame f;
		char room[512];
	} f = { .f = { .id = id,
		       .line = line,
		       .address = 0x1000 + id * 16,
		       .offset = 12,
		       .kind = kind,
		       .function_len = (uint16_t)strlen(function),
		       .file_len = (uint16_t)strlen(file),
		       .object_len = (uint16_t)strlen(object) } };

	f.f.h = HEAD(f, CT_FRAME, sizeof(f.f) + strlen(function) + strlen(file) + strlen(object),
		     now, now);
	f.f.h.pid = f.f.h.tid = 0;
	strcpy(stpcpy(stpcpy(f.f.strings, function), file), object);
	put(&f.f);
}

static void stack(uint32_t id, uint32_t n, uint32_t a, uint32_t b, uint32_t c)
{
	union {
		struct ct_stack s;
		char room[sizeof(struct ct_stack) + 16];
	} s = { .s = { .id = id, .nframes = n } };

	s.s.h = HEAD(s, CT_STACK, sizeof(s.s) + n * 4, now, now);
	s.s.frames[0] = a;
	s.s.frames[1] = b;
	s.s.frames[2] = c;
	put(&s.s);
}

static void metric(uint32_t id, uint32_t source, const char *what, const char *unit)
{
	union {
		struct ct_metric m;
		char room[128];
	} m = { .m = { .id = id,
		       .name_len = (uint16_t)strlen(what),
		       .unit_len = (uint16_t)strlen(unit),
		       .source = source } };

	m.m.h = HEAD(m, CT_METRIC, sizeof(m.m) + strlen(what) + strlen(unit), now, now);
	m.m.h.pid = m.m.h.tid = 0;
	strcpy(stpcpy(m.m.text, what), unit);
	put(&m.m);
}

/* ---- what happens ---- */

static uint64_t call_ns; /* of the last call */
static uint16_t call_func;
static uint32_t call_stack;

/* The record of a call made by make_call(), from now on for `took`. Time goes on. */
static void call(struct ct_call *c, uint64_t took, uint32_t stack_id)
{
	uint64_t id = stack_id;

	c->h.pid = pid;
	c->h.tid = tid;
	c->h.start_ns = T0 + now;
	c->h.end_ns = T0 + now + took;
	if (stack_id) {
		memcpy((char *)c + c->h.size, &id, sizeof(id));
		c->h.size = (uint16_t)(c->h.size + sizeof(id));
		c->h.flags |= CT_F_STACK;
	}
	call_ns = c->h.start_ns;
	call_func = c->func;
	call_stack = stack_id;
	correlation++;
	put(c);
	now += took + 500;
}
#define CALL(took, stack_id, ...)                                    \
	do {                                                         \
		struct made_call made;                               \
		call(make_call(&made, __VA_ARGS__), took, stack_id); \
	} while (0)

/* The head of work that the last call asked for. */
static struct ct_work work(uint16_t kind, size_t size, uint32_t dev, uint32_t ctx, uint32_t strm,
			   uint64_t from, uint64_t to)
{
	return (struct ct_work){
		.h = HEAD(w, kind, size, from, to),
		.device = dev,
		.context = ctx,
		.stream = strm,
		.correlation = correlation,
		.call_ns = call_ns,
		.func = call_func,
		.stack = call_stack,
		.channel = 0xffff,
	};
}

static void kernel(uint32_t dev, uint32_t ctx, uint32_t strm, uint64_t handle, uint64_t from,
		   uint64_t took, uint32_t graph, uint64_t node)
{
	static uint64_t grid_id;
	struct ct_kernel k = { .w = work(CT_KERNEL, sizeof(k), dev, ctx, strm, from, from + took),
			       .name = handle,
			       .grid = { 132, 4, 1 },
			       .block = { 256, 1, 1 },
			       .registers = 64,
			       .static_shared = 1024,
			       .dynamic_shared = 49152,
			       .executed_shared = 65536,
			       .grid_id = ++grid_id };

	k.w.graph = graph;
	k.w.graph_node = node;
	put(&k);
}

static void copy(uint32_t dev, uint32_t ctx, uint32_t strm, uint8_t kind, uint8_t src, uint8_t dst,
		 uint64_t bytes, uint64_t from, uint64_t took)
{
	struct ct_copy c = { .w = work(CT_COPY, sizeof(c), dev, ctx, strm, from, from + took),
			     .bytes = bytes,
			     .src_device = dev,
			     .src_context = ctx,
			     .dst_device = dev,
			     .dst_context = ctx,
			     .count = 1,
			     .kind = kind,
			     .src = src,
			     .dst = dst,
			     .flags = CT_W_ASYNC };

	put(&c);
}

static void memory(uint32_t dev, uint32_t ctx, uint8_t op, uint64_t address, uint64_t bytes)
{
	struct ct_memory m = { .w = work(CT_MEMORY, sizeof(m), dev, ctx, CT_UNKNOWN, now, now),
			       .address = address,
			       .bytes = bytes,
			       .op = op,
			       .memory = CT_MEM_DEVICE };

	put(&m);
}

static void marker(uint32_t id, uint8_t what, const char *text, uint64_t from, uint64_t to)
{
	union {
		struct ct_marker m;
		char room[128];
	} m = { .m = { .id = id,
		       .color = 0xff76b900,
		       .text_len = (uint16_t)strlen(text),
		       .domain_len = 5,
		       .what = what } };

	m.m.h = HEAD(m, CT_MARKER, sizeof(m.m) + strlen(text) + 5, from, to);
	strcpy(stpcpy(m.m.text, text), "model");
	put(&m.m);
}

static void counter(uint32_t gpu, double active, double memory_used, bool suspect)
{
	union {
		struct ct_counter c;
		char room[sizeof(struct ct_counter) + 2 * sizeof(struct ct_value)];
	} c = { .c = { .device = gpu, .n = 2 } };

	c.c.h = HEAD(c, CT_COUNTER, sizeof(c), now - 100 * US, now);
	c.c.h.pid = c.c.h.tid = 0;
	c.c.values[0].metric = 1;
	c.c.values[0].flags = suspect ? CT_VALUE_SUSPECT : 0;
	memcpy(&c.c.values[0].bits, &active, 8);
	c.c.values[1].metric = 2;
	memcpy(&c.c.values[1].bits, &memory_used, 8);
	put(&c.c);
}

static void lost(uint32_t cause, uint64_t count)
{
	struct ct_lost l = { .h = HEAD(l, CT_LOST, sizeof(l), now - 10 * US, now),
			     .cause = cause,
			     .cpu = ~0u,
			     .count = count };

	l.h.pid = l.h.tid = 0;
	put(&l);
}

#define GEMM (CT_HANDLE_DEVICE | 1)
#define RELU (CT_HANDLE_DEVICE | 2)
#define REDUCE (CT_HANDLE_DEVICE | 3)
#define STUB 0x55aa00220000ULL

static void kernels_of_process(void)
{
	static const char gemm[] = "_ZN7cutlass7Kernel2I17sm90_gemm_f32_128EEvNT_6ParamsE";

	name(STUB, CT_NAME_REGISTERED, gemm);
	name(STUB + 0x40, CT_NAME_REGISTERED, "_Z4reluPfi");
	name(GEMM, CT_NAME_DEVICE, gemm);
	name(RELU, CT_NAME_DEVICE, "_Z4reluPfi");
	name(REDUCE, CT_NAME_DEVICE, "reduce_kernel");
}

/* One step of training: copy in, a gemm and a relu on two streams that overlap, a graph, copy
 * out, wait. */
static void step(int n, uint32_t dev, uint32_t ctx)
{
	uint64_t begun = now, host = 0x7f0000001000, devptr = 0x7f81dc800000;
	struct ct_sync s;
	struct ct_set set;
	struct ct_work g;
	uint64_t t;

	CALL(9 * US, 1, "cudaMemcpyAsync", CT_CALL, 0, 0, U(devptr), U(host), U(1048576), U(1),
	     U(0x55aa00300000));
	copy(dev, ctx, 13, CT_COPY_HTOD, CT_MEM_PINNED, CT_MEM_DEVICE, 1048576, now + 4 * US,
	     40 * US);
	CALL(4 * US, 0, "cudaMemsetAsync", CT_CALL, 0, 0, U(devptr + 1048576), U(0), U(4096),
	     U(0x55aa00300000));
	set = (struct ct_set){ .w = work(CT_SET, sizeof(set), dev, ctx, 13, now + 42 * US,
					 now + 44 * US),
			       .bytes = 4096,
			       .memory = CT_MEM_DEVICE,
			       .flags = CT_W_ASYNC };
	put(&set);
	CALL(6 * US, 2, "cudaLaunchKernel", CT_CALL, 0, 0, U(STUB), 132 | U(4) << 32, U(1),
	     256 | U(1) << 32, U(1), U(0x7ffc00101010), U(49152), U(0x55aa00300000));
	t = now + 45 * US;
	kernel(dev, ctx, 13, GEMM, t, 180 * US + (uint64_t)n, 0, 0);
	CALL(5 * US, 2, "cudaLaunchKernel", CT_CALL, 0, 0, U(STUB + 0x40), 132 | U(4) << 32, U(1),
	     256 | U(1) << 32, U(1), U(0x7ffc00101010), U(0), U(0x55aa00300100));
	kernel(dev, ctx, 14, RELU, t + 20 * US, 30 * US, 0, 0);
	/* a second one on the same stream that begins before the first has ended: as
	 * programmatic launches do */
	CALL(5 * US, 2, "cudaLaunchKernel", CT_CALL, 0, 0, U(STUB + 0x40), 132 | U(4) << 32, U(1),
	     256 | U(1) << 32, U(1), U(0x7ffc00101010), U(0), U(0x55aa00300100));
	kernel(dev, ctx, 14, RELU, t + 45 * US, 30 * US, 0, 0);
	/* a graph of two nodes */
	CALL(12 * US, 0, "cudaGraphLaunch", CT_CALL, 0, 0, U(0x55aa00400000), U(0x55aa00300000));
	g = work(CT_GRAPH, sizeof(g), dev, ctx, 13, t + 190 * US, t + 260 * US);
	g.graph = 5;
	kernel(dev, ctx, 13, REDUCE, t + 190 * US, 30 * US, 5, 0x500000001);
	kernel(dev, ctx, 13, REDUCE, t + 225 * US, 35 * US, 5, 0x500000002);
	put(&g);
	CALL(8 * US, 0, "cudaMemcpyAsync", CT_CALL, 0, 0, U(host), U(devptr), U(4096), U(2),
	     U(0x55aa00300000));
	copy(dev, ctx, 13, CT_COPY_DTOH, CT_MEM_DEVICE, CT_MEM_PAGEABLE, 4096, t + 270 * US,
	     3 * US);
	CALL(t + 275 * US - now, 0, "cudaStreamSynchronize", CT_CALL, 0, 0, U(0x55aa00300000));
	s = (struct ct_sync){ .w = work(CT_SYNC, sizeof(s), dev, ctx, 13, call_ns - T0 + US,
					now - 2 * US),
			      .type = CT_SYNC_STREAM,
			      .event = CT_UNKNOWN };
	put(&s);
	marker((uint32_t)(10 * n + 2), CT_MARKER_PUSH_POP, "forward", begun + 10 * US,
	       t + 100 * US);
	marker((uint32_t)(10 * n + 1), CT_MARKER_PUSH_POP, "step", begun, now);
	now += 50 * US;
}

static void begin_process(uint32_t id, uint32_t shown, uint32_t rank, int gpu)
{
	process(id, shown, "python3", rank);
	device(0, gpu);
	context(1, 0, 7);
	stream(7, 1, 0, 0, 3);
	stream(13, 1, 0x55aa00300000, 0, 2);
	stream(14, 1, 0x55aa00300100, -1, 2);
	kernels_of_process();
	now += 10 * US;
}

static void stacks(void)
{
	frame(1, CT_FRAME_NATIVE, "_ZN5model4copyEv", "model.cc", 41, "/opt/libmodel.so");
	frame(2, CT_FRAME_NATIVE, "_ZN5model6launchEi", "model.cc", 52, "/opt/libmodel.so");
	frame(3, CT_FRAME_PYTHON, "train_step", "/srv/train.py", 17, "");
	frame(4, CT_FRAME_UNKNOWN, "", "", 0, "");
	stack(1, 3, 1, 3, 4);
	stack(2, 2, 2, 3, 0);
}

static void two_processes(void)
{
	static const uint64_t devptr = 0x7f81dc800000;
	struct ct_overhead o;
	struct ct_managed m;
	struct ct_exit e = { .status = 0 };
	union {
		struct ct_event e;
		char room[sizeof(struct ct_event) + 16];
	} x = { .e = { .device = 1, .type = CT_EVENT_XID, .code = 31, .text_len = 9 } };

	make_mem(0x1000, &devptr, sizeof(devptr));
	clock_at(REALTIME);
	pid = tid = 0;
	device(0, 0);
	device(1, 1);
	metric(1, CT_METRIC_GPM, "sm_active", "%");
	metric(2, CT_METRIC_NVML, "memory_used", "bytes");
	stacks();
	begin_process(4001, 101, 0, 0);
	begin_process(4002, 102, 1, 1);
	pid = tid = 4001;
	CALL(250 * US, 1, "cudaMalloc", CT_CALL, 0, 0, U(0x1000), U(2097152));
	memory(0, 1, CT_MEMORY_ALLOC, devptr, 2097152);
	o = (struct ct_overhead){ .h = HEAD(o, CT_OVERHEAD, sizeof(o), now, now + 80 * US),
				  .type = 1 << 16,
				  .device = CT_UNKNOWN,
				  .context = CT_UNKNOWN,
				  .stream = CT_UNKNOWN };
	put(&o);
	now += 100 * US;
	for (int n = 0; n < 2; n++) {
		uint64_t begun = now;

		pid = tid = 4001;
		step(n, 0, 1);
		counter(0, 63.5 + n, 3221225472, false);
		/* the other rank at the same time, 7 us later, from a thread of its own */
		now = begun + 7 * US;
		pid = 4002;
		tid = 4012;
		step(n, 0, 1);
		counter(1, n ? 104.0 : 61.25, 3221225472, n == 1);
	}
	lost(CT_LOSS_RING, 3);
	lost(CT_LOSS_DEVICE, 2);
	pid = tid = 4001;
	CALL(3 * US, 0, "cudaMalloc", CT_CALL, 0, 2, U(0x9000), U(1) << 44);
	m = (struct ct_managed){ .w = work(CT_MANAGED, sizeof(m), 0, 1, CT_UNKNOWN, now,
					   now + 12 * US),
				 .address = 0x7f0000400000,
				 .value = 65536,
				 .kind = 1,
				 .src_device = CT_UNKNOWN,
				 .dst_device = 0 };
	m.w.correlation = 0;
	m.w.call_ns = 0;
	m.w.func = CT_NO_FUNC;
	put(&m);
	CALL(20 * US, 0, "cudaFree", CT_CALL, 0, 0, U(devptr));
	memory(0, 1, CT_MEMORY_FREE, devptr, 2097152);
	pid = tid = 0;
	x.e.h = HEAD(x, CT_EVENT, sizeof(x.e) + 9, now, now);
	memcpy(x.e.text, "MMU fault", 9);
	put(&x.e);
	pid = 4002;
	tid = 4012;
	CALL(2000 * US, 0, "cudaDeviceSynchronize", CT_CALL, CT_F_UNFINISHED, 0);
	for (pid = 4001; pid <= 4002; pid++) {
		tid = pid;
		e.h = HEAD(e, CT_EXIT, sizeof(e), now, now);
		e.status = pid == 4002 ? 9 : 0;
		put(&e);
		now += 5 * US;
	}
	clock_at(REALTIME);
}

static void calls_only(void)
{
	static const uint64_t devptr = 0x7f81dc800000;

	make_mem(0x1000, &devptr, sizeof(devptr));
	clock_at(REALTIME);
	process(4001, 4001, "app", CT_UNKNOWN);
	for (int i = 0; i < 3; i++) {
		CALL(100 * US, 0, "cudaMalloc", CT_CALL, 0, 0, U(0x1000), U(1024));
		CALL(9 * US, 0, "cudaMemcpy", CT_CALL, 0, 0, U(devptr), U(0x7f0000001000), U(1024),
		     U(1));
		CALL(5 * US, 0, "cuMemsetD8_v2", CT_CALL, 0, 0, U(devptr), U(0), U(1024));
		CALL(20 * US, 0, "cudaFree", CT_CALL, 0, 0, U(devptr));
	}
}

/* Beside calls, records of kinds that this version does not know, one of a process and one of none. */
static void new_kinds(void)
{
	struct {
		struct ct_hdr h;
		uint64_t more[3];
	} r = { .more = { 1, 2, 3 } };

	calls_only();
	r.h = HEAD(r, CT_KIND_END + 100, sizeof(r), now, now);
	put(&r);
	r.h = HEAD(r, CT_KIND_END + 101, sizeof(r), now, now);
	r.h.pid = r.h.tid = 0;
	put(&r);
}

/* Queries that were counted in windows: three launches have records, 245 000 cudaGetDevice and
 * 90 cudaPeekAtLastError have none; of a second process no more than a lower bound is known. */
static void counted(void)
{
	static const int32_t zero;
	uint64_t begun;

	make_mem(0x1000, &zero, sizeof(zero));
	clock_at(REALTIME);
	process(4001, 4001, "app", CT_UNKNOWN);
	begun = now;
	for (int i = 0; i < 3; i++) {
		CALL(1 * US, 0, "cudaGetDevice", CT_CALL, 0, 0, U(0x1000));
		CALL(5 * US, 0, "cudaDeviceSynchronize", CT_CALL, 0, 0);
	}
	begun += T0;
	put(make_muted(4001, begun, T0 + now, "cudaGetDevice", 5000,
		       (struct ct_estimated){ 240900, 4100, 3050 }));
	put(make_muted(4001, begun, T0 + now, "cudaPeekAtLastError", 90,
		       (struct ct_estimated){ 0 }));
	CALL(5 * US, 0, "cudaDeviceSynchronize", CT_CALL, 0, 0);
	put(make_muted(4001, T0 + now - 5 * US, T0 + now, "cudaGetDevice", 0,
		       (struct ct_estimated){ -900, -100, 50 }));
	process(4002, 4002, "loop", CT_UNKNOWN);
	CALL(5 * US, 0, "cudaDeviceSynchronize", CT_CALL, 0, 0);
	put(make_muted(4002, T0 + now - 5 * US, T0 + now, "cuCtxGetDevice", 700,
		       (struct ct_estimated){ 300, 20, 900000 }));
	clock_at(REALTIME);
}

static void file(const char *dir, const char *what, const char *host, uint64_t realtime,
		 void (*fill)(void), const char *end)
{
	char path[4096], text[2048];

	snprintf(path, sizeof(path), "%s/%s", dir, what);
	remove(path);
	now = correlation = pid = tid = 0;
	head_text(text, sizeof(text), host, realtime,
		  fill == calls_only ? "app" : "python3 train.py");
	if (writer_open(&out, path, text)) {
		failed = 1;
		return;
	}
	fill();
	if (end)
		failed |= writer_end(out, end) != 0;
	else
		failed |= writer_flush(out) != 0;
	failed |= writer_close(out) != 0;
}

/* Another host, whose clock of the day is 2 ms ahead at the begin: the same ranks as the file's
 * own. */
static void other_host(void)
{
	clock_at(REALTIME + 2 * MS);
	stacks();
	begin_process(4001, 101, 2, 0);
	for (int n = 0; n < 2; n++)
		step(n, 0, 1);
	clock_at(REALTIME + 2 * MS);
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc != 2)
		return 2;
	file(argv[1], "two.ctrace", "node-a", REALTIME, two_processes,
	     "reason finished\nuptime_ns 4000000\ncalls 36\nfolded 40\nfiltered 0\nsent "
	     "36\nunfinished 1\nreceived 140\n"
	     "lost.ring_full 3\nlost.device_dropped 2\nmuted cudaGetDevice\n");
	file(argv[1], "other.ctrace", "node-b", REALTIME + 2 * MS, other_host,
	     "reason interrupted\nuptime_ns 1000000\n");
	file(argv[1], "calls.ctrace", "node-a", REALTIME, calls_only,
	     "reason finished\nuptime_ns 1000000\ncalls 12\n");
	file(argv[1], "muted.ctrace", "node-a", REALTIME, counted,
	     "reason finished\nuptime_ns 1000000\ncalls 8\nmuted cudaGetDevice cudaPeekAtLastError "
	     "cuCtxGetDevice\n");
	file(argv[1], "killed.ctrace", "node-a", REALTIME, calls_only, NULL);
	/* functions that this version does not know, or knows with other arguments */
	file(argv[1], "newer.ctrace", "node-a", REALTIME, calls_only,
	     "reason finished\nuptime_ns 1000000\ncalls 12\n");
	snprintf(path, sizeof(path), "%s/newer.ctrace", argv[1]);
	failed |= patch_trace(path, "cuMemsetD8_v2", "cuMemsetD8_v9", 0) != 1;
	failed |= patch_trace(path, "cudaFree", "cudaFree", 1) != 1;
	file(argv[1], "kinds.ctrace", "node-a", REALTIME, new_kinds,
	     "reason finished\nuptime_ns 1000000\ncalls 12\n");
	if (failed)
		fprintf(stderr, "make: failed\n");
	return failed;
}
