/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make_play.h - a short story of two processes and two devices for outputs that have device
 * work: calls, what they caused, and everything that speaks of devices. The sums that queries
 * give are known: tests/export says them. Events are given to a sink as the stages before it
 * would: with their process, number, cause, kernel and stack.
 */
#ifndef CT_MAKE_PLAY_H
#define CT_MAKE_PLAY_H

#include <fcntl.h>
#include <unistd.h>

#include "../../user/event/device.h"
#include "../../user/event/gpus.h"
#include "../../user/flow/sink.h"
#include "make_call.h"
#include "make_device.h"
#include "make_muted.h"
#include "unit.h"

/* Messages that are expected do not belong into the log of a test. */
static inline void play_quiet(bool on)
{
	static int saved = -1;
	int null;

	fflush(stderr);
	if (on) {
		saved = dup(STDERR_FILENO);
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(null, STDERR_FILENO);
		close(null);
	} else {
		dup2(saved, STDERR_FILENO);
		close(saved);
	}
}

#define PLAY_START 1000000000ULL /* CLOCK_MONOTONIC of the session's begin */

struct play {
	struct sink sink;
	struct process_table *procs;
	struct gpu_table *gpus;
	struct cause causes[16]; /* by number, of pid 100 */
	long given, rows;
};

static const struct kernel_name play_axpy = { "_Z4axpyPfPKfi", "axpy(float*, float const*, int)",
					      "axpy(float*, float const*, int)", CT_NAME_DEVICE,
					      false };
static const struct kernel_name play_gemm = { "_Z4gemmILi4EEvPfi", "void gemm<4>(float*, int)",
					      "gemm<4>(float*, int)", CT_NAME_DEVICE, false };
static const struct stack_frame play_frames[2] = {
	{ CT_FRAME_NATIVE, 12, 0x1000, 4, "launch", NULL, "train.cu", "/usr/bin/train" },
	{ CT_FRAME_NATIVE, 40, 0x2000, 8, "main", NULL, "train.cu", "/usr/bin/train" },
};
static const struct stack_frame *const play_frame_list[2] = { &play_frames[0], &play_frames[1] };
static const struct stack play_stack = { .id = 1, .nframes = 2, .frames = play_frame_list };

static inline void play_begin(struct play *p, const struct sink_ops *ops,
			      const struct sink_opts *opts)
{
	memset(p, 0, sizeof(*p));
	p->sink.ops = ops;
	p->procs = process_table_open();
	p->gpus = gpu_table_open();
	CHECK(!ops->open(&p->sink, opts));
}

static inline int play_end(struct play *p, const struct sink_end *end)
{
	int err = p->sink.ops->close(&p->sink, end);

	process_table_close(p->procs);
	gpu_table_close(p->gpus);
	return err;
}

static inline void play_give(struct play *p, struct event ev)
{
	int n;

	CHECK(!record_check(ev.rec, ev.rec->size));
	process_table_record(p->procs, ev.rec);
	ev.proc = process_table_find(p->procs, ev.rec->pid);
	gpu_table_record(p->gpus, ev.proc, ev.rec);
	ev.gpus = p->gpus;
	if (kind_is(ev.rec->kind, KIND_WORK))
		ev.gpu = gpu_table_worked(p->gpus, ev.proc, ev.device);
	else if (ev.rec->kind == CT_DEVICE)
		ev.gpu = gpu_table_find(p->gpus, ev.proc, ((const struct ct_device *)ev.rec)->id);
	n = p->sink.ops->event(&p->sink, &ev);
	CHECK(n >= 0);
	p->given++;
	p->rows += n;
}

static inline void play_process(struct play *p, int kind, uint32_t pid, const char *comm)
{
	struct ct_process r = { .h = { .size = sizeof(r),
				       .kind = (uint16_t)kind,
				       .pid = pid,
				       .tid = pid,
				       .start_ns = PLAY_START,
				       .end_ns = PLAY_START },
				.ns_pid = pid };

	snprintf(r.comm, sizeof(r.comm), "%s", comm);
	play_give(p, (struct event){ .rec = &r.h });
}

/* What the process is: its program, its container. */
static inline void play_info(struct play *p, uint32_t pid, const char *exe, const char *container)
{
	union {
		struct ct_process_info i;
		char room[256];
	} r = { .i = { .h = { .kind = CT_PROCESS_INFO,
			      .pid = pid,
			      .tid = pid,
			      .start_ns = PLAY_START,
			      .end_ns = PLAY_START },
		       .rank = CT_UNKNOWN,
		       .world_size = CT_UNKNOWN,
		       .local_rank = CT_UNKNOWN,
		       .exe_len = (uint16_t)strlen(exe),
		       .container_len = (uint16_t)strlen(container) } };

	memcpy(r.i.text, exe, strlen(exe));
	memcpy(r.i.text + strlen(exe), container, strlen(container));
	r.i.h.size = (uint16_t)((sizeof(r.i) + strlen(exe) + strlen(container) + 7) & ~(size_t)7);
	play_give(p, (struct event){ .rec = &r.i.h });
}

/* Times from the start on. */
static inline void play_call(struct play *p, struct ct_call *c, uint32_t pid, uint32_t tid,
			     uint32_t number, uint64_t start, uint64_t end,
			     const struct kernel_name *kernel, const struct stack *stack)
{
	if (!c) {
		CHECK(!"the table has the function");
		return;
	}
	c->h.pid = pid;
	c->h.tid = tid;
	c->h.start_ns = PLAY_START + start;
	c->h.end_ns = PLAY_START + end;
	if (pid == 100)
		p->causes[number & 15] = (struct cause){ c->h.start_ns, c->h.end_ns, tid, c->func };
	play_give(p, (struct event){ .rec = &c->h,
				     .number = number,
				     .kernel = kernel,
				     .stack = stack,
				     .device = CT_UNKNOWN,
				     .context = CT_UNKNOWN,
				     .stream = CT_UNKNOWN });
}

static inline void play_work(struct play *p, struct made_device *m, uint32_t number,
			     const struct kernel_name *kernel)
{
	const struct cause *cause = m->h.pid == 100 && number ? &p->causes[number & 15] : NULL;

	if (cause) {
		m->h.tid = cause->tid;
		m->work.call_ns = cause->start_ns;
		m->work.func = cause->func;
	}
	play_give(p, (struct event){ .rec = &m->h,
				     .number = number,
				     .kernel = kernel,
				     .cause = cause,
				     .device = m->work.device,
				     .context = m->work.context,
				     .stream = m->work.stream });
}

#define PLAY_AT(number, start, end) \
	MAKE_AT(100, 0, 7, 13, number, PLAY_START + (start), PLAY_START + (end))

static inline void play_devices(struct play *p)
{
	struct made_device m;

	make_device(&m, 100, 0, PLAY_START, "H200");
	play_give(p, (struct event){ .rec = &m.h });
	make_device(&m, 100, 1, PLAY_START, "H100");
	play_give(p, (struct event){ .rec = &m.h });
	make_device(&m, 200, 0, PLAY_START, "H100");
	memset(m.device.uuid, 2, 16);
	play_give(p, (struct event){ .rec = &m.h });
	make_context(&m, 100, 7, 0, 12, 0x5500, PLAY_START);
	play_give(p, (struct event){ .rec = &m.h });
	make_stream(&m, 100, 13, 7, 0x5600, 2, PLAY_START);
	play_give(p, (struct event){ .rec = &m.h });
}

#define PLAY_LAUNCH(m, flags)                                                                \
	make_call(m, "cudaLaunchKernel", CT_CALL, flags, 0, U(0x5000), 8 | U(1) << 32, U(1), \
		  256 | U(1) << 32, U(1), U(0x6000), U(1024), U(0x5600))

static inline void play_calls(struct play *p)
{
	struct made_call m;

	play_call(p, PLAY_LAUNCH(&m, 0), 100, 101, 1, 1000, 1500, &play_axpy, &play_stack);
	play_call(p, PLAY_LAUNCH(&m, CT_F_PER_THREAD), 100, 101, 2, 2000, 2600, &play_axpy,
		  &play_stack);
	play_call(p,
		  make_call(&m, "cudaMemcpy", CT_CALL, 0, 0, U(0xd000), U(0xa000), U(1000000),
			    U(1)),
		  100, 101, 3, 3000, 5000, NULL, NULL);
	play_call(p,
		  make_call(&m, "cudaMemcpyAsync", CT_CALL, 0, 0, U(0xd000), U(0xa000), U(2000000),
			    U(1), U(0x5600)),
		  100, 101, 4, 5000, 5200, NULL, NULL);
	play_call(p, make_call(&m, "cudaMemset", CT_CALL, 0, 0, U(0xd000), U(0), U(4096)), 100, 100,
		  5, 6000, 6100, NULL, NULL);
	play_call(p,
		  make_call(&m, "cuLaunchKernel", CT_CALL, 0, 0, U(0x7000), U(4), U(1), U(1), U(64),
			    U(1), U(1), U(0), U(0), U(0), U(0)),
		  100, 100, 6, 7000, 7400, &play_gemm, NULL);
	play_call(p, make_call(&m, "cudaDeviceSynchronize", CT_CALL, CT_F_UNFINISHED, 0), 100, 100,
		  7, 8000, 12000, NULL, NULL);
	play_call(p, make_call(&m, "cudaMalloc", CT_CALL, 0, 2, U(0x1000), U(1) << 40), 100, 100, 8,
		  13000, 13300, NULL, NULL);
	play_call(p, PLAY_LAUNCH(&m, 0), 200, 200, 1, 1000, 1100, &play_axpy, NULL);
}

static inline void play_kernels(struct play *p)
{
	struct made_device m;

	make_kernel(&m, PLAY_AT(1, 4000, 14000), 1, 8, 256);
	play_work(p, &m, 1, &play_axpy);
	make_kernel(&m, PLAY_AT(2, 15000, 35000), 1, 8, 256);
	play_work(p, &m, 2, &play_axpy);
	make_kernel(&m, PLAY_AT(6, 36000, 66000), 2, 4, 64);
	m.kernel.dynamic_shared = 2048;
	m.work.graph = 5;
	m.work.graph_node = 1ULL << 40;
	play_work(p, &m, 6, &play_gemm);
	make_kernel(&m, MAKE_AT(200, 0, 1, 7, 1, PLAY_START + 2000, PLAY_START + 3000), 1, 8, 256);
	play_work(p, &m, 1, &play_axpy);
	make_kernel(&m, PLAY_AT(0, 0, 0), 1, 8, 256);
	m.h.flags = CT_F_NO_TIME;
	play_work(p, &m, 0, &play_axpy);
}

static inline void play_copies(struct play *p)
{
	struct made_device m;

	make_copy(&m, PLAY_AT(3, 3100, 4100), CT_COPY_HTOD, CT_MEM_PINNED, CT_MEM_DEVICE, 1000000);
	play_work(p, &m, 3, NULL);
	make_copy(&m, PLAY_AT(4, 5300, 7300), CT_COPY_HTOD, CT_MEM_PAGEABLE, CT_MEM_DEVICE,
		  2000000);
	m.copy.flags = CT_W_ASYNC;
	play_work(p, &m, 4, NULL);
	make_copy(&m, PLAY_AT(0, 70000, 70100), CT_COPY_DTOH, CT_MEM_UNKNOWN, CT_MEM_UNKNOWN, 500);
	play_work(p, &m, 0, NULL);
	make_copy(&m, PLAY_AT(0, 71000, 71500), CT_COPY_PTOP, CT_MEM_DEVICE, CT_MEM_DEVICE, 4000);
	m.copy.dst_device = 1;
	play_work(p, &m, 0, NULL);
	make_set(&m, PLAY_AT(5, 6050, 6150), CT_MEM_DEVICE, 0, 4096);
	play_work(p, &m, 5, NULL);
}

static inline void play_others(struct play *p)
{
	struct ct_lost lost = { .h = { .size = sizeof(lost),
				       .kind = CT_LOST,
				       .start_ns = PLAY_START,
				       .end_ns = PLAY_START + 900 },
				.cause = CT_LOSS_RING,
				.cpu = ~0u,
				.count = 7 };
	struct made_device m;

	play_give(p, (struct event){ .rec = &lost.h });
	make_sync(&m, PLAY_AT(7, 8100, 11900), CT_SYNC_CONTEXT, CT_UNKNOWN);
	play_work(p, &m, 7, NULL);
	make_graph(&m, PLAY_AT(0, 36000, 66000), 5);
	play_work(p, &m, 0, NULL);
	make_memory_op(&m, PLAY_AT(0, 500, 500), CT_MEMORY_ALLOC, CT_MEM_DEVICE, 0xd000, 1 << 20);
	play_work(p, &m, 0, NULL);
	make_memory_op(&m, PLAY_AT(0, 80000, 80000), CT_MEMORY_FREE, CT_MEM_DEVICE, 0xd000,
		       1 << 20);
	play_work(p, &m, 0, NULL);
	make_managed(&m, PLAY_AT(0, 72000, 72300), 1, 4096, 65536);
	play_work(p, &m, 0, NULL);
	make_overhead(&m, PLAY_AT(0, 100, 700), 101, 4 << 16);
	play_give(p, (struct event){ .rec = &m.h });
	make_marker(&m, 100, 101, PLAY_START + 900, PLAY_START + 5300, CT_MARKER_PUSH_POP, "step",
		    "training");
	play_give(p, (struct event){ .rec = &m.h });
	/* calls without records, and what was estimated too high is taken back */
	play_give(p,
		  (struct event){ .rec = make_muted(100, PLAY_START + 1000, PLAY_START + 61000,
						    "cudaGetDevice", 5000,
						    (struct ct_estimated){ 240000, 4000, 3000 }) });
	play_give(p, (struct event){ .rec = make_muted(100, PLAY_START + 61000, PLAY_START + 81000,
						       "cudaGetDevice", 7,
						       (struct ct_estimated){ -900, 100, 50 }) });
}

static inline void play_all(struct play *p)
{
	play_process(p, CT_PROCESS, 100, "python3");
	play_process(p, CT_EXEC, 100, "trainer");
	play_info(p, 100, "/opt/bin/train", "c0ffee");
	play_process(p, CT_PROCESS, 200, "other");
	play_devices(p);
	play_calls(p);
	play_kernels(p);
	play_copies(p);
	play_others(p);
}

/* A record that passes the check with anything in it, if the dice give one. */
static inline void play_rubbish(struct play *p, unsigned int *seed)
{
	union {
		struct ct_hdr h;
		uint8_t bytes[1024];
	} r;
	struct event ev = { .rec = &r.h, .number = (uint32_t)rand_r(seed) % 3, .device = 1 };

	for (size_t i = 0; i < sizeof(r); i++)
		r.bytes[i] = rand_r(seed) % 3 ? 0 : (uint8_t)rand_r(seed);
	if (rand_r(seed) % 4)
		memset(r.bytes + sizeof(r.h), rand_r(seed) % 2 ? 0xff : 0,
		       (size_t)rand_r(seed) % 200);
	r.h.size = (uint16_t)(rand_r(seed) % 128 * 8);
	r.h.kind = (uint16_t)(rand_r(seed) % CT_KIND_END);
	r.h.flags = (uint16_t)(rand_r(seed) % 4 ? 0 : rand_r(seed));
	r.h.pid = (uint32_t)rand_r(seed) % 50;
	ev.kernel = rand_r(seed) % 2 ? &play_gemm : NULL;
	ev.stack = rand_r(seed) % 4 ? NULL : &play_stack;
	ev.cause = rand_r(seed) % 2 ? &p->causes[1] : NULL;
	if (!record_check(&r, r.h.size))
		play_give(p, ev);
}

#endif
