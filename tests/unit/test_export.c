/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_export.c - the outputs that are files for other programs: csv, speedscope, the timeline
 * page. With the arguments `write FORMAT KIND FILE` it writes what tests/export and
 * tests/timeline look at; `write html many FILE` a million records.
 */
#include <fcntl.h>
#include <unistd.h>

#include "../../user/event/device.h"
#include "../../user/export/columns/column_batch.h"
#include "../../user/flow/sinks.h"
#include "../../user/util/strings.h"
#include "make_call.h"
#include "make_device.h"
#include "make_muted.h"
#include "random.h"
#include "unit.h"

static const struct kernel_name vec_add = {
	.mangled = "_Z6vecAddPKfS0_Pfi", .full = "vecAdd(float const*, float const*, float*, int)", .brief = "vecAdd", .source = 1,
}, gemm = {
	.mangled = "gemm", .full = "gemm<float, 128>(\"a\", 'b')", .brief = "gemm", .source = 1,
}, hostile = {
	.mangled = "k", .full = "</script><img src=x onerror=alert(1)>\n\x1b[31m\xe2\x80\xae\"'&amp;\xff,=1+1",
	.brief = "</script><img src=x onerror=alert(1)>", .cut = true,
};
static const struct stack_frame frames[] = {
	{ .kind = CT_FRAME_NATIVE,
	  .function = "main",
	  .address = 1,
	  .object = "/bin/app",
	  .file = "/src/app.c",
	  .line = 7 },
	{ .kind = CT_FRAME_NATIVE,
	  .function = "step(int)",
	  .mangled = "_Z4stepi",
	  .offset = 4,
	  .file = "/src/app.c",
	  .line = 1 },
	{ .kind = CT_FRAME_NATIVE,
	  .function = "step(int)",
	  .mangled = "_Z4stepi",
	  .offset = 8,
	  .file = "/src/app.c",
	  .line = 2 },
	{ .kind = CT_FRAME_PYTHON,
	  .function = "</script><b>",
	  .file = "/src/a \"b\".py",
	  .line = 90 },
	{ .kind = CT_FRAME_UNKNOWN, .address = 0x7f1200000000 },
};
static const struct stack_frame *const in_step[] = { &frames[1], &frames[0] },
				       *const in_step2[] = { &frames[2], &frames[0] },
				       *const odd[] = { &frames[4], &frames[3], &frames[0] };
static const struct stack stacks[] = {
	{ .id = 1, .nframes = 2, .frames = in_step },
	{ .id = 2, .nframes = 2, .frames = in_step2 },
	{ .id = 3, .nframes = 3, .frames = odd, .flags = CT_STACK_CUT },
};

/* ---- records given to a sink ---- */

static struct process_info on_node_b = { .rank = 3,
					 .world_size = 8,
					 .local_rank = 3,
					 .exe = "",
					 .container = "",
					 .pod = "",
					 .host = "node-b",
					 .boot = "",
					 .cmdline = "" };
static const char worker[CT_COMM_LEN] = "worker";
static struct process procs[] = {
	{ .pid = 12345, .shown_pid = 12345, .comm = "train" },
	{ .pid = 20000, .shown_pid = 200, .comm = "o,th\"er", .info = &on_node_b },
	{ .pid = 0, .comm = "?" },
};
static int rows; /* of the last give() */
static struct metric_table *metrics;

static void give(struct sink *s, struct event *ev)
{
	CHECK(!record_check(ev->rec, ev->rec->size));
	rows = s->ops->event(s, ev);
	CHECK(rows >= 0);
}

struct when {
	int proc;
	uint32_t tid, number;
	uint64_t start_ns, end_ns;
	int stack; /* of stacks[], from 1 on */
};
#define AT(...) ((struct when){ __VA_ARGS__ })

static struct cause last_cause;

static void call(struct sink *s, struct when w, const struct kernel_name *kernel, struct ct_call *c)
{
	struct event ev = { .rec = &c->h,
			    .proc = &procs[w.proc],
			    .thread = w.proc == 1 ? worker : NULL,
			    .kernel = kernel,
			    .number = w.number,
			    .stack = w.stack ? &stacks[w.stack - 1] : NULL,
			    .device = 0,
			    .context = 1,
			    .stream = CT_UNKNOWN };

	c->h.pid = procs[w.proc].pid;
	c->h.tid = w.tid;
	c->h.start_ns = w.start_ns;
	c->h.end_ns = w.end_ns;
	last_cause = (struct cause){
		.start_ns = w.start_ns, .end_ns = w.end_ns, .tid = w.tid, .func = c->func
	};
	give(s, &ev);
}

static void work(struct sink *s, struct when w, const struct kernel_name *kernel, struct ct_work *k)
{
	struct event ev = { .rec = &k->h,
			    .proc = &procs[w.proc],
			    .kernel = kernel,
			    .number = w.number,
			    .stack = w.stack ? &stacks[w.stack - 1] : NULL,
			    .cause = w.number ? &last_cause : NULL,
			    .device = k->device,
			    .context = k->context,
			    .stream = k->stream };

	give(s, &ev);
}

static void other(struct sink *s, int proc, struct ct_hdr *h)
{
	struct event ev = { .rec = h, .proc = &procs[proc], .metrics = metrics };

	CHECK(!metric_table_record(metrics, h));
	give(s, &ev);
}

#define MS 1000000ull
#define US 1000ull

/* A launch with a kernel, a copy, failures, markers, counters, memory, a gap, overlaps, names
 * meant to break out. */
static void play_stacks(struct sink *s, bool with)
{
	struct made_device d;
	struct made_call m;
	uint32_t pid = procs[0].pid, other_pid = procs[1].pid;

	make_mem(0x7ffc0000, &(uint64_t){ 0x7f00 }, 8);
	metrics = metric_table_open();
	other(s, 2, &make_metric(&d, 3, "sm_active", "%", CT_METRIC_GPM)->h);
	other(s, 0, &make_device(&d, pid, 0, MS, "NVIDIA <H200>")->h);
	call(s, AT(0, 12345, 1, 10 * MS, 10 * MS + 5 * US, with ? 1 : 0), NULL,
	     make_call(&m, "cudaMalloc", CT_CALL, 0, 0, U(0x7ffc0000), U(4096)));
	work(s, AT(0, 0, 1), NULL,
	     (struct ct_work *)make_memory_op(
		     &d, MAKE_AT(pid, 0, 1, CT_UNKNOWN, 1, 10 * MS + US, 10 * MS + US),
		     CT_MEMORY_ALLOC, CT_MEM_DEVICE, 0x7f00, 4096));
	call(s, AT(0, 12345, 2, 11 * MS, 11 * MS + 8 * US, with ? 2 : 0), &vec_add,
	     make_call(&m, "cudaLaunchKernel", CT_CALL, 0, 0, U(0x10), U(4) | U(1) << 32, U(1),
		       U(256) | U(1) << 32, U(1), U(0), U(0), U(0)));
	work(s, AT(0, 0, 2, .stack = with ? 2 : 0), &vec_add,
	     &make_kernel(&d, MAKE_AT(pid, 0, 1, 7, 2, 11 * MS + 20 * US, 11 * MS + 29 * US), 1, 4,
			  256)
		      ->w);
	/* while it runs another one begins on the same stream */
	work(s, AT(0, 0, 2, .stack = with ? 2 : 0), &gemm,
	     &make_kernel(&d, MAKE_AT(pid, 0, 1, 7, 2, 11 * MS + 25 * US, 11 * MS + 40 * US), 2, 1,
			  32)
		      ->w);
	call(s, AT(0, 12346, 3, 12 * MS, 12 * MS + 30 * US, with ? 3 : 0), NULL,
	     make_call(&m, "cudaMemcpyAsync", CT_CALL, 0, 0, U(0x7f00), U(0x5500), U(4096), U(1),
		       U(0)));
	work(s, AT(0, 0, 3, .stack = with ? 3 : 0), NULL,
	     &make_copy(&d, MAKE_AT(pid, 0, 1, 8, 3, 12 * MS + 40 * US, 12 * MS + 90 * US),
			CT_COPY_HTOD, CT_MEM_PAGEABLE, CT_MEM_DEVICE, 4096)
		      ->w);
	call(s, AT(0, 12345, 4, 13 * MS, 13 * MS + 2 * US), NULL,
	     make_call(&m, "cudaFree", CT_CALL, 0, 1, U(0xdead)));
	work(s, AT(0), NULL,
	     &make_set(&d, MAKE_AT(pid, 1, 2, 9, 0, 13 * MS, 13 * MS + 700), CT_MEM_DEVICE, 0, 64)
		      ->w);
	work(s, AT(0), NULL,
	     &make_sync(&d, MAKE_AT(pid, 0, 1, 7, 0, 13 * MS, 13 * MS + US), CT_SYNC_STREAM,
			CT_UNKNOWN)
		      ->w);
	other(s, 0,
	      &make_marker(&d, pid, 12345, 9 * MS, 14 * MS, CT_MARKER_PUSH_POP, "step <1>", "app")
		       ->h);
	other(s, 0,
	      &make_overhead(&d, MAKE_AT(pid, 0, 1, 0, 0, 14 * MS, 14 * MS + US), 12345, 1)->h);
	call(s, AT(1, 20001, 1, 15 * MS, 15 * MS + 3 * US, with ? 3 : 0), &hostile,
	     make_call(&m, "cudaLaunchKernel", CT_CALL, 0, 0, U(0x10), U(4) | U(1) << 32, U(1),
		       U(256) | U(1) << 32, U(1), U(0), U(0), U(0)));
	work(s, AT(1, 0, 1, .stack = with ? 3 : 0), &hostile,
	     &make_kernel(&d, MAKE_AT(other_pid, 0, 1, 7, 1, 15 * MS + 5 * US, 15 * MS + 6 * US), 3,
			  1, 1)
		      ->w);
	make_counter(&d, 0, 15 * MS, 16 * MS);
	make_value(&d, 3, 87.5, 0);
	make_value(&d, 4, 3, CT_VALUE_SUSPECT);
	other(s, 2, &d.h);
	make_counter(&d, 0, 16 * MS, 17 * MS);
	make_value(&d, 3, 12.25, 0);
	other(s, 2, &d.h);
	other(s, 2, &make_event(&d, 0, 16 * MS, CT_EVENT_XID, 31, "MMU fault, \"x\"")->h);
	make_head(&d, CT_LOST, sizeof(struct ct_lost), 0, 0, 16 * MS, 16 * MS + 100 * US);
	((struct ct_lost *)&d)->cause = CT_LOSS_RING;
	((struct ct_lost *)&d)->count = 17;
	other(s, 2, &d.h);
	other(s, 0,
	      make_muted(pid, 9 * MS, 16 * MS, "cudaGetDevice", 5000,
			 (struct ct_estimated){ 240000, 4000, 3000 }));
	CHECK(!rows);
	other(s, 0,
	      make_muted(pid, 16 * MS, 17 * MS, "cudaGetDevice", 7,
			 (struct ct_estimated){ -900, 100, 50 }));
	call(s, AT(0, 12346, 5, 17 * MS, 18 * MS, with ? 1 : 0), NULL,
	     make_call(&m, "cudaDeviceSynchronize", CT_CALL, CT_F_UNFINISHED, 0));
	work(s, AT(0), NULL,
	     (struct ct_work *)make_memory_op(&d,
					      MAKE_AT(pid, 0, 1, CT_UNKNOWN, 0, 18 * MS, 18 * MS),
					      CT_MEMORY_FREE, CT_MEM_DEVICE, 0x7f00, 4096));
	call(s, AT(0, 12345, 6, 18 * MS, 18 * MS + US), NULL,
	     make_call(&m, "cudaFree", CT_CALL, 0, 0, U(0x7f00)));
	/* what no file has: a call under way, an entry, a definition */
	make_call(&m, "cudaFree", CT_CALL, CT_F_UNFINISHED | CT_F_PENDING, 0, U(1));
	call(s, AT(0, 12345, 0, 1, 2), NULL, &m.c);
	CHECK(!rows);
	make_call(&m, "cudaFree", CT_ENTER, 0, 0, U(1));
	call(s, AT(0, 12345, 0, 1, 1), NULL, &m.c);
	CHECK(!rows);
	metric_table_close(metrics);
	metrics = NULL;
}

static void play(struct sink *s)
{
	play_stacks(s, true);
}

/* Launches a kernel of the sample's length at a time, on stream 7. */
static void launch_at(struct sink *s, uint32_t number, uint64_t at,
		      const struct kernel_name *kernel, uint64_t took_ns)
{
	struct made_device d;
	struct made_call m;

	call(s, AT(0, 12345, number, at, at + 5 * US), kernel,
	     make_call(&m, "cudaLaunchKernel", CT_CALL, 0, 0, U(0x10), U(4) | U(1) << 32, U(1),
		       U(256) | U(1) << 32, U(1), U(0), U(0), U(0)));
	work(s, AT(0, 0, number), kernel,
	     &make_kernel(&d,
			  MAKE_AT(procs[0].pid, 0, 1, 7, number, at + 20 * US,
				  at + 20 * US + took_ns),
			  1, 4, 256)
		      ->w);
}

/* Calls of a process were not seen from 46 to 48 ms. */
static void hole_at(struct sink *s, int proc, enum ct_hole_reason reason, uint16_t flags)
{
	struct made_device d;
	struct ct_hole *h = (struct ct_hole *)&d;

	make_head(&d, CT_HOLE, sizeof(*h), procs[proc].pid, 0, 46 * MS,
		  flags & CT_F_FINAL ? 48 * MS : 46 * MS);
	h->until_ns = 48 * MS;
	h->h.flags = flags;
	h->reason = (uint16_t)reason;
	h->layer = CT_HOLE_CALLS;
	h->state = CT_HOLE_UNSEEN;
	h->device = CT_UNKNOWN;
	CHECK_EQ(0, s->ops->event(s, &(struct event){ .rec = &d.h, .proc = &procs[proc] }));
}

/*
 * Five steps of a training loop, 10 ms each. In each, 1 ms after its begin: aten::linear, which calls aten::addmm, which launches
 * gemm (2 ms); at 4 ms aten::relu with vecAdd (1 ms); at 6 ms a collective; at 7 ms a launch that no operator is around (0.5 ms).
 * Before them an allocation on a device that is not known; a process that ran before its probes, through the third step.
 */
static void play_steps(struct sink *s)
{
	struct made_device d;
	struct made_call m;
	uint32_t pid = procs[0].pid, id = 1;
	char name[32];

	make_mem(0x7ffc0000, &(uint64_t){ 0x7f00 }, 8);
	make_call(&m, "cudaMalloc", CT_CALL, 0, 0, U(0x7ffc0000), U(4096));
	m.c.h.pid = pid;
	m.c.h.tid = 12345;
	m.c.h.start_ns = 10 * MS;
	m.c.h.end_ns = 10 * MS + US;
	give(s, &(struct event){ .rec = &m.c.h,
				 .proc = &procs[0],
				 .number = 1,
				 .device = CT_UNKNOWN,
				 .context = CT_UNKNOWN,
				 .stream = CT_UNKNOWN });
	for (uint32_t i = 0; i < 5; i++) {
		uint64_t at = (20 + 10 * i) * MS;

		launch_at(s, 10 * i + 10, at + MS + 100 * US, &gemm, 2 * MS);
		other(s, 0,
		      &make_scope(&d, pid, 12345, at + MS + 50 * US, at + MS + 150 * US,
				  CT_SCOPE_OPERATOR, id++, "aten::addmm")
			       ->h);
		other(s, 0,
		      &make_scope(&d, pid, 12345, at + MS, at + MS + 200 * US, CT_SCOPE_OPERATOR,
				  id++, "aten::linear")
			       ->h);
		launch_at(s, 10 * i + 11, at + 4 * MS, &vec_add, MS);
		other(s, 0,
		      &make_scope(&d, pid, 12345, at + 4 * MS - 10 * US, at + 4 * MS + 10 * US,
				  CT_SCOPE_OPERATOR, id++, "aten::relu")
			       ->h);
		make_scope(&d, pid, 12345, at + 6 * MS, at + 6 * MS + 300 * US, CT_SCOPE_COLLECTIVE,
			   id++, "ncclAllReduce");
		d.h.size = (uint16_t)((d.h.size + sizeof(struct ct_collective) + 7) & ~7u);
		other(s, 0, &d.h);
		launch_at(s, 10 * i + 12, at + 7 * MS, &vec_add, MS / 2);
		snprintf(name, sizeof(name), "ProfilerStep#%u", i + 7);
		other(s, 0,
		      &make_scope(&d, pid, 12345, at, at + 9 * MS, CT_SCOPE_RANGE, id++, name)->h);
	}
	make_head(&d, CT_UNPROBED, sizeof(struct ct_unprobed), 0, 0, 40 * MS, 45 * MS);
	((struct ct_unprobed *)&d)->processes = 1;
	snprintf(((struct ct_unprobed *)&d)->comm, CT_COMM_LEN, "early <b>");
	other(s, 2, &d.h);
	/* a row of what was not seen: while it may change; at the end; of what had a record of its own */
	hole_at(s, 0, CT_HOLE_NO_HOOKS, 0);
	hole_at(s, 0, CT_HOLE_NO_HOOKS, CT_F_FINAL);
	hole_at(s, 2, CT_HOLE_UNPROBED, CT_F_FINAL);
}

static void play_bare(struct sink *s)
{
	play_stacks(s, false);
}

/* The same code of the runtime and of the driver. */
static void play_errors(struct sink *s)
{
	struct made_call m;

	call(s, AT(0, 12345, 1, 10 * MS, 11 * MS), NULL,
	     make_call(&m, "cudaFree", CT_CALL, 0, 101, U(0x7f00)));
	call(s, AT(0, 12345, 2, 12 * MS, 13 * MS), NULL,
	     make_call(&m, "cuMemFree_v2", CT_CALL, 0, 101, U(0x7f00)));
}

/* A million records: launches of two threads with a kernel each, three calls of four without. */
static void play_many(struct sink *s)
{
	struct made_device d;
	struct made_call launch, free_;
	char names[40][32];
	struct kernel_name kernels[40];

	for (int i = 0; i < 40; i++) {
		snprintf(names[i], sizeof(names[i]), "kernel_%d", i);
		kernels[i] = (struct kernel_name){
			.mangled = names[i], .full = names[i], .brief = names[i], .source = 1
		};
	}
	make_call(&launch, "cudaLaunchKernel", CT_CALL, 0, 0, U(0x10), U(4) | U(1) << 32, U(1),
		  U(256) | U(1) << 32, U(1), U(0), U(0), U(0));
	make_call(&free_, "cudaFree", CT_CALL, 0, 0, U(0x10));
	for (uint32_t i = 0; i < 800000; i++) {
		uint64_t at = 10 * MS + i * 5 * US;
		bool launches = i % 4 == 0;

		call(s, AT(0, 12345 + i % 2, i + 1, at, at + 3 * US),
		     launches ? &kernels[i / 4 % 40] : NULL, launches ? &launch.c : &free_.c);
		if (launches)
			work(s, AT(0, 0, i + 1), &kernels[i / 4 % 40],
			     &make_kernel(&d,
					  MAKE_AT(procs[0].pid, 0, 1, 7 + i / 4 % 3, i + 1,
						  at + 10 * US, at + 10 * US + 4 * US),
					  1, 1, 32)
				      ->w);
	}
}

/* ---- a file ---- */

static void write_to(const char *path, const char *format, struct sink_opts opts,
		     void (*with)(struct sink *))
{
	static const char *const muted[] = { "cudaGetDevice", NULL };
	struct sink_end end = { .reason = "finished",
				.losses = { .lost = { [CT_LOSS_RING] = 17 } },
				.muted = muted,
				.muted_calls = { .counted = 5007,
						 .unseen = { 239100, 4100, 3050 } } };
	const struct sinks_row *row = sinks_find(format);
	struct sink s = { 0 };
	struct out out;

	CHECK(row && !out_open(&out, path, false));
	s.ops = row->ops;
	opts.out = &out;
	opts.version = "test";
	CHECK(!s.ops->open(&s, &opts));
	if (with)
		with(&s);
	else
		end = (struct sink_end){ .reason = "finished" };
	CHECK(!s.ops->close(&s, &end));
	CHECK(!out_close(&out));
}

/* The caller frees. What it says on stderr is not looked at. */
static char *written(const char *format, struct sink_opts opts, void (*with)(struct sink *))
{
	char path[64], *text;

	snprintf(path, sizeof(path), "/tmp/ct_test_export.%d", (int)getpid());
	write_to(path, format, opts, with);
	text = unit_read(path);
	unlink(path);
	return text;
}

static void golden(const char *name, const char *format, struct sink_opts opts,
		   void (*with)(struct sink *))
{
	char *text = written(format, opts, with);

	unit_golden(name, text);
	free(text);
}

static void test_files(void)
{
	struct sink_opts opts = { .title = "./train </script>" };

	golden("export.csv", "csv", opts, play);
	golden("speedscope_calls.json", "speedscope", opts, play);
	opts.look.weight = SINK_WEIGHT_GPU;
	golden("speedscope_gpu.json", "speedscope", opts, play);
	golden("folded_gpu.txt", "folded", opts, play);
	opts.look.weight = SINK_WEIGHT_TIME;
	golden("speedscope_time.json", "speedscope", opts, play);
	golden("speedscope_evented.json", "speedscope", opts, play_bare);
	golden("speedscope_empty.json", "speedscope", (struct sink_opts){ 0 }, NULL);
	golden("export_empty.csv", "csv", (struct sink_opts){ 0 }, NULL);
}

/* An error has the name that its library gives it. */
static void test_errors(void)
{
	char *text = written("csv", (struct sink_opts){ 0 }, play_errors);

	CHECK(text && strstr(text, ",cudaFree,1,cudaErrorInvalidDevice,"));
	CHECK(text && strstr(text, ",cuMemFree_v2,2,CUDA_ERROR_INVALID_DEVICE,"));
	free(text);
}

/* Nothing of a name ends the script that it stands in. */
static void test_page(void)
{
	char *text = written("html", (struct sink_opts){ .title = "</script><b>" }, play), *meta,
	     *end;

	meta = strstr(text, "<script id=\"meta\"");
	CHECK(meta != NULL);
	end = meta ? strstr(meta, "</script>") : NULL;
	if (CHECK(end)) {
		CHECK_EQ('}', end[-1]);
		CHECK_EQ('\n', end[9]);
	}
	CHECK(end && !strncmp(end + 10, "<script>\n\"use strict\";", 20));
	if (end)
		*end = '\0';
	/* what is not drawn is said */
	CHECK(meta && strstr(meta, "\"muted\":\"~244107 ±2 % calls of cudaGetDevice\""));
	CHECK(end);
	CHECK(strstr(end + 1, "not drawn: "));
	CHECK(strstr(text, "<span id=\"muted\"></span>"));
	if (CHECK(meta)) {
		CHECK(strstr(meta, "\\u003c/script>\\u003cimg src=x"));
		CHECK(!strstr(meta + 1, "<"));
	}
	free(text);
}

/* ---- rubbish ---- */

static uint32_t rnd(void)
{
	static uint64_t x = RANDOM_SEED;

	random_next(&x);
	return (uint32_t)(x >> 32);
}

/* Records of any kind and content that pass record_check(), on the heap in their exact size, for
 * a sanitizer to watch. */
static void play_rubbish(struct sink *s)
{
	int good = 0, kinds[CT_KIND_END] = { 0 };

	metrics = metric_table_open();
	for (int round = 0; round < 200000; round++) {
		size_t size = (rnd() % 64 + 4) * 8;
		struct ct_hdr *h = malloc(size);
		unsigned char *bytes = (unsigned char *)h;

		for (size_t i = 0; i < size; i++)
			bytes[i] = rnd() % 3 ? (unsigned char)(rnd() % 4) : (unsigned char)rnd();
		h->size = (uint16_t)size;
		h->kind = (uint16_t)(rnd() % CT_KIND_END);
		if (rnd() % 2)
			h->flags = 0;
		h->pid = rnd() % 2 ? procs[rnd() % 3].pid : rnd();
		if (!record_check(h, size)) {
			struct event ev = { .rec = h,
					    .proc = &procs[rnd() % 3],
					    .metrics = metrics,
					    .number = rnd() % 3 ? rnd() % 100 : rnd(),
					    .device = rnd() % 4 ? rnd() % 3 : CT_UNKNOWN,
					    .stream = rnd() % 4 ? rnd() % 3 : CT_UNKNOWN,
					    .context = 1 };

			last_cause.func = rnd() % 2 ? CT_NO_FUNC
						    : (uint16_t)(rnd() % (uint32_t)api_nfuncs);
			ev.kernel = rnd() % 2 ? &hostile : NULL;
			ev.stack = rnd() % 2 ? &stacks[rnd() % 3] : NULL;
			ev.cause = rnd() % 2 ? &last_cause : NULL;
			CHECK(!metric_table_record(metrics, h));
			CHECK(s->ops->event(s, &ev) >= 0);
			kinds[h->kind]++;
			good++;
		}
		free(h);
	}
	metric_table_close(metrics);
	metrics = NULL;
	if (CHECK(good > 20000)) {
		CHECK(kinds[CT_KERNEL]);
		CHECK(kinds[CT_COUNTER]);
		CHECK(kinds[CT_MARKER]);
		CHECK(kinds[CT_FOREIGN]);
	}
}

static void test_rubbish(void)
{
	static const char *const formats[] = { "csv", "speedscope", "html", "folded", "flame" };
	struct sink_opts opts = { .look.weight = SINK_WEIGHT_GPU };

	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		free(written(formats[i], opts, play_rubbish));
}

/* ---- the table of outputs, strings ---- */

static void test_sinks(void)
{
	char names[256];

	if (CHECK(sinks_find("csv"))) {
		CHECK(sinks_find("csv")->ops == &sink_csv);
		CHECK(sinks_find("html")->ops == &sink_html);
	}
	CHECK(!sinks_find(""));
	CHECK(!sinks_find("CSV"));
	CHECK(!sinks_find("count"));
	CHECK_TEXT("table or json", sinks_names(SINKS_ROWS, names, sizeof(names)));
	CHECK_TEXT("folded, flame or speedscope", sinks_names(SINKS_FOLDS, names, sizeof(names)));
	for (unsigned int i = 0; sinks_at(i); i++) {
		CHECK(sinks_find(sinks_at(i)->ops->name) == sinks_at(i));
		CHECK(sinks_at(i)->flags & SINKS_COMMAND || sinks_at(i)->suffix[0] == '.');
	}
}

static void test_strings(void)
{
	struct strings s;
	char text[16];

	CHECK(!strings_init(&s, 5000, UINT32_MAX));
	CHECK_EQ(0, strings_add(&s, "", 0));
	CHECK_EQ(1, strings_add(&s, "abc", 2));
	CHECK_EQ(2, strings_add(&s, "abc", 3));
	CHECK(strings_add(&s, "ab", 2) == 1 && strings_add(&s, NULL, 0) == 0);
	for (int i = 0; i < 600; i++) {
		int n = snprintf(text, sizeof(text), "%06d", i);

		CHECK(strings_add(&s, text, (size_t)n) == (uint32_t)i + 3);
	}
	CHECK_TEXT("000599", strings_get(&s, 602));
	CHECK_TEXT("ab", strings_get(&s, 1));
	for (int i = 0; i < 200; i++)
		strings_add(&s, text, (size_t)snprintf(text, sizeof(text), "more%d", i));
	CHECK(strings_add(&s, "no room any more", 16) == STRINGS_NONE &&
	      strings_add(&s, "000599", 6) == 602);
	strings_free(&s);

	/* bytes of any value; a limit of strings; numbers go on behind what is forgotten */
	CHECK(!strings_init(&s, 1 << 20, 300));
	CHECK_EQ(0, strings_add(&s, "a\0b", 3));
	CHECK_EQ(1, strings_add(&s, "a\0c", 3));
	CHECK_EQ(2, strings_add(&s, "a", 1));
	CHECK_EQ(0, strings_add(&s, "a\0b", 3));
	CHECK_EQ(3, s.n);
	CHECK_EQ(10, s.len);
	CHECK(!memcmp(strings_get(&s, 1), "a\0c", 4));
	for (uint32_t i = 3; i < 300; i++)
		CHECK(strings_add(&s, &i, sizeof(i)) == i);
	CHECK(strings_add(&s, "no room any more", 16) == STRINGS_NONE &&
	      strings_add(&s, "a", 1) == 2);
	strings_forget(&s);
	CHECK_EQ(0, s.n);
	CHECK(!s.len);
	CHECK_EQ(300, strings_add(&s, "a\0c", 3));
	CHECK_EQ(301, strings_add(&s, "a", 1));
	CHECK(strings_add(&s, "a\0c", 3) == 300);
	CHECK_TEXT("a", strings_get(&s, 301));
	strings_free(&s);
	strings_free(&s);
}

/* Times and sizes are signed: what is too large for one of them is no value. */
static void test_signed(void)
{
	static const uint64_t values[] = { 0, INT64_MAX, 1ull << 63, UINT64_MAX };
	struct cells cells = { .fields = true };
	struct batch b;

	CHECK(!batch_open(&b, 1u << COLUMNS_CALLS));
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		const struct chunk *size = &b.chunks[b.at[COLUMN_BYTES]],
				   *address = &b.chunks[b.at[COLUMN_ARG_DST]];

		memset(cells.there, 0, sizeof(cells.there));
		cells_uint(&cells, COLUMN_BYTES, values[i]);
		cells_uint(&cells, COLUMN_ARG_DST, values[i]);
		CHECK(!batch_add(&b, &cells));
		CHECK_EQ(values[i] <= INT64_MAX, chunk_has(size, (uint32_t)i));
		CHECK(chunk_has(address, (uint32_t)i));
	}
	batch_close(&b);
}

static int write_file(char **argv)
{
	static const struct {
		const char *kind;
		void (*with)(struct sink *);
	} kinds[] = {
		{ "stacks", play }, { "bare", play_bare },	 { "many", play_many },
		{ "empty", NULL },  { "rubbish", play_rubbish }, { "steps", play_steps },
	};
	struct sink_opts opts = { .title = "./train </script>" };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(argv[1], kinds[i].kind))
			continue;
		write_to(argv[2], argv[0], opts, kinds[i].with);
		return unit_failed != 0;
	}
	return 2;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "write"))
		return write_file(argv + 2);
	RUN(test_sinks);
	RUN(test_strings);
	RUN(test_signed);
	RUN(test_files);
	RUN(test_errors);
	RUN(test_page);
	RUN(test_rubbish);
	return unit_end();
}
