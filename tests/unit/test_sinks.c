/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sinks.c - the texts of all formats from hand-made records (tests/golden; UPDATE_GOLDEN=1
 * writes them), the process table, the filter, the nesting stage, and records full of rubbish.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../user/event/select.h"
#include "../../user/stages/nest.h"
#include "../../user/flow/sink.h"
#include "make_call.h"
#include "unit.h"

/* ---- a sink that writes to a file of its own ---- */

struct test_sink {
	char path[64];
	struct out out;
	struct sink_opts opts;
	struct sink sink;
	struct process_table *procs;
	const struct kernel_name *kernel; /* of the calls that are given from now on */
	const struct stack *stack;
};

static void begin(struct test_sink *b, const struct sink_ops *ops)
{
	snprintf(b->path, sizeof(b->path), "/tmp/ct_test_sinks.%d", (int)getpid());
	CHECK(!out_open(&b->out, b->path, false));
	b->opts.out = &b->out;
	b->opts.version = "test";
	b->sink = (struct sink){ .ops = ops };
	b->procs = process_table_open();
	CHECK(!ops->open(&b->sink, &b->opts));
}

static int give(void *ctx, const struct ct_hdr *rec)
{
	struct test_sink *b = ctx;
	struct event ev = {
		.rec = rec, .device = CT_UNKNOWN, .context = CT_UNKNOWN, .stream = CT_UNKNOWN
	};

	if (!rec)
		return 0;
	CHECK(!record_check(rec, rec->size));
	process_table_record(b->procs, rec);
	ev.proc = process_table_find(b->procs, rec->pid);
	ev.kernel = b->kernel;
	ev.stack = b->stack;
	return b->sink.ops->event(&b->sink, &ev);
}

static const struct ct_hdr *rec_of(const struct ct_call *c)
{
	return c ? &c->h : NULL;
}

/* Closes; returns the text. The caller frees. */
static char *end(struct test_sink *b)
{
	static const char *const muted[] = { "cudaGetDevice", NULL };
	struct sink_end e = { .muted = muted, .reason = "finished", .uptime_ns = 5000000000 };
	char *text;

	e.losses.calls = 30;
	e.losses.lost[CT_LOSS_RING] = 7;
	b->sink.ops->close(&b->sink, &e);
	CHECK(!out_close(&b->out));
	process_table_close(b->procs);
	text = unit_read(b->path);
	unlink(b->path);
	return text;
}

static const struct ct_hdr *process(int kind, uint32_t pid, const char *comm)
{
	static struct ct_process p;

	p = (struct ct_process){
		.h = { .size = sizeof(p),
		       .kind = (uint16_t)kind,
		       .pid = pid,
		       .tid = pid,
		       .start_ns = 1000,
		       .end_ns = 1000 },
		.start_boottime_ns = 42,
		.cgroup_id = 9007199254740993, /* 2^53 + 1 */
		.uid = 1000,
		.gid = 1000,
		.ns_pid = pid,
		.ppid = 1,
	};
	memcpy(p.comm, comm, strnlen(comm, CT_COMM_LEN - 1));
	return &p.h;
}

static const struct ct_hdr *lost(uint32_t cause, uint64_t count)
{
	static struct ct_lost l;

	l = (struct ct_lost){
		.h = { .size = sizeof(l), .kind = CT_LOST, .start_ns = 1, .end_ns = 2000 },
		.cause = cause,
		.cpu = ~0u,
		.count = count
	};
	return &l.h;
}

/* ---- the script that every format prints ---- */

/* One call of each kind of field and result. */
static void play(struct test_sink *b, int kind)
{
	static const uint64_t devptr = 0x7f81dc800000, stream = 0x55aa00,
			      sizes[2] = { 80000000000, 85000000000 };
	static const float ms = 0.25f;
	static const int32_t device = 3;
	static const char name[] = "_Z6kernel\"\n\x1b[31m\xff\xc3\xa9Pf";
	struct made_call m;

	make_nmemory = 0;
	make_mem(0x1000, &devptr, sizeof(devptr));
	make_mem(0x2000, &stream, sizeof(stream));
	make_mem(0x3000, &device, sizeof(device));
	make_mem(0x4000, &ms, sizeof(ms));
	make_mem(0x5000, name, sizeof(name));
	make_mem(0x6000, &sizes[0], 8);
	make_mem(0x7000, &sizes[1], 8);

#define CALL(name, flags, ret, ...)                                                            \
	do {                                                                                   \
		if (kind == CT_CALL || !(flags & CT_F_UNFINISHED))                             \
			give(b, rec_of(make_call(&m, name, kind, flags, ret, ##__VA_ARGS__))); \
	} while (0)
	CALL("cudaMalloc", 0, 0, U(0x1000), U(1048576));
	CALL("cudaMalloc", 0, 2, U(0x1000), UINT64_MAX);
	CALL("cudaFree", 0, 0, U(0x7f81dc800000));
	CALL("cudaMemcpy", 0, 0, U(0x7f81dc800000), U(0x7f83f85ff010), U(1048576), U(1));
	CALL("cudaMemcpy", 0, 1, U(0), U(0), U(0), U(77));
	CALL("cudaMemcpyAsync", 0, 0, U(1), U(2), U(3), U(4), U(0));
	CALL("cudaMemcpyAsync", CT_F_PER_THREAD, 0, U(1), U(2), U(3), U(4), U(0));
	CALL("cudaMemcpyAsync", 0, 0, U(1), U(2), U(3), U(4), U(1));
	CALL("cudaMemcpyAsync", 0, 0, U(1), U(2), U(3), U(4), U(2));
	CALL("cudaLaunchKernel", 0, 0, U(0x7f8b3c4d2a00), 4096 | U(1) << 32, U(1), 256 | U(1) << 32,
	     U(1), U(0x7ffc0010), U(0), U(0));
	CALL("cudaStreamCreateWithFlags", 0, 0, U(0x2000), U(1));
	CALL("cudaStreamCreateWithFlags", 0, 0, U(0x2000), U(0));
	CALL("cudaStreamCreateWithFlags", 0, 0, U(0x2000), U(0x9));
	CALL("cudaStreamSynchronize", 0, 700, U(0x55aa00));
	CALL("cudaStreamSynchronize", 0, 12345, U(0x55aa00));
	CALL("cudaGetDevice", 0, 0, U(0x3000));
	CALL("cudaGetDevice", 0, 0, U(0xbad));
	CALL("cudaMemGetInfo", 0, 0, U(0x6000), U(0x7000));
	CALL("cudaEventElapsedTime", 0, 0, U(0x4000), U(0x10), U(0x20));
	CALL("cudaDeviceSynchronize", 0, 0);
	CALL("cudaDeviceSynchronize", CT_F_UNFINISHED, 0);
	CALL("cudaStreamSynchronize", CT_F_UNFINISHED, 0, U(0x55aa00));
	CALL("cudaMalloc", CT_F_NO_RETURN, 0, U(0x1000), U(1048576));
	CALL("cuMemAlloc_v2", 0, 0, U(0x1000), U(4096));
	CALL("cuMemAlloc_v2", 0, 1, U(0x1000), U(4096));
	CALL("cuModuleGetFunction", 0, 0, U(0x2000), U(0x77), U(0x5000));
	CALL("cuModuleGetFunction", 0, 0, U(0x2000), U(0x77), U(0xbad));
#undef CALL
}

static void play_all(struct test_sink *b)
{
	struct made_call m;

	give(b, process(CT_PROCESS, 12345, "my_cuda_app"));
	if (b->opts.look.enter_exit)
		play(b, CT_ENTER);
	play(b, CT_CALL);
	give(b, lost(CT_LOSS_RING, 123));
	give(b, lost(CT_LOSS_DEPTH, 1));
	give(b, process(CT_EXEC, 12345, "\x1b[2J\xffna\xc3\xafve\"\\\xe2\x80\xae"));
	give(b, rec_of(make_call(&m, "cudaFree", CT_CALL, 0, 0, U(16))));
	if (b->sink.ops == &sink_json) {
		struct ct_fork f = {
			.h = { .size = sizeof(f), .kind = CT_FORK, .pid = 12345, .tid = 12345 },
			.child_pid = 12346
		};
		struct ct_exit e = {
			.h = { .size = sizeof(e), .kind = CT_EXIT, .pid = 12345, .tid = 12345 },
			.status = 9
		};

		give(b, &f.h);
		give(b, &e.h);
	}
}

static void golden(const char *name, const struct sink_ops *ops, const struct sink_opts *opts)
{
	struct test_sink b = { .opts = *opts };
	char *text;

	begin(&b, ops);
	play_all(&b);
	text = end(&b);
	unit_golden(name, text);
	free(text);
}

static void test_formats(void)
{
	struct sink_opts plain = { 0 }, tid = { .look.tid = true, .look.time = SINK_TIME_US },
			 enter = { .look.enter_exit = true };
	struct sink_opts iso = { .look.time = SINK_TIME_ISO,
				 .realtime_offset_ns = 1700000000000000000,
				 .color = true };
	struct sink_opts compact = { .look.compact = true }, wide = {
		.look.compact = true, .color = true, .look.tid = true, .look.enter_exit = true
	};

	struct sink_opts cut = { .look.string_max = 8 };

	golden("table.txt", &sink_table, &plain);
	golden("table_strings.txt", &sink_table, &cut);
	golden("table_compact.txt", &sink_table, &compact);
	golden("table_compact_wide.txt", &sink_table, &wide);
	golden("table_tid_us.txt", &sink_table, &tid);
	golden("table_iso_color.txt", &sink_table, &iso);
	golden("table_enter_exit.txt", &sink_table, &enter);
	golden("rows.jsonl", &sink_json, &plain);
	golden("rows_enter.jsonl", &sink_json, &enter);
	golden("count.txt", &sink_count, &plain);
}

/* ---- names and stacks ---- */

static const struct kernel_name vec_add = {
	.mangled = "_Z6vecAddPKfS0_Pfi",
	.full = "vecAdd(float const*, float const*, float*, int)",
	.brief = "vecAdd(float const*, float const*, float*, int)",
	.source = CT_NAME_REGISTERED,
}, gemm = {
	.mangled = "_ZN7cutlass6KernelI4GemmIfLi3EEEEvT_",
	.full = "void cutlass::Kernel<Gemm<float, 3> >(Gemm<float, 3>)",
	.brief = "cutlass::Kernel",
	.source = CT_NAME_SYMBOL,
}, cut = {
	.mangled = "_ZN5torch9elementwiseI",
	.full = "_ZN5torch9elementwiseI",
	.brief = "_ZN5torch9elementwiseI",
	.source = CT_NAME_DRIVER,
	.cut = true,
}, hostile = {
	/* an escape sequence, a bidirectional override, a torn sequence, what ends strings and
	 * elements, and letters */
	.mangled = "a\x1b[2J\xe2\x80\xae\xff\xc3\n\"\\</script>n\xc3\xaf",
	.full = "a\x1b[2J\xe2\x80\xae\xff\xc3\n\"\\</script>n\xc3\xaf",
	.brief = "a\x1b[2J\xe2\x80\xae\xff\xc3\n\"\\</script>n\xc3\xaf",
	.source = CT_NAME_FATBIN,
};

static const struct stack_frame frames[] = {
	{ .kind = CT_FRAME_INLINED,
	  .line = 7,
	  .address = 0x1234,
	  .function = "helper",
	  .file = "train.c",
	  .object = "/bin/app" },
	{ .kind = CT_FRAME_NATIVE,
	  .line = 42,
	  .address = 0x1234,
	  .offset = 28,
	  .function = "step(int)",
	  .mangled = "_Z4stepi",
	  .file = "train.c",
	  .object = "/bin/app" },
	{ .kind = CT_FRAME_PYTHON,
	  .line = 88,
	  .function = "Model.train_step",
	  .file = "/src/train.py" },
	{ .kind = CT_FRAME_PYTHON },
	{ .kind = CT_FRAME_NATIVE,
	  .address = 0x4321,
	  .offset = 0,
	  .function = "main",
	  .object = "/bin/app" },
	{ .kind = CT_FRAME_NATIVE,
	  .line = 3,
	  .address = 0x4322,
	  .offset = 1,
	  .function = "anon",
	  .file = "x.c" },
	{ .kind = CT_FRAME_NATIVE, .address = 0xbeef, .object = "/usr/lib/lib x.so" },
	{ .kind = CT_FRAME_INLINED, .address = 0xbef0 },
	{ .kind = CT_FRAME_UNKNOWN, .address = 0x7f1200000000 },
	{ .kind = 77, .address = 0x10, .object = "(deleted)\n" },
	{ .kind = CT_FRAME_NATIVE,
	  .address = 1,
	  .function = "f\x1b[31m;\xe2\x80\xae\xff",
	  .file = "a\"b\n.c",
	  .line = 1,
	  .object = "/o\x07</script>" },
};

static void give_stacks(struct test_sink *b)
{
	const struct stack_frame *all[ARRAY_LEN(frames)];
	struct stack stacks[] = {
		{ .id = 1, .nframes = ARRAY_LEN(frames), .frames = all },
		{ .id = 2, .nframes = 1, .flags = CT_STACK_CUT, .frames = all + 1 },
		{ .id = 3, .nframes = 1, .flags = CT_STACK_BROKEN, .frames = all + 4 },
		{ .id = 4, .nframes = 0, .flags = CT_STACK_CUT | CT_STACK_BROKEN, .frames = all },
	};
	struct made_call m;

	for (size_t i = 0; i < ARRAY_LEN(frames); i++)
		all[i] = &frames[i];
	for (size_t i = 0; i < ARRAY_LEN(stacks); i++) {
		/* twice: made, and from the store */
		b->stack = &stacks[i];
		give(b, rec_of(make_call(&m, "cudaDeviceSynchronize", CT_CALL, 0, 0)));
		give(b, rec_of(make_call(&m, "cudaFree", CT_CALL, 0, 0, U(16))));
	}
	b->stack = NULL;
}

/* A call that began before the trace: no words, no reads. */
static void give_before(struct test_sink *b, const char *name, int flags)
{
	struct made_call m;
	struct ct_call *c = make_call(&m, name, CT_CALL, CT_F_UNFINISHED | CT_F_BEFORE | flags, 0,
				      U(0), U(0), U(0), U(0), U(0), U(0), U(0), U(0));

	c->nwords = 0;
	c->got = 0;
	c->h.size = sizeof(*c);
	give(b, &c->h);
}

static void give_names(struct test_sink *b)
{
	static const struct kernel_name *const all[] = { &vec_add, &vec_add, &gemm, &cut,
							 &hostile };
	static const uint64_t handle = 0x55aa00,
			      node[8] = { 0x1234, 1 | U(2) << 32, 3 | U(4) << 32, 5 | U(6) << 32 };
	static const uint64_t config[8] = { 4096 | U(1) << 32, 1 | U(256) << 32, 1 | U(1) << 32 };
	static struct kernel_name reused;
	struct made_call m;

	make_nmemory = 0;
	make_mem(0x1000, &handle, sizeof(handle));
	make_mem(0x2000, node, sizeof(node));
	make_mem(0x3000, config, sizeof(config));
#define GIVE(name, kind, flags, ret, ...) \
	give(b, rec_of(make_call(&m, name, kind, flags, ret, ##__VA_ARGS__)))
#define LAUNCH                                                                                   \
	U(0x7f8b3c4d2a00), 4096 | U(1) << 32, U(1), 256 | U(1) << 32, U(1), U(0x7ffc0010), U(0), \
		U(0)
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		b->kernel = all[i];
		GIVE("cudaLaunchKernel", CT_CALL, 0, 0, LAUNCH);
	}
	/* another name comes to lie where one was */
	reused = vec_add;
	b->kernel = &reused;
	GIVE("cudaLaunchKernel", CT_CALL, 0, 0, LAUNCH);
	reused = gemm;
	GIVE("cudaLaunchKernel", CT_CALL, 0, 0, LAUNCH);
	b->kernel = &vec_add;
	GIVE("cudaLaunchKernel", CT_ENTER, 0, 0, LAUNCH);
	GIVE("cudaLaunchKernel", CT_CALL, CT_F_UNFINISHED, 0, LAUNCH);
	give_before(b, "cudaLaunchKernel", CT_F_PENDING);
	GIVE("cudaLaunchKernelExC", CT_CALL, 0, 0, U(0x3000), U(0x1234), U(0));
	GIVE("cuLaunchKernel", CT_CALL, 0, 0, U(0x1234), U(1), U(2), U(3), U(4), U(5), U(6), U(7),
	     U(0), U(0), U(0));
	GIVE("cudaFuncSetCacheConfig", CT_CALL, 0, 0, U(0x1234), U(1));
	GIVE("cudaGraphAddKernelNode", CT_CALL, 0, 0, U(0x1000), U(0x66), U(0), U(0), U(0x2000));
	/* the handle that comes out is the kernel's, and is shown */
	GIVE("cudaGetFuncBySymbol", CT_CALL, 0, 0, U(0x1000), U(0x1234));
	/* a name and nothing that it could stand for */
	GIVE("cudaDeviceSynchronize", CT_CALL, 0, 0);
	b->kernel = NULL;
	GIVE("cudaLaunchKernel", CT_CALL, 0, 0, LAUNCH);
	give_before(b, "cudaStreamSynchronize", CT_F_PENDING);
	give_before(b, "cudaStreamSynchronize", 0);
#undef GIVE
#undef LAUNCH
}

static void golden_names(const char *name, const struct sink_ops *ops, const struct sink_opts *opts)
{
	struct test_sink b = { .opts = *opts };
	char *text;

	begin(&b, ops);
	give(&b, process(CT_PROCESS, 12345, "my_cuda_app"));
	give_names(&b);
	give_stacks(&b);
	text = end(&b);
	unit_golden(name, text);
	free(text);
}

static void test_names(void)
{
	struct sink_opts brief = { 0 }, full = { .look.full_names = true },
			 mangled = { .look.mangled = true };

	golden_names("table_names.txt", &sink_table, &brief);
	golden_names("table_names_full.txt", &sink_table, &full);
	golden_names("table_names_mangled.txt", &sink_table, &mangled);
	golden_names("rows_names.jsonl", &sink_json, &brief);
	golden_names("rows_names_mangled.jsonl", &sink_json, &mangled);
}

/* Names and stacks larger than any buffer, and more of them than are kept. */
static void test_large(void)
{
	static const struct sink_ops *const all[] = { &sink_table, &sink_json };
	static char name[40000], function[3000];
	struct stack_frame frame = {
		.kind = CT_FRAME_NATIVE, .address = 1, .function = function, .object = "/bin/app"
	};
	static const struct stack_frame *deep[400];
	struct kernel_name k = {
		.mangled = name, .full = name, .brief = name, .source = CT_NAME_REGISTERED
	};
	struct made_call m;

	memset(name, '\x01', sizeof(name) - 1);
	memset(function, 'f', sizeof(function) - 1);
	for (size_t i = 0; i < ARRAY_LEN(deep); i++)
		deep[i] = &frame;
	for (size_t s = 0; s < ARRAY_LEN(all); s++) {
		struct test_sink b = { .opts = { .look.full_names = true } };
		size_t lines = 0;
		char *text;

		begin(&b, all[s]);
		for (uint32_t id = 1; id <= 20; id++) {
			struct stack stack = { .id = id,
					       .nframes = ARRAY_LEN(deep),
					       .frames = deep };

			b.kernel = &k;
			b.stack = &stack;
			CHECK(give(&b, rec_of(make_call(&m, "cudaLaunchKernel", CT_CALL, 0, 0, U(1),
							U(1), U(1), U(1), U(1), U(1), U(1),
							U(1)))) == 1);
		}
		text = end(&b);
		for (char *p = text; *p; p++)
			lines += *p == '\n';
		CHECK(lines == (s ? 22u : 1 + 20 * 401u));
		/* 16384 bytes of the name, four characters each, and that there is more */
		CHECK(s || strstr(text, "\\001..., grid="));
		CHECK(strlen(text) > 20u * 400 * 2999);
		free(text);
	}
}

static void test_durations(void)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0ns" },	       { 820, "820ns" },	{ 999, "999ns" },
		{ 1000, "1us" },       { 7100, "7.1us" },	{ 112400, "112.4us" },
		{ 310000, "310us" },   { 999949, "999.9us" },	{ 999950, "1ms" },
		{ 1420000, "1.42ms" }, { 1500000, "1.5ms" },	{ 999994999, "999.99ms" },
		{ 999995000, "1s" },   { 2050000000, "2.05s" }, { 61000000000, "61s" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct test_sink b = { 0 };
		struct made_call m;
		struct ct_call *c = make_call(&m, "cudaDeviceSynchronize", CT_CALL, 0, 0);
		char *text, *last;

		c->h.end_ns = c->h.start_ns + cases[i].ns;
		begin(&b, &sink_table);
		give(&b, &c->h);
		text = end(&b);
		text[strlen(text) - 1] = '\0';
		last = strrchr(text, ' ');
		CHECK_TEXT(cases[i].text, last ? last + 1 : "");
		free(text);
	}
}

/* ---- the other stages ---- */

static void test_processes(void)
{
	struct process_table *t = process_table_open();
	struct ct_exit gone = { .h = { .size = sizeof(gone), .kind = CT_EXIT } };

	CHECK_TEXT("?", process_table_find(t, 99)->comm);
	process_table_record(t, process(CT_PROCESS, 99, "late"));
	CHECK_TEXT("late", process_table_find(t, 99)->comm);
	CHECK(process_table_find(t, 99)->uid == 1000);
	process_table_record(t, process(CT_EXEC, 99, "other"));
	CHECK_TEXT("other", process_table_find(t, 99)->comm);
	/* many that come and go do not fill it up, and the living are not lost */
	for (uint32_t pid = 1000; pid < 200000; pid++) {
		process_table_record(t, process(CT_PROCESS, pid, "short"));
		gone.h.pid = pid;
		process_table_record(t, &gone.h);
	}
	for (uint32_t pid = 200000; pid < 205000; pid++)
		process_table_record(t, process(CT_PROCESS, pid, "long"));
	CHECK_TEXT("other", process_table_find(t, 99)->comm);
	for (uint32_t pid = 200000; pid < 205000; pid += 500)
		CHECK_TEXT("long", process_table_find(t, pid)->comm);
	process_table_close(t);
}

static void test_filter(void)
{
	struct process proc = { .pid = 12345, .comm = "python3" };
	uint64_t shown[CT_MAX_FUNCS / 64] = { 0 };
	struct made_call m;
	struct ct_call *c = make_call(&m, "cudaMalloc", CT_CALL, 0, 0, U(0x1000), U(4096));
	struct event ev = { .rec = &c->h, .proc = &proc };
	struct filter f = { 0 };

	CHECK(filter_match(&f, &ev));
	f.shown = shown;
	CHECK(!filter_match(&f, &ev));
	shown[c->func / 64] |= 1ULL << (c->func % 64);
	CHECK(filter_match(&f, &ev));
	f.calls.failed_only = true;
	CHECK(!filter_match(&f, &ev));
	c->ret = 2;
	CHECK(filter_match(&f, &ev));
	f.calls.failed_only = false;
	f.calls.min_duration_ns = 112401;
	CHECK(!filter_match(&f, &ev));
	f.calls.min_duration_ns = 112400;
	CHECK(filter_match(&f, &ev));
	f.calls.min_size_bytes = 4097;
	CHECK(!filter_match(&f, &ev));
	f.calls.min_size_bytes = 4096;
	CHECK(filter_match(&f, &ev));
	f.comm_glob = "py*";
	CHECK(filter_match(&f, &ev));
	f.comm_glob = "java";
	CHECK(!filter_match(&f, &ev));
	f.comm_glob = NULL;
	f.tid = 1;
	CHECK(!filter_match(&f, &ev));
	f.tid = 12345;
	CHECK(filter_match(&f, &ev));
	c->depth = 1;
	CHECK(!filter_match(&f, &ev));
	f.nested = true;
	CHECK(filter_match(&f, &ev));
	c->h.flags |= CT_F_HIDDEN;
	CHECK(!filter_match(&f, &ev));
	ev.rec = lost(CT_LOSS_RING, 1);
	CHECK(filter_match(&f, &ev));
}

static char order[64];

static int note(void *ctx, struct event *ev)
{
	const struct ct_hdr *rec = ev->rec;

	(void)ctx;
	/* what is held keeps its number and its place */
	CHECK(ev->number == rec->start_ns * 2 && ev->device == 1 && ev->context == 2 &&
	      ev->stream == rec->tid);
	snprintf(order + strlen(order), sizeof(order) - strlen(order), "%llu%c ",
		 (unsigned long long)rec->start_ns, rec->tid == 1 ? 'a' : 'b');
	return 0;
}

static void nested_call(struct nest *n, uint32_t tid, int depth, uint64_t from, uint64_t to)
{
	struct made_call m;
	struct ct_call *c = make_call(&m, "cudaDeviceSynchronize", CT_CALL, 0, 0);

	c->h.tid = tid;
	c->depth = (uint8_t)depth;
	c->h.start_ns = from;
	c->h.end_ns = to;
	CHECK(!nest_record(n, &(struct event){ .rec = &c->h,
					       .number = (uint32_t)from * 2,
					       .device = 1,
					       .context = 2,
					       .stream = tid }));
}

static void test_nest(void)
{
	struct nest *n = nest_open(note, NULL);

	order[0] = '\0';
	nested_call(n, 1, 2, 30, 40);
	nested_call(n, 2, 1, 15, 16);
	nested_call(n, 1, 1, 20, 50);
	nested_call(n, 1, 1, 60, 70);
	CHECK_TEXT("", order);
	nested_call(n, 1, 0, 10, 80);
	CHECK_TEXT("10a 20a 30a 60a ", order);
	nested_call(n, 2, 0, 14, 90);
	CHECK_TEXT("10a 20a 30a 60a 14b 15b ", order);
	/* nothing is held longer than a second */
	order[0] = '\0';
	nested_call(n, 1, 1, 100, 110);
	CHECK(!nest_flush(n, 110 + NEST_HOLD_NS - 1));
	CHECK_TEXT("", order);
	CHECK(!nest_flush(n, 110 + NEST_HOLD_NS));
	CHECK_TEXT("100a ", order);
	nested_call(n, 1, 1, 200, 210);
	CHECK(!nest_flush(n, UINT64_MAX));
	CHECK_TEXT("100a 200a ", order);
	nested_call(n, 1, 1, 300, 310);
	nest_close(n);
}

static int give_on(void *ctx, struct event *ev)
{
	int rows = give(ctx, ev->rec);

	return rows < 0 ? rows : 0;
}

static void test_nested_rows(void)
{
	struct test_sink b = { .opts = { .look.nested = true } };
	struct nest *n = nest_open(give_on, &b);
	struct made_call m;
	struct ct_call *c;
	char *text;

	begin(&b, &sink_table);
	c = make_call(&m, "cuMemAlloc_v2", CT_CALL, 0, 0, U(0x1000), U(4096));
	c->depth = 1;
	c->h.start_ns += 1000;
	c->h.end_ns -= 1000;
	nest_record(n, &(struct event){ .rec = &c->h });
	c = make_call(&m, "cudaMalloc", CT_CALL, 0, 0, U(0x1000), U(4096));
	nest_record(n, &(struct event){ .rec = &c->h });
	text = end(&b);
	unit_golden("table_nested.txt", text);
	free(text);
	nest_close(n);
}

/* ---- rubbish ---- */

static void test_checks(void)
{
	struct made_call m;
	struct ct_call *c = make_call(&m, "cudaMalloc", CT_CALL, 0, 0, U(0x1000), U(4096));
	size_t size = c->h.size;

	CHECK(!record_check(c, size));
	CHECK(record_check(c, size - 1) == -EBADMSG);
	CHECK(record_check(c, 0) == -EBADMSG);
	c->h.size = (uint16_t)(size - 8);
	CHECK(record_check(c, size) == -EBADMSG); /* the output that `got` announces does not fit */
	c->h.size = (uint16_t)(size - 1);
	CHECK(record_check(c, size) == -EBADMSG);
	c->h.size = (uint16_t)size;
	c->func = 0xffff;
	CHECK(record_check(c, size) == -EBADMSG);
	c = make_call(&m, "cudaMalloc", CT_CALL, 0, 0, U(0x1000), U(4096));
	c->nwords = 0;
	CHECK(record_check(c, size) == -EBADMSG);
	c->nwords = 255;
	CHECK(record_check(c, size) == -EBADMSG);
	c = make_call(&m, "cudaMalloc", CT_CALL, 0, 0, U(0x1000), U(4096));
	c->got = 0x80000000;
	CHECK(record_check(c, size) == -EBADMSG);
}

static uint32_t seed = 1;

static uint32_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

/* A valid record of a random function with random words, or any bytes at all; then some bytes
 * changed. */
static void rubbish(struct made_call *m)
{
	memset(m, 0, sizeof(*m));
	if (rnd() % 4) {
		static unsigned char memory[4096];
		struct ct_spec spec = { 0 };
		int func = (int)(rnd() % (uint32_t)api_nfuncs);

		for (size_t i = 0; i < sizeof(memory); i++)
			memory[i] = (unsigned char)rnd();
		make_nmemory = 0;
		make_mem(0x1000, memory, sizeof(memory));
		api_spec(func, API_ARCH_HERE, true, &spec);
		m->c.h = (struct ct_hdr){ .kind = CT_CALL,
					  .flags = (uint16_t)(rnd() % 4 ? 0 : rnd()),
					  .pid = rnd() % 8,
					  .start_ns = rnd(),
					  .end_ns = rnd() };
		m->c.func = (uint16_t)func;
		m->c.ret = rnd() % 2 ? 0 : (int32_t)rnd();
		m->c.nwords = spec.nwords > 6 ? spec.nwords : 6;
		for (int i = 0; i < m->c.nwords; i++)
			m->c.words[i] = rnd() % 2   ? 0x1000 + rnd() % 4096
					: rnd() % 2 ? rnd() % 64
						    : rnd();
		make_reads(m, &spec, rnd() % 2);
	} else {
		for (size_t i = 0; i < sizeof(m->room); i++)
			m->room[i] = (char)rnd();
		m->c.h.size = (uint16_t)(rnd() % (sizeof(m->room) / 8) * 8);
		m->c.h.kind = (uint16_t)(rnd() % (CT_KIND_END + 2));
	}
	for (uint32_t n = rnd() % 4; n; n--)
		m->room[rnd() % (m->c.h.size && m->c.h.size < sizeof(m->room) ? m->c.h.size : 48)] =
			(char)rnd();
}

static void test_rubbish(void)
{
	static const struct sink_ops *const all[] = { &sink_table,  &sink_json,	 &sink_count,
						      &sink_folded, &sink_flame, &sink_perfetto,
						      &sink_chrome };
	const struct stack_frame *in[ARRAY_LEN(frames)];
	struct test_sink b[ARRAY_LEN(all)] = { 0 };
	struct made_call *m;
	char *text, table[64];
	int good = 0;

	snprintf(table, sizeof(table), "/tmp/ct_test_sinks.%d.table", (int)getpid());
	for (size_t i = 0; i < ARRAY_LEN(frames); i++)
		in[i] = &frames[i];
	for (int i = 0; i < (int)ARRAY_LEN(all); i++) {
		b[i].opts.look.nested = true;
		begin(&b[i], all[i]);
		if (!i)
			rename(b[i].path, table);
	}
	for (int round = 0; round < 100000; round++) {
		/* on the heap in its exact size, so that a sanitizer sees the first byte too many */
		static struct made_call whole;
		size_t size;

		rubbish(&whole);
		size = whole.c.h.size <= sizeof(whole.room) ? whole.c.h.size : sizeof(whole.room);
		m = malloc(size ? size : 1);
		memcpy(m, whole.room, size);
		if (!record_check(m, size)) {
			good++;
			for (size_t i = 0; i < ARRAY_LEN(all); i++) {
				struct stack stack = { .id = rnd() % 2000 + 1,
						       .nframes = rnd() % ARRAY_LEN(frames),
						       .frames = in };
				struct event ev = { .rec = &m->c.h };

				ev.kernel = rnd() % 2 ? &hostile : NULL;
				ev.stack = rnd() % 2 ? &stack : NULL;

				process_table_record(b[i].procs, &m->c.h);
				ev.proc = process_table_find(b[i].procs, m->c.h.pid);
				b[i].sink.ops->event(&b[i].sink, &ev);
			}
		}
		free(m);
	}
	CHECK(good > 10000);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		free(end(&b[i]));
	text = unit_read(table);
	for (char *p = text; p && *p; p++)
		if ((unsigned char)*p < ' ' && *p != '\n') {
			CHECK(!"a control character in the table");
			break;
		}
	free(text);
	unlink(table);
}

/* The time with the date is UTC's, the time of day that of the place where the rows are printed; both to the
 * microsecond and not rounded up into another second, day or year. */
static void test_times(enum sink_time time)
{
	static const struct {
		uint64_t ns;
		const char *text, *day, *day_us;
	} times[] = {
		{ 0, "1970-01-01T00:00:00.000000Z", "01:00:00 ", "01:00:00.000000 " },
		{ 951868799999999999, "2000-02-29T23:59:59.999999Z", "00:59:59 ",
		  "00:59:59.999999 " },
		{ 951868800000000000, "2000-03-01T00:00:00.000000Z", "01:00:00 ",
		  "01:00:00.000000 " },
		/* the hour that Berlin's clocks leave out comes next */
		{ 1711846799999999999, "2024-03-31T00:59:59.999999Z", "01:59:59 ",
		  "01:59:59.999999 " },
		{ 1711846800000000000, "2024-03-31T01:00:00.000000Z", "03:00:00 ",
		  "03:00:00.000000 " },
		/* the one that is there twice */
		{ 1729994399999999000, "2024-10-27T01:59:59.999999Z", "02:59:59 ",
		  "02:59:59.999999 " },
		/* calls complete in another order than they begin */
		{ 1711846799000001000, "2024-03-31T00:59:59.000001Z", "01:59:59 ",
		  "01:59:59.000001 " },
		{ 1735689599999999999, "2024-12-31T23:59:59.999999Z", "00:59:59 ",
		  "00:59:59.999999 " },
		{ 1735689600000000000, "2025-01-01T00:00:00.000000Z", "01:00:00 ",
		  "01:00:00.000000 " },
		{ UINT64_MAX, "2554-07-21T23:34:33.709551Z", "01:34:33 ", "01:34:33.709551 " },
	};
	struct sink_opts opts = { .look.time = time };

	/* as the zone's file has it, which small images do not have */
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		const char *want = time == SINK_TIME_DAY      ? times[i].day
				   : time == SINK_TIME_DAY_US ? times[i].day_us
							      : times[i].text;
		struct test_sink b = { .opts = opts };
		const struct ct_hdr *rec;
		struct made_call m;
		char *text;

		begin(&b, &sink_table);
		/* the one before it too, so that its second is the one remembered */
		for (size_t j = i ? i - 1 : 0; j <= i; j++) {
			rec = rec_of(make_call(&m, "cudaDeviceSynchronize", CT_CALL, 0, 0));
			((struct ct_hdr *)rec)->end_ns = ((struct ct_hdr *)rec)->start_ns =
				times[j].ns;
			give(&b, rec);
		}
		text = end(&b);
		CASE_ROW("%zu", i);
		CHECK(strstr(text, want));
		if (!strstr(text, want))
			printf("  want: %s\n  got:  %s\n", want, text);
		free(text);
	}
	unsetenv("TZ");
	tzset();
}

int main(void)
{
	RUN(test_formats);
	RUN(test_times, SINK_TIME_ISO);
	RUN(test_times, SINK_TIME_DAY);
	RUN(test_times, SINK_TIME_DAY_US);
	RUN(test_durations);
	RUN(test_processes);
	RUN(test_filter);
	RUN(test_nest);
	RUN(test_nested_rows);
	RUN(test_names);
	RUN(test_large);
	RUN(test_checks);
	RUN(test_rubbish);
	return unit_end();
}
