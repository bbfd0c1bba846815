/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_both.c - a process with hooks, and probes for some functions: which calls are inside others, and when that is known; and
 * who owns what.
 */
#include "../../user/api/api.h"
#include "../../user/source/both/both_merge.h"
#include "../../user/source/owners.h"
#include "unit.h"

#define SECOND 1000000000ULL

static struct capture_plan plan;
static struct both_merge *merge;
static struct both_merge_until until;
static char got[512];
static size_t ngot;
/* what is under way in the hooks; start_ns 0: nothing */
static struct ct_call way;
static bool paused;
static unsigned int lost; /* before what was handed out */

static int emit(void *ctx, const struct ct_hdr *rec)
{
	const struct ct_call *c = (const struct ct_call *)rec;
	bool call = rec->kind == CT_CALL || rec->kind == CT_ENTER;

	(void)ctx;
	lost += rec->lost;
	ngot += (size_t)snprintf(got + ngot, sizeof(got) - ngot, " %s%llu%s%s",
				 rec->kind == CT_ENTER ? "e"
				 : call		       ? ""
						       : "k",
				 (unsigned long long)rec->start_ns,
				 call && c->depth == 1 ? "+"
				 : call && c->depth    ? "++"
						       : "",
				 rec->flags & CT_F_HIDDEN ? "h" : "");
	return 0;
}

static int under_way(void *ctx, emit_fn out, void *out_ctx)
{
	(void)ctx;
	return way.h.start_ns ? out(out_ctx, &way.h) : 0;
}

static int row(const char *name)
{
	for (int i = 0; i < api_nfuncs; i++)
		if (!strcmp(api_funcs[i].name, name))
			return i;
	abort();
}

static struct ct_call call_of(enum ct_kind kind, int func, uint64_t start, uint64_t end)
{
	return (struct ct_call){ .h = { .size = sizeof(struct ct_call),
					.kind = kind,
					.pid = 7,
					.tid = 8,
					.start_ns = start,
					.end_ns = end },
				 .func = (uint16_t)func };
}

static void hooked(const char *name, uint64_t start, uint64_t end)
{
	struct ct_call c = call_of(CT_CALL, row(name), start, end);

	both_merge_put(merge, &c.h, false);
}

/* With the mark of its begin. */
static void probed(const char *name, uint64_t start, uint64_t end)
{
	struct ct_call e = call_of(CT_ENTER, row(name), start, start),
		       c = call_of(CT_CALL, row(name), start, end);

	both_merge_put(merge, &e.h, true);
	if (end)
		both_merge_put(merge, &c.h, true);
}

static void other(enum ct_kind kind, bool probes, uint32_t tid, uint64_t at)
{
	struct ct_hdr h = {
		.size = sizeof(h), .kind = kind, .pid = 7, .tid = tid, .start_ns = at, .end_ns = at
	};

	both_merge_put(merge, &h, probes);
}

/* What is handed out at this time, when both are complete up to then. */
static const char *flushed(uint64_t ns)
{
	ngot = 0;
	*got = '\0';
	until.hooks_ns = until.probes_ns = until.now_ns = ns;
	both_merge_flush(merge, &until, emit, NULL);
	return got;
}

static void begin(bool nested)
{
	both_merge_close(merge);
	memset(&plan, 0, sizeof(plan));
	plan.nested = nested;
	for (int i = 0; i < api_nfuncs; i++)
		if (!api_funcs[i].layer) {
			plan_add(plan.capture, i);
			plan_add(plan.shown, i);
		}
	memset(&way, 0, sizeof(way));
	until = (struct both_merge_until){ .under_way = under_way, .paused = &paused };
	merge = both_merge_open(&plan);
}

/* One of the hooks inside one of the probes, whose end is not known yet. */
static void test_inside_probed(void)
{
	begin(false);
	hooked("cudaGetDevice", 50, 60);
	probed("cudaMalloc", 100, 0);
	hooked("cuMemGetInfo_v2", 110, 120);
	CHECK_TEXT(" 50", flushed(90));
	CHECK_TEXT("", flushed(150));
	CHECK_TEXT("", flushed(290));
	hooked("cuMemGetInfo_v2", 130, 140);
	CHECK_EQ(1, (int)both_merge_folded(merge));
	CHECK_TEXT("", flushed(295));
	CHECK_EQ(2, (int)both_merge_folded(merge));
	hooked("cudaGetDevice", 300, 310);
	other(CT_MAP, true, 8, 299);
	struct ct_call c = call_of(CT_CALL, row("cudaMalloc"), 100, 250);

	both_merge_put(merge, &c.h, true);
	CHECK_TEXT(" k299", flushed(400)); /* asked what is around the call */
	CHECK_TEXT(" 100 300", flushed(410));
}

/* One of the probes inside one of the hooks: that has ended, or is under way. */
static void test_inside_hooked(void)
{
	begin(false);
	probed("cuMemGetInfo_v2", 110, 120);
	hooked("cudaMalloc", 100, 200);
	CHECK_TEXT("", flushed(210)); /* asked */
	CHECK_TEXT(" 100", flushed(220));
	CHECK_EQ(1, (int)both_merge_folded(merge));
	probed("cuMemGetInfo_v2", 310, 320);
	way = call_of(CT_CALL, row("cudaMalloc"), 300, 300);
	CHECK_TEXT("", flushed(330));
	CHECK_TEXT("", flushed(340));
	CHECK_EQ(2, (int)both_merge_folded(merge));
	/* it has a record meanwhile, and counts once */
	plan.nested = true;
	probed("cuMemGetInfo_v2", 350, 360);
	flushed(370);
	hooked("cudaMalloc", 301, 380);
	CHECK_TEXT(" 350+ 301", flushed(390));
	plan.nested = false;
	/* another thread's is around nothing */
	way.h.tid = 9;
	probed("cuMemGetInfo_v2", 410, 420);
	CHECK_TEXT("", flushed(430));
	CHECK_TEXT(" 410", flushed(440));
}

static void test_nested(void)
{
	begin(true);
	probed("cuMemGetInfo_v2", 110, 120);
	hooked("cudaMalloc", 100, 200);
	flushed(210);
	CHECK_TEXT(" 110+ 100", flushed(220));
	probed("cudaMalloc", 300, 400);
	hooked("cuMemGetInfo_v2", 310, 320);
	CHECK_TEXT(" 310+", flushed(410));
	CHECK_TEXT(" 300", flushed(420));
	CHECK_EQ(0, (int)both_merge_folded(merge));
}

/* A hook in a slot, and a probe of the same call. */
static void test_same(void)
{
	for (int nested = 0; nested < 2; nested++) {
		begin(nested);
		probed("cudaMalloc", 110, 190);
		hooked("cudaMalloc", 100, 200);
		flushed(210);
		CHECK_TEXT(" 100", flushed(220));
	}
}

/* The end of a call was lost: what comes behind it is not inside it. */
static void test_lost(void)
{
	struct ct_call c;

	begin(false);
	lost = 0;
	probed("cudaMalloc", 100, 0);
	flushed(150);
	flushed(160);
	c = call_of(CT_ENTER, row("cudaFree"), 200, 200);
	c.h.lost = 1;
	both_merge_put(merge, &c.h, true);
	hooked("cudaGetDevice", 210, 220);
	flushed(300);
	CHECK_TEXT("", flushed(310)); /* it is inside cudaFree */
	c = call_of(CT_CALL, row("cudaFree"), 200, 250);
	both_merge_put(merge, &c.h, true);
	hooked("cudaGetDevice", 260, 270);
	flushed(320);
	CHECK_TEXT(" 200 260", flushed(330));
	CHECK_EQ(1, (int)lost); /* the mark that said so is no row */
}

/* A call was left by an exception: it has no end. */
static void test_left(void)
{
	begin(false);
	probed("cudaMalloc", 100, 0);
	probed("cudaFree", 200, 210);
	hooked("cudaGetDevice", 300, 310);
	flushed(400);
	CHECK_TEXT(" 200 300", flushed(410));
}

/* A process ended, or became another program, inside a call: the next one with its number is not inside it. */
static void test_ended(void)
{
	for (int i = 0; i < 2; i++) {
		begin(false);
		probed("cudaMalloc", 100, 0);
		flushed(150);
		flushed(160);
		other(i ? CT_EXEC : CT_EXIT, false, 8, 200);
		hooked("cudaGetDevice", 300, 310);
		CHECK_TEXT(" k200 300", flushed(400));
	}
}

/* No record waits longer than a second for the source that is behind. */
static void test_late(void)
{
	begin(false);
	hooked("cudaGetDevice", SECOND, SECOND + 10);
	until.hooks_ns = until.now_ns = SECOND + 20;
	until.probes_ns = 1;
	ngot = 0;
	*got = '\0';
	both_merge_flush(merge, &until, emit, NULL);
	CHECK_TEXT("", got);
	CHECK_EQ(1, (int)both_merge_complete(merge, 1));
	CHECK(both_merge_complete(merge, 3 * SECOND) == SECOND + 10);
	until.hooks_ns = until.now_ns = 2 * SECOND + 20;
	both_merge_flush(merge, &until, emit, NULL);
	CHECK_TEXT(" 1000000000", got);
	CHECK(both_merge_complete(merge, 3 * SECOND) == 3 * SECOND);
}

/* Stacks come with their call, and not with another one. What probes say of the process is said by its hooks. */
static void test_others(void)
{
	begin(false);
	other(CT_PROCESS, true, 8, 90);
	other(CT_PROCESS, false, 8, 91);
	other(CT_USER_STACK, true, 8, 119);
	other(CT_USER_STACK, true, 9, 119);
	probed("cuMemGetInfo_v2", 110, 120);
	hooked("cudaMalloc", 100, 200);
	other(CT_USER_STACK, false, 8, 239);
	hooked("cudaMalloc", 230, 240);
	flushed(300);
	CHECK_TEXT(" k91", got);
	CHECK_TEXT(" 100 k239 230", flushed(310));
	/* of a call whose return is not waited for it comes before the mark of the begin */
	other(CT_USER_STACK, true, 8, 410);
	probed("cudaMalloc", 410, 410);
	CHECK_TEXT("", flushed(500));
	CHECK_TEXT(" k410 410", flushed(510));
}

/* The end: nothing is waited for. */
static void test_last(void)
{
	begin(false);
	probed("cuMemGetInfo_v2", 110, 120);
	hooked("cudaMalloc", 100, 200);
	hooked("cudaMalloc", 300, 5 * SECOND);
	until.last = true;
	CHECK_TEXT(" 100 300", flushed(210));
	CHECK_EQ(1, (int)both_merge_folded(merge));
}

/* Calls that are captured and neither shown nor sent, and sums, are not for two sources in one process. */
static void test_suits(void)
{
	begin(false);
	CHECK(both_merge_suits(&plan));
	plan_remove(plan.shown, row("cudaGetDevice"));
	CHECK(!both_merge_suits(&plan));
	plan_add(plan.shown, row("cudaGetDevice"));
	plan.count = true;
	CHECK(!both_merge_suits(&plan));
	plan.count = false;
	plan.filter.min_duration_ns = 1;
	CHECK(!both_merge_suits(&plan));
}

static void test_owners(void)
{
	struct owners *o = owners_open(&(struct owners_opts){ .functions = true });

	CHECK_EQ(OWNER_HOOKS, owners_of(NULL, 5));
	CHECK_EQ(OWNER_HOOKS, owners_of(o, 5));
	CHECK(!owners_any_function(o));
	CHECK_EQ(0, owners_next(o));
	owners_give_function(o, 5, 3);
	CHECK(owners_any_function(o));
	CHECK_EQ(OWNER_BOTH, owners_of(o, 5));
	CHECK(owners_probes(o, 5, 3) && !owners_probes(o, 5, 4) && !owners_probes(o, 6, 3));
	CHECK(owners_waiting_ns(o, 5) != 0);
	CHECK_EQ(5, owners_next(o));
	CHECK_EQ(0, owners_next(o));
	owners_placed(o, 5, 100);
	CHECK_EQ(100, (int)owners_placed_ns(o, 5));
	CHECK_EQ(0, (int)owners_waiting_ns(o, 5));
	owners_give_function(o, 5, 3); /* is known */
	CHECK_EQ(0, owners_next(o));
	owners_give_function(o, 5, 4);
	CHECK_EQ(5, owners_next(o));
	owners_again(o, 5);
	CHECK_EQ(5, owners_next(o));
	owners_forget(o, 5); /* only a whole process is forgotten */
	CHECK_EQ(OWNER_BOTH, owners_of(o, 5));
	owners_give(o, 5);
	CHECK_EQ(0, (int)owners_placed_ns(o, 5));
	CHECK_EQ(5, owners_next(o));
	CHECK_EQ(OWNER_PROBES, owners_of(o, 5));
	CHECK(owners_probes(o, 5, 99));
	owners_forget(o, 5);
	CHECK_EQ(OWNER_HOOKS, owners_of(o, 5));
	owners_close(o);
}

static void owner_ends(struct owners *o, uint32_t pid, uint64_t at_ns)
{
	struct ct_exit x = { .h = { .size = sizeof(x), .kind = CT_EXIT, .pid = pid } };

	x.h.start_ns = x.h.end_ns = at_ns;
	owners_exited(o, &x.h);
}

/* Processes come and go: those that ended long ago are forgotten, and a number that is used again begins anew. */
static void test_owners_end(void)
{
	struct owners *o = owners_open(&(struct owners_opts){ .functions = true });
	uint32_t pid, n = 0;

	for (pid = 1; pid <= 1000; pid++) {
		owners_give_function(o, (pid_t)pid, 3);
		CHECK_EQ(pid, owners_next(o));
		CHECK_EQ(0, owners_next(o));
		owner_ends(o, pid, pid * 1000000000ULL);
	}
	for (pid = 1; pid <= 1000; pid++)
		n += owners_of(o, (pid_t)pid) == OWNER_BOTH;
	CHECK(n >= 10 && n <= 64);
	CHECK_EQ(OWNER_BOTH, owners_of(o, 991)); /* records of it may still wait */
	owners_again(o, 1000);
	CHECK_EQ(OWNER_HOOKS, owners_of(o, 1000));
	CHECK_EQ(0, owners_next(o));
	owners_close(o);

	/* the numbers in records are another namespace's */
	o = owners_open(&(struct owners_opts){ 0 });
	owners_give(o, 5);
	owner_ends(o, 5, 1);
	owners_again(o, 5);
	CHECK_EQ(OWNER_PROBES, owners_of(o, 5));
	owners_close(o);
}

int main(void)
{
	RUN(test_inside_probed);
	RUN(test_inside_hooked);
	RUN(test_nested);
	RUN(test_same);
	RUN(test_lost);
	RUN(test_left);
	RUN(test_ended);
	RUN(test_late);
	RUN(test_others);
	RUN(test_last);
	RUN(test_suits);
	RUN(test_owners);
	RUN(test_owners_end);
	both_merge_close(merge);
	return unit_end();
}
