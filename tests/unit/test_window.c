/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_window.c - the stretch of a trace that is shown: what begins and ends it, what is within,
 * what is not; and what a process's cgroup says of its container.
 */
#include "../../user/resolve/info.h"
#include "../../user/flow/plan.h"
#include "../../user/stages/window.h"
#include "make_call.h"
#include "unit.h"

static struct made_call made;

static const struct ct_hdr *call(const char *name, uint32_t tid, uint64_t from, uint64_t to,
				 uint8_t depth)
{
	struct ct_call *c = make_call(&made, name, CT_CALL, 0, 0, U(0), U(0), U(0), U(0), U(0),
				      U(0), U(0), U(0));

	if (!c)
		abort();
	c->h.tid = tid;
	c->h.start_ns = from;
	c->h.end_ns = to;
	c->depth = depth;
	return &c->h;
}

/* What the stages do with a record. */
static bool shows(struct window *w, const struct ct_hdr *h)
{
	if (h->kind == CT_CALL)
		window_call(w, (const struct ct_call *)h);
	return window_has(w, h);
}

static struct window *of(const char *start, const char *stop, uint64_t delay)
{
	struct window_opts o = { delay, start, stop };
	struct window *w;

	CHECK(!window_open(&w, &o));
	return w;
}

static struct ct_kernel kernel(uint64_t call_ns, uint64_t at)
{
	return (struct ct_kernel){ .w = { .h = { .size = sizeof(struct ct_kernel),
						 .kind = CT_KERNEL,
						 .pid = 1,
						 .start_ns = at,
						 .end_ns = at + 5 },
					  .call_ns = call_ns,
					  .func = CT_NO_FUNC } };
}

static void test_pair(void)
{
	struct window *w = of("cudaProfilerStart", "cudaProfilerStop", 0);
	uint64_t rows[PLAN_WORDS] = { 0 };
	struct ct_kernel k;

	window_rows(w, rows);
	CHECK(plan_has(rows, api_next("cudaProfilerStart", -1)) &&
	      plan_has(rows, api_next("cudaProfilerStop", -1)));
	CHECK(!plan_has(rows, api_next("cudaMalloc", -1)) && !window_wants_signals(w));
	window_begin(w, 0);
	CHECK(!shows(w, call("cudaMalloc", 1, 10, 20, 0)));
	/* another thread's call that completes before the window opens, though it began within
	 * the call that opens it */
	CHECK(!shows(w, call("cudaMalloc", 2, 101, 103, 0)));
	CHECK(shows(w, call("cudaProfilerStart", 1, 100, 110, 0)));
	/* one that was under way is not of it */
	CHECK(!shows(w, call("cudaMalloc", 2, 105, 120, 0)));
	CHECK(shows(w, call("cudaMalloc", 2, 121, 125, 0)));
	CHECK(shows(w, call("cudaProfilerStop", 1, 130, 140, 0)));
	CHECK(!window_over(w));
	/* what was asked for within comes when it has closed */
	k = kernel(121, 500);
	CHECK(window_has(w, &k.w.h));
	k = kernel(0, 130);
	CHECK(window_has(w, &k.w.h));
	k = kernel(99, 120);
	CHECK(!window_has(w, &k.w.h));
	k = kernel(141, 145);
	CHECK(!window_has(w, &k.w.h));
	/* a call that began within and ends after it */
	CHECK(shows(w, call("cudaMalloc", 3, 125, 200, 0)));
	CHECK(!shows(w, call("cudaMalloc", 3, 201, 210, 0)));
	/* once more */
	CHECK(shows(w, call("cudaProfilerStart", 1, 300, 310, 0)));
	CHECK(shows(w, call("cudaMalloc", 1, 320, 330, 0)));
	/* a second start within says nothing new */
	CHECK(shows(w, call("cudaProfilerStart", 1, 340, 350, 0)));
	CHECK(shows(w, call("cudaProfilerStop", 1, 360, 370, 0)));
	CHECK(!shows(w, call("cudaMalloc", 1, 380, 390, 0)));
	window_close(w);
}

static void test_nth(void)
{
	struct window *w = of("cudaMal*:3", "cudaFree:2", 0);

	window_begin(w, 0);
	CHECK(!shows(w, call("cudaMalloc", 1, 10, 11, 0)));
	/* a driver's or another call inside is not the program's */
	CHECK(!shows(w, call("cudaMalloc", 1, 12, 13, 1)));
	CHECK(!shows(w, call("cudaMallocHost", 1, 20, 21, 0)));
	CHECK(!shows(w, call("cudaFree", 1, 22, 23, 0)) && !window_begun(w));
	CHECK(shows(w, call("cudaMalloc", 1, 30, 31, 0)) && window_begun(w));
	CHECK(shows(w, call("cudaMemset", 1, 32, 33, 0)));
	CHECK(!window_over(w));
	CHECK(shows(w, call("cudaFree", 1, 40, 41, 0)));
	/* the third comes once */
	CHECK(window_over(w) && window_begun(w));
	CHECK(!shows(w, call("cudaMalloc", 1, 50, 51, 0)));
	window_close(w);
}

static void test_time_and_signals(void)
{
	struct ct_lost lost = { .h = { .size = sizeof(lost), .kind = CT_LOST } };
	struct ct_process p = { .h = { .size = sizeof(p), .kind = CT_PROCESS, .pid = 1 } };
	struct window *w = of(NULL, NULL, 1000);

	window_begin(w, 500);
	CHECK(!shows(w, call("cudaMalloc", 1, 1499, 1600, 0)));
	CHECK(window_has(w, &lost.h) && window_has(w, &p.h));
	CHECK(shows(w, call("cudaMalloc", 1, 1500, 1600, 0)));
	window_close(w);
	w = of("signal", "signal", 0);
	CHECK(window_wants_signals(w));
	window_begin(w, 0);
	CHECK(!shows(w, call("cudaMalloc", 1, 10, 11, 0)));
	window_signal(w, false, 15);
	window_signal(w, true, 20);
	CHECK(shows(w, call("cudaMalloc", 1, 21, 22, 0)));
	window_signal(w, false, 30);
	CHECK(!shows(w, call("cudaMalloc", 1, 31, 32, 0)) && !window_over(w));
	window_signal(w, true, 40);
	CHECK(shows(w, call("cudaMalloc", 1, 41, 42, 0)));
	window_close(w);
	/* without a begin it is open from the begin */
	w = of(NULL, "cudaFree", 0);
	window_begin(w, 5);
	CHECK(!shows(w, call("cudaMalloc", 1, 4, 6, 0)));
	CHECK(shows(w, call("cudaMalloc", 1, 6, 7, 0)));
	CHECK(shows(w, call("cudaFree", 1, 8, 9, 0)) && window_over(w));
	window_close(w);
}

/* Far more stretches than are remembered: the newest are. */
static void test_many(void)
{
	struct window *w = of("cudaProfilerStart", "cudaProfilerStop", 0);
	struct ct_kernel k;

	window_begin(w, 0);
	for (uint64_t i = 1; i <= 10000; i++) {
		CHECK(shows(w, call("cudaProfilerStart", 1, i * 100, i * 100 + 10, 0)));
		CHECK(shows(w, call("cudaProfilerStop", 1, i * 100 + 50, i * 100 + 60, 0)));
	}
	k = kernel(10000 * 100 + 20, 5);
	CHECK(window_has(w, &k.w.h));
	k = kernel(9900 * 100 + 20, 5);
	CHECK(window_has(w, &k.w.h));
	k = kernel(9900 * 100 + 70, 5);
	CHECK(!window_has(w, &k.w.h));
	window_close(w);
}

static struct {
	struct ct_scope s;
	char text[512];
} room;

static const struct ct_hdr *scope(uint16_t kind, uint32_t id, const char *layer, const char *name,
				  uint64_t from, uint64_t to, uint8_t flags)
{
	struct ct_scope *s = &room.s;

	memset(&room, 0, sizeof(room));
	s->h = (struct ct_hdr){ .size = sizeof(room), .kind = kind, .pid = 1, .tid = id };
	s->h.start_ns = from;
	s->h.end_ns = to;
	s->id = id;
	s->kind = CT_SCOPE_RANGE;
	s->flags = flags;
	s->text_len = (uint16_t)strlen(name);
	s->domain_len = 4;
	s->layer_len = (uint16_t)strlen(layer);
	snprintf((char *)s->text, sizeof(room.text), "%smine%s", name, layer);
	return &s->h;
}

/* What the stages do: returns whether the scope's row is shown. */
static bool scope_shows(struct window *w, const struct ct_hdr *h)
{
	window_scope(w, (const struct ct_scope *)h);
	return window_has(w, h);
}

static void begin(struct window *w, uint32_t id, const char *name, uint64_t at)
{
	/* the begin is a definition */
	CHECK(scope_shows(w, scope(CT_SCOPE_BEGIN, id, "nvtx", name, at, at, 0)));
}

static bool end(struct window *w, uint32_t id, const char *name, uint64_t from, uint64_t to)
{
	return scope_shows(w, scope(CT_SCOPE_END, id, "nvtx", name, from, to, 0));
}

static void test_range(void)
{
	struct window *w = of("nvtx:step", "nvtx:step", 0);
	uint64_t rows[PLAN_WORDS] = { 0 };

	window_rows(w, rows);
	for (int i = 0; i < PLAN_WORDS; i++)
		CHECK(!rows[i]);
	CHECK(window_layer("nvtx:step") && !window_layer("nvtx") && !window_layer(NULL) &&
	      !window_layer("cudaMalloc:3") && window_layer("nccl:x") != window_layer("nvtx:x"));
	window_begin(w, 0);
	begin(w, 1, "epoch", 5);
	CHECK(!shows(w, call("cudaMalloc", 1, 10, 20, 0)) && !window_begun(w));
	/* the same name in another layer */
	window_scope(w,
		     (const struct ct_scope *)scope(CT_SCOPE_BEGIN, 2, "nccl", "step", 30, 30, 0));
	CHECK(!window_begun(w));
	/* the first call inside it begins when it does, and completes later */
	begin(w, 3, "step", 100);
	CHECK(window_begun(w) && shows(w, call("cudaMalloc", 1, 100, 120, 0)));
	CHECK(!shows(w, call("cudaMalloc", 2, 99, 130, 0)));
	/* one of this name inside it, or of another process, does not end it */
	begin(w, 4, "step", 140);
	CHECK(end(w, 4, "step", 140, 150));
	scope(CT_SCOPE_END, 3, "nvtx", "step", 50, 155, 0);
	room.s.h.pid = 2;
	CHECK(!scope_shows(w, &room.s.h));
	CHECK(shows(w, call("cudaMalloc", 1, 160, 170, 0)));
	CHECK(end(w, 3, "step", 100, 200));
	CHECK(!shows(w, call("cudaMalloc", 1, 201, 210, 0)));
	/* a call of another thread that began within */
	CHECK(shows(w, call("cudaMalloc", 2, 190, 220, 0)));
	/* the one that was open before is not of it */
	CHECK(!end(w, 1, "epoch", 5, 230) && !window_over(w));
	begin(w, 5, "step", 300);
	CHECK(shows(w, call("cudaMalloc", 1, 310, 320, 0)));
	CHECK(end(w, 5, "step", 300, 330));
	CHECK(!shows(w, call("cudaMalloc", 1, 340, 350, 0)));
	window_close(w);
}

/* A range ends what something else began, and what began with the trace. */
static void test_range_ends(void)
{
	struct window *w = of("cudaProfilerStart", "nvtx:back*", 0);

	window_begin(w, 0);
	begin(w, 1, "backward", 5);
	CHECK(shows(w, call("cudaProfilerStart", 1, 10, 20, 0)));
	CHECK(!end(w, 1, "backward", 5, 30));
	CHECK(!shows(w, call("cudaMalloc", 1, 40, 50, 0)) && !window_over(w));
	window_close(w);
	w = of(NULL, "nvtx:a", 0);
	window_begin(w, 0);
	begin(w, 1, "a", 5);
	/* the start of a range whose end is not told from others */
	window_scope(w, (const struct ct_scope *)scope(CT_SCOPE_END, 2, "nvtx", "a", 6, 6,
						       CT_SCOPE_UNPAIRED));
	CHECK(!window_over(w));
	CHECK(end(w, 1, "a", 5, 10) && window_over(w));
	window_close(w);
}

static void test_range_names(void)
{
	static char longer[200], begun[128];
	static const struct {
		const char *wanted, *name;
		uint8_t flags;
		bool is;
	} all[] = {
		{ "nvtx:a:3", "a:3", 0, true },
		{ "nvtx:a:3", "a", 0, false },
		{ "nvtx:aten::*", "aten::add", 0, true },
		{ "nvtx:[1] *", "[1] *", 0, true },
		{ "nvtx:step", "steps", 0, false },
		{ "nvtx:step", "mine", 0, false },
		{ "nvtx:*", "", CT_SCOPE_UNNAMED, false },
		{ longer, begun, CT_SCOPE_CUT, true },
		{ longer, begun, 0, false },
		{ "nvtx:step", "", CT_SCOPE_CUT, false },
	};

	memset(longer, 'x', sizeof(longer) - 1);
	memcpy(longer, "nvtx:", 5);
	memset(begun, 'x', sizeof(begun) - 1);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct window *w = of(all[i].wanted, NULL, 0);

		CASE_ROW("%s, %s", all[i].wanted, all[i].name);
		window_begin(w, 0);
		window_scope(w, (const struct ct_scope *)scope(CT_SCOPE_BEGIN, 1, "nvtx",
							       all[i].name, 5, 5, all[i].flags));
		CHECK_EQ(window_begun(w), all[i].is);
		window_close(w);
	}
}

static void test_wrong(void)
{
	static const char *const wrong[] = {
		"cudaNoSuch", "cudaMalloc:0", "cudaMalloc:x",	"cudaMalloc:", ":3",
		"",	      "nvtx:",	      "nvtxRangePushA", "nvtx",	       "vtx:a"
	};
	struct window *w;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct window_opts o = { 0, wrong[i], NULL };

		CHECK(window_open(&w, &o) < 0 && !w);
	}
	CHECK(!window_open(&w, &(struct window_opts){ 0 }) && !w);
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
static void test_container(void)
{
	static const struct {
		const char *cgroup, *container, *pod;
	} all[] = {
		{ "0::/user.slice\n", "", "" },
		{ "0::/system.slice/docker-" ID ".scope\n", ID, "" },
		{ "12:cpu:/docker/" ID "\n0::/\n", ID, "" },
		{ "0::/kubepods.slice/kubepods-burstable.slice/"
		  "kubepods-burstable-pod12345678_1234_1234_1234_123456789abc.slice/"
		  "cri-containerd-" ID ".scope\n",
		  ID, "12345678-1234-1234-1234-123456789abc" },
		{ "1:name=systemd:/kubepods/pod12345678-1234-1234-1234-123456789abc/" ID "\n", ID,
		  "12345678-1234-1234-1234-123456789abc" },
		{ "0::/" ID "0\n", "", "" }, /* too long */
		{ "0::/pod123/podman\n", "", "" },
		{ "0::/kubepods/pod", "", "" },
	};
	char container[INFO_CONTAINER], pod[INFO_POD];

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		info_container(all[i].cgroup, container, pod);
		CHECK_TEXT(all[i].container, container);
		CHECK_TEXT(all[i].pod, pod);
	}
}

int main(void)
{
	RUN(test_pair);
	RUN(test_nth);
	RUN(test_time_and_signals);
	RUN(test_many);
	RUN(test_range);
	RUN(test_range_ends);
	RUN(test_range_names);
	RUN(test_wrong);
	RUN(test_container);
	return unit_end();
}
