/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * victims.h - what the programs have in common that hook the functions of victims.c: these functions,
 * and a consumer of the engine that counts its calls. Each program is linked against one build of
 * victims.c; tests/hooks/run.sh runs it with each.
 */
#ifndef VICTIMS_H
#define VICTIMS_H

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "../../target/engine/engine_state.h"
#include "hooktest.h"

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

static const struct hook_ops counting = { .entry = count_entry,
					  .leave = count_leave,
					  .left = count_left,
					  .begin = count_begin,
					  .ended = count_ended };

static inline unsigned long entries(unsigned int id)
{
	unsigned long n = 0;

	for (int i = 0; i < HOOK_THREADS; i++)
		n += counted[i].entries[id];
	return n;
}

static inline unsigned long leaves(unsigned int id)
{
	unsigned long n = 0;

	for (int i = 0; i < HOOK_THREADS; i++)
		n += counted[i].leaves[id];
	return n;
}

#if defined(__x86_64__)
static inline void *plain(void *function)
{
	return function;
}
#else
/* A pointer that is taken while the function is hooked is that to its pad. */
static inline void *plain(void *function)
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

static inline long call_add(void *arg)
{
	(void)arg;
	return victim_add(1, 2);
}

#define T(name) run(#name, test_##name, only)
/* Returns the one test that is to be run, or NULL. */
static inline const char *arguments(int argc, char **argv)
{
	const char *only = NULL;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--all"))
			all = true;
		else
			only = argv[i];
	return only;
}

#endif
