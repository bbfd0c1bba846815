/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_engine.c - the engine in one process: test_engine [--all] [NAME]. Linked against one build of
 * victims.c; tests/hooks/run.sh runs it with each.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#include "../../hooks/state.h"
#include "hooktest.h"
#include "lines.h"

long victim_add(long, long);
long victim_eight(long, long, long, long, long, long, long, long);
long victim_ten(long, long, long, long, long, long, long, long, long, long);
double victim_double(double, float, long);
struct pair {
	long a, b;
} victim_pair(long, long);
struct large {
	long at[6];
} victim_large(long);
long victim_variadic(int, ...);
long victim_call(long (*)(void *), void *);
long victim_call2(long (*)(void *), void *);
long victim_tail(long, long);
long victim_recurse(long);
long victim_many(long, long, long, long, long (*)(long));

/* At a hook the vector registers are the program's. */
#if !defined(__clang__)
#define CALLBACK __attribute__((target("general-regs-only")))
#else
#define CALLBACK
#endif

static bool all;

/* Where functions have no jumps, these are hooked where this program, or their own library, calls them. */
#if defined(__x86_64__)
#define HOOKED HOOK_ON
#define SLOWER 1
#else
#define HOOKED HOOK_PARTLY
#define SLOWER 20 /* it is run in an emulator */
#endif

/* ---- a consumer that counts ---- */

#define IDS 64
struct per_thread {
	unsigned long entries[IDS], leaves[IDS];
} __attribute__((aligned(64)));
static struct per_thread counted[HOOK_THREADS];
static atomic_ulong lefts, begins, ends;
static atomic_ulong wrong;

/* One instruction: a signal's handler counts too. */
static CALLBACK void add(unsigned long *n)
{
#if defined(__x86_64__)
	__asm__ volatile("incq %0" : "+m"(*n) : : "cc");
#else
	__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
#endif
}

static CALLBACK bool count_entry(struct hook_frame *f, const struct hook_regs *r)
{
	add(&counted[hook_self()->index].entries[f->id % IDS]);
	f->data[0] = f->number;
	f->data[1] = r->args[0];
	return true;
}

static CALLBACK void count_leave(struct hook_frame *f, __u64 result)
{
	(void)result;
	if (f->data[0] != f->number)
		wrong++;
	add(&counted[hook_self()->index].leaves[f->id % IDS]);
}

static CALLBACK void count_left(struct hook_frame *f)
{
	(void)f;
	lefts++;
}

static CALLBACK void count_begin(struct hook_thread *t)
{
	(void)t;
	begins++;
}

static CALLBACK void count_ended(struct hook_thread *t)
{
	(void)t;
	ends++;
}

static __u64 given[HOOK_COUNTS];
static bool giving;

static void give_counts(struct hook_thread *t)
{
	if (giving)
		hook_count_into(t, given);
}

static const struct hook_ops counting = { .entry = count_entry,
					  .counts = give_counts,
					  .leave = count_leave,
					  .left = count_left,
					  .begin = count_begin,
					  .ended = count_ended };

static unsigned long entries(unsigned int id)
{
	unsigned long n = 0;

	for (int i = 0; i < HOOK_THREADS; i++)
		n += counted[i].entries[id];
	return n;
}

static unsigned long leaves(unsigned int id)
{
	unsigned long n = 0;

	for (int i = 0; i < HOOK_THREADS; i++)
		n += counted[i].leaves[id];
	return n;
}

#if defined(__x86_64__)
static void *plain(void *function)
{
	return function;
}
#else
/* A pointer that is taken while the function is hooked is that to its pad. */
static void *plain(void *function)
{
	static const char *const names[] = { "victim_add",   "victim_eight",	"victim_double",
					     "victim_pair",  "victim_large",	"victim_call",
					     "victim_call2", "victim_tail",	"victim_recurse",
					     "victim_many",  "victim_variadic", "victim_ten" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *is = dlsym(RTLD_DEFAULT, names[i]);

		if (!(((uintptr_t)is ^ (uintptr_t)function) & ~(0xffUL << 40)))
			return is;
	}
	return function;
}
#endif

#define ON_WITH(function, id, flags) \
	CHECK_EQ(HOOKED, hook_one(plain((void *)(function)), id, flags))
#define ON(function, id) ON_WITH(function, id, 0)

/* ---- arguments and results ---- */

static struct hook_regs seen;
static __u64 seen_stack[2], seen_result, seen_ip;

static CALLBACK bool look_entry(struct hook_frame *f, const struct hook_regs *r)
{
	for (int i = 0; i < HOOK_ARGS; i++)
		seen.args[i] = r->args[i];
	seen_stack[0] = hook_stack_args(r)[0];
	seen_stack[1] = hook_stack_args(r)[1];
	seen_ip = f->ip;
	return true;
}

static CALLBACK void look_leave(struct hook_frame *f, __u64 result)
{
	(void)f;
	seen_result = result;
}

static const struct hook_ops looking = { .entry = look_entry, .leave = look_leave };

static long times_three(long n)
{
	return 3 * n;
}

static void test_values(void)
{
	long want = victim_many(1, 2, 3, 4, times_three);
	struct hook_leftover left;
	struct large l;
	struct pair p;

	CHECK_EQ(0, engine_open(&looking));
	ON(victim_eight, 1);
	ON(victim_double, 2);
	ON(victim_pair, 3);
	ON(victim_large, 4);
	ON(victim_variadic, 5);
	ON(victim_many, 6);
	ON(victim_recurse, 7);
	ON(victim_ten, 8);
	CHECK_EQ(204, victim_eight(1, 2, 3, 4, 5, 6, 7, 8));
	CHECK_EQ(1, seen.args[0]);
	CHECK_EQ(6, seen.args[5]);
	CHECK_EQ(7, HOOK_ARGS > 6 ? seen.args[6 % HOOK_ARGS] : seen_stack[0]);
	CHECK_EQ(8, HOOK_ARGS > 6 ? seen.args[7 % HOOK_ARGS] : seen_stack[1]);
	CHECK_EQ(204, seen_result);
	CHECK_EQ(10 - 9, victim_ten(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
	CHECK_EQ(HOOK_ARGS + 1, seen_stack[0]);
	CHECK_EQ(HOOK_ARGS + 2, seen_stack[1]);
	CHECK(seen_ip > (__u64)(size_t)test_values && seen_ip < (__u64)(size_t)test_values + 4096);
	CHECK(victim_double(1.5, 2.0f, 7) == 10.0);
	CHECK_EQ(7, seen.args[0]);
	p = victim_pair(10, 20);
	CHECK_EQ(20, p.a);
	CHECK_EQ(10, p.b);
	l = victim_large(5);
	for (int i = 0; i < 6; i++)
		CHECK_EQ(5 + i, l.at[i]);
	CHECK_EQ(1 + 2 + 3 + 4, victim_variadic(4, 1L, 2.0, 3L, 4.0));
	CHECK_EQ(want, victim_many(1, 2, 3, 4, times_three));
	CHECK_EQ(103, victim_recurse(3));
	CHECK_EQ(0, engine_remove(&left));
	seen_result = 0;
	CHECK_EQ(204, victim_eight(1, 2, 3, 4, 5, 6, 7, 8));
	CHECK_EQ(0, seen_result);
}

/* ---- nesting ---- */

static __u32 outer_ids[64];
static int nouter;

static CALLBACK bool outer_entry(struct hook_frame *f, const struct hook_regs *r)
{
	struct hook_frame *o = hook_outer(f);

	(void)r;
	if (nouter < 64)
		outer_ids[nouter++] = o ? o->id : 0;
	return true;
}

static unsigned int missed_ids[8], missed_left, missed_otherwise;

static void count_missed(__u32 id, enum hook_miss why)
{
	if (why == HOOK_MISS_DEEP && id < 8)
		missed_ids[id]++;
	else if (why == HOOK_MISS_LEFT)
		missed_left++;
	else
		missed_otherwise++;
}

static const struct hook_ops nesting = { .entry = outer_entry,
					 .leave = look_leave,
					 .missed = count_missed };

static long call_add(void *arg)
{
	(void)arg;
	return victim_add(1, 2);
}

static long call_deeper(void *arg)
{
	(void)arg;
	return victim_call2(call_add, NULL);
}

/* The function calls itself; or, where it does so without a slot, this program calls it again. */
static long call_down(void *arg)
{
	return arg ? victim_call(call_down, (char *)arg - 1) : 99;
}

static long down(long n)
{
	return HOOKED == HOOK_ON ? victim_recurse(n) : victim_call(call_down, (void *)n);
}

static void test_nesting(void)
{
	CHECK_EQ(0, engine_open(&nesting));
	ON(victim_call, 1);
	ON(victim_call2, 2);
	ON(victim_add, 3);
	ON(victim_tail, 4);
	CHECK_EQ(14, victim_call(call_deeper, NULL));
	CHECK_EQ(3, nouter);
	CHECK_EQ(0, outer_ids[0]);
	CHECK_EQ(1, outer_ids[1]);
	CHECK_EQ(2, outer_ids[2]);
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(0, outer_ids[3]);
	for (int i = 0; i < 100; i++) {
		nouter = 0;
		CHECK_EQ(4, victim_tail(1, 2));
		CHECK_EQ(2, nouter);
		CHECK_EQ(4, outer_ids[1]);
	}
	/* Deeper than there are frames: not recorded, counted, and right. */
	ON(HOOKED == HOOK_ON ? (void *)victim_recurse : (void *)victim_call, 5);
	CHECK_EQ(200, down(100));
	struct hook_state s;
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(101 - HOOK_DEPTH, s.too_deep);
	CHECK_EQ(101 - HOOK_DEPTH, missed_ids[5]);
	CHECK_EQ(0, missed_otherwise);
	CHECK_EQ(115, down(15));
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(101 - HOOK_DEPTH, s.too_deep);
}

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

	CHECK_EQ(0, engine_open(&counting));
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

/* ---- on and off under fire ---- */

#define CALLERS 16
static atomic_int stop, waiting;
static atomic_ulong made;

static void *caller(void *arg)
{
	unsigned long n = 0;

	(void)arg;
	while (!stop) {
		if (victim_add((long)n, 1) != (long)n + 1 || victim_tail(1, 1) != 3 ||
		    victim_call(call_add, NULL) != 4 || victim_recurse(2) != 102)
			wrong++;
		n++;
	}
	made += n;
	return NULL;
}

static void test_under_fire(void)
{
	void *functions[] = { (void *)victim_add, (void *)victim_tail, (void *)victim_call,
			      (void *)victim_recurse };
	int cycles = (all ? 5000 : 1000) / SLOWER;
	unsigned char before[4][16];
	struct hook_leftover left;
	pthread_t t[CALLERS];
	__u64 kept = 0;

	for (int i = 0; i < 4; i++)
		memcpy(before[i], functions[i], 16);
	CHECK_EQ(0, engine_open(&counting));
	for (int i = 0; i < CALLERS; i++)
		CHECK(!pthread_create(&t[i], NULL, caller, NULL));
	for (int c = 0; c < cycles; c++) {
		for (int i = 0; i < 4; i++)
			ON(functions[i], i);
		for (volatile int w = 0; w < c % 512; w++)
			;
		CHECK_EQ(0, engine_remove(&left));
		CHECK_EQ(0, left.foreign + left.gone);
		CHECK(!HOOK_RA_ON_STACK || !left.inside);
		for (int i = 0; i < 4; i++)
			CHECK(!memcmp(before[i], functions[i], 16));
		if (c == cycles / 10)
			kept = left.kept_bytes;
		if (c % 100 == 99)
			sched_yield();
	}
	/* No growth. */
	CHECK_EQ(kept, left.kept_bytes);
	stop = 1;
	for (int i = 0; i < CALLERS; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(0, wrong);
	CHECK(entries(0) > 0);
	for (int i = 0; i < 4; i++)
		CHECK(leaves(i) <= entries(i));
	/* Each call that was entered has ended in one way. */
	CHECK_EQ(entries(0) + entries(1) + entries(2) + entries(3),
		 leaves(0) + leaves(1) + leaves(2) + leaves(3) + lefts);
}

/* Counts are exact while the hooks stay. */
static pthread_barrier_t barrier;

static void *exact_caller(void *arg)
{
	long n = *(long *)arg;

	pthread_barrier_wait(&barrier);
	for (long i = 0; i < n; i++)
		if (victim_add(i, 1) != i + 1 || victim_tail(1, 1) != 3)
			wrong++;
	return NULL;
}

static void test_exact(void)
{
	long n = (all ? 1000000 : 50000) / SLOWER;
	pthread_t t[CALLERS];

	CHECK_EQ(0, engine_open(&counting));
	ON(victim_add, 1);
	ON(victim_tail, 2);
	pthread_barrier_init(&barrier, NULL, CALLERS);
	for (int i = 0; i < CALLERS; i++)
		CHECK(!pthread_create(&t[i], NULL, exact_caller, &n));
	for (int i = 0; i < CALLERS; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(0, wrong);
	CHECK_EQ(2 * CALLERS * n, entries(1));
	CHECK_EQ(2 * CALLERS * n, leaves(1));
	CHECK_EQ(CALLERS * n, entries(2));
	CHECK_EQ(CALLERS * n, leaves(2));
	CHECK_EQ(0, lefts);
}

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

/* ---- threads that sleep inside ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long sleep_inside(void *arg)
{
	long depth = (long)arg;

	if (depth)
		return victim_call(sleep_inside, (void *)(depth - 1));
	waiting++;
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return 1000;
}

static long results[8];

static void *sleeper(void *arg)
{
	results[(long)arg] = victim_call(sleep_inside, (void *)3L);
	return NULL;
}

extern char hooks_region[];

static void test_sleepers(void)
{
	struct hook_leftover left;
	unsigned char before[16];
	pthread_t t[8];

	memcpy(before, (void *)victim_call, 16);
	CHECK_EQ(0, engine_open(&counting));
	ON(victim_call, 1);
	pthread_mutex_lock(&lock);
	for (long i = 0; i < 8; i++)
		CHECK(!pthread_create(&t[i], NULL, sleeper, (void *)i));
	while (waiting < 8)
		usleep(1000);
	CHECK_EQ(0, engine_remove(&left));
	CHECK_EQ(HOOK_RA_ON_STACK ? 32 : 0, left.put_back);
	CHECK_EQ(HOOK_RA_ON_STACK ? 0 : 32, left.inside);
	CHECK_EQ(32, lefts);
	CHECK(!memcmp(before, (void *)victim_call, 16));
	/* Nobody needs the stubs any more, where return addresses are on the stack. */
	CHECK(!HOOK_RA_ON_STACK ||
	      mmap(hooks_region, 4096 * 32768 + 16384, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == hooks_region);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(1004, results[i]);
	CHECK_EQ(0, leaves(1));
}

#if defined(__x86_64__)
/* Asleep in a function that another hooked one has jumped to: one place, two return addresses. */
__asm__(".text\n.balign 64\n.globl jumps_on\n.type jumps_on, @function\n"
	"jumps_on: push %rbp\n mov %rsp, %rbp\n push %r12\n pop %r12\n pop %rbp\n jmp "
	"victim_call@PLT\n"
	".size jumps_on, . - jumps_on\n.balign 64\n");
long jumps_on(long (*)(void *), void *);

static void *tail_sleeper(void *arg)
{
	results[(long)arg] = jumps_on(sleep_inside, NULL);
	return NULL;
}

static void test_tail_sleeper(void)
{
	struct hook_leftover left;
	pthread_t t;

	CHECK_EQ(0, engine_open(&counting));
	ON(victim_call, 1);
	ON(jumps_on, 2);
	pthread_mutex_lock(&lock);
	CHECK(!pthread_create(&t, NULL, tail_sleeper, NULL));
	while (waiting < 1)
		usleep(1000);
	CHECK_EQ(0, engine_remove(&left));
	CHECK_EQ(2, left.put_back);
	CHECK_EQ(0, left.inside);
	pthread_mutex_unlock(&lock);
	pthread_join(t, NULL);
	CHECK_EQ(1001, results[0]);
	CHECK_EQ(0, leaves(1) + leaves(2));
	/* And as it should be, without the removal. */
	ON(victim_call, 1);
	ON(jumps_on, 2);
	CHECK_EQ(1001, jumps_on(sleep_inside, NULL));
	CHECK_EQ(1, leaves(1));
	CHECK_EQ(1, leaves(2));
}

#endif

/* ---- left calls ---- */

static jmp_buf back;
static long static_i;

static long jump_out(void *arg)
{
	(void)arg;
	longjmp(back, 1);
}

static long jump_deeper(void *arg)
{
	return victim_call2(jump_out, arg);
}

static void test_longjmp(void)
{
	static long n, jumped;

	n = all ? 100000 : 10000;
	CHECK_EQ(0, engine_open(&counting));
	ON(victim_call, 1);
	ON(victim_call2, 2);
	ON(victim_add, 3);
	for (static_i = 0; static_i < n; static_i++) {
		if (!setjmp(back))
			victim_call(jump_deeper, NULL);
		else
			jumped++;
		CHECK_EQ(3, victim_add(1, 2));
	}
	CHECK_EQ(n, jumped);
	CHECK_EQ(n, entries(1));
	CHECK_EQ(n, entries(2));
	CHECK_EQ(n, entries(3));
	CHECK_EQ(n, leaves(3));
	CHECK_EQ(0, leaves(1) + leaves(2));
	CHECK_EQ(2 * n, lefts);
}

/* As a signal handler that leaves entry() by siglongjmp(). */
static CALLBACK bool leave_entry(struct hook_frame *f, const struct hook_regs *r)
{
	(void)r;
	if (f->id == 1)
		longjmp(back, 1);
	return true;
}

static const struct hook_ops leaving = { .entry = leave_entry, .missed = count_missed };

/* Each call whose recording is left so keeps its frame. When no frame is free any more, calls go through, and it is
 * known that they were not nested too deeply. */
static void test_left_inside(void)
{
	static volatile int i;
	struct hook_state s;

	CHECK_EQ(0, engine_open(&leaving));
	ON(victim_add, 1);
	ON(victim_tail, 2);
	for (i = 0; i < HOOK_DEPTH; i++)
		if (!setjmp(back))
			CHECK_EQ(0, victim_add(1, 2));
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(4, victim_tail(1, 2));
	CHECK_EQ(3, missed_left);
	CHECK_EQ(0, missed_otherwise + missed_ids[1] + missed_ids[2]);
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(3, s.too_deep);
}

/* ---- signals ---- */

static volatile unsigned long handled, nested_calls;
static volatile sig_atomic_t in_handler;

static void handler(int s, siginfo_t *i, void *u)
{
	(void)s;
	(void)i;
	(void)u;
	for (int k = 0; k < 3; k++)
		if (victim_add(k, 5) != k + 5)
			wrong++;
	nested_calls += 3;
	if (victim_call(call_add, NULL) != 4)
		wrong++;
	nested_calls++;
	handled++;
}

static void signals_for(long calls, int flags)
{
	struct sigaction s = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec often = { { 0, 50000 }, { 0, 50000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct hook_state state;
	timer_t timer;

	CHECK(!sigaction(SIGALRM, &s, NULL));
	CHECK(!timer_create(CLOCK_MONOTONIC, &e, &timer));
	CHECK(!timer_settime(timer, 0, &often, NULL));
	for (long n = 0; n < calls; n++)
		if (victim_add(n, 1) != n + 1)
			wrong++;
	CHECK(!timer_settime(timer, 0, &never, NULL));
	CHECK(handled > 0);
	CHECK_EQ(0, wrong);
	CHECK_EQ(0, engine_check(&state));
	/* victim_call of the handler calls victim_add once more. A handler that comes while the thread gets
	 * its area has none. */
	CHECK_EQ(calls + (long)handled * 5,
		 (long)entries(1) + (long)entries(2) + (long)state.no_thread);
	CHECK(state.no_thread < 100);
	CHECK_EQ((long)entries(1), (long)leaves(1));
	CHECK_EQ((long)entries(2), (long)leaves(2));
	CHECK_EQ(0, lefts);
}

static CALLBACK void begin_in_signal(struct hook_thread *t)
{
	(void)t;
	raise(SIGUSR1);
}

static void add_in_handler(int sig)
{
	(void)sig;
	if (victim_add(1, 2) != 3)
		wrong++;
}

static void *add_once(void *arg)
{
	CHECK_EQ(3, victim_add(1, 2));
	return arg;
}

/* A call of a handler that comes while the thread gets its area is not recorded, and is counted. */
static void test_signal_at_first_call(void)
{
	static const struct hook_ops ops = { .entry = count_entry,
					     .leave = count_leave,
					     .begin = begin_in_signal };
	struct hook_state state;
	pthread_t t;

	CHECK(signal(SIGUSR1, add_in_handler) != SIG_ERR);
	CHECK_EQ(0, engine_open(&ops));
	ON(victim_add, 1);
	CHECK(!pthread_create(&t, NULL, add_once, NULL));
	pthread_join(t, NULL);
	CHECK_EQ(0, wrong);
	CHECK_EQ(1, entries(1));
	CHECK_EQ(1, leaves(1));
	CHECK_EQ(0, engine_check(&state));
	CHECK_EQ(1, state.no_thread);
}

static void test_signals(void)
{
	CHECK_EQ(0, engine_open(&counting));
	ON(victim_add, 1);
	ON(victim_call, 2);
	signals_for((all ? 100000000 : 3000000) / SLOWER, 0);
}

/* The handler is on a stack of its own, which lies above. */
static void test_altstack(void)
{
	stack_t s = { .ss_size = 65536 };
	char *low = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	s.ss_sp = low;
	CHECK(!sigaltstack(&s, NULL));
	CHECK_EQ(0, engine_open(&counting));
	ON(victim_add, 1);
	ON(victim_call, 2);
	signals_for((all ? 30000000 : 1000000) / SLOWER, SA_ONSTACK);
}

/* ---- coroutines ---- */

#define COROUTINES 12
static ucontext_t scheduler, routines[COROUTINES];
static int routine_now;
static long routine_results[COROUTINES];

static long yield_inside(void *arg)
{
	(void)arg;
	/* A call before and after, on this stack. */
	if (victim_add(1, 1) != 2)
		wrong++;
	swapcontext(&routines[routine_now], &scheduler);
	if (victim_add(2, 2) != 4)
		wrong++;
	return 7;
}

static void routine(void)
{
	int me = routine_now;

	for (int i = 0; i < 100; i++)
		routine_results[me] += victim_call(yield_inside, NULL);
}

static void test_coroutines(void)
{
	unsigned int seed = 1;
	struct hook_leftover left;

	CHECK_EQ(0, engine_open(&counting));
	ON(victim_call, 1);
	ON(victim_add, 2);
	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&routines[i]);
		routines[i].uc_stack.ss_size = 65536;
		routines[i].uc_stack.ss_sp = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		routines[i].uc_link = &scheduler;
		makecontext(&routines[i], routine, 0);
	}
	/* 101 turns each, in a random order: calls end in another order than they began. */
	int turns[COROUTINES] = { 0 }, left_over = COROUTINES;

	while (left_over) {
		int i = rand_r(&seed) % COROUTINES;

		if (turns[i] > 100)
			continue;
		routine_now = i;
		swapcontext(&scheduler, &routines[i]);
		if (victim_add(3, 3) != 6)
			wrong++;
		if (++turns[i] > 100) {
			left_over--;
			munmap(routines[i].uc_stack.ss_sp, 65536);
		}
	}
	CHECK_EQ(0, wrong);
	for (int i = 0; i < COROUTINES; i++)
		CHECK_EQ(800, routine_results[i]);
	CHECK_EQ(COROUTINES * 100, entries(1));
	CHECK_EQ(COROUTINES * 100, leaves(1));
	CHECK_EQ(COROUTINES * 301, entries(2));
	CHECK_EQ(COROUTINES * 301, leaves(2));
	CHECK_EQ(0, lefts);
	CHECK_EQ(0, engine_remove(&left));
}

/* A coroutine's stack is unmapped while a call on it is under way: the frame must not be looked at. */
static void test_stack_gone(void)
{
	CHECK_EQ(0, engine_open(&counting));
	ON(victim_call, 1);
	ON(victim_add, 2);
	for (int i = 0; i < 100; i++) {
		void *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

		getcontext(&routines[0]);
		routines[0].uc_stack.ss_size = 65536;
		routines[0].uc_stack.ss_sp = stack;
		routines[0].uc_link = &scheduler;
		makecontext(&routines[0], routine, 0);
		routine_now = 0;
		swapcontext(&scheduler, &routines[0]);
		munmap(stack, 65536);
		CHECK_EQ(6, victim_add(3, 3));
	}
	CHECK_EQ(100, lefts);
}

/* A thread ends inside a call, and its stack is unmapped at the worst moment: right after it was found to be mapped. */
static char *ended_stack;

#if defined(__x86_64__)
#define MC_RESULT(m) (m).gregs[REG_RAX]
#else
#define MC_RESULT(m) (m).regs[0]
#endif

static void on_trapped_call(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	(void)sig;
	(void)info;
	munmap(ended_stack, 65536);
	MC_RESULT(c->uc_mcontext) = -EINVAL;
}

/* What happens to a system call whose first argument is `first`. */
static void filter_calls(unsigned int nr, unsigned int first, unsigned int action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

static long end_inside(void *arg)
{
	(void)arg;
	pthread_exit(NULL);
}

static void *end_in_call(void *arg)
{
	victim_call(end_inside, NULL);
	return arg;
}

static void end_one(void)
{
	pthread_attr_t attr;
	pthread_t t;

	ended_stack =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_init(&attr);
	CHECK(!pthread_attr_setstack(&attr, ended_stack, 65536));
	CHECK(!pthread_create(&t, &attr, end_in_call, NULL));
	pthread_join(t, NULL);
}

static void test_ended_stack_gone(void)
{
	struct sigaction sa = { .sa_sigaction = on_trapped_call, .sa_flags = SA_SIGINFO };
	struct hook_state s;

	CHECK(!sigaction(SIGSYS, &sa, NULL));
	CHECK_EQ(0, engine_open(&counting));
	ON(victim_call, 1);
	end_one();
	filter_calls(SYS_rt_sigprocmask, (unsigned int)-1, SECCOMP_RET_TRAP);
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(0, s.threads);
	CHECK_EQ(1, ends);
}

/* In a sandbox that forbids to read it, the stack is left alone: the frame is kept, and calls are recorded. */
static void test_ended_in_sandbox(void)
{
	unsigned int areas;

	CHECK_EQ(0, engine_open(&counting));
	ON(victim_call, 1);
	ON(victim_add, 2);
	end_one();
	CHECK_EQ(1, entries(1));
	filter_calls(SYS_process_vm_readv, (unsigned int)getpid(), SECCOMP_RET_KILL_PROCESS);
	engine_sandboxed();
	munmap(ended_stack, 65536);
	areas = threads_used();
	threads_drop_gone();
	CHECK_EQ(1, ends);
	CHECK(threads_has(0));
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(1, leaves(2));
	CHECK_EQ(areas, threads_used());
}

/* A call begins in one thread and ends in another. */
static void *finish_elsewhere(void *arg)
{
	(void)arg;
	CHECK_EQ(6, victim_add(3, 3));
	swapcontext(&scheduler, &routines[0]);
	CHECK_EQ(6, victim_add(3, 3));
	return NULL;
}

static void *begin_here(void *arg)
{
	(void)arg;
	swapcontext(&scheduler, &routines[0]);
	CHECK_EQ(6, victim_add(3, 3));
	return NULL;
}

static void once(void)
{
	routine_results[0] = victim_call(yield_inside, NULL);
}

static void test_moved_coroutine(void)
{
	struct hook_state s;
	pthread_t t;

	CHECK_EQ(0, engine_open(&counting));
	ON(victim_call, 1);
	ON(victim_add, 2);
	for (int i = 0; i < 50; i++) {
		getcontext(&routines[0]);
		routines[0].uc_stack.ss_size = 65536;
		routines[0].uc_stack.ss_sp = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		routines[0].uc_link = &scheduler;
		makecontext(&routines[0], once, 0);
		pthread_create(&t, NULL, begin_here, NULL);
		pthread_join(t, NULL);
		/* The thread is gone; its area must not become another one's, although one looks. */
		CHECK_EQ(0, engine_check(&s));
		pthread_create(&t, NULL, i & 1 ? begin_here : finish_elsewhere, NULL);
		pthread_join(t, NULL);
		CHECK_EQ(8, routine_results[0]);
		routine_results[0] = 0;
	}
	CHECK_EQ(50, entries(1));
	CHECK_EQ(50, leaves(1));
	CHECK_EQ(0, wrong);
}

/* ---- threads that come and go ---- */

static void *one_call(void *arg)
{
	(void)arg;
	return victim_add(1, 2) == 3 ? NULL : (void *)1;
}

static long exit_inside(void *arg)
{
	(void)arg;
	pthread_exit((void *)5L);
}

static void *exiting(void *arg)
{
	(void)arg;
	victim_call(exit_inside, NULL);
	return NULL;
}

static void test_threads(void)
{
	long n = all ? 20000 : 2000;
	struct hook_state s;
	pthread_t t[64];

	CHECK_EQ(0, engine_open(&counting));
	ON(victim_add, 1);
	ON(victim_call, 2);
	for (long i = 0; i < n; i += 64) {
		for (int k = 0; k < 64; k++)
			CHECK(!pthread_create(&t[k], NULL, k % 8 ? one_call : exiting, NULL));
		for (int k = 0; k < 64; k++) {
			void *r;

			pthread_join(t[k], &r);
			CHECK_EQ(k % 8 ? 0 : 5, (long)r);
		}
	}
	n = (n + 63) / 64 * 64;
	CHECK_EQ(n - n / 8, entries(1));
	CHECK_EQ(n - n / 8, leaves(1));
	CHECK_EQ(n / 8, entries(2));
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(0, s.no_thread);
	CHECK_EQ(n, begins);
	CHECK_EQ(n, ends);
	CHECK_EQ(0, s.threads);
}

static void *wait_and_call(void *arg)
{
	if (victim_add(1, 2) != 3)
		wrong++;
	waiting++;
	pthread_mutex_lock(arg);
	pthread_mutex_unlock(arg);
	if (victim_add(1, 2) != 3)
		wrong++;
	return NULL;
}

/* More threads than there are areas: the calls of the others go through, and are counted. */
static void test_4096_threads(void)
{
	enum { N = HOOK_THREADS + 50 };
	static pthread_t t[N];
	pthread_attr_t attr;
	struct hook_state s;
	int n = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	CHECK_EQ(0, engine_open(&counting));
	ON(victim_add, 1);
	pthread_mutex_lock(&lock);
	while (n < N && !pthread_create(&t[n], &attr, wait_and_call, &lock))
		n++;
	if (n < N) {
		printf("only %d threads can be made here\n", n);
		_exit(77);
	}
	while (waiting < n)
		usleep(1000);
	CHECK_EQ(HOOK_THREADS, (long)entries(1));
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(0, wrong);
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ((long)(2 * N), (long)(entries(1) + s.no_thread));
	CHECK_EQ(0, s.threads);
}

/* ---- fork, vfork ---- */

static void test_fork(void)
{
	_Atomic unsigned long *shared =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	__u64 *counts = (__u64 *)shared + 8;
	struct hook_leftover left;
	unsigned char before[16];
	int status;
	pid_t pid;

	memcpy(before, (void *)victim_add, 16);
	CHECK_EQ(0, engine_open(&counting));
	ON(victim_add, 1);
	ON(victim_call, 2);
	ON_WITH(victim_tail, 3, HOOK_COUNT_IN(3));
	CHECK_EQ(3, victim_add(1, 2));
	/* memory that a child shares, as that of the hooks is; its stub counts by itself from here on */
	hook_count_into(hook_self(), counts);
	CHECK_EQ(4, victim_tail(1, 2));
	CHECK_EQ(1, counts[3]);
	pid = fork();
	if (!pid) {
		/* Calls go through, and nothing is recorded. */
		CHECK_EQ(3, victim_add(1, 2));
		CHECK_EQ(4, victim_call(call_add, NULL));
		CHECK_EQ(4, victim_tail(1, 2));
		CHECK_EQ(2, entries(1));
		CHECK_EQ(1, counts[3]);
		/* Until it has an engine of its own. */
		CHECK_EQ(0, engine_open(&counting));
		ON(victim_add, 1);
		CHECK_EQ(3, victim_add(1, 2));
		CHECK_EQ(3, entries(1));
		CHECK_EQ(0, engine_remove(&left));
		CHECK(!memcmp(before, (void *)victim_add, 16));
		*shared = 1;
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(0, status);
	CHECK_EQ(1, *shared);
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(3, entries(1));
	pid = vfork();
	if (!pid) {
		victim_add(1, 2);
		_exit(3);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(3, WEXITSTATUS(status));
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(5, entries(1));
	CHECK_EQ(5, leaves(1));
	CHECK_EQ(0, engine_remove(&left));
}

static long fork_inside(void *arg)
{
	(void)arg;
	return fork();
}

/* fork() inside a hooked call: both return through it. */
static void test_fork_inside(void)
{
	int status;
	long pid;

	CHECK_EQ(0, engine_open(&counting));
	ON(victim_call, 1);
	pid = victim_call(fork_inside, NULL) - 1;
	if (!pid) {
		CHECK_EQ(0, leaves(1));
		_exit(0);
	}
	CHECK_EQ(1, leaves(1));
	CHECK(waitpid((pid_t)pid, &status, 0) == pid);
	CHECK_EQ(0, status);
}

/* ---- other tracers, debuggers ---- */

#if defined(__x86_64__)
static void poke(void *at, unsigned char byte)
{
	char *page = (char *)((uintptr_t)at & ~4095UL);

	CHECK(!mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC));
	*(volatile unsigned char *)at = byte;
	CHECK(!mprotect(page, 8192, PROT_READ | PROT_EXEC));
}

static void look_there(void)
{
	engine_interrupted();
}

/* How many bytes of a stack engine_interrupted() changes. */
static size_t stack_of_interrupted(void)
{
	static unsigned char stack[16384];
	ucontext_t there, home;
	size_t unused = 0;

	memset(stack, 0xa5, sizeof(stack));
	CHECK(!getcontext(&there));
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &home;
	makecontext(&there, look_there, 0);
	CHECK(!swapcontext(&home, &there));
	while (unused < sizeof(stack) && stack[unused] == 0xa5)
		unused++;
	return sizeof(stack) - unused;
}

static void test_other_tracer(void)
{
	unsigned char *f = (void *)victim_add, was = f[0];
	struct hook_leftover left;
	struct hook_state s;

	CHECK_EQ(0, engine_open(&counting));
	/* int3 is there before: refused, and left. */
	poke(f, 0xcc);
	CHECK_EQ(HOOK_BREAKPOINT, hook_one(f, 1, 0));
	CHECK_EQ(0xcc, f[0]);
	poke(f, was);
	/* It comes, and goes: the file's byte is put back, and so is the hook. */
	ON(f, 1);
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(1, s.on);
	CHECK_EQ(0, s.interrupted);
	CHECK_EQ(0, engine_interrupted());
	poke(f, 0xcc);
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(0, s.on);
	CHECK_EQ(1, s.foreign);
	CHECK_EQ(1, s.interrupted);
	CHECK_EQ(0xcc, f[0]);
	poke(f, was);
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(1, s.on);
	CHECK_EQ(1, s.rewritten);
	CHECK_EQ(1, s.interrupted); /* a function, however often */
	CHECK_EQ(0xe9, f[0]);
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(1, entries(1));
	/* It is there at the end: left alone. */
	poke(f, 0xcc);
	CHECK_EQ(0, engine_remove(&left));
	/* It comes and goes between two checks, or has just come: known without a check, on little stack. */
	for (int gone = 0; gone < 2; gone++) {
		poke(f, was);
		CHECK_EQ(0, engine_open(&counting));
		ON(f, 1);
		CHECK_EQ(0, engine_interrupted());
		poke(f, gone ? was : 0xcc);
		CHECK(stack_of_interrupted() < 1024);
		CHECK_EQ(1, engine_interrupted());
		CHECK_EQ(gone ? was : 0xcc, f[0]);
		CHECK_EQ(0, engine_check(&s));
		CHECK_EQ(1, s.interrupted);
		poke(f, 0xcc);
		CHECK_EQ(0, engine_remove(&left));
	}
	CHECK_EQ(1, left.foreign);
	CHECK_EQ(0xcc, f[0]);
	poke(f, was);
	CHECK_EQ(3, victim_add(1, 2));
	/* A debugger had our byte in its own copy, and puts it back after we have gone. */
	poke(f, 0xe9);
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(1, entries(1));
	poke(f, was);
	/* The file has other bytes than memory. */
	struct hook_spec spec = { .address = (__u64)(size_t)f, .id = 1, .nfile = 16 };
	enum hook_result result;

	memcpy(spec.file, f, 16);
	CHECK_EQ(1, engine_install(&spec, 1, &result));
	CHECK_EQ(0, engine_remove(&left));
	spec.file[7] ^= 1;
	spec.address = (__u64)(size_t)victim_call;
	CHECK_EQ(0, engine_install(&spec, 1, &result));
	CHECK_EQ(HOOK_DIFFERS, result);
}

/* A breakpoint within the five bytes changes where the jump lands: it is reached all the same. */
static volatile int trapped;
static void *trap_at;

static void on_trap(int s, siginfo_t *i, void *u)
{
	ucontext_t *c = u;

	(void)s;
	(void)i;
	CHECK((void *)(c->uc_mcontext.gregs[REG_RIP] - 1) == trap_at);
	trapped++;
	/* As a debugger: the true byte for now */
	poke(trap_at, 0x41);
	c->uc_mcontext.gregs[REG_RIP]--;
}

__asm__(".text\n.balign 4096\n.skip 64\n.globl typical\n.type typical, @function\n"
	"typical: push %rbp\n mov %rsp, %rbp\n push %r15\n push %r14\n lea 1(%rdi), %rax\n"
	" pop %r14\n pop %r15\n pop %rbp\n ret\n.size typical, . - typical\n .balign 4096\n");
long typical(long);

static void test_breakpoint_inside(void)
{
	struct sigaction s = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	unsigned char *f = (void *)typical;

	CHECK_EQ(0x41, f[4]);
	CHECK(!sigaction(SIGTRAP, &s, NULL));
	CHECK_EQ(0, engine_open(&counting));
	ON(f, 1);
	for (int i = 0; i < 10; i++) {
		trap_at = f + 4;
		poke(trap_at, 0xcc);
		CHECK_EQ(6, typical(5));
		CHECK_EQ(i + 1, trapped);
		CHECK_EQ(i + 1, entries(1));
	}
}

/* ---- where jumps land ---- */

static void test_zone_spellings(void)
{
	unsigned char *f = (void *)typical, was[16];
	struct hook_leftover left;
	int displacement;

	memcpy(was, f, 16);
	memcpy(&displacement, f + 1, 4);
	/* Its own zone is not free, the next spelling's is. */
	for (int i = 0; i < 3; i++) {
		unsigned char *land = f + 5 + displacement + ((long)i << 25);

		CHECK(mmap((void *)((uintptr_t)land & ~4095UL), 8192, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED);
	}
	CHECK_EQ(0, engine_open(&counting));
	ON(f, 1);
	CHECK_EQ(0x47, f[4]);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(6, typical(5));
	CHECK_EQ(100, leaves(1));
	CHECK_EQ(0, engine_remove(&left));
	CHECK(!memcmp(was, f, 16));
	CHECK_EQ(6, typical(5));
}

static void test_zone_none(void)
{
	unsigned char *f = (void *)typical;
	int displacement;

	memcpy(&displacement, f + 1, 4);
	for (int i = 0; i < 8; i++) {
		unsigned char *land = f + 5 + displacement + ((long)i << 25);

		CHECK(mmap((void *)((uintptr_t)land & ~4095UL), 8192, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED);
	}
	CHECK_EQ(0, engine_open(&counting));
	CHECK_EQ(HOOK_ZONE, hook_one(f, 1, 0));
	CHECK_EQ(0x55, f[0]);
	CHECK_EQ(6, typical(5));
}

/* ---- what is refused, and what is moved ---- */

__asm__(".text\n.balign 64\n"
	"odd_ret: ret\n .balign 64\n"
	"odd_short: xor %eax, %eax\n ret\n .balign 64\n"
	"odd_jmp: jmp odd_target\n .balign 64\n"
	"odd_call: call odd_target\n ret\n .balign 64\n"
	"odd_jcc: jz odd_target\n ret\n .balign 64\n"
	"odd_target: mov $3, %eax\n ret\n .balign 64\n"
	"odd_pop: pop %rax\n push %rax\n mov $3, %eax\n ret\n .balign 64\n"
	"odd_vex: vmovaps %ymm0, %ymm0\n mov $3, %eax\n ret\n .balign 64\n"
	"odd_loop: sub $1, %rdi\n test %rdi, %rdi\n jnz odd_loop\n mov $3, %eax\n ret\n .balign "
	"64\n"
	"odd_endbr: endbr64\n push %rbp\n mov %rsp, %rbp\n push %r12\n mov $3, %eax\n pop %r12\n "
	"pop %rbp\n ret\n .balign 64\n"
	"odd_rip: mov odd_data(%rip), %eax\n add $1, %eax\n nop\n ret\n .balign 64\n"
	"odd_rip_store: movl $3, odd_data(%rip)\n mov odd_data(%rip), %eax\n ret\n .balign 64\n"
	"odd_inside: push %rbp\n 1: mov %rsp, %rbp\n push %r15\n pop %r15\n pop %rbp\n mov $3, "
	"%eax\n ret\n"
	"odd_into: push %rbp\n jmp 1b\n .balign 64\n"
	".section .bss\n odd_data: .zero 8\n .text\n");
long odd_ret(void), odd_short(void), odd_jmp(void), odd_call(void), odd_jcc(void), odd_target(void),
	odd_pop(void), odd_vex(void), odd_loop(long), odd_endbr(void), odd_rip(void),
	odd_rip_store(void), odd_inside(void), odd_into(void);

static enum hook_result with_size(void *f, __u64 size)
{
	struct hook_spec spec = { .address = (__u64)(size_t)f, .id = 9, .size = size };
	enum hook_result result;

	engine_install(&spec, 1, &result);
	return result;
}

static void test_refused(void)
{
	struct hook_leftover left;

	CHECK_EQ(0, engine_open(&counting));
	CHECK_EQ(HOOK_BRANCH, hook_one(odd_ret, 1, 0));
	CHECK_EQ(HOOK_SHORT, hook_one(odd_short, 1, 0));
	CHECK_EQ(HOOK_BRANCH, hook_one(odd_jmp, 1, 0));
	CHECK_EQ(HOOK_BRANCH, hook_one(odd_call, 1, 0));
	CHECK_EQ(HOOK_BRANCH, hook_one(odd_jcc, 1, 0));
	CHECK_EQ(HOOK_UNKNOWN, hook_one(odd_pop, 1, 0));
	CHECK_EQ(HOOK_UNKNOWN, hook_one(odd_vex, 1, 0));
	CHECK_EQ(HOOK_SHORT, with_size(odd_target, 4));
	CHECK_EQ(HOOK_LOOP, with_size(odd_loop, 16));
	CHECK_EQ(HOOK_NOT_CODE, hook_one(&all, 1, 0));
	CHECK_EQ(HOOK_NOT_CODE, hook_one((void *)8, 1, 0));
	for (int i = 0; i < HOOK_RESULTS; i++)
		CHECK(strlen(hook_result_text((enum hook_result)i)) > 8);
	ON(odd_endbr, 2);
	CHECK_EQ(3, odd_endbr());
	CHECK_EQ(1, leaves(2));
	/* The fourth byte of a displacement is 0: it may land on this program itself. */
	if (!hook_one(odd_rip, 3, 0)) {
		CHECK_EQ(1, odd_rip());
		CHECK_EQ(1, leaves(3));
	}
	if (!hook_one(odd_rip_store, 4, 0)) {
		CHECK_EQ(3, odd_rip_store());
		CHECK_EQ(1, leaves(4));
	}
	/* Jumped into behind the first byte: nothing has changed there. */
	if (!hook_one(odd_inside, 5, 0)) {
		CHECK_EQ(3, odd_inside());
		CHECK_EQ(3, odd_into());
		CHECK_EQ(1, leaves(5));
	}
	CHECK_EQ(0, engine_remove(&left));
	CHECK_EQ(3, odd_endbr());
	CHECK_EQ(0, (long)wrong);
}

#endif

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

static __u64 some_shadow_stack(void)
{
	return 0x7fff00001000;
}

/* Shadow stacks (CET): nothing is touched, and the reason has an error of its own. */
static void test_shadow_stack(void)
{
	static __u8 was[16];
	__u64 (*own)(void) = engine_shadow_stack;

	memcpy(was, (void *)victim_add, sizeof(was));
	CHECK_EQ(0, own()); /* none here, or the other tests could not be run */
	engine_shadow_stack = some_shadow_stack;
	CHECK_EQ(-ENOTSUP, engine_open(&counting));
	CHECK(!engine_live);
	CHECK(!memcmp(was, (void *)victim_add, sizeof(was)));
	CHECK_EQ(5, victim_add(2, 3));
	engine_shadow_stack = own;
	CHECK_EQ(0, engine_open(&counting));
	ON(victim_add, 1);
	CHECK_EQ(5, victim_add(2, 3));
	CHECK_EQ(1, leaves(1));
}

/* From here on this system call fails, unless its third argument is `but`. */
static void forbid(unsigned int nr, unsigned int but)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, but, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

/* A process that may not write to its code: nothing leads to what was not written, now or later. */
static void test_no_write(void)
{
	struct hook_spec spec = { .address = (__u64)(size_t)victim_add, .id = 1 };
	enum hook_result result;

	CHECK_EQ(0, engine_open(&counting));
	/* the byte of the jump could be written, and what it leads to not */
	forbid(SYS_pwrite64, 1);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(HOOK_NO_WRITE, hook_one((void *)victim_add, 1, 0));
		CHECK(*(__u8 *)plain((void *)victim_add) != 0xe9);
		CHECK_EQ(5, victim_add(2, 3));
	}
	CHECK_EQ(0, leaves(1));
	forbid(SYS_openat, ~0u);
	CHECK_EQ(-EACCES, engine_install(&spec, 1, &result));
	CHECK_EQ(5, victim_add(2, 3));
}

/* ---- a library that goes ---- */

#if defined(__x86_64__)
static void test_dlclose(void)
{
	struct hook_leftover left;
	struct hook_state s;
	char path[4096];
	Dl_info info;
	long (*add_there)(long, long);
	void *lib, *was;

	CHECK(dladdr((void *)dlsym(RTLD_DEFAULT, "victim_add"), &info));
	snprintf(path, sizeof(path), "%s.copy", info.dli_fname);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		printf("%s\n", dlerror());
		_exit(77);
	}
	add_there = (long (*)(long, long))dlsym(lib, "victim_add");
	CHECK((void *)add_there != (void *)victim_add);
	CHECK_EQ(0, engine_open(&counting));
	ON(add_there, 1);
	ON(victim_add, 2);
	CHECK_EQ(3, add_there(1, 2));
	was = (void *)add_there;
	dlclose(lib);
#if defined(__x86_64__)
	/* What became of a function is known, also where one before it has gone. */
	poke((void *)victim_add, 0xcc);
	CHECK_EQ(1, engine_interrupted());
	poke((void *)victim_add, 0xe9);
#endif
	CHECK_EQ(0, engine_check(&s));
	CHECK_EQ(1, s.gone);
	CHECK_EQ(1, s.on);
	CHECK_EQ(3, victim_add(1, 2));
	CHECK_EQ(1, leaves(2));
	/* It comes back, most likely to the same place. */
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	add_there = (long (*)(long, long))dlsym(lib, "victim_add");
	CHECK_EQ(3, add_there(1, 2));
	CHECK_EQ(1, leaves(1));
	if ((void *)add_there == was) {
		ON(add_there, 1);
		CHECK_EQ(3, add_there(1, 2));
		CHECK_EQ(2, leaves(1));
	}
	dlclose(lib);
	CHECK_EQ(0, engine_remove(&left));
	CHECK_EQ(3, victim_add(1, 2));
}

/*
 * Libraries that come and go, each time at other addresses, with more functions in all than the engine
 * knows at a time: all are hooked, calls have their entries, and what the engine maps does not grow. A
 * page of a file stands for a library.
 */
#define PAGES_EACH 4
#define FUNCS_EACH 128 /* one every 128 bytes */
static void test_libraries_without_end(void)
{
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x41,
					      0x5f, 0x5d, 0x8d, 0x47, 0x01, 0xc3 };
	static struct hook_spec specs[FUNCS_EACH];
	static enum hook_result outcome[FUNCS_EACH];
	unsigned int rounds = 3 * HOOK_FUNCS / FUNCS_EACH + 1, done = 0;
	int fd = (int)syscall(SYS_memfd_create, "library", 1);
	size_t bytes = PAGES_EACH * 4096;
	char *room =
		mmap(NULL, (rounds + 1) * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u64 most = 0;

	CHECK(fd >= 0 && room != MAP_FAILED);
	CHECK(!ftruncate(fd, (off_t)bytes));
	for (int i = 0; i < FUNCS_EACH; i++)
		CHECK(pwrite(fd, code, sizeof(code), i * 128) == sizeof(code));
	CHECK_EQ(0, engine_open(&counting));
	for (unsigned int round = 0; round < rounds; round++) {
		/* the last ones all at one place */
		char *at = room + (round < rounds - 8 ? round : rounds) * bytes;
		struct hook_leftover left;
		int err;

		CHECK(mmap(at, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == at);
		for (unsigned int i = 0; i < FUNCS_EACH; i++)
			specs[i] = (struct hook_spec){ .address = (__u64)(uintptr_t)(at + i * 128),
						       .size = 128,
						       .id = 1 };
		err = engine_install(specs, FUNCS_EACH, outcome);
		for (int i = 0; i < FUNCS_EACH; i++)
			CHECK_EQ(HOOK_ON, outcome[i]);
		CHECK_EQ(FUNCS_EACH, err);
		for (int i = 0; i < FUNCS_EACH; i++)
			CHECK_EQ(i + 1, ((int (*)(int))(void *)(at + i * 128))(i));
		done += FUNCS_EACH;
		CHECK_EQ(done, entries(1));
		CHECK_EQ(done, leaves(1));
		if (round % 16 == 15) {
			CHECK_EQ(0, engine_remove(&left));
			CHECK(!memcmp(at, code, sizeof(code)));
			/* the most until all numbers have been given out once, and later */
			if (round * FUNCS_EACH >= HOOK_FUNCS)
				CHECK(left.kept_bytes <= most + (64 << 10));
			else if (left.kept_bytes > most)
				most = left.kept_bytes;
		}
		CHECK(mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		      at);
	}
	close(fd);
}
#endif

#define T(name) run(#name, test_##name, only)
int main(int argc, char **argv)
{
	const char *only = NULL;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--all"))
			all = true;
		else
			only = argv[i];
	T(values);
	T(nesting);
	T(flags);
	T(under_fire);
	T(exact);
	T(counted_under_fire);
	T(sleepers);
	T(longjmp);
	T(left_inside);
	T(signal_at_first_call);
	T(signals);
	T(altstack);
	T(coroutines);
	T(stack_gone);
	T(ended_stack_gone);
	T(ended_in_sandbox);
	T(moved_coroutine);
	T(threads);
	if (all)
		T(4096_threads);
	T(fork);
	T(fork_inside);
	T(lines);
	T(shadow_stack);
	T(no_write);
#if defined(__x86_64__)
	/* about jumps, and about what is at a call's place on the stack */
	T(tail_sleeper);
	T(other_tracer);
	T(breakpoint_inside);
	T(zone_spellings);
	T(zone_none);
	T(refused);
	T(dlclose);
	T(libraries_without_end);
#endif
	return failed;
}
