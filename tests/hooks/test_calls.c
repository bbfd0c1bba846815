/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_calls.c - what happens at a call of a hooked function: arguments and results, nesting, calls that are
 * left, signals, coroutines, threads, fork. test_calls [--all] [NAME].
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#include "victims.h"

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

/* ---- many calls ---- */

#define CALLERS 16
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

/* Acts as a signal handler that leaves entry() by siglongjmp(). */
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
#define ENDED_STACK (256 << 10) /* more than the least size on any processor */
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
	munmap(ended_stack, ENDED_STACK);
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
		mmap(NULL, ENDED_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_init(&attr);
	CHECK(!pthread_attr_setstack(&attr, ended_stack, ENDED_STACK));
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
	munmap(ended_stack, ENDED_STACK);
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

static atomic_int waiting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

int main(int argc, char **argv)
{
	const char *only = arguments(argc, argv);

	T(values);
	T(nesting);
	T(exact);
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
	return failed;
}
