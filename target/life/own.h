/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * own.h - functions of libc that the hooks hook for themselves, because their calls change what the
 * hooks may do: the dynamic loader's, those that rename threads, those by which a program restricts its
 * system calls or changes its namespaces and capabilities, and the one by which it ends. Says what a
 * call means, and knows nothing of the thread of the hooks.
 */
#ifndef CT_HOOKS_OWN_H
#define CT_HOOKS_OWN_H

#include "../engine/engine.h"

#define OWN_COOKIES (~0u - 11) /* the smallest id of these functions */

enum own_meaning {
	OWN_NOTHING,
	OWN_LOADER,	/* the loader may have mapped something */
	OWN_CONSTRUCTS, /* the same, and all of it is mapped: constructors are about to run */
	OWN_NAMESPACE,	/* the loader is about to map something that it does not count (dlmopen) */
	OWN_END,	/* the program ends */
	OWN_NAME,	/* a thread is renamed */
	OWN_FILTER,	/* of system calls, for the calling thread */
	OWN_FILTER_ALL, /* for all threads */
	OWN_CLOCK,	/* the calling thread may not read the processor's clock from then on */
	OWN_LIMIT,	/* setrlimit, prlimit */
	OWN_RIGHTS,	/* unshare, setns, capset */
	OWN_SHARES, /* a child is made that shares the caller's memory and thread-local storage */
};

/* A call of one of these functions, and the system call that it makes; nr: -1 if it makes none that
 * matters. */
struct own_call {
	enum own_meaning meaning;
	long nr;
	const __u64 *args;
};

struct own_call own_call(__u32 id, const struct hook_regs *);
/* Of OWN_RIGHTS: returns whether the call would fail, or have another effect, because of our
 * thread, or would take the program away from it. If the program has several threads itself, that thread makes no difference. Makes a system
 * call. */
bool own_needs_one_thread(const struct own_call *);
/* Of OWN_RIGHTS: returns whether the call may change the clock by which the hooks take times. */
bool own_changes_clock(const struct own_call *);

/* Of OWN_LIMIT: returns whether the call limits the process's address space, and to how many bytes. Makes
 * system calls. */
bool own_limits_addresses(const struct own_call *, __u64 *bytes);

/* Returns whether a thread's system calls are restricted more than the caller's, in a way that no hook saw, and
 * sets *strict if that is seccomp's strict mode, in which a thread has no clock either. Looks at the main thread and `most` others, the next time at the next ones. Only for the thread of the hooks, or before there are hooks. */
bool own_finds_filters(int most, bool *strict);
/* Returns whether the calling thread's own system calls are restricted, in whatever way. */
bool own_is_restricted(void);

/* Hooks the loader's function. *first: it was tried for the first time. */
enum hook_result own_hook_loader(bool *first);
/* Hooks the others. */
void own_hook_others(void);

#endif
