/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_fold.c - stacks added up: the folded lines, the flame graph's data, weights, limits. With
 * the arguments `page KIND FILE` it writes the pages that tests/flame looks at in a browser.
 */
#include <unistd.h>

#include "../../user/export/stacks/fold.h"
#include "make_call.h"
#include "unit.h"

static const struct kernel_name vec_add = {
	.mangled = "_Z6vecAddPKfi", .full = "void vecAdd<float>(float const*, int)", .brief = "vecAdd", .source = 1,
}, hostile = {
	.mangled = "k", .full = "k", .brief = "</script><img src=x onerror=alert(1)>;\n\x1b[31m\xe2\x80\xae\"'&amp;\xff", .cut = true,
};

#define PY(f, path, l)                                                          \
	{                                                                       \
		.kind = CT_FRAME_PYTHON, .function = f, .file = path, .line = l \
	}
static const struct stack_frame frames[] = {
	/* 0 */ { .kind = CT_FRAME_NATIVE, .function = "main", .address = 1, .object = "/bin/app" },
	/* 1 */
	{ .kind = CT_FRAME_NATIVE,
	  .function = "step(int)",
	  .mangled = "_Z4stepi",
	  .offset = 4,
	  .file = "a.c",
	  .line = 1 },
	/* 2 */
	{ .kind = CT_FRAME_NATIVE,
	  .function = "step(int)",
	  .mangled = "_Z4stepi",
	  .offset = 8,
	  .file = "a.c",
	  .line = 2 },
	/* 3 */ { .kind = CT_FRAME_INLINED, .function = "helper", .file = "a.c", .line = 3 },
	/* 4 */ PY("<module>", "/src/train.py", 9),
	/* 5 */ PY("Model.step", "/src/train.py", 90),
	/* 6 */ { .kind = CT_FRAME_NATIVE, .address = 0xbeef, .object = "/usr/lib/libfoo.so" },
	/* 7 */ { .kind = CT_FRAME_UNKNOWN, .address = 0x7f1200000000 },
	/* 8 */
	{ .kind = CT_FRAME_NATIVE,
	  .function = "a;b\nc\x1b\xe2\x80\xae\xff\t</script><b>",
	  .object = "x" },
	/* 9 */ { .kind = CT_FRAME_NATIVE, .function = "", .object = "x" },
};
#define F(i) &frames[i]
static const struct stack_frame *const in_step[] = { F(3), F(1), F(0) },
				       *const in_step2[] = { F(3), F(2), F(0) },
				       *const python[] = { F(1), F(5), F(4), F(0) },
				       *const odd[] = { F(6), F(7), F(8), F(9), F(0) };
#define STACK(n, f, ...)                                                     \
	{                                                                    \
		.id = n, .nframes = ARRAY_LEN(f), .frames = f, ##__VA_ARGS__ \
	}
static const struct stack stacks[] = {
	STACK(1, in_step),
	STACK(2, in_step2),
	STACK(3, python),
	STACK(4, odd),
	STACK(5, in_step, .flags = CT_STACK_CUT),
	{ .id = 6, .flags = CT_STACK_BROKEN },
};

/* ---- a sink with calls given to it ---- */

static struct process proc = { .pid = 12345, .shown_pid = 12345, .comm = "app" };

static void call(struct sink *s, const char *name, uint64_t ns, int stack,
		 const struct kernel_name *kernel, uint64_t size)
{
	struct made_call m;
	struct ct_call *c = make_call(&m, name, CT_CALL, 0, 0, U(0x10), size, size, U(1), U(1),
				      U(1), U(1), U(1), U(1));
	struct event ev = { .rec = &c->h,
			    .proc = &proc,
			    .kernel = kernel,
			    .stack = stack ? &stacks[stack - 1] : NULL };

	c->h.end_ns = c->h.start_ns + ns;
	CHECK(!record_check(c, c->h.size));
	CHECK(s->ops->event(s, &ev) >= 0);
}

static void play(struct sink *s)
{
	struct made_call m;
	struct ct_call *c;
	struct event ev = { .proc = &proc };

	snprintf(proc.comm, sizeof(proc.comm), "app");
	for (int i = 0; i < 3; i++)
		call(s, "cudaFree", 2000, 1, NULL, 0);
	call(s, "cudaFree", 1400, 2, NULL, 0); /* other lines of the same functions */
	call(s, "cudaDeviceSynchronize", 200, 1, NULL, 0);
	call(s, "cudaLaunchKernel", 5000, 3, &vec_add, 0);
	call(s, "cudaLaunchKernel", 5000, 3, NULL, 0);
	call(s, "cudaFuncSetCacheConfig", 5000, 3, &vec_add, 0); /* no launch: no kernel below it */
	call(s, "cudaLaunchKernel", 1000000, 4, &hostile, 0);
	call(s, "cudaMemset", 1000, 5, NULL, 4096);
	call(s, "cudaMemset", 1000, 5, NULL, 1);
	call(s, "cudaMemset", 1000, 6, NULL, 5);
	call(s, "cudaFree", 1000, 0, NULL, 0);
	snprintf(proc.comm, sizeof(proc.comm), "a;p\x1b p");
	call(s, "cudaFree", 1000, 0, NULL, 0);
	/* what is not counted: entries, and calls that are still under way */
	c = make_call(&m, "cudaFree", CT_ENTER, 0, 0, U(0x10));
	ev.rec = &c->h;
	CHECK(s->ops->event(s, &ev) == 0);
	c = make_call(&m, "cudaFree", CT_CALL, CT_F_UNFINISHED | CT_F_PENDING, 0, U(0x10));
	ev.rec = &c->h;
	CHECK(s->ops->event(s, &ev) == 0);
	/* a failed copy moved nothing */
	c = make_call(&m, "cudaMemset", CT_CALL, 0, 1, U(0), U(0), U(1 << 20));
	ev.rec = &c->h;
	CHECK(s->ops->event(s, &ev) == (s->opts->look.weight != SINK_WEIGHT_BYTES));
}

/* Everything that the sink writes; what it says on stderr is not looked at. The caller frees. */
static char *written(const struct sink_ops *ops, struct sink_opts *opts,
		     void (*with)(struct sink *))
{
	struct sink_end end = { .reason = "finished" };
	struct sink s = { .ops = ops };
	struct out out;
	char path[64], *text;

	snprintf(path, sizeof(path), "/tmp/ct_test_fold.%d", (int)getpid());
	CHECK(!out_open(&out, path, false));
	opts->out = &out;
	opts->version = "test";
	CHECK(!ops->open(&s, opts));
	if (with)
		with(&s);
	CHECK(!ops->close(&s, &end));
	CHECK(!out_close(&out));
	text = unit_read(path);
	unlink(path);
	return text;
}

static void golden(const char *name, struct sink_opts opts)
{
	char *text = written(&sink_folded, &opts, play);

	unit_golden(name, text);
	free(text);
}

static void test_folded(void)
{
	struct sink_opts none = { 0 };
	char *text;

	golden("folded.txt", (struct sink_opts){ 0 });
	golden("folded_time.txt", (struct sink_opts){ .look.weight = SINK_WEIGHT_TIME });
	golden("folded_bytes.txt", (struct sink_opts){ .look.weight = SINK_WEIGHT_BYTES });
	golden("folded_full.txt", (struct sink_opts){ .look.full_names = true });
	golden("folded_mangled.txt", (struct sink_opts){ .look.mangled = true });
	text = written(&sink_folded, &none, NULL);
	CHECK_TEXT("", text);
	free(text);
}

/* Events with one stack: of two threads with the same name, of one without a name, of the
 * leader, and work that no thread did. */
static void play_threads(struct sink *s)
{
	static const struct {
		uint32_t tid;
		const char *name;
	} threads[] = { { 100, "loader" }, { 101, "loader" }, { 100, "loader" }, { 102, NULL },
			{ 12345, NULL },   { 0, NULL },	      { 103, "a;b" } };

	snprintf(proc.comm, sizeof(proc.comm), "app");
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		struct made_call m;
		struct ct_call *c = make_call(&m, "cudaFree", CT_CALL, 0, 0, U(0x10));
		struct event ev = {
			.rec = &c->h, .proc = &proc, .stack = &stacks[0], .thread = threads[i].name
		};

		c->h.pid = 12345;
		c->h.tid = threads[i].tid;
		CHECK(s->ops->event(s, &ev) >= 0);
	}
}

static void test_threads(void)
{
	struct sink_opts opts = { .look.tid = true };
	char *text = written(&sink_folded, &opts, play_threads);

	CHECK_TEXT("app;[no thread];main;step(int);helper;cudaFree 1\n"
		   "app;a:b (103);main;step(int);helper;cudaFree 1\n"
		   "app;app (12345);main;step(int);helper;cudaFree 1\n"
		   "app;loader (100);main;step(int);helper;cudaFree 2\n"
		   "app;loader (101);main;step(int);helper;cudaFree 1\n"
		   "app;thread 102;main;step(int);helper;cudaFree 1\n",
		   text);
	free(text);
}

/* ---- the flame graph's data ---- */

static void test_page(void)
{
	static const char mark[] = "<script id=\"data\" type=\"application/json\">";
	struct sink_opts opts = { .title = "./app </script>\xe2\x80\xae;x",
				  .look.weight = SINK_WEIGHT_TIME };
	char *text = written(&sink_flame, &opts, play), *data = strstr(text, mark), *end;

	CHECK(data);
	if (!data)
		return;
	data += strlen(mark);
	end = strstr(data, "</script>");
	CHECK(end && !strncmp(end, "</script>\n<script>\n\"use strict\";", 32));
	CHECK(!strstr(text, "@DATA@"));
	*end = '\0';
	CHECK(!strchr(data, '<'));
	for (char *p = data; *p; p++)
		if ((unsigned char)*p < ' ' && *p != '\n') {
			CHECK(!"a control character in the page");
			break;
		}
	strcat(data, "\n"); /* there was more */
	unit_golden("flame_data.json", data);
	free(text);
	/* nothing at all is a page too */
	opts.title = NULL;
	text = written(&sink_flame, &opts, NULL);
	CHECK(strstr(text, "\"names\":[\"\",\"[other]\"],\n\"kinds\":\"66\",\n"
			   "\"places\":[0,0,0,0],\n\"files\":[\"\"],\n\"nodes\":[]}</script>"));
	free(text);
}

/* ---- limits ---- */

static uint64_t sum(const struct fold *f)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < f->nnodes; i++)
		n += f->nodes[i].self;
	return n;
}

/* `n` calls, each from a stack of its own. */
static void many(struct fold *f, uint32_t n)
{
	struct made_call m;
	struct ct_call *c = make_call(&m, "cudaFree", CT_CALL, 0, 0, U(0x10));

	for (uint32_t i = 0; i < n; i++) {
		char name[32];
		struct stack_frame own = { .kind = CT_FRAME_NATIVE, .function = name };
		const struct stack_frame *way[] = { &own, F(1), F(0) };
		struct stack stack = { .id = i + 1, .nframes = 3, .frames = way };
		struct event ev = { .rec = &c->h, .proc = &proc, .stack = &stack };

		snprintf(name, sizeof(name), "f%u", i);
		if (fold_event(f, &ev) != 1) {
			CHECK(!"counted");
			return;
		}
	}
}

static void test_limits(void)
{
	struct sink_opts opts = { 0 };
	struct fold *f = fold_open(&opts, 100);
	uint32_t depth = 0, n = 0, at = 0;

	many(f, 1000);
	CHECK(f->nnodes == 100);
	CHECK(sum(f) == 1000); /* nothing is lost */
	CHECK(f->nodes[f->other].self == f->no_room && f->no_room > 900);
	CHECK(!fold_finish(f));
	while ((at = fold_next(f, at, &depth)))
		n++;
	CHECK(n == 99 && depth == 0);
	fold_close(f);

	/* a hundred thousand stacks have room, and the same ones again add nothing */
	f = fold_open(&opts, 0);
	many(f, 100000);
	n = f->nnodes;
	many(f, 100000);
	CHECK(f->nnodes == n && !f->no_room && sum(f) == 200000);
	fold_close(f);
	fold_close(NULL);
}

static void test_weights(void)
{
	static const struct {
		uint64_t ns, us;
	} cases[] = { { 0, 0 },	   { 1, 1 },	{ 999, 1 },	    { 1000, 1 },
		      { 1499, 1 }, { 1500, 2 }, { 12345678, 12346 } };
	struct sink_opts opts = { .look.weight = SINK_WEIGHT_TIME };
	struct fold *f = fold_open(&opts, 0);
	struct fold_node n = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		n.self = cases[i].ns;
		CHECK(fold_weight(f, &n) == cases[i].us);
	}
	fold_close(f);
}

/* ---- pages for a browser ---- */

/* A program as they are: python, extension code, a launch and its kernels, waits. */
static void play_program(struct sink *s)
{
	static const char *const layers[] = { "Embedding.forward", "Attention.forward",
					      "MLP.forward", "LayerNorm.forward" };
	static const struct stack_frame common[] = {
		{ .kind = CT_FRAME_NATIVE, .function = "_start" },
		{ .kind = CT_FRAME_NATIVE, .function = "Py_RunMain" },
		PY("<module>", "/src/train.py", 120),
		PY("main", "/src/train.py", 100),
		PY("train_step", "/src/train.py", 61),
		{ .kind = CT_FRAME_NATIVE,
		  .function = "at::native::gpu_kernel_impl<at::native::CUDAFunctor_add<float> "
			      ">(at::TensorIteratorBase&)" },
		{ .kind = CT_FRAME_NATIVE,
		  .object = "/usr/lib/libtorch_cuda.so",
		  .address = 0x1234 },
		{ .kind = CT_FRAME_INLINED, .function = "c10::cuda::getCurrentCUDAStream" },
	};
	static const struct kernel_name kernels[] = {
		{ .mangled = "a",
		  .full = "a",
		  .brief = "at::native::vectorized_elementwise_kernel",
		  .source = 1 },
		{ .mangled = "b", .full = "b", .brief = "ampere_sgemm_128x64_tn", .source = 1 },
		{ .mangled = "c", .full = "c", .brief = "softmax_warp_forward", .source = 1 },
	};
	uint32_t id = 1;

	snprintf(proc.comm, sizeof(proc.comm), "python3");
	for (int l = 0; l < 4; l++) {
		struct stack_frame layer = PY(layers[l], "/src/model.py", 20);
		const struct stack_frame *way[] = { &common[7], &common[6], &common[5],
						    &layer,	&common[4], &common[3],
						    &common[2], &common[1], &common[0] };
		struct stack stack = { .id = id++, .nframes = ARRAY_LEN(way), .frames = way };
		struct stack_frame waits = PY(layers[l], "/src/model.py", 23);
		const struct stack_frame *wait_way[] = { &waits,     &common[4], &common[3],
							 &common[2], &common[1], &common[0] };
		struct stack wait = { .id = id++, .nframes = 6, .frames = wait_way };
		struct made_call m;
		struct event ev = { .proc = &proc };

		for (int i = 0; i < 40 * (l + 1); i++) {
			ev.rec = &make_call(&m, "cudaLaunchKernel", CT_CALL, 0, 0, U(1), U(1), U(1),
					    U(1), U(1), U(1), U(1), U(1))
					  ->h;
			ev.kernel = &kernels[(i + l) % 3];
			ev.stack = &stack;
			CHECK(s->ops->event(s, &ev) == 1);
		}
		for (int i = 0; i < 25; i++) {
			ev.kernel = NULL;
			ev.stack = &wait;
			ev.rec = &make_call(&m, i % 3 ? "cudaMemcpyAsync" : "cudaStreamSynchronize",
					    CT_CALL, 0, 0, U(1), U(2), U(3), U(4), U(0))
					  ->h;
			/* a wait takes longer than a launch */
			m.c.h.end_ns = m.c.h.start_ns + 500000;
			CHECK(s->ops->event(s, &ev) == 1);
		}
	}
}

/* 100 000 stacks in a few hundred functions. */
static void play_many(struct sink *s)
{
	static char names[300][40];
	static struct stack_frame own[300];
	struct made_call m;
	struct ct_call *c = make_call(&m, "cudaFree", CT_CALL, 0, 0, U(0x10));

	for (int i = 0; i < 300; i++) {
		snprintf(names[i], sizeof(names[i]), "some::function_number_%d", i);
		own[i] = (struct stack_frame){ .kind = CT_FRAME_NATIVE, .function = names[i] };
	}
	for (uint32_t i = 0; i < 100000; i++) {
		const struct stack_frame *way[] = { &own[i % 7],
						    &own[i % 10],
						    &own[i / 10 % 10 + 10],
						    &own[i / 100 % 10 + 20],
						    &own[i / 1000 % 10 + 30],
						    &own[i / 10000 + 40],
						    &own[299],
						    F(0) };
		struct stack stack = { .id = i + 1, .nframes = ARRAY_LEN(way), .frames = way };
		struct event ev = { .rec = &c->h, .proc = &proc, .stack = &stack };

		CHECK(s->ops->event(s, &ev) == 1);
	}
}

static int page(const char *kind, const char *path)
{
	struct sink_opts opts = { .title = "./app </script>\xe2\x80\xae;x" };
	void (*with)(struct sink *) = play;
	FILE *f = fopen(path, "we");
	char *text;
	int bad;

	if (!f)
		return 1;
	if (!strcmp(kind, "program")) {
		opts.title = "python3 train.py --epochs 3";
		with = play_program;
	} else if (!strcmp(kind, "many")) {
		with = play_many;
	} else if (!strcmp(kind, "empty")) {
		with = NULL;
	} else if (!strcmp(kind, "time")) {
		opts.look.weight = SINK_WEIGHT_TIME;
	} else if (!strcmp(kind, "bytes")) {
		opts.look.weight = SINK_WEIGHT_BYTES;
	}
	text = written(&sink_flame, &opts, with);
	bad = fputs(text, f) < 0;
	free(text);
	return fclose(f) || bad || unit_failed;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "page"))
		return page(argv[2], argv[3]);
	RUN(test_folded);
	RUN(test_threads);
	RUN(test_page);
	RUN(test_limits);
	RUN(test_weights);
	return unit_end();
}
