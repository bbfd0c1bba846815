/* SPDX-License-Identifier: BSD-2-Clause */
/* test_steps.c - the steps of records whose numbers are known, and what the device did in them. */
#include <math.h>

#include "../../user/event/holes/holes.h"
#include "../../user/event/scopes/lineage.h"
#include "../../user/stat/steps_print.h"
#include "unit.h"

static struct lineage *lineage;
static struct steps *steps;
static uint32_t ids;
static struct process process = { .pid = 7, .shown_pid = 7, .nth = 1, .comm = "train" };

static void begin(const char *name)
{
	lineage = lineage_open();
	steps = steps_open(name, STEPS_MAX);
	ids = 0;
	CHECK(lineage && steps);
}

static void end(void)
{
	steps_close(steps);
	lineage_close(lineage);
}

/* A scope's begin and end; returns what steps_event() said of the end. */
static int scope_in(uint32_t parent, uint8_t kind, const char *name, uint64_t from, uint64_t to,
		    uint32_t tid, uint8_t flags)
{
	struct {
		struct ct_scope s;
		char text[40];
	} r = { .s = { .h = { .size = sizeof(r),
			      .kind = CT_SCOPE_BEGIN,
			      .pid = 7,
			      .tid = tid,
			      .start_ns = from,
			      .end_ns = from },
		       .id = ++ids,
		       .parent = parent,
		       .kind = kind,
		       .flags = flags,
		       .text_len = (uint16_t)strlen(name) } };
	struct event ev = { .rec = &r.s.h, .proc = &process, .lineage = lineage };

	memcpy(r.text, name, strlen(name));
	CHECK(!record_check(&r, sizeof(r)));
	CHECK(!lineage_record(lineage, &r.s.h));
	r.s.h.kind = CT_SCOPE_END;
	r.s.h.end_ns = to;
	CHECK(!lineage_record(lineage, &r.s.h));
	return steps_event(steps, &ev);
}

static void range(const char *name, uint64_t from, uint64_t to)
{
	CHECK_EQ(1, scope_in(CT_SCOPE_NONE, CT_SCOPE_RANGE, name, from, to, 7, 0));
}

static void operator_of(uint32_t tid, const char *name, uint64_t from, uint64_t to)
{
	uint32_t outer = ids + 1;

	CHECK_EQ(1, scope_in(CT_SCOPE_NONE, CT_SCOPE_OPERATOR, name, from, to, tid, 0));
	/* what is inside it says nothing more */
	CHECK_EQ(0, scope_in(outer, CT_SCOPE_OPERATOR, "aten::inner", from, to, tid, 0));
}

static void kernel(const char *name, uint64_t from, uint64_t to)
{
	struct kernel_name k = { .mangled = name, .full = name, .brief = name };
	struct ct_kernel r = { .w.h = { .size = sizeof(r),
					.kind = CT_KERNEL,
					.pid = 7,
					.start_ns = from,
					.end_ns = to } };
	struct event ev = { .rec = &r.w.h, .proc = &process, .lineage = lineage, .kernel = &k };

	CHECK_EQ(1, steps_event(steps, &ev));
}

static void copy(uint64_t from, uint64_t to)
{
	struct ct_copy r = { .w.h = { .size = sizeof(r),
				      .kind = CT_COPY,
				      .pid = 7,
				      .start_ns = from,
				      .end_ns = to } };
	struct event ev = { .rec = &r.w.h, .proc = &process, .lineage = lineage };

	CHECK_EQ(1, steps_event(steps, &ev));
}

static const struct steps_of *found(void)
{
	size_t n;
	const struct steps_of *p;

	CHECK_EQ(0, steps_finish(steps));
	p = steps_list(steps, &n);
	CHECK_EQ(1, n);
	return p;
}

static void check_split(const struct step *one, uint64_t compute, uint64_t exposed, uint64_t copies,
			uint64_t idle)
{
	CHECK_EQ(compute, one->ns[OVERLAP_COMPUTE]);
	CHECK_EQ(exposed, one->ns[OVERLAP_COLLECTIVE]);
	CHECK_EQ(copies, one->ns[OVERLAP_COPY]);
	CHECK_EQ(idle, one->ns[OVERLAP_IDLE]);
	CHECK_EQ(one->end_ns - one->start_ns, compute + exposed + copies + idle);
}

/* Records come in any order; kernels reach over the bounds of steps; a range of another name is no
 * step, and one that was not seen to its end is none. */
static void test_profiler(void)
{
	const struct steps_of *p;

	begin(NULL);
	kernel("ncclDevKernel_AllReduce", 1500, 1900);
	kernel("gemm", 900, 1200);
	range("ProfilerStep#4", 1000, 2000);
	range("Optimizer.step#SGD.step", 1800, 1900);
	kernel("gemm", 1400, 1600);
	copy(1850, 1950);
	copy(1950, 2100);
	range("ProfilerStep#5", 2000, 3000);
	CHECK_EQ(0, scope_in(CT_SCOPE_NONE, CT_SCOPE_RANGE, "forward", 2100, 2200, 7, 0));
	CHECK_EQ(1, scope_in(CT_SCOPE_NONE, CT_SCOPE_RANGE, "ProfilerStep#6", 3000, 3500, 7,
			     CT_SCOPE_UNFINISHED));
	p = found();
	CHECK_EQ(STEPS_PROFILER, p->how);
	if (CHECK_EQ(2, p->n)) {
		CHECK_EQ(4, p->list[0].number);
		CHECK_EQ(5, p->list[1].number);
		/* 1000-1200 and 1400-1600; 1600-1900; 1900-2000; the rest */
		check_split(&p->list[0], 400, 300, 100, 200);
		check_split(&p->list[1], 0, 0, 100, 900);
		CHECK_EQ(2, p->list[0].kernels);
		CHECK_EQ(0, p->list[1].kernels);
	}
	end();
}

/* Another process gets the number of one that has ended: each has its own steps. */
static void test_number_again(void)
{
	struct ct_process next = { .h = { .size = sizeof(next),
					  .kind = CT_PROCESS,
					  .pid = 7,
					  .tid = 7,
					  .start_ns = 5000,
					  .end_ns = 5000 },
				   .start_boottime_ns = 9 };
	struct ct_exit gone = { .h = { .size = sizeof(gone), .kind = CT_EXIT, .pid = 7 } };
	const struct steps_of *p;
	size_t n;

	begin(NULL);
	range("ProfilerStep#4", 1000, 2000);
	range("ProfilerStep#5", 2000, 3000);
	kernel("gemm", 2900, 3400);
	CHECK_EQ(0, steps_event(steps, &(struct event){ .rec = &gone.h, .proc = &process }));
	kernel("gemm", 3400, 3500); /* comes late */
	CHECK_EQ(0, steps_event(steps, &(struct event){ .rec = &next.h, .proc = &process }));
	range("ProfilerStep#1", 6000, 6500);
	kernel("gemm", 6100, 6200);
	CHECK_EQ(0, steps_finish(steps));
	p = steps_list(steps, &n);
	if (CHECK_EQ(2, n)) {
		CHECK_EQ(2, p[0].n);
		CHECK_EQ(2, p[0].nwork);
		CHECK_EQ(1000, p[0].median_ns);
		CHECK_EQ(1, p[1].n);
		CHECK_EQ(1, p[1].nwork);
		CHECK_EQ(500, p[1].median_ns);
	}
	end();
}

static void test_named(void)
{
	const struct steps_of *p;

	begin("train*");
	range("train_step", 100, 200);
	/* inside another one of its name */
	range("train_step", 120, 180);
	range("train_step", 300, 450);
	CHECK_EQ(0, scope_in(CT_SCOPE_NONE, CT_SCOPE_RANGE, "ProfilerStep#1", 0, 900, 7, 0));
	p = found();
	CHECK_EQ(STEPS_RANGE, p->how);
	CHECK_EQ(2, p->n);
	CHECK(!p->device);
	CHECK_EQ(2, p->list[1].number);
	CHECK_EQ(300, p->list[1].start_ns);
	end();
	begin("nothing");
	CHECK_EQ(0, scope_in(CT_SCOPE_NONE, CT_SCOPE_RANGE, "step", 0, 900, 7, 0));
	kernel("gemm", 1, 2);
	p = found();
	CHECK_EQ(STEPS_NONE, p->how);
	CHECK_EQ(0, p->n);
	end();
}

/* From the end of one to the end of the next; of two optimizers the first. */
static void test_optimizer(void)
{
	const struct steps_of *p;

	begin(NULL);
	for (uint64_t i = 0; i < 5; i++) {
		range("Optimizer.step#Adam.step", 1000 * i + 500, 1000 * i + 600);
		range("Optimizer.step#SGD.step", 1000 * i + 700, 1000 * i + 800);
		kernel("adam", 1000 * i + 550, 1000 * i + 650);
	}
	p = found();
	CHECK_EQ(STEPS_OPTIMIZER, p->how);
	if (CHECK_EQ(4, p->n)) {
		CHECK_EQ(600, p->list[0].start_ns);
		CHECK_EQ(1600, p->list[0].end_ns);
		check_split(&p->list[3], 100, 0, 0, 900);
	}
	end();
}

/* The operators of the main thread repeat; those of autograd's threads do not count. The slow step
 * has a copy that the others have not. */
static void test_operators(void)
{
	static const char *const names[] = { "aten::embedding", "aten::mm", "aten::relu",
					     "aten::mm", "aten::loss" };
	const struct steps_of *p;
	struct steps_more more;
	uint64_t at = 1000;

	begin(NULL);
	for (int step = 0; step < 8; step++) {
		for (int i = 0; i < 5; i++, at += 100) {
			operator_of(7, names[i], at, at + 50);
			kernel(i == 4 ? "loss" : "gemm", at + 10, at + 60);
		}
		operator_of(9, "AddmmBackward0", at - 20, at - 10);
		if (step != 5)
			continue;
		copy(at, at + 3000);
		at += 4000;
	}
	p = found();
	CHECK_EQ(STEPS_OPERATORS, p->how);
	CHECK_EQ(5, p->period);
	CHECK(p->confidence == 1.0);
	if (CHECK_EQ(8, p->n)) {
		size_t *order = steps_slowest(p);

		check_split(&p->list[0], 250, 0, 0, 250);
		check_split(&p->list[5], 250, 0, 3000, 1250);
		/* the last one ends with its last operator */
		check_split(&p->list[7], 240, 0, 0, 210);
		CHECK_EQ(500, p->median_ns);
		CHECK_EQ(5, order[0]);
		free(order);
		CHECK_EQ(0, steps_compare(steps, p, 5, &more));
		CHECK_EQ(OVERLAP_COPY, more.class);
		CHECK_EQ(3000, more.class_ns);
		CHECK_TEXT("memcpy", more.work);
		CHECK_EQ(3000, more.work_ns);
		CHECK(!more.op);
	}
	end();
}

static const char *printed(bool json)
{
	static char text[8192];
	FILE *f = tmpfile();
	struct out o = { 0 };
	size_t n;

	CHECK(f && !out_open_fd(&o, fileno(f), "a file"));
	if (json)
		steps_json(steps, &o);
	else
		steps_text(steps, &o, 2);
	CHECK(!out_flush(&o));
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	out_close(&o);
	fclose(f);
	return text;
}

/* A step in which something may be missing is not judged: its length would be that of what was not seen. */
static void test_unseen(void)
{
	struct ct_hole r = hole_of(7, CT_HOLE_DEVICE, CT_HOLE_UNSEEN, CT_HOLE_PROFILER);
	struct holes *holes = holes_open();
	const struct steps_of *p;

	begin(NULL);
	for (uint64_t i = 0; i < 10; i++) {
		/* the sixth lasts while nothing was seen */
		uint64_t at = 1000 * i + (i > 5 ? 50000 : 0), to = at + (i == 5 ? 51000 : 1000);
		char name[32];

		snprintf(name, sizeof(name), "ProfilerStep#%d", (int)i);
		range(name, at + 1, to);
		kernel("k", at + 10, at + 500);
	}
	hole_when(&r, 6000, 50000);
	CHECK_EQ(0, holes_record(holes, &r.h, NULL));
	steps_holes(steps, holes);
	p = found();
	CHECK_EQ(9, p->n);
	CHECK_EQ(1, p->unseen);
	CHECK_EQ(999, p->median_ns);
	for (size_t i = 0; i < p->n; i++)
		CHECK_EQ(999, p->list[i].end_ns - p->list[i].start_ns);
	end();
	holes_close(holes);
}

/* A step in which an agent came into the program is longer than by itself. */
static void test_entered(void)
{
	struct ct_hdr h = { .size = sizeof(h),
			    .kind = CT_ENTERED,
			    .pid = 7,
			    .tid = 7,
			    .start_ns = 6200,
			    .end_ns = 50000 };
	const struct steps_of *p;

	begin(NULL);
	for (uint64_t i = 0; i < 10; i++) {
		uint64_t at = 1000 * i + (i > 6 ? 50000 : 0), to = at + (i == 6 ? 51000 : 1000);
		char name[32];

		snprintf(name, sizeof(name), "ProfilerStep#%d", (int)i);
		range(name, at + 1, to);
		kernel("k", at + 10, at + 500);
	}
	CHECK_EQ(1, steps_event(steps, &(struct event){ .rec = &h }));
	p = found();
	CHECK_EQ(9, p->n);
	CHECK_EQ(1, p->entered);
	CHECK_EQ(0, p->unseen);
	for (size_t i = 0; i < p->n; i++)
		CHECK_EQ(999, p->list[i].end_ns - p->list[i].start_ns);
	CHECK(strstr(printed(false), " 1 further step is not judged, because the agent of --gpu "
				     "came into the program in it\n"));
	CHECK(strstr(printed(true), "\"steps_not_judged\":1"));
	end();
}

static void test_printed(void)
{
	begin(NULL);
	for (uint64_t i = 0; i < 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "ProfilerStep#%d", 10 + (int)i);
		range(name, 1000000 * i, 1000000 * i + (i == 1 ? 900000 : 600000));
		operator_of(7, "aten::mm", 1000000 * i, 1000000 * i + (i == 1 ? 400000 : 100000));
		kernel("gemm", 1000000 * i, 1000000 * i + 500000);
	}
	found();
	CHECK_TEXT("Steps of train (7): 3, by ranges ProfilerStep#N; the slowest first\n"
		   "       Step     Length    Compute    Exposed     Copies       Idle   Kernels\n"
		   "         11   900.0 us   500.0 us       0 ns       0 ns   400.0 us         1\n"
		   "         10   600.0 us   500.0 us       0 ns       0 ns   100.0 us         1\n"
		   " and 1 more\n"
		   "        all   2.100 ms   1.500 ms       0 ns       0 ns   600.0 us         3\n"
		   " Step 11 took 1.50 times as long as the median; 300.0 us more of it idle; "
		   "300.0 us more in the operator aten::mm than in the other steps on average.\n\n",
		   printed(false));
	CHECK(strstr(printed(true),
		     "{\"step\":11,\"begin_ns\":1000000,\"duration_ns\":900000,\"compute_ns\":"
		     "500000,\"exposed_ns\":0,\"copy_ns\":0,\"idle_ns\":400000,\"kernels\":1}"));
	end();
	begin(NULL);
	for (int i = 0; i < 30; i++)
		operator_of(7, "aten::mm", 100 * (uint64_t)i, 100 * (uint64_t)i + 10);
	found();
	CHECK_TEXT("Steps of train (7): none found; the best period has a confidence of 0.00\n\n"
		   "There is no device work in this: --gpu records it.\n",
		   printed(false));
	end();
}

/* A kernel of a product of 1000 FLOP, on a device that can do `peak` FLOP a second. */
static void product(uint32_t id, const char *name, uint64_t from, uint32_t device, double peak)
{
	static const struct ct_gemm gemm = { .flop = 1000 };
	const struct scope_line line = { .pid = 7, .id = id, .flop = 1000, .gemm = &gemm };
	struct kernel_name k = { .mangled = name, .full = name, .brief = name };
	struct ct_kernel r = { .w = { .h = { .size = sizeof(r),
					     .kind = CT_KERNEL,
					     .pid = 7,
					     .start_ns = from,
					     .end_ns = from + 10 },
				      .device = device } };
	struct event ev = { .rec = &r.w.h,
			    .proc = &process,
			    .lineage = lineage,
			    .kernel = &k,
			    .product = &line,
			    .peak = peak };

	CHECK_EQ(1, steps_event(steps, &ev));
}

/* A product counts once, in the step in which its first kernel began. A device of 1e10 FLOP a second
 * needs 100 ns for it. */
static void test_use(void)
{
	const struct steps_of *p;

	begin(NULL);
	range("ProfilerStep#1", 0, 1000);
	range("ProfilerStep#2", 1000, 2000);
	range("ProfilerStep#3", 2000, 3000);
	product(1, "gemm", 100, 0, 1e10);
	product(2, "gemm", 900, 0, 1e10);
	product(2, "gemm", 1100, 0, 1e10);		  /* of the product that has begun */
	product(3, "splitKreduce_kernel", 1050, 0, 1e10); /* computes none */
	product(3, "gemm", 1200, 0, 1e10);
	product(4, "gemm", 2200, 0, 0);
	p = found();
	if (CHECK_EQ(3, p->n)) {
		CHECK(p->products);
		CHECK(p->list[0].flop == 2000 && p->list[1].flop == 1000 &&
		      p->list[2].flop == 1000);
		CHECK(fabs(steps_use(p, p->list[0].least_ns, 1000) - 0.2) < 1e-6);
		CHECK(fabs(steps_use(p, p->list[1].least_ns, 1000) - 0.1) < 1e-6);
		/* what the device can do is not known */
		CHECK(steps_use(p, p->list[2].least_ns, 1000) < 0);
	}
	CHECK(strstr(printed(true), "\"kernels\":2,\"flop\":2000,\"mfu\":0.2000}"));
	CHECK(strstr(printed(true), "\"kernels\":1,\"flop\":1000}"));
	CHECK(strstr(printed(false), "Kernels      TFLOP   MFU%\n"));
	end();
	/* two devices can do twice as much */
	begin(NULL);
	range("ProfilerStep#1", 0, 1000);
	product(1, "gemm", 100, 0, 1e10);
	product(2, "gemm", 100, 1, 1e10);
	p = found();
	CHECK(fabs(steps_use(p, p->list[0].least_ns, 1000) - 0.1) < 1e-6);
	end();
}

int main(void)
{
	RUN(test_profiler);
	RUN(test_number_again);
	RUN(test_named);
	RUN(test_optimizer);
	RUN(test_operators);
	RUN(test_unseen);
	RUN(test_entered);
	RUN(test_printed);
	RUN(test_use);
	return unit_end();
}
