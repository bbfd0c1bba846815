/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * roomy.c - see roomy.h. The program goes on in another context and not in another thread: which
 * capabilities and which filter of system calls hold is a matter of each thread.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "roomy.h"

#define GUARD_BYTES (64u << 10) /* a multiple of every page size */

static struct {
	int (*fn)(int argc, char **argv);
	int argc, result;
	char **argv;
} call;

static void run(void)
{
	call.result = call.fn(call.argc, call.argv);
}

static void threads_too(void)
{
	pthread_attr_t attr;

	if (pthread_attr_init(&attr))
		return;
	if (!pthread_attr_setstacksize(&attr, ROOMY_BYTES))
		pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
}

int roomy_run(int (*fn)(int argc, char **argv), int argc, char **argv)
{
	static ucontext_t here, there;
	struct rlimit limit;
	void *stack;

	if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur >= ROOMY_BYTES)
		return fn(argc, argv);
	stack = mmap(NULL, GUARD_BYTES + ROOMY_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	/* code that runs past the end must fault, as at the end of the stack that the kernel made */
	if (stack == MAP_FAILED || mprotect(stack, GUARD_BYTES, PROT_NONE) || getcontext(&there))
		return fn(argc, argv);
	threads_too();
	call.fn = fn;
	call.argc = argc;
	call.argv = argv;
	there.uc_stack.ss_sp = (char *)stack + GUARD_BYTES;
	there.uc_stack.ss_size = ROOMY_BYTES;
	there.uc_link = &here;
	makecontext(&there, run, 0);
	if (swapcontext(&here, &there))
		return fn(argc, argv);
	return call.result;
}
