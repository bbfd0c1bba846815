/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_perfetto.c - the sinks for other programs, perfetto and chrome: one story with everything
 * in it, the timeline that orders what comes late, memory in use. tests/export/run.sh looks at
 * the same story through the eyes of the programs that read these formats: EXPORT_DIR=DIR writes
 * the files there.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../user/event/memory/inuse.h"
#include "../../user/export/perfetto/perfetto.h"
#include "../../user/flow/sink.h"
#include "../../user/export/slice/timeline.h"
#include "make_call.h"
#include "make_device.h"
#include "make_muted.h"
#include "random.h"
#include "unit.h"

#define MS 1000000ULL
#define T0 5000000000ULL

struct test_sink {
	char path[256];
	struct out out;
	struct sink_opts opts;
	struct sink sink;
	struct process_table *procs;
};

static void begin(struct test_sink *b, const struct sink_ops *ops, const char *name)
{
	const char *dir = getenv("EXPORT_DIR");

	if (dir)
		snprintf(b->path, sizeof(b->path), "%s/%s", dir, name);
	else
		snprintf(b->path, sizeof(b->path), "/tmp/ct_test_perfetto.%d.%s", (int)getpid(),
			 name);
	if (!strstr(b->path, "%p"))
		CHECK(!out_open(&b->out, b->path, false));
	b->opts.out = &b->out;
	b->opts.path = b->path;
	b->opts.version = "test";
	b->opts.title = "a \"story\"";
	b->opts.start_ns = T0;
	b->opts.realtime_offset_ns = 1700000000000000000;
	b->opts.boottime_offset_ns = 3000000000;
	b->sink = (struct sink){ .ops = ops };
	b->procs = process_table_open();
	CHECK(!ops->open(&b->sink, &b->opts));
}

static int give_all(struct test_sink *b, const struct ct_hdr *rec, uint32_t number,
		    const struct cause *cause, const struct kernel_name *kernel,
		    const struct stack *stack)
{
	struct event ev = { .rec = rec,
			    .number = number,
			    .cause = cause,
			    .kernel = kernel,
			    .stack = stack,
			    .device = rec->pid == 2000 ? 1 : 0 };

	CHECK(!record_check(rec, rec->size));
	process_table_record(b->procs, rec);
	ev.proc = process_table_find(b->procs, rec->pid);
	return b->sink.ops->event(&b->sink, &ev);
}

static int give(struct test_sink *b, const struct ct_hdr *rec)
{
	return give_all(b, rec, 0, NULL, NULL, NULL);
}

static void finish(struct test_sink *b)
{
	struct sink_end e = { .reason = "finished", .uptime_ns = 5000000000 };

	CHECK(!b->sink.ops->close(&b->sink, &e));
	CHECK(!out_close(&b->out));
	process_table_close(b->procs);
}

static const struct ct_hdr *process(int kind, uint32_t pid, const char *comm)
{
	static struct ct_process p;

	p = (struct ct_process){
		.h = { .size = sizeof(p),
		       .kind = (uint16_t)kind,
		       .pid = pid,
		       .tid = pid,
		       .start_ns = T0,
		       .end_ns = T0 },
		.start_boottime_ns = pid * 1000,
		.ns_pid = pid,
		.ppid = 1,
	};
	memcpy(p.comm, comm, strnlen(comm, CT_COMM_LEN - 1));
	return &p.h;
}

/* The process is one of two of a job. */
static void give_info(struct test_sink *b, uint32_t pid)
{
	static const char exe[] = "/usr/bin/python3", cmdline[] = "python3\0train.py";
	union {
		struct ct_process_info i;
		char room[256];
	} info = { .i = { .h = { .kind = CT_PROCESS_INFO,
				 .pid = pid,
				 .tid = pid,
				 .start_ns = T0,
				 .end_ns = T0 },
			  .rank = pid == 2000,
			  .world_size = 2,
			  .local_rank = pid == 2000,
			  .exe_len = sizeof(exe) - 1,
			  .cmdline_len = sizeof(cmdline) - 1 } };

	memcpy(info.i.text, exe, sizeof(exe) - 1);
	memcpy(info.i.text + sizeof(exe) - 1, cmdline, sizeof(cmdline) - 1);
	info.i.h.size = (uint16_t)((sizeof(info.i) + sizeof(exe) + sizeof(cmdline) + 7) & ~7u);
	give(b, &info.i.h);
}

/* ---- the story ---- */

static const struct kernel_name gemm = { .mangled = "_Z4gemmPfS_",
					 .full = "gemm(float*, float*)",
					 .brief = "gemm",
					 .source = CT_NAME_DEVICE };
static const struct kernel_name hostile = { .mangled = "bad\"\n\x1b[31m\xff\xc3\xa9",
					    .full = "bad\"\n\x1b[31m\xff\xc3\xa9",
					    .brief = "bad\"\n\x1b[31m\xff\xc3\xa9",
					    .source = CT_NAME_DEVICE };

/* A call of thread tid, `from` and `to` in microseconds after T0. */
#define CALL(b, name_, pid_, tid_, depth_, from, to, number, ker, stk, ret_, ...)            \
	do {                                                                                 \
		struct made_call m_;                                                         \
		struct ct_call *c_ = make_call(&m_, name_, CT_CALL, 0, ret_, ##__VA_ARGS__); \
                                                                                             \
		c_->h.pid = pid_;                                                            \
		c_->h.tid = tid_;                                                            \
		c_->depth = depth_;                                                          \
		c_->h.start_ns = T0 + (from)*1000;                                           \
		c_->h.end_ns = T0 + (to)*1000;                                               \
		CHECK(give_all(b, &c_->h, number, NULL, ker, stk) == 1);                     \
	} while (0)
#define LAUNCH_ARGS                                                                            \
	U(0x7f8b3c4d2a00), 4096 | U(1) << 32, U(1), 256 | U(1) << 32, U(1), U(0x7ffc00101010), \
		U(0), U(0x55aa)

static struct cause cause_at(uint32_t tid, uint64_t from, uint64_t to)
{
	return (struct cause){ .start_ns = T0 + from * 1000,
			       .end_ns = T0 + to * 1000,
			       .tid = tid,
			       .func = CT_NO_FUNC };
}

static struct make_at at(uint32_t pid, uint32_t device, uint32_t stream, uint64_t from, uint64_t to)
{
	return MAKE_AT(pid, device, 1, stream, 77, T0 + from * 1000, T0 + to * 1000);
}

static void play_device_work(struct test_sink *b)
{
	struct cause launch = cause_at(1001, 100, 110), second = cause_at(1001, 120, 130),
		     copy = cause_at(1000, 200, 400);
	struct made_device m;

	make_kernel(&m, at(1000, 0, 7, 150, 250), 1, 4096, 256);
	m.kernel.queued_ns = T0 + 105000;
	m.kernel.dynamic_shared = 1024;
	give_all(b, &m.h, 3, &launch, &gemm, NULL);
	/* overlaps the first on the same stream, and begins before it although it comes later */
	give_all(b, &make_kernel(&m, at(1000, 0, 7, 140, 200), 1, 1, 32)->w.h, 4, &second, &hostile,
		 NULL);
	give_all(b,
		 &make_copy(&m, at(1000, 0, 7, 260, 390), CT_COPY_HTOD, CT_MEM_PAGEABLE,
			    CT_MEM_DEVICE, 1048576)
			  ->w.h,
		 5, &copy, NULL, NULL);
	give_all(b, &make_set(&m, at(1000, 0, 13, 300, 310), CT_MEM_DEVICE, 0, 4096)->w.h, 0, NULL,
		 NULL, NULL);
	give_all(b, &make_sync(&m, at(1000, 0, 7, 450, 500), CT_SYNC_STREAM, CT_UNKNOWN)->w.h, 0,
		 NULL, NULL, NULL);
	give_all(
		b,
		&make_sync(&m, at(1000, 0, CT_UNKNOWN, 510, 520), CT_SYNC_CONTEXT, CT_UNKNOWN)->w.h,
		0, NULL, NULL, NULL);
	/* the other process: the same numbers of calls, its own device and stream */
	launch = cause_at(2000, 100, 105);
	give_all(b, &make_kernel(&m, at(2000, 1, 7, 160, 240), 1, 64, 128)->w.h, 1, &launch, &gemm,
		 NULL);
	/* on the first one's device too */
	give_all(b, &make_kernel(&m, at(2000, 0, 7, 170, 230), 1, 64, 128)->w.h, 1, &launch, &gemm,
		 NULL);
	/* a kernel of a graph, whose call is not shown; one without a time of the device */
	make_kernel(&m, at(1000, 0, 13, 330, 340), 1, 1, 1);
	m.work.graph = 5;
	m.work.graph_node = 0x500000001;
	give_all(b, &m.h, 0, NULL, &gemm, NULL);
	make_kernel(&m, at(1000, 0, 13, 0, 0), 1, 1, 1);
	m.h.flags = CT_F_NO_TIME;
	give_all(b, &m.h, 0, NULL, &gemm, NULL);
}

static void play_rest(struct test_sink *b)
{
	struct ct_lost lost = { .h = { .size = sizeof(lost),
				       .kind = CT_LOST,
				       .start_ns = T0 + 600 * 1000,
				       .end_ns = T0 + 650 * 1000 },
				.cause = CT_LOSS_RING,
				.cpu = ~0u,
				.count = 123 };
	struct made_device m;

	give(b, &make_overhead(&m, at(1000, 0, 7, 500, 540), 1000, 1 << 16)->h);
	give(b, &make_marker(&m, 1000, 1001, T0 + 90 * 1000, T0 + 300 * 1000, CT_MARKER_PUSH_POP,
			     "step \"1\"", "train")
			 ->h);
	give(b, &make_marker(&m, 1000, 1001, T0 + 95 * 1000, T0 + 95 * 1000, CT_MARKER_MARK, "mark",
			     "")
			 ->h);
	give(b, &make_marker(&m, 1000, 1001, T0 + 96 * 1000, T0 + 320 * 1000, CT_MARKER_START_END,
			     "range", "")
			 ->h);
	give(b, &make_memory_op(&m, at(1000, 0, 7, 50, 50), CT_MEMORY_ALLOC, CT_MEM_DEVICE, 0x7f00,
				4096)
			 ->w.h);
	give(b, &make_managed(&m, at(1000, 0, 7, 60, 70), 1, 0x7f00, 65536)->w.h);
	give(b, &make_metric(&m, 1, "sm_active", "%", CT_METRIC_PM)->h);
	make_counter(&m, 0, T0 + 100 * 1000, T0 + 200 * 1000);
	make_value(&m, 1, 42.5, 0);
	make_value(&m, 1, 420, CT_VALUE_SUSPECT);
	give(b, &m.h);
	give(b, &make_event(&m, 0, T0 + 700 * 1000, CT_EVENT_XID, 31, "GPU memory page fault")->h);
	give(b, &make_clock(&m, T0 + 800 * 1000, 1700000005000800000, 8000800000)->h);
	give(b, &lost.h);
	give(b, make_muted(1000, T0 + 100 * 1000, T0 + 650 * 1000, "cudaGetDevice", 5000,
			   (struct ct_estimated){ 240000, 4000, 3000 }));
	give(b, make_muted(1000, T0 + 200 * 1000, T0 + 650 * 1000, "cudaPeekAtLastError", 90,
			   (struct ct_estimated){ -5, 1, 2 }));
}

/* Scopes: ranges in each other, names meant to break out, a mark, a range of any thread, one whose
 * name and parent are not known, and one that is not to be shown. */
static void play_scopes(struct test_sink *b)
{
	struct made_device m;

	make_scope(&m, 1000, 1001, T0 + 98 * 1000, T0 + 140 * 1000, CT_SCOPE_RANGE, 2,
		   "for\"ward\\ \x01<b>");
	m.scope.parent = 1;
	CHECK(give(b, &m.h) == 1);
	CHECK(give(b, &make_scope(&m, 1000, 1001, T0 + 97 * 1000, T0 + 350 * 1000, CT_SCOPE_RANGE,
				  1, "epoch")
			       ->h) == 1);
	CHECK(give(b, &make_scope(&m, 1000, 1001, T0 + 145 * 1000, T0 + 145 * 1000, CT_SCOPE_MARK,
				  3, "half")
			       ->h) == 1);
	make_scope(&m, 1000, 1001, T0 + 99 * 1000, T0 + 420 * 1000, CT_SCOPE_RANGE, 4, "load");
	m.scope.flags = CT_SCOPE_ANY_THREAD | CT_SCOPE_CUT;
	CHECK(give(b, &m.h) == 1);
	make_scope(&m, 1000, 1000, T0 + 200 * 1000, T0 + 300 * 1000, CT_SCOPE_RANGE, 5, "");
	m.scope.parent = CT_SCOPE_UNKNOWN;
	m.scope.flags = CT_SCOPE_UNNAMED | CT_SCOPE_UNFINISHED;
	CHECK(give(b, &m.h) == 1);
	make_scope(&m, 1000, 1000, T0 + 210 * 1000, T0 + 290 * 1000, CT_SCOPE_RANGE, 6, "hidden");
	m.h.flags = CT_F_HIDDEN;
	CHECK(give(b, &m.h) == 0);
}

static void play(struct test_sink *b)
{
	static const uint64_t devptr = 0x7f81dc800000;
	static const struct stack_frame inner = { .kind = CT_FRAME_NATIVE,
						  .address = 0x1234,
						  .function = "train_step()",
						  .mangled = "_Z10train_stepv",
						  .file = "train.c",
						  .line = 12,
						  .object = "/bin/app" };
	static const struct stack_frame outer = {
		.kind = CT_FRAME_NATIVE, .address = 0x99, .function = "main", .object = "/bin/app"
	};
	static const struct stack_frame *const frames[] = { &inner, &outer };
	struct stack stack = { .id = 1, .nframes = 2, .frames = frames };
	struct made_device m;

	make_nmemory = 0;
	make_mem(0x1000, &devptr, sizeof(devptr));
	give(b, process(CT_PROCESS, 1000, "python3"));
	give_info(b, 1000);
	give(b, process(CT_PROCESS, 2000, "python3"));
	give_info(b, 2000);
	give(b, &make_device(&m, 1000, 0, T0, "NVIDIA H200")->h);
	give(b, &make_device(&m, 2000, 1, T0, "NVIDIA H200")->h);
	give(b, &make_device(&m, 2000, 0, T0, "NVIDIA H200")->h);
	/* the driver's call inside the runtime's comes first, and tells of the same memory */
	CALL(b, "cuMemAlloc_v2", 1000, 1000, 1, 12, 18, 1, NULL, NULL, 0, U(0x1000), U(1048576));
	CALL(b, "cudaMalloc", 1000, 1000, 0, 10, 20, 2, NULL, &stack, 0, U(0x1000), U(1048576));
	CALL(b, "cudaMalloc", 1000, 1000, 0, 22, 24, 6, NULL, NULL, 2, U(0x1000), UINT64_MAX);
	CALL(b, "cudaLaunchKernel", 1000, 1001, 0, 100, 110, 3, &gemm, &stack, 0, LAUNCH_ARGS);
	CALL(b, "cudaLaunchKernel", 1000, 1001, 0, 120, 130, 4, &hostile, NULL, 0, LAUNCH_ARGS);
	/* launched, but its device work never comes */
	CALL(b, "cudaLaunchKernel", 1000, 1001, 0, 132, 134, 7, &gemm, NULL, 0, LAUNCH_ARGS);
	CALL(b, "cudaLaunchKernel", 2000, 2000, 0, 100, 105, 1, &gemm, NULL, 0, LAUNCH_ARGS);
	CALL(b, "cudaMemcpy", 1000, 1000, 0, 200, 400, 5, NULL, NULL, 0, U(0x7f81dc800000), U(0x10),
	     U(1048576), U(1));
	play_device_work(b);
	play_rest(b);
	CALL(b, "cudaFree", 1000, 1000, 0, 560, 570, 8, NULL, NULL, 0, U(0x7f81dc800000));
	give(b, process(CT_EXEC, 1000, "other"));
	CALL(b, "cudaDeviceSynchronize", 1000, 1000, 0, 900, 1000, 9, NULL, NULL, 0);
}

/* One step spans the trace, unless the program annotates steps of its own. */
static void test_steps(void)
{
	for (int own = 0; own < 2; own++) {
		struct test_sink b = { 0 };
		struct made_device m;
		char *text;

		begin(&b, &sink_chrome, "steps.json");
		give(&b, process(CT_PROCESS, 1000, "python3"));
		CALL(&b, "cudaDeviceSynchronize", 1000, 1000, 0, 900, 1000, 1, NULL, NULL, 0);
		give(&b, &make_marker(&m, 1000, 1000, T0 + 90 * 1000, T0 + 300 * 1000,
				      CT_MARKER_PUSH_POP, own ? "ProfilerStep#3" : "Profiler", "")
				  ->h);
		finish(&b);
		text = unit_read(b.path);
		CHECK(text && (strstr(text, "\"ProfilerStep#0\"") == NULL) == (own == 1));
		CHECK(own ||
		      (text &&
		       strstr(text,
			      "\"ph\":\"X\",\"pid\":1000,\"tid\":1000,\"ts\":90.000,\"dur\":910."
			      "000,\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#0\"")));
		free(text);
		unlink(b.path);
	}
}

static void write_scopes(struct test_sink *b, const struct sink_ops *ops, const char *name)
{
	begin(b, ops, name);
	give(b, process(CT_PROCESS, 1000, "python3"));
	CALL(b, "cudaDeviceSynchronize", 1000, 1001, 0, 100, 130, 1, NULL, NULL, 0);
	play_scopes(b);
	CALL(b, "cudaDeviceSynchronize", 1000, 1001, 0, 150, 160, 2, NULL, NULL, 0);
	finish(b);
}

static void test_chrome_scopes(void)
{
	struct test_sink b = { 0 };
	char *text;

	write_scopes(&b, &sink_chrome, "scopes.json");
	text = unit_read(b.path);
	unit_golden("chrome_scopes.json", text);
	free(text);
	unlink(b.path);
}

static void test_chrome(void)
{
	struct test_sink b = { 0 };
	char *text;

	begin(&b, &sink_chrome, "story.json");
	play(&b);
	finish(&b);
	text = unit_read(b.path);
	unit_golden("chrome.json", text);
	free(text);
	if (!getenv("EXPORT_DIR"))
		unlink(b.path);
}

/* A file for each process, with its rank. */
static void test_split(void)
{
	static const char *const want[] = { "\"distributedInfo\":{\"rank\":0,\"world_size\":2}",
					    "\"distributedInfo\":{\"rank\":1,\"world_size\":2}" };
	struct test_sink b = { 0 };

	begin(&b, &sink_chrome, "split.%p.json");
	play(&b);
	finish(&b);
	for (int i = 0; i < 2; i++) {
		char path[300], *text;

		snprintf(path, sizeof(path), "%.*s%d.json", (int)(strstr(b.path, "%p") - b.path),
			 b.path, (i + 1) * 1000);
		text = unit_read(path);
		CHECK(text != NULL);
		if (!text)
			continue;
		CHECK(strstr(text, want[i]) != NULL);
		CHECK(strstr(text, i ? "\"pid\":1000," : "\"pid\":2000,") == NULL);
		/* numbers of calls are a process's own: alone in a file they stay as they are */
		CHECK(strstr(text, i ? "\"correlation\":1," : "\"correlation\":3,") != NULL);
		free(text);
		if (!getenv("EXPORT_DIR"))
			unlink(path);
	}
}

static bool has(const char *bytes, size_t n, const char *word)
{
	return bytes && memmem(bytes, n, word, strlen(word));
}

/* Stacks as arguments, for programs that do not read callstacks: texts, nothing of the
 * callstack's own, and "..." when there are more functions than there is room. */
static void test_stack_args(void)
{
	static const struct stack_frame deep = { .kind = CT_FRAME_NATIVE,
						 .address = 0x99,
						 .object = "/bin/deep" };
	static const struct stack_frame *frames[4096];
	struct stack stack = { .id = 2, .nframes = ARRAY_LEN(frames), .frames = frames };

	for (size_t i = 0; i < ARRAY_LEN(frames); i++)
		frames[i] = &deep;
	for (int args = 0; args < 2; args++) {
		const struct perfetto_options how = { .stack_args = args };
		struct test_sink b = { .opts.own = &how };
		struct stat st = { 0 };
		char *bytes;
		size_t n;

		begin(&b, &sink_perfetto, args ? "stack_args.pftrace" : "stacks.pftrace");
		play(&b);
		CALL(&b, "cudaDeviceSynchronize", 1000, 1000, 0, 2000, 2010, 10, NULL, &stack, 0);
		finish(&b);
		CHECK(!stat(b.path, &st));
		n = (size_t)st.st_size;
		bytes = unit_read(b.path);
		CHECK(has(bytes, n, "train_step() (train.c:12)") == args &&
		      has(bytes, n, "/bin/deep+0x99") == args);
		CHECK(has(bytes, n, "...") == args && has(bytes, n, "/bin/app") != args);
		CHECK(has(bytes, n, "main") && has(bytes, n, "train_step()"));
		free(bytes);
		if (!getenv("EXPORT_DIR"))
			unlink(b.path);
	}
}

/* What is nested in what, and the tracks: tests/export/run.sh. */
static void test_perfetto_scopes(void)
{
	static const char *const words[] = {
		"epoch", "half",   "for\"ward\\ \x01<b>", "load...",	"NVTX ranges",
		"nvtx",	 "loader", "parent_unknown",	  "unfinished",
	};
	struct test_sink b = { 0 };
	struct stat st = { 0 };
	char *bytes;

	write_scopes(&b, &sink_perfetto, "scopes.pftrace");
	CHECK(!stat(b.path, &st));
	bytes = unit_read(b.path);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		CHECK_TEXT(words[i], has(bytes, (size_t)st.st_size, words[i]) ? words[i] : "");
	CHECK(!has(bytes, (size_t)st.st_size, "hidden"));
	free(bytes);
	if (!getenv("EXPORT_DIR"))
		unlink(b.path);
}

static void test_perfetto(void)
{
	struct test_sink b = { 0 };
	char *text;

	begin(&b, &sink_perfetto, "story.pftrace");
	play(&b);
	finish(&b);
	text = unit_read(b.path);
	/* the first packet clears the state: sequence 1, flags 1, default clock 3, first of its
	 * sequence */
	CHECK(text &&
	      !memcmp(text, "\x0a\x0d\x50\x01\x68\x01\xda\x03\x03\xd0\x03\x03\xb8\x05\x01", 15));
	free(text);
	if (!getenv("EXPORT_DIR"))
		unlink(b.path);
}

/*
 * Two processes on two streams each for a while, with kernels of a few microseconds that overlap
 * now and then: what a reader adds up is to be what it was. For EXPORT_DIR alone.
 */
static void play_busy(struct test_sink *b)
{
	static const struct kernel_name other = { .mangled = "ncclDevKernel_AllReduce",
						  .full = "ncclDevKernel_AllReduce",
						  .brief = "ncclDevKernel_AllReduce",
						  .source = CT_NAME_DEVICE };
	uint64_t x = RANDOM_SEED;
	struct made_device m;

	for (uint32_t pid = 1000; pid <= 2000; pid += 1000) {
		give(b, process(CT_PROCESS, pid, "python3"));
		give_info(b, pid);
		give(b, &make_device(&m, pid, 0, T0, "NVIDIA H200")->h);
	}
	for (uint32_t i = 0; i < 4000; i++) {
		uint32_t pid = i % 2 ? 1000 : 2000, number = i / 2 + 1;
		uint64_t from = 10 + i * 20;
		struct cause cause = cause_at(pid, from, from + 5);
		struct made_call call;
		struct ct_call *c = make_call(&call,
					      i % 8 == 7 ? "cudaMemcpyAsync" : "cudaLaunchKernel",
					      CT_CALL, 0, 0, LAUNCH_ARGS);
		struct make_at where = at(pid, 0, i % 3 ? 7 : 20, from + 10, from + 10);

		random_next(&x);
		where.end_ns += 15000 + x % 60000;
		c->h.pid = c->h.tid = pid;
		c->h.start_ns = cause.start_ns;
		c->h.end_ns = cause.end_ns;
		give_all(b, &c->h, number, NULL, i % 8 == 7 ? NULL : &gemm, NULL);
		if (i % 8 == 7)
			give_all(b,
				 &make_copy(&m, where, CT_COPY_HTOD, CT_MEM_PINNED, CT_MEM_DEVICE,
					    4096)
					  ->w.h,
				 number, &cause, NULL, NULL);
		else
			give_all(b, &make_kernel(&m, where, 1, 64, 128)->w.h, number, &cause,
				 i % 5 ? &gemm : &other, NULL);
	}
}

static void write_busy(void)
{
	static const struct {
		const struct sink_ops *ops;
		const char *name;
	} files[] = { { &sink_chrome, "busy.%p.json" },
		      { &sink_json, "busy.jsonl" },
		      { &sink_perfetto, "busy.pftrace" } };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct test_sink b = { 0 };

		begin(&b, files[i].ops, files[i].name);
		play_busy(&b);
		finish(&b);
	}
}

/* ---- the timeline ---- */

static char reported[4096];

static int on_begin(void *ctx, struct timeline_track *tr, struct timeline_lane *l, int lane,
		    const struct timeline_span *s, const char *bytes, bool arrow)
{
	(void)ctx, (void)l;
	snprintf(reported + strlen(reported), sizeof(reported) - strlen(reported),
		 "%u.%d:%.*s%s@%llu ", tr->key.a, lane, (int)s->len, bytes, arrow ? "*" : "",
		 (unsigned long long)s->start_ns);
	return 0;
}

static int on_end(void *ctx, struct timeline_track *tr, struct timeline_lane *l, uint64_t ns)
{
	(void)ctx;
	snprintf(reported + strlen(reported), sizeof(reported) - strlen(reported), "%u.%d/%llu ",
		 tr->key.a, (int)(l - tr->lanes), (unsigned long long)ns);
	return 0;
}

static int on_value(void *ctx, struct timeline_track *tr, struct timeline_lane *l,
		    const struct timeline_span *s, const char *bytes, bool late)
{
	(void)ctx, (void)l;
	snprintf(reported + strlen(reported), sizeof(reported) - strlen(reported),
		 "%u=%.*s@%llu%s ", tr->key.a, (int)s->len, bytes, (unsigned long long)s->start_ns,
		 late ? " late" : "");
	return 0;
}

static const struct timeline_ops ops = { on_begin, on_end, on_value };

static void span(struct timeline *t, uint32_t a, const char *name, uint64_t from, uint64_t to,
		 uint64_t arrow, int end, uint64_t after)
{
	struct timeline_key key = { .kind = end == TIMELINE_TO ? 1 : 2 | TIMELINE_EARLY, .a = a };
	struct timeline_span s = { .start_ns = from,
				   .end_ns = to,
				   .arrow = arrow,
				   .end = (uint8_t)end,
				   .after_ns = after,
				   .len = (uint32_t)strlen(name) };

	CHECK(!timeline_add(t, timeline_track(t, &key), &s, name));
}

static void value(struct timeline *t, uint32_t a, const char *name, uint64_t ns)
{
	struct timeline_key key = { .kind = 3, .a = a };
	struct timeline_span s = {
		.start_ns = ns, .end_ns = ns, .what = TIMELINE_VALUE, .len = (uint32_t)strlen(name)
	};

	CHECK(!timeline_add(t, timeline_track(t, &key), &s, name));
}

static void expect(struct timeline *t, const char *text)
{
	CHECK(!timeline_flush(t));
	CHECK_TEXT(text, reported);
	reported[0] = '\0';
}

static void test_order(void)
{
	struct timeline *t = timeline_open(&ops, NULL);

	/* what is inside comes first; one that ends as the next begins; one that takes no time */
	span(t, 1, "in", 12, 14, 0, 0, 0);
	span(t, 1, "out", 10, 20, 0, 0, 0);
	span(t, 1, "next", 20, 30, 0, 0, 0);
	span(t, 1, "none", 20, 20, 0, 0, 0);
	expect(t, "1.0:out@10 1.0:in@12 1.0/14 1.0/20 1.0:next@20 1.0:none@20 1.0/30 ");
	/* two that overlap, a third that finds place on the first lane again, one that is too
	 * late for it */
	span(t, 2, "a", 100, 200, 0, 0, 0);
	span(t, 2, "b", 150, 250, 0, 0, 0);
	span(t, 2, "c", 200, 220, 0, 0, 0);
	expect(t, "2.0:a@100 2.1:b@150 2.0/200 2.0:c@200 2.0/220 2.1/250 ");
	span(t, 2, "late", 90, 95, 0, 0, 0);
	expect(t, "2.2:late@90 2.2/95 ");
	value(t, 3, "1", 10);
	value(t, 3, "0", 5);
	expect(t, "3=0@5 3=1@10 ");
	value(t, 3, "2", 7);
	expect(t, "3=2@7 late ");
	CHECK(!timeline_dropped(t));
	timeline_close(t);
}

static void test_arrows(void)
{
	struct timeline *t = timeline_open(&ops, NULL);

	/* the device's work comes after its call, or before it; a graph's kernels share a call;
	 * of one the work never comes */
	span(t, 1, "call", 10, 20, 100, TIMELINE_FROM, 0);
	span(t, 7, "work", 30, 40, 100, TIMELINE_TO, 20);
	span(t, 7, "more", 41, 42, 100, TIMELINE_TO, 20);
	span(t, 8, "first", 50, 60, 101, TIMELINE_TO, 70);
	span(t, 1, "sync", 45, 70, 101, TIMELINE_FROM, 0);
	span(t, 1, "alone", 80, 90, 102, TIMELINE_FROM, 0);
	span(t, 8, "orphan", 90, 95, 103, TIMELINE_TO, 85);
	expect(t, "1.0:call*@10 1.0/20 1.0:sync*@45 1.0/70 1.0:alone@80 1.0/90 7.0:work*@30 7.0/40 "
		  "7.0:more*@41 7.0/42 8.0:first*@50 8.0/60 8.0:orphan@90 8.0/95 ");
	CHECK(timeline_no_arrow(t) == 1);
	/* too late: its call has gone without an arrow */
	span(t, 8, "late", 96, 97, 102, TIMELINE_TO, 90);
	expect(t, "8.0:late@96 8.0/97 ");
	CHECK(timeline_no_arrow(t) == 2);
	timeline_close(t);
}

/* What is over is handed on after the hold time, without being asked; what an open span holds up
 * waits. */
static void test_hold(void)
{
	struct timeline *t = timeline_open(&ops, NULL);

	reported[0] = '\0';
	span(t, 1, "a", 1, 2, 0, 0, 0);
	span(t, 2, "long", 3, TIMELINE_HOLD_NS, 0, 0, 0);
	span(t, 1, "b", TIMELINE_HOLD_NS, TIMELINE_HOLD_NS * 5 / 4, 0, 0, 0);
	CHECK_TEXT("1.0:a@1 1.0/2 ", reported);
	reported[0] = '\0';
	span(t, 1, "c", 4 * TIMELINE_HOLD_NS, 4 * TIMELINE_HOLD_NS, 0, 0, 0);
	CHECK_TEXT("1.0:b@2000000000 1.0/2500000000 2.0:long@3 2.0/2000000000 ", reported);
	reported[0] = '\0';
	expect(t, "1.0:c@8000000000 ");
	timeline_close(t);
}

static uint64_t begun, ended;
static uint64_t last_of[64][TIMELINE_LANES];
static bool fell;

static int count_begin(void *ctx, struct timeline_track *tr, struct timeline_lane *l, int lane,
		       const struct timeline_span *s, const char *bytes, bool arrow)
{
	(void)ctx, (void)bytes, (void)arrow, (void)l;
	begun++;
	fell |= s->start_ns < last_of[tr->key.a][lane];
	last_of[tr->key.a][lane] = s->start_ns;
	return 0;
}

static int count_end(void *ctx, struct timeline_track *tr, struct timeline_lane *l, uint64_t ns)
{
	(void)ctx;
	ended++;
	fell |= ns < last_of[tr->key.a][l - tr->lanes];
	last_of[tr->key.a][l - tr->lanes] = ns;
	return 0;
}

/* Far more than may be held, in disorder: all of it comes, in order on each lane. */
static void test_much(void)
{
	static const struct timeline_ops counting = { count_begin, count_end, on_value };
	struct timeline *t = timeline_open(&counting, NULL);
	uint64_t x = RANDOM_SEED, n = 2000000;
	static const char bytes[100];

	for (uint64_t i = 0; i < n; i++) {
		struct timeline_key key = { .kind = 1, .a = (uint32_t)(i % 64) };
		struct timeline_span s = { .len = (uint32_t)(x % sizeof(bytes)) };

		random_next(&x);
		s.start_ns = i * 10 + x % 500;
		s.end_ns = s.start_ns + 1 + x % 300;
		if (timeline_add(t, timeline_track(t, &key), &s, bytes))
			break;
	}
	CHECK(!timeline_flush(t));
	CHECK(begun + timeline_dropped(t) == n);
	CHECK(begun == ended);
	CHECK(begun > n - n / 1000);
	CHECK(!fell);
	timeline_close(t);
}

/* More threads than are remembered: each keeps its order, and no call is left out. */
static void test_many_tracks(void)
{
	static const struct timeline_ops counting = { count_begin, count_end, on_value };
	struct timeline *t = timeline_open(&counting, NULL);
	uint64_t n = 300000;

	begun = ended = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct timeline_key key = { .kind = 1, .b = (uint32_t)i };
		struct timeline_span s = { .start_ns = i, .end_ns = i + 10, .len = 4 };

		if (timeline_add(t, timeline_track(t, &key), &s, "abcd"))
			break;
	}
	CHECK(!timeline_flush(t));
	CHECK(begun == n && ended == n);
	timeline_close(t);
}

/* ---- memory in use ---- */

static int64_t use(struct inuse *u, uint32_t pid, const char *name, uint64_t address, uint64_t size,
		   int ret)
{
	static uint64_t now_ns = 10000; /* each call comes after the one before */
	struct process proc = { .pid = pid };
	struct made_call m;
	struct event ev = { .proc = &proc, .device = 3, .context_handle = 0xc0 };
	uint32_t device = 99;
	struct ct_hdr *h;
	int64_t delta;

	make_nmemory = 0;
	make_mem(0x1000, &address, sizeof(address));
	ev.rec = strstr(name, "Free") || strstr(name, "Destroy")
			 ? &make_call(&m, name, CT_CALL, 0, ret, address)->h
			 : &make_call(&m, name, CT_CALL, 0, ret, U(0x1000), size)->h;
	h = (struct ct_hdr *)ev.rec;
	h->pid = pid;
	h->start_ns = now_ns++;
	h->end_ns = now_ns++;
	if (!inuse_call(u, &ev, &device, &delta))
		return 0;
	CHECK(device == 3);
	return delta;
}

static void test_in_use(void)
{
	struct inuse *u = inuse_open();
	int64_t sum = 0;

	CHECK(use(u, 1, "cudaMalloc", 0x100, 10, 0) == 10);
	CHECK(use(u, 2, "cuMemAlloc_v2", 0x100, 7, 0) == 7);
	CHECK(use(u, 1, "cuMemAlloc_v2", 0x100, 10, 0) == 0);
	CHECK(use(u, 1, "cudaMalloc", 0x200, 10, 2) == 0);
	CHECK(use(u, 1, "cudaFree", 0x300, 0, 0) == 0);
	CHECK(use(u, 1, "cudaFree", 0, 0, 0) == 0);
	CHECK(use(u, 1, "cudaFree", 0x100, 0, 700) == 0);
	CHECK(use(u, 1, "cudaFree", 0x100, 0, 0) == -10);
	CHECK(use(u, 1, "cudaFree", 0x100, 0, 0) == 0);
	/* host memory is none of it */
	CHECK(use(u, 1, "cudaMallocHost", 0x400, 10, 0) == 0);
	for (uint64_t i = 1; i <= 20000; i++)
		sum += use(u, 1, "cudaMalloc", i * 256, i, 0);
	for (uint64_t i = 20000; i; i -= 2)
		sum += use(u, 1, "cudaFree", i * 256, 0, 0);
	CHECK(sum == 10000 * 10000);
	inuse_forget(u, 1);
	CHECK(use(u, 1, "cudaFree", 256, 0, 0) == 0);
	CHECK(use(u, 2, "cuMemFree_v2", 0x100, 0, 0) == -7);
	inuse_close(u);
}

/* What a context held is gone with it, and memory that comes again at such an address is new. */
static void test_in_use_context(void)
{
	struct inuse *u = inuse_open();

	CHECK_EQ(10, use(u, 1, "cuMemAlloc_v2", 0x100, 10, 0));
	CHECK_EQ(20, use(u, 1, "cuMemAlloc_v2", 0x200, 20, 0));
	CHECK_EQ(-30, use(u, 1, "cuCtxDestroy_v2", 0xc0, 0, 0));
	CHECK_EQ(10, use(u, 1, "cuMemAlloc_v2", 0x100, 10, 0));
	inuse_close(u);
}

int main(void)
{
	RUN(test_order);
	RUN(test_arrows);
	RUN(test_hold);
	RUN(test_much);
	RUN(test_many_tracks);
	RUN(test_in_use);
	RUN(test_in_use_context);
	RUN(test_chrome);
	RUN(test_chrome_scopes);
	RUN(test_steps);
	RUN(test_split);
	RUN(test_perfetto);
	RUN(test_perfetto_scopes);
	RUN(test_stack_args);
	if (getenv("EXPORT_DIR"))
		write_busy();
	return unit_end();
}
