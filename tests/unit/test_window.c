/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_window.c - the stretch of a trace that is shown: what begins and ends it, what is within,
 * what is not; and what a process's cgroup says of its container.
 */
#include "../../user/resolve/info.h"
#include "../../user/source/plan.h"
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

/* As the stages do. */
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

static void test_wrong(void)
{
	static const char *const wrong[] = { "cudaNoSuch",  "cudaMalloc:0", "cudaMalloc:x",
					     "cudaMalloc:", ":3",	    "" };
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
	RUN(test_wrong);
	RUN(test_container);
	return unit_end();
}
