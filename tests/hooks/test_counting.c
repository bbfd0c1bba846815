/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_counting.c - calls that are only counted, in the stub or by the engine, and what two threads write: no
 * line of the cache. test_counting [--all] [NAME].
 */
#include "victims.h"
#include "lines.h"

static __u64 given[HOOK_COUNTS];
static bool giving;

static void give_counts(struct hook_thread *t)
{
	if (giving)
		hook_count_into(t, given);
}

static const struct hook_ops giving_counts = {
	.entry = count_entry, .counts = give_counts, .leave = count_leave, .left = count_left
};

/* Whether calls of a function are counted can be changed while it is hooked; a thread is given its counts at
 * its first such call; and calls from certain code are counted apart, whether the others are counted or
 * not. */
static void counted_alone(void)
{
	__u64 before = entries(9);

	giving = true;
	memset(given, 0, sizeof(given));
	ON_WITH(victim_add, 9, HOOK_COUNTABLE | HOOK_FOLDS);
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(before + 1, entries(9));
	engine_count(0xffff, 8, HOOK_COUNT_IN(2));
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(before + 2, entries(9));
	hook_count_into(hook_self(), NULL);
	engine_count(0xffff, 9, HOOK_COUNT_IN(2));
	for (int i = 0; i < 4; i++)
		CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(before + 2, entries(9));
	CHECK_EQ(4, given[2]);
	engine_fold_within((uintptr_t)counted_alone & ~0xffffULL, 0x20000);
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(4, given[2]);
	CHECK_EQ(1, given[HOOK_FOLDED]);
	engine_count(0xffff, 9, 0);
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(2, given[HOOK_FOLDED]);
	CHECK_EQ(before + 2, entries(9));
	engine_fold_within(0, 0);
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(before + 3, entries(9));
	/* one that is not countable */
	ON_WITH(victim_add, 9, 0);
	engine_count(0xffff, 9, HOOK_COUNT_IN(2));
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(before + 4, entries(9));
	CHECK_EQ(4, given[2]);
	engine_forget_counts();
	CHECK(!hook_self()->counts);
	giving = false;
}

static void test_flags(void)
{
	static __u64 counts[HOOK_COUNTS];
	struct hook_leftover left;

	CHECK_EQ(0, engine_open(&giving_counts));
	ON_WITH(victim_add, 5, HOOK_ENTRY_ONLY);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(10, entries(5));
	CHECK_EQ(0, leaves(5));
	ON_WITH(victim_add, 7, HOOK_COUNT_IN(5));
	CHECK_EQ(3, victim_add(1, 2));
	hook_count_into(hook_self(), counts);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(10, counts[5]);
	CHECK_EQ(10, entries(5));
	/* glibc gives a thread that is made while the hooks are loaded zeros in place of initial values */
	hooks_counting = NULL;
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(11, counts[5]);
	hook_guard_enter();
	CHECK_EQ(3, victim_add(1, 2));
	hook_guard_leave();
	CHECK_EQ(11, counts[5]);
	counted_alone();
	ON_WITH(victim_add, 6, 0);
	hook_guard_enter();
	CHECK_EQ(3, victim_add(1, 2));
	hook_guard_leave();
	CHECK_EQ(0, entries(6));
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(1, entries(6));
	CHECK_EQ(1, leaves(6));
	CHECK_EQ(0, engine_remove(&left));
}

/* ---- under fire ---- */

static atomic_int stop;
static atomic_ulong made;

/* Each call is counted once or recorded once, whatever way of the stub it takes, while these change and threads
 * are in it; and while hooks are off no stub counts. */
static __u64 own_counts[HOOK_THREADS][HOOK_COUNTS];

static CALLBACK void give_own(struct hook_thread *t)
{
	hook_count_into(t, own_counts[t->index]);
}

static void *counted_caller(void *arg)
{
	long n = 0;

	for (; !stop; n++)
		if (victim_add(n, 1) != n + 1 || victim_tail(1, 1) != 3)
			wrong++;
	made += (unsigned long)n;
	return arg;
}

static __u64 own_sum(void)
{
	__u64 n = 0;

	for (int t = 0; t < HOOK_THREADS; t++)
		for (int i = 0; i < HOOK_COUNTS; i++)
			n += own_counts[t][i];
	return n;
}

static void test_counted_under_fire(void)
{
	static const struct hook_ops own = {
		.entry = count_entry, .leave = count_leave, .left = count_left, .counts = give_own
	};
	const __u32 ways[] = { HOOK_COUNT_IN(1), 0, HOOK_COUNT_IN(2), HOOK_COUNT_IN(62), 0 };
	__u64 lo = (uintptr_t)counted_alone & ~0xffffULL, sum;
	int cycles = all ? 50000 : 1000;
	struct hook_leftover left;
	pthread_t t[4];

	CHECK_EQ(0, engine_open(&own));
	ON_WITH(victim_add, 1, HOOK_COUNTABLE);
	ON_WITH(victim_tail, 2, HOOK_COUNTABLE | HOOK_FOLDS);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, counted_caller, NULL));
	for (int c = 0; c < cycles || !entries(1) || !entries(2) || !own_sum(); c++) {
		engine_count(0xffff, 1, ways[c % 5]);
		engine_count(0xffff, 2, ways[c % 4]);
		engine_fold_within(lo, c % 3 ? 0x20000 : 0);
	}
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(0, wrong);
	CHECK_EQ(entries(1), leaves(1));
	CHECK_EQ(entries(2), leaves(2));
	sum = own_sum();
	/* victim_tail() ends with a call of victim_add() */
	CHECK_EQ(3 * made, sum + entries(1) + entries(2));
	engine_count(0xffff, 1, HOOK_COUNT_IN(1));
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(sum + 2, own_sum());
	CHECK_EQ(0, engine_remove(&left));
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(sum + 2, own_sum());
	engine_fold_within(0, 0);
}

/* ---- while hooks are put on ---- */

#define BETWEEN 4000
static atomic_ulong outer_begun, inner_alone;
static volatile bool in_outer; /* of the one thread that calls */
static atomic_bool hold, held; /* it shall wait outside of calls, and does */

static CALLBACK bool nested_entry(struct hook_frame *f, const struct hook_regs *r)
{
	(void)r;
	if (f->id == 1) {
		in_outer = true;
		outer_begun++;
	} else if (!in_outer) {
		inner_alone++;
	}
	return true;
}

static CALLBACK void nested_leave(struct hook_frame *f, __u64 result)
{
	(void)result;
	if (f->id == 1)
		in_outer = false;
}

static void *nested_caller(void *arg)
{
	while (!stop) {
		for (; hold && !stop; held = true)
			sched_yield();
		held = false;
		if (victim_tail(1, 1) != 3)
			wrong++;
	}
	return arg;
}

/* A function that another one calls as a part of what it does gets its hook last, wherever the list
 * has it. Otherwise its calls in between would look as if the program had made them. Only the call
 * under way, which began before, has none around it. */
static void test_parts_are_last(void)
{
	static const struct hook_ops ops = { .entry = nested_entry, .leave = nested_leave };
	static enum hook_result results[BETWEEN + 2];
	static struct hook_spec specs[BETWEEN + 2];
	struct hook_leftover left;
	pthread_t t;

	specs[0] = (struct hook_spec){ .address = (uintptr_t)plain((void *)victim_add),
				       .id = 2,
				       .flags = HOOK_FOLDS };
	for (int i = 1; i <= BETWEEN; i++)
		specs[i] = (struct hook_spec){ .address = (uintptr_t)plain((void *)victim_eight),
					       .id = 3 };
	specs[BETWEEN + 1] = (struct hook_spec){ .address = (uintptr_t)plain((void *)victim_tail),
						 .id = 1,
						 .flags = HOOK_FOLDS };
	stop = 0;
	CHECK(!pthread_create(&t, NULL, nested_caller, NULL));
	for (int i = 0; i < 20; i++) {
		unsigned long begun;

		/* An entry of the last round may still be under way in a thread that got no processor. */
		hold = true;
		while (!held)
			sched_yield();
		begun = outer_begun;
		inner_alone = 0;
		in_outer = false;
		hold = false;
		CHECK_EQ(0, engine_open(&ops));
		engine_runtime(specs[BETWEEN + 1].address, 1);
		CHECK_EQ(BETWEEN + 2, engine_install(specs, BETWEEN + 2, results));
		while (outer_begun == begun)
			sched_yield();
		CHECK_EQ(0, engine_remove(&left));
		CHECK(inner_alone <= 1);
		usleep(100);
	}
	stop = 1;
	pthread_join(t, NULL);
	CHECK_EQ(0, wrong);
	engine_runtime(0, 0);
}

/* ---- many cores ---- */

static CALLBACK bool lines_entry(struct hook_frame *f, const struct hook_regs *r)
{
	f->data[0] = r->args[0];
	return true;
}

static CALLBACK void lines_leave(struct hook_frame *f, __u64 result)
{
	f->data[1] = result;
}

static CALLBACK void lines_begin(struct hook_thread *t)
{
	static __u64 counts[4][1024]
		__attribute__((aligned(LINE))); /* of the counting hook, for each thread */
	static atomic_uint next;

	t->counts = counts[next++ & 3];
}

static void work_lines(void)
{
	for (long i = 0; i < 1000; i++) {
		victim_add(i, 1);
		victim_recurse(2);
		victim_tail(i, 2);
	}
}

/* No line of the cache is written to by the calls of two threads. */
static void test_lines(void)
{
	static const struct hook_ops of_lines = { .entry = lines_entry,
						  .leave = lines_leave,
						  .begin = lines_begin };
	extern char __data_start[], _end[]; /* the linker's */
	const char *region_end = hooks_region + (size_t)HOOK_AREAS * HOOK_AREA + HOOK_PART;
	struct lines l = { .work = work_lines };
	const void *at = NULL;
	long alone = 0, both;

	CHECK_EQ(0, engine_open(&of_lines));
	ON(victim_add, 1);
	ON_WITH(victim_recurse, 2, HOOK_COUNT);
	ON_WITH(victim_tail, 3, HOOK_ENTRY_ONLY);
	work_lines();
	/* what the engine and this test have, but for the region of all areas; of these the first */
	CHECK(&hooks_region[0] > &__data_start[0] && region_end <= _end);
#if defined(__x86_64__)
	lines_add(&l, __data_start, hooks_region);
	lines_add(&l, region_end, _end);
#else /* the region is in a segment of its own, at the end */
	extern char __bss_end__[];

	lines_add(&l, __data_start, __bss_end__);
#endif
	lines_add(&l, engine_counting, engine_counting + 6);
	for (unsigned int i = 0; i < 6; i++)
		if (i < threads_used())
			lines_add(&l, area_at(i), (char *)area_at(i) + HOOK_PART);
	CHECK(l.n <= LINES_RANGES);
	both = lines_shared(&l, &alone, &at);
	printf("%ld lines are written to by one thread\n", alone);
	if (both)
		printf("the line at %p is written to by both threads\n", at);
	CHECK_EQ(0, both);
	/* its frames, its number of calls, and its counts */
	CHECK(alone >= 3);
}

int main(int argc, char **argv)
{
	const char *only = arguments(argc, argv);

	T(flags);
	T(counted_under_fire);
	T(parts_are_last);
	T(lines);
	return failed;
}
