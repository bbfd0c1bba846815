/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * scopes.bpf.h - calls of functions of layers on the kernel side: where each thread's scopes are kept,
 * and which call a return belongs to. The rest is in open_scopes.h. A call's place is its stack
 * pointer at the entry.
 */
#ifndef CT_SCOPES_BPF_H
#define CT_SCOPES_BPF_H

#define SCOPES_REGS struct pt_regs
#define SCOPES_OF_CALL
#define SCOPES_PID(t) ((t)->id >> 32)
#define SCOPES_TID(t) ((t)->id)
#define SCOPES_DROPPED(t) COUNT(scopes_dropped)
#define SCOPES_UNBEGUN(t) COUNT(scopes_unbegun)
#define SCOPES_SEND(t, h, size) \
	send(h, size, true, (t)->sent++ % WAKE_EVERY ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP)
#define SCOPES_TENSORS(regs, f, symbol) operator_tensors(regs, f, symbol)
#define TENSORS_READ(to, n, from) bpf_probe_read_user(to, n, (void *)(from))
#include "../capture/read_tensors.h"

/* Not inlined, because the registers would be on the stack of each call's entry: Linux 6.1 allows
 * 512 bytes for all functions that are under way. */
static __noinline int operator_tensors(struct pt_regs *ctx, struct frame *f, __u32 symbol)
{
	__u32 plan = config.shapes ? tensors[symbol & (CT_SYMBOLS - 1)] : 0;

	if (plan) {
		__u64 regs[REG_WORDS + 1];

		regs[REG_WORDS] = 0;
		copy_words(ctx, regs, CT_TENSORS_REGS, 0, REG_WORDS);
		add_tensors(f, regs, plan);
	}
	return 0;
}
#include "../capture/open_scopes.h"

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct scopes);
} scopes SEC(".maps");

/* Returns the place + 1 of the call that returns to sp, or 0 if there is none. Calls above it were
 * left without a return. */
__noinline __u32 find_scope(struct scopes *s, __u64 sp)
{
	struct open_scope *e;
	__u32 i, d;

	if (!s)
		return 0;
	for (i = 0; i < SCOPES_MAX; i++) {
		d = s->depth - 1 - i;
		barrier_var(d);
		if (d >= SCOPES_MAX)
			break;
		e = &s->open[d];
		if (!e->place || e->gone)
			continue;
		if (e->place == sp)
			return d + 1;
		if (e->place > sp)
			break;
		e->gone = 1;
	}
	return 0;
}

/* Marks calls that were left: their place on the stack is below that of the call that is entered. */
__noinline int sweep_scopes(struct scopes *s, __u64 sp)
{
	struct open_scope *e;
	__u32 i, d;

	if (!s)
		return 0;
	for (i = 0; i < SCOPES_MAX; i++) {
		d = s->depth - 1 - i;
		barrier_var(d);
		if (d >= SCOPES_MAX)
			break;
		e = &s->open[d];
		if (!e->place || e->gone)
			continue;
		if (e->place >= sp || on_two_stacks(e->place, sp))
			break;
		e->gone = 1;
	}
	return 0;
}

/* Returns the number of the innermost scope around a call that is entered. */
static __always_inline __u32 scope_around(__u64 sp)
{
	struct scopes *s = bpf_task_storage_get(&scopes, bpf_get_current_task_btf(), 0, 0);

	if (!s)
		return CT_SCOPE_NONE;
	if (s->calls) {
		sweep_scopes(s, sp);
		trim_scopes(s);
	}
	return innermost(s);
}

/* Returns the scopes of a thread that enters a function of a layer at sp, or returns from one.
 * NULL: no memory. */
static __always_inline struct scopes *scopes_here(void)
{
	struct scopes *s = bpf_task_storage_get(&scopes, bpf_get_current_task_btf(), 0,
						BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!s)
		COUNT(lost[CT_LOSS_STORAGE]);
	return s;
}

/* At a return instruction of an operator the stack pointer is what it was at its entry. What was
 * left by an exception is above it by then, or is swept away at the next entry. */
static __always_inline void leave_operator(struct thread *t, struct scopes *s, __u32 func, __u64 sp,
					   __u64 now)
{
	__u32 d = find_scope(s, sp) - 1;

	barrier_var(d);
	if (d < SCOPES_MAX)
		end_operator(t, s, func, &s->open[d], now);
	else if (s->depth <
		 SCOPES_MAX) /* otherwise there was no room at its begin, which was counted then */
		COUNT(scopes_unbegun);
}

/* Both the entry and the return instructions have a probe; no return address is replaced. */
static __always_inline int operator_layer(struct pt_regs *ctx, __u32 func, __u64 cookie)
{
	__u64 sp = ENTRY_SP(ctx), now = bpf_ktime_get_ns();
	struct thread *t = thread_get();
	struct scopes *s = t ? scopes_here() : NULL;

	if (!s)
		return 1;
	if (CT_COOKIE_ENDS(cookie)) {
		leave_operator(t, s, func, sp, now);
		return 1;
	}
	if (!t->announced)
		announce(t);
	if (s->calls) {
		sweep_scopes(s, sp + 1); /* a call that began at the same place is over too */
		trim_scopes(s);
	}
	begin_operator(ctx, t, s, func, CT_COOKIE_SYMBOL(cookie), sp, now);
	return 1;
}

/* Returns 0 when the return is wanted, 1 when not. */
static __always_inline int enter_layer(struct pt_regs *ctx, __u32 func)
{
	__u64 sp = ENTRY_SP(ctx), now = bpf_ktime_get_ns();
	struct thread *t = thread_get();
	struct scopes *s = t ? scopes_here() : NULL;

	if (!s)
		return 1;
	if (!t->announced)
		announce(t);
	if (s->calls) {
		sweep_scopes(s, sp);
		trim_scopes(s);
	}
	if (is_dispatched(bpf_get_current_task_btf())) {
		COUNT(scopes_dropped);
		return 1;
	}
	return !enter_scope(ctx, t, s, func, sp, now);
}

/* True if the return was that of a layer's call. */
static __always_inline bool leave_layer(struct thread *t, __u64 sp, __s64 ret)
{
	struct scopes *s = bpf_task_storage_get(&scopes, bpf_get_current_task_btf(), 0, 0);
	__u32 d;
	int how;

	if (!s || !s->calls)
		return false;
	d = t->depth - 1;
	/* if a call ends with a jump to another function, that inner call returns first */
	if (d < CT_MAX_FRAMES && t->frames[d].sp == sp)
		return false;
	d = find_scope(s, sp) - 1;
	barrier_var(d);
	if (d >= SCOPES_MAX)
		return false;
	how = leave_scope(t, s, d, ret, bpf_ktime_get_ns());
	if (how > 0)
		wait_to_be_read();
	return how >= 0;
}

/* Called when the thread has executed another program or has ended. */
static __always_inline void forget_scopes(struct task_struct *task)
{
	struct scopes *s = config.layers ? bpf_task_storage_get(&scopes, task, 0, 0) : NULL;

	if (!s)
		return;
	s->depth = 0;
	s->over = 0;
	s->calls = 0;
}

#endif
