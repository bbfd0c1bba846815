/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mark.h - for call.c, on processors on which calls have their return addresses in a register:
 * finds out whether a call is still under way.
 *
 * The function that was called keeps the return address, which is our mark, in a register, or
 * somewhere on its stack, maybe signed. So, unlike on x86-64, there is no single word to check. A
 * frame must never be used again while its call may return. So a call counts as left only if we are
 * further up the same stack and either the frame pointers lead from here to the thread's first
 * frame, or the mark is not in any place in which a function would have saved it. In all other
 * cases the frame is kept.
 */
#ifndef CT_HOOKS_MARK_H
#define CT_HOOKS_MARK_H

#include <signal.h>

#define ADDRESS_BITS 0x0000ffffffffffffULL /* the other bits may be a signature */
#define BELOW_BYTES (64ULL << 10)	   /* frames of functions are assumed to be smaller */
#define FAR_BYTES (256ULL << 10)
#define FIRST_BYTES 8192 /* at most between a thread's first frame and the end of its stack */
#define CHAIN_MAX 512

/* a variable of the dynamic loader: the begin of the main thread's stack */
extern void *__libc_stack_end __attribute__((weak));

static bool on_signal_stack(void)
{
	stack_t now;

	return sys_call(SYS_sigaltstack, 0, (long)&now, 0, 0, 0, 0) || now.ss_flags & SS_ONSTACK;
}

/* Returns whether all memory from lo to hi is mapped. The page of `here` is known to be mapped. */
static bool is_mapped(__u64 lo, __u64 hi, __u64 here)
{
	for (__u64 page = lo & ~(__u64)(HOOK_PAGE - 1); page < hi; page += HOOK_PAGE)
		if (!same_page(page, here) && !sys_readable(page))
			return false;
	return true;
}

static bool is_mark(const struct hook_frame *f, __u64 word)
{
	return (word & ADDRESS_BITS) == frame_mark(f);
}

/* Returns whether the mark is in a word of our stack between hi and lo, as far down as memory is
 * mapped. sp is our stack pointer. */
static bool has_mark(const struct hook_frame *f, __u64 lo, __u64 hi, __u64 sp)
{
	__u64 here = sp;

	for (__u64 at = hi; at > lo;) {
		at -= 8;
		if (!same_page(at, here)) {
			if (!sys_readable(at & ~(__u64)(HOOK_PAGE - 1)))
				return false;
			here = at;
		}
		if (is_mark(f, *(const volatile __u64 *)at))
			return true;
	}
	return false;
}

/* Returns whether the mark is in a place in which a function that was called at `state` would have
 * saved it. The stack may not be ours, and is copied in pieces. If it cannot be copied, the mark
 * may be there. */
#define PIECE_WORDS 64
static bool has_mark_below(const struct hook_frame *f, __u64 state)
{
	__u64 lo = state > BELOW_BYTES ? state - BELOW_BYTES : 0;
	__u64 words[PIECE_WORDS];

	for (__u64 at = state + 8; at > lo + sizeof(words);) {
		/* a piece does not lie in two pages */
		__u64 bytes = (at - 1) % sizeof(words) + 1;
		long got;

		at -= bytes;
		got = copy_foreign(words, at, bytes);
		if (got != (long)bytes)
			return got < 0;
		for (__u64 i = bytes / 8; i-- > 0;)
			if (is_mark(f, words[i]))
				return true;
	}
	return false;
}

static bool is_first(__u64 frame)
{
	__u64 thread = (__u64)(uintptr_t)__builtin_thread_pointer(), first = 0;

	if (&__libc_stack_end)
		first = (__u64)(uintptr_t)__libc_stack_end;
	return thread - frame < FIRST_BYTES || first - frame < FIRST_BYTES;
}

/* Returns whether the frame pointers lead up from here to the thread's first frame. They do not if
 * we are on another stack. */
static bool leads_to_first(__u64 sp)
{
	__u64 frame = (__u64)(uintptr_t)__builtin_frame_address(0);

	for (int i = 0; i < CHAIN_MAX; i++) {
		__u64 next;

		if (frame % 8)
			return false;
		if (same_page(frame, sp))
			next = *(const volatile __u64 *)frame;
		else if (copy_foreign(&next, frame, sizeof(next)) != sizeof(next))
			return false;
		if (!next)
			return is_first(frame);
		if (next <= frame)
			return false;
		frame = next;
	}
	return false;
}

/* The state of a call that was not entered at sp, our stack pointer. */
static enum standing stands_elsewhere(const struct hook_frame *f, __u64 state, __u64 sp)
{
	if (!same_page(state, sp) && !sys_readable(state))
		return GONE; /* the stack was unmapped (it was one of a coroutine) */
	if (state > sp) {
		if (state - sp > FAR_BYTES)
			return UNKNOWN;
		if (has_mark(f, sp, state + 8, sp))
			return UNDER_WAY;
		return is_mapped(sp, state, sp) && !on_signal_stack() ? GONE : UNKNOWN;
	}
	if (sp - state > BELOW_BYTES || !is_mapped(state, sp, sp))
		return UNKNOWN;
	return leads_to_first(sp) || (!on_signal_stack() && !has_mark_below(f, state)) ? GONE
										       : UNKNOWN;
}

#endif
