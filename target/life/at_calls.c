/* SPDX-License-Identifier: BSD-2-Clause */
/* at_calls.c - see at_calls.h. */
#include "../common/compat.h"

#include <link.h>

#include "../common/pads.h"
#include "../engine/engine.h"
#include "at_calls.h"
#include "../hooks/capture.h"
#include "change.h"
#include "own.h"
#include "questions.h"
#include "own_thread.h"

#define LIMIT_NAPS 4000 /* of 50 us: how long a change of the limits waits for another change */

/* Set in a child of vfork(), which has its parent's memory (vfork_*.S). */
__thread int hooks_in_vfork __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* dlmopen() has been called: the loader's count does not say what is mapped in other namespaces. */
static bool other_namespaces;

/* From glibc 2.35 on, what debuggers read of the loader is a list with an element for each namespace, which they see
 * by its version. */
void at_calls_begin(void)
{
	const struct {
		struct r_debug base;
		const struct r_debug *next;
	} *namespaces = (const void *)&_r_debug;

	/* the header that we are built with may have the shorter struct */
	__asm__("" : "+r"(namespaces));
	if (namespaces->base.r_version > 1 && namespaces->next)
		__atomic_store_n(&other_namespaces, true, __ATOMIC_RELAXED);
}

/* Asks for hooks, whatever the loader's count says, and waits for them. */
static void ask_anew(void)
{
	__u32 number = question_number(&question_mapped);

	question_ask(&question_mapped, number);
	question_wait(&question_mapped, number);
}

/* The loader calls its function before it runs constructors. Older ones do not. */
static bool constructors_are_seen;

/* Objects may have been searched for slots before the loader had filled these in. */
static void see_constructors(void)
{
	__atomic_store_n(&constructors_are_seen, true, __ATOMIC_RELAXED);
	engine_search_again();
	ask_anew();
}

/* The loader maps a library, then what it needs, fills in their slots, and runs their constructors: before these all that is
 * mapped gets its hooks at once. What was unmapped must be known before another library is mapped at its place. */
static void ask_in_time(bool constructs)
{
	if (constructs || is_unmapped() ||
	    !__atomic_load_n(&constructors_are_seen, __ATOMIC_RELAXED)) {
		question_wait(&question_mapped, ask_for_mapped());
		return;
	}
	question_wait(&question_mapped, __atomic_load_n(&question_unmapped, __ATOMIC_ACQUIRE));
	look_at_mapped();
}

/* Called at the loader's function: the loader may have mapped code that has not run yet. The code
 * must get its hooks before it runs. In a sandbox it gets them within a second. */
static __attribute__((cold, noinline)) void on_loader(bool constructs)
{
	if (capture_is_sandboxed() || !is_own_process())
		return;
	/* this is also called before anything is mapped */
	if (capture_is_open() && change_try()) {
		pads_reserve();
		change_ends();
	}
	if (constructs && !__atomic_load_n(&constructors_are_seen, __ATOMIC_RELAXED))
		see_constructors();
	else if (constructs && __atomic_load_n(&other_namespaces, __ATOMIC_RELAXED))
		ask_anew();
	else
		ask_in_time(constructs);
}

/* Called at dlmopen(). That the library of an earlier call is gone is learnt now, before another one
 * is mapped at its place. */
static void on_namespace(void)
{
	if (capture_is_sandboxed() || !is_own_process())
		return;
	__atomic_store_n(&other_namespaces, true, __ATOMIC_RELAXED);
	ask_anew();
}

/* What leave() does for our own cookies: frame.data[0] */
enum { AFTER_NAME, AFTER_PAUSE };

/* The thread of the hooks cannot continue under a filter. */
static void on_filter(bool all_threads)
{
	/* a second filter: the first one may forbid what we would do */
	bool already = capture_is_sandboxed();

	if (!already && !is_own_process())
		return;
	filter_is_known = true;
	capture_sandboxed(!already);
	engine_sandboxed();
	if (all_threads && already)
		thread_end_in_filter(&thread_ends.sandboxed);
	else if (all_threads)
		thread_end(&thread_ends.sandboxed);
}

/* A thread in which the processor's clock is forbidden, or the system call that hooks take times from,
 * would be ended at its next hook. If system calls are forbidden already, the hooks do nothing from now
 * on, and the thread of the hooks removes them within a second. */
static void on_clock(void)
{
	if (!capture_is_sandboxed()) {
		if (is_own_process())
			thread_end(&thread_ends.no_clock);
		return;
	}
	__atomic_store_n(&thread_ends.no_clock, true, __ATOMIC_RELEASE);
	engine_rest();
}

/* The program is about to limit its address space, of which we leave it all but a part. A signal's handler may
 * have interrupted a change of this thread, which does not end then. */
static void on_limit(const struct own_call *c)
{
	__u64 naps = 0, bytes;

	if (capture_is_sandboxed() || !is_own_process() || !own_limits_addresses(c, &bytes))
		return;
	while (!change_try()) {
		if (naps++ == LIMIT_NAPS)
			return;
		change_nap();
	}
	engine_fit(bytes / HOOKS_LIMIT_PART);
	capture_fit(bytes / HOOKS_LIMIT_PART);
	change_ends();
}

/* Called when the program ends: otherwise changes that another tracer made to the hooks since the
 * last engine_check() would not be known. A child of vfork(), which may be killed here, must not
 * keep its parent from changing the hooks. */
static void look_at_last(void)
{
	if (capture_is_sandboxed() || !is_own_process() || !change_try())
		return;
	capture_interrupted(engine_interrupted());
	change_ends();
}

/* Called at unshare, setns and capset. Returns whether the thread has been ended for it, and must come
 * back. */
static bool on_rights(const struct own_call *c)
{
	if (capture_is_sandboxed() || !is_own_process() || !own_needs_one_thread(c))
		return false;
	if (!own_changes_clock(c))
		return thread_pause();
	thread_end(&thread_ends.to_be_alone);
	return false;
}

/* Called when the program is about to make a child that runs in its memory, with the same control block
 * as the calling thread: both would use one area, at the same time. */
static void on_sharing(void)
{
	if (!capture_is_sandboxed() && is_own_process() && capture_is_open())
		thread_end(&thread_ends.to_share);
}

/* Called at a function of libc that is hooked for ourselves. Returns whether its return is wanted. */
static __attribute__((cold, noinline)) bool on_own(struct hook_frame *f, const struct hook_regs *r)
{
	struct own_call c = own_call(f->id, r);

	switch (c.meaning) {
	case OWN_LOADER:
	case OWN_CONSTRUCTS: on_loader(c.meaning == OWN_CONSTRUCTS); break;
	case OWN_NAMESPACE: on_namespace(); break;
	case OWN_END: look_at_last(); break;
	case OWN_NAME:
		capture_renames();
		f->data[0] = AFTER_NAME;
		return true;
	case OWN_FILTER:
	case OWN_FILTER_ALL: on_filter(c.meaning == OWN_FILTER_ALL); break;
	case OWN_CLOCK: on_clock(); break;
	case OWN_LIMIT: on_limit(&c); break;
	case OWN_RIGHTS: f->data[0] = AFTER_PAUSE; return on_rights(&c);
	case OWN_SHARES: on_sharing(); break;
	case OWN_NOTHING: break;
	}
	return false;
}

/* Called at a hook while a child of vfork() may be running. Returns whether this is its parent, which a
 * signal's handler has made leave vfork() by a jump. */
static __attribute__((cold, noinline)) bool has_left_vfork(__u64 id)
{
	if (!capture_is_sandboxed() && is_own_process()) {
		hooks_in_vfork = 0;
		return true;
	}
	if (id < OWN_COOKIES)
		capture_in_vfork();
	return false;
}

HOOK_WAY(2) static bool entry(struct hook_frame *f, const struct hook_regs *r)
{
	if (hooks_in_vfork && !has_left_vfork(f->id))
		return false;
	if (f->id >= OWN_COOKIES)
		return on_own(f, r);
	return capture_enters(f, r, f->id);
}

HOOK_WAY(6) static void leave(struct hook_frame *f, __u64 result)
{
	__u32 number;

	if (f->id >= OWN_COOKIES) {
		if (f->data[0] == AFTER_PAUSE)
			thread_resume();
		else
			capture_renamed();
	} else if (capture_leaves(f, f->id, result)) {
		number = question_number(&question_reads);
		question_ask(&question_reads, number);
		question_wait(&question_reads, number);
	}
}

static void missed(__u32 id, enum hook_miss why)
{
	if (id < OWN_COOKIES)
		capture_missed(id, why);
}

const struct hook_ops at_calls = {
	.entry = entry, .leave = leave, .missed = missed, .counts = capture_counts
};
