// SPDX-License-Identifier: BSD-2-Clause
// test_unwind.cpp - what looks at the stack sees through hooked calls: exceptions, pthread_cancel, backtraces from each
// instruction of the engine's own code, gdb.
#include <stdexcept>
#include <unwind.h>
#include <pthread.h>
extern "C" {
#include "hooktest.h"
}

static int cleaned;
struct cleaner {
	~cleaner()
	{
		cleaned++;
	}
};

static volatile long sink;
static char gdb_text[1 << 16];
#define VICTIM extern "C" __attribute__((noinline, noclone))

static void ask_gdb()
{
	char command[200];
	size_t n;
	FILE *f;

	snprintf(command, sizeof(command), "gdb -q -nx -batch -p %d -ex bt 2>&1 < /dev/null",
		 (int)getpid());
	hook_guard_enter();
	f = popen(command, "r");
	n = f ? fread(gdb_text, 1, sizeof(gdb_text) - 1, f) : 0;
	gdb_text[n] = 0;
	if (f)
		pclose(f);
	hook_guard_leave();
}

static int frames_seen;
static bool main_seen;
extern "C" void test_backtrace(void);

static _Unwind_Reason_Code look(struct _Unwind_Context *c, void *)
{
	void *start = _Unwind_FindEnclosingFunction((void *)(_Unwind_GetIP(c) - 1));

	frames_seen++;
	if (start == (void *)test_backtrace)
		main_seen = true;
	return frames_seen < 100 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

VICTIM long inner(long n)
{
	cleaner c;

	sink = n;
	if (n == 1)
		throw std::runtime_error("one");
	if (n == 2)
		sleep(PATIENCE);
	if (n == 3)
		_Unwind_Backtrace(look, nullptr);
	if (n == 4)
		ask_gdb();
	return n + 1;
}

VICTIM long outer(long n, long a, long b, long c, long d, long e, long seventh, long eighth)
{
	cleaner k;
	long r = inner(n) + seventh + eighth;

	sink = a + b + c + d + e;
	return r;
}

static unsigned long entered, left_by_return, left_otherwise;

__attribute__((target("general-regs-only"))) static bool entry(struct hook_frame *,
							       const struct hook_regs *)
{
	entered++;
	return true;
}

__attribute__((target("general-regs-only"))) static void leave(struct hook_frame *, __u64)
{
	left_by_return++;
}

__attribute__((target("general-regs-only"))) static void left(struct hook_frame *)
{
	left_otherwise++;
}

static const struct hook_ops ops = { entry, leave, left, nullptr, nullptr, nullptr, nullptr };

#if defined(__x86_64__)
#define HOOKED HOOK_ON
#else
#define HOOKED HOOK_PARTLY
#endif

static void hook_both()
{
	CHECK_EQ(0, engine_open(&ops));
	// the way in that keeps registers, and the one that does not
	CHECK_EQ(HOOKED, hook_one((void *)inner, 1, HOOK_REGS));
	CHECK_EQ(HOOKED, hook_one((void *)outer, 2, 0));
}

static void test_exceptions(void)
{
	long n = all ? 100000 : 5000, caught = 0;

	hook_both();
	for (long i = 0; i < n; i++) {
		try {
			outer(1, 0, 0, 0, 0, 0, 0, 0);
		} catch (const std::runtime_error &e) {
			caught += !strcmp(e.what(), "one");
		}
		CHECK_EQ(106, outer(5, 0, 0, 0, 0, 0, 40, 60));
	}
	CHECK_EQ(n, caught);
	CHECK_EQ(4 * n, cleaned);
	CHECK_EQ(4 * n, (long)entered);
	CHECK_EQ(2 * n, (long)left_by_return);
	CHECK_EQ(2 * n, (long)left_otherwise);
}

static void *cancelled(void *)
{
	cleaner c;

	outer(2, 0, 0, 0, 0, 0, 0, 0);
	return nullptr;
}

static void test_cancel(void)
{
	int n = all ? 200 : 20;

	hook_both();
	for (int i = 0; i < n; i++) {
		unsigned long before = entered;
		pthread_t t;
		void *r;

		CHECK(!pthread_create(&t, nullptr, cancelled, nullptr));
		while (__atomic_load_n(&entered, __ATOMIC_RELAXED) < before + 2)
			usleep(100);
		pthread_cancel(t);
		pthread_join(t, &r);
		CHECK(r == PTHREAD_CANCELED);
	}
	CHECK_EQ(3 * n, cleaned);
}

extern "C" __attribute__((noinline)) void test_backtrace(void)
{
	int bare;

	outer(3, 0, 0, 0, 0, 0, 0, 0);
	CHECK(main_seen);
	bare = frames_seen;
	hook_both();
	frames_seen = 0;
	main_seen = false;
	outer(3, 0, 0, 0, 0, 0, 0, 0);
	CHECK(main_seen);
	/* Each frame, and one for each hooked call. */
	CHECK_EQ(bare + 2, frames_seen);
	struct hook_leftover l;
	CHECK_EQ(0, engine_remove(&l));
	frames_seen = 0;
	outer(3, 0, 0, 0, 0, 0, 0, 0);
	CHECK_EQ(bare, frames_seen);
}

#if defined(__x86_64__)
static void test_gdb(void)
{
	hook_both();
	outer(4, 0, 0, 0, 0, 0, 0, 0);
	if (!strstr(gdb_text, "inner")) {
		printf("gdb cannot be used here: %.200s\n", gdb_text);
		_exit(77);
	}
	if (!strstr(gdb_text, "in outer") || !strstr(gdb_text, "in test_gdb") ||
	    !strstr(gdb_text, "in main")) {
		printf("%s\n", gdb_text);
		_exit(1);
	}
}

// Single steps through a hooked call: at each instruction, in our code and the program's, the stack leads on.
static long steps, bad;
extern "C" void step_on(void), step_off(void);
__asm__(".text\n.globl step_on\n.type step_on, @function\nstep_on: .cfi_startproc\n pushfq\n "
	".cfi_adjust_cfa_offset 8\n"
	" orq $0x100, (%rsp)\n popfq\n .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n.size "
	"step_on, . - step_on\n"
	".globl step_off\n.type step_off, @function\nstep_off: .cfi_startproc\n pushfq\n "
	".cfi_adjust_cfa_offset 8\n"
	" andq $~0x100, (%rsp)\n popfq\n .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n.size "
	"step_off, . - step_off\n");

extern "C" __attribute__((noinline)) void stepped(void)
{
	step_on();
	sink = outer(5, 0, 0, 0, 0, 0, 40, 60);
	step_off();
	__asm__ volatile("" ::: "memory");
}

static int look_stepped_seen;
static _Unwind_Reason_Code look_stepped(struct _Unwind_Context *c, void *n)
{
	if (_Unwind_FindEnclosingFunction((void *)(_Unwind_GetIP(c) - 1)) == (void *)stepped)
		look_stepped_seen = 1;
	return ++*(int *)n < 100 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void on_step(int s, siginfo_t *i, void *u)
{
	int n = 0;

	(void)s;
	(void)i;
	steps++;
	look_stepped_seen = 0;
	_Unwind_Backtrace(look_stepped, &n);
	bad += !look_stepped_seen;
	(void)u;
}

static void test_each_instruction(void)
{
	struct sigaction s = {};

	s.sa_sigaction = on_step;
	s.sa_flags = SA_SIGINFO;
	CHECK(!sigaction(SIGTRAP, &s, nullptr));
	hook_both();
	outer(5, 0, 0, 0, 0, 0, 40, 60);
	stepped();
	CHECK_EQ(106, sink);
	CHECK(steps > 200);
	// Pads and moved instructions are code of no file, which unwinders know nothing of. For each call: the pad's
	// jump, three in the function's stub, the moved one and its jump.
	CHECK_EQ(2 * 6, bad);
}

#endif

#define T(name) run(#name, test_##name, only)
#if !defined(__x86_64__)
extern "C" int main(int, char **);
#endif
int main(int argc, char **argv)
{
	const char *only = nullptr;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--all"))
			all = true;
		else
			only = argv[i];
	T(exceptions);
	T(cancel);
	T(backtrace);
#if defined(__x86_64__)
	T(gdb);
	T(each_instruction);
#endif
	return failed;
}
