/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stacks.c - a program that hands out its own raw stacks, as the kernel side would copy them:
 * registers, then memory from the stack pointer on. Each is written to stdout as struct shot; a
 * byte from stdin lets it go on. The shape of the stack is argv[1], its depth argv[2], the bytes
 * to be copied argv[3].
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stacks.h"

#define NOINLINE __attribute__((noinline, noclone))
#define AFTER() __asm__ volatile("" ::: "memory") /* so that the call before is no tail call */

uint64_t shot_regs[8]; /* ip, sp, rbp, rbx, r12, r13, r14, r15 */
static size_t limit = SHOT_MAX;
static char *stack_end; /* NULL: the main thread's */
extern char **environ;
void shoot(void);
void shoot_now(void);
void cxx_run(int which) __attribute__((weak)); /* stacks_cxx.cc, where it is linked in */

/* Called like a function of CUDA's; takes the registers as they are after its return. */
__asm__(".text\n.globl shoot\n.type shoot, @function\nshoot:\n.cfi_startproc\n"
	"	mov (%rsp), %rax\n	mov %rax, shot_regs(%rip)\n"
	"	lea 8(%rsp), %rax\n	mov %rax, shot_regs+8(%rip)\n"
	"	mov %rbp, shot_regs+16(%rip)\n	mov %rbx, shot_regs+24(%rip)\n"
	"	mov %r12, shot_regs+32(%rip)\n	mov %r13, shot_regs+40(%rip)\n"
	"	mov %r14, shot_regs+48(%rip)\n	mov %r15, shot_regs+56(%rip)\n"
	"	sub $8, %rsp\n.cfi_adjust_cfa_offset 8\n	call shoot_now\n"
	"	add $8, %rsp\n.cfi_adjust_cfa_offset -8\n	ret\n.cfi_endproc\n.size shoot, "
	".-shoot\n");

static void put(const void *p, size_t n)
{
	while (n) {
		ssize_t done = write(1, p, n);

		if (done <= 0)
			_exit(3);
		p = (const char *)p + done;
		n -= (size_t)done;
	}
}

void shoot_now(void)
{
	static struct shot s;
	char *sp = (char *)shot_regs[1], *end = stack_end, go;

	if (!end) /* above the environment's strings there is but a page's rest */
		for (char **e = environ; *e; e++)
			if (*e + strlen(*e) + 1 > end)
				end = *e + strlen(*e) + 1;
	memcpy(s.regs, shot_regs, sizeof(s.regs));
	s.len = (uint64_t)(end - sp) & ~7ull;
	s.cut = s.len > limit;
	if (s.cut)
		s.len = limit;
	memcpy(s.bytes, sp, s.len);
	put(&s, sizeof(s));
	if (read(0, &go, 1) != 1)
		_exit(0);
}

NOINLINE int level(int n)
{
	if (n > 1)
		level(n - 1);
	else
		shoot();
	AFTER();
	return n;
}

NOINLINE int with_alloca(int n)
{
	char *p = alloca((size_t)n * 16 + 16);

	memset(p, n, (size_t)n * 16);
	if (n > 1)
		with_alloca(n - 1);
	else
		shoot();
	AFTER();
	return p[0];
}

NOINLINE int big_frame(int n)
{
	volatile char big[5000];

	big[n] = 1;
	level(n);
	AFTER();
	return big[n];
}

/* A frame that the compiler aligns: its CFA is an expression. */
NOINLINE int aligned(int n)
{
	__attribute__((aligned(64))) volatile char p[128];
	char *q = alloca((size_t)n + 1);

	p[0] = (char)n;
	q[n] = 1;
	level(n);
	AFTER();
	return p[0] + q[n];
}

#if defined(__x86_64__)
/* A frame that is found by a register which those that are called keep, and do not mention if they do not use it. */
int by_rbx(int n);
__asm__(".text\n.globl no_rbx\n.type no_rbx, @function\nno_rbx:\n.cfi_startproc\n"
	"sub $8, %rsp\n.cfi_def_cfa_offset 16\ncall level\n"
	"add $8, %rsp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size no_rbx, . - no_rbx\n");
__asm__(".text\n.globl by_rbx\n.type by_rbx, @function\nby_rbx:\n.cfi_startproc\n"
	"push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\n"
	"lea 16(%rsp), %rbx\n.cfi_def_cfa %rbx, 0\n"
	"sub $256, %rsp\nand $-64, %rsp\ncall no_rbx\n"
	"lea -16(%rbx), %rsp\n.cfi_def_cfa %rsp, 16\n"
	"pop %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size by_rbx, . - by_rbx\n");
#endif

static int once;
NOINLINE int compare(const void *a, const void *b)
{
	if (!once++)
		shoot();
	AFTER();
	return *(const int *)a - *(const int *)b;
}

NOINLINE void sort(void)
{
	int v[64];

	for (int i = 0; i < 64; i++)
		v[i] = 64 - i;
	qsort(v, 64, sizeof(v[0]), compare);
	AFTER();
}

NOINLINE void *thread(void *arg)
{
	pthread_attr_t attr;
	void *base;
	size_t size;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &base, &size);
	stack_end = (char *)base + size;
	level((int)(intptr_t)arg);
	AFTER();
	stack_end = NULL;
	return NULL;
}

NOINLINE void in_thread(int n)
{
	pthread_t t;

	pthread_create(&t, NULL, thread, (void *)(intptr_t)n);
	pthread_join(t, NULL);
	AFTER();
}

NOINLINE void on_signal(int sig)
{
	(void)sig;
	level(2);
	AFTER();
}

NOINLINE void interrupted(void)
{
	raise(SIGUSR1);
	AFTER();
}

/* A fault at an instruction that no call precedes: the first one of a function. */
void first_instruction(void);
__asm__(".text\n.globl first_instruction\n.type first_instruction, "
	"@function\nfirst_instruction:\n.cfi_startproc\n"
	"	ud2\n	ret\n.cfi_endproc\n.size first_instruction, .-first_instruction\n");

static void skip(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	level(1);
	((uint64_t *)context)[5 + 16] += 2; /* REG_RIP behind uc_flags, uc_link and uc_stack */
	AFTER();
}

NOINLINE void faulting(void)
{
	struct sigaction sa = { .sa_sigaction = skip, .sa_flags = SA_SIGINFO };

	sigaction(SIGILL, &sa, NULL);
	first_instruction();
	AFTER();
}

/* Code of no file, with a frame pointer and no table: push %rbp; mov %rsp, %rbp; call *%rdi; pop
 * %rbp; ret */
NOINLINE void jit(int n)
{
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0x89,
					      0xf7, 0xff, 0xd2, 0x5d, 0xc3 };
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	memcpy(p, code, sizeof(code));
	((void (*)(void *, int, int (*)(int)))p)(NULL, n, level);
	AFTER();
}

static inline __attribute__((always_inline)) int inner_inlined(int n)
{
	shoot(); /* line "inner" */
	AFTER();
	return n + 1;
}

static inline __attribute__((always_inline)) int outer_inlined(int n)
{
	return inner_inlined(n) * 2; /* line "outer" */
}

NOINLINE int holds_inlined(int n)
{
	n = outer_inlined(n); /* line "holder" */
	AFTER();
	return n;
}

/* The shape of an interpreter that is called back by the libraries that it calls. */
NOINLINE int _PyEval_EvalFrameDefault(int n, int (*f)(int))
{
	n = f(n);
	AFTER();
	return n;
}

#define NATIVE(name, what)       \
	NOINLINE int name(int n) \
	{                        \
		what;            \
		AFTER();         \
		return n + 1;    \
	}
NATIVE(native_a, shoot())
NATIVE(native_b, _PyEval_EvalFrameDefault(n, native_a))
NATIVE(native_c, _PyEval_EvalFrameDefault(n, native_b))

static const struct {
	const char *name;
	int (*run)(int);
} shapes[] = {
	{ "level", level },	{ "alloca", with_alloca },    { "big", big_frame },
	{ "aligned", aligned }, { "inlined", holds_inlined },
#if defined(__x86_64__)
	{ "by_rbx", by_rbx },
#endif
};

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 1;

	if (argc > 3)
		limit = (size_t)atol(argv[3]);
	if (limit > SHOT_MAX)
		limit = SHOT_MAX;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (!strcmp(argv[1], shapes[i].name))
			shapes[i].run(n);
	if (!strcmp(argv[1], "python")) {
		_PyEval_EvalFrameDefault(n, native_c);
		AFTER();
	}
	if (!strcmp(argv[1], "sort"))
		sort();
	if (!strcmp(argv[1], "thread"))
		in_thread(n);
	if (!strcmp(argv[1], "signal")) {
		signal(SIGUSR1, on_signal);
		interrupted();
	}
	if (!strcmp(argv[1], "fault"))
		faulting();
	if (!strcmp(argv[1], "cxx"))
		cxx_run(n);
	if (!strcmp(argv[1], "jit"))
		jit(n);
	/* many different stacks of one process */
	if (!strcmp(argv[1], "mixed"))
		for (int i = 0; i < n; i++) {
			shapes[i % 4].run(1 + i * 7 % 30);
			AFTER();
		}
	if (!strcmp(argv[1], "exec")) {
		argv[1] = "alloca";
		level(1);
		execv("/proc/self/exe", argv);
	}
	return 0;
}
