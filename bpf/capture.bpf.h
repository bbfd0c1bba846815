/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * capture.bpf.h - entry and return of a call: the in-flight stack, folding, filters.
 */
#ifndef CT_CAPTURE_BPF_H
#define CT_CAPTURE_BPF_H

/* Is the call one of those that are counted in place of being sent? */
static __always_inline bool is_counted(const struct frame *f)
{
	return config.count && f->spec_flags & CT_S_SHOWN && !(f->rec.h.flags & CT_F_HIDDEN);
}

/* A call that will not return. */
static __always_inline void send_unfinished(struct thread *t, struct frame *f, __u64 now)
{
	f->rec.h.flags |= CT_F_UNFINISHED;
	f->rec.h.end_ns = now;
	COUNT(unfinished);
	if (is_counted(f) && !config.failed_only)
		count_call(t, f, f->rec.func, false, false);
	send_call(t, f);
}

/* ---- the in-flight stack ------------------------------------------------------------------------------ */

/* Sends and drops the frames that lie below sp: their functions were left without a return (longjmp, exception). */
static __noinline int sweep(struct thread *t, __u64 sp)
{
	__u64 now = bpf_ktime_get_ns();
	struct frame *f;
	__u32 i, d;

	if (!t)
		return 0;
	for (i = 0; i < CT_MAX_FRAMES; i++) {
		d = t->depth - 1;
		if (d >= CT_MAX_FRAMES)
			break;
		f = &t->frames[d];
		if (f->sp >= sp)
			break;
		t->depth = d;
		send_unfinished(t, f, now);
	}
	return 0;
}

static long has_no_file(struct task_struct *task, struct vm_area_struct *vma, __u32 *no_file)
{
	*no_file = !vma->vm_file;
	return 0;
}

/*
 * An entry at the stack pointer of the call in flight, in another function: a tail call, or a new call from where the
 * first one was left by longjmp? In a tail call the return address is the pending return probe's trampoline, which lies
 * in a mapping of no file; a new call's lies in the caller's code.
 */
static __noinline int is_tail_call(__u64 return_address)
{
	__u32 no_file = 0;

	if (bpf_find_vma(bpf_get_current_task_btf(), return_address, has_no_file, &no_file, 0))
		return 1;
	return no_file;
}

/* What the caller's frames are unwound from. */
static __always_inline void keep_registers(struct pt_regs *ctx, struct thread *t, struct frame *f, __u32 d, __u64 sp)
{
	struct frame *outer;

	f->ip_to = 0;
	RETURN_ADDRESS(ctx, sp, &f->ip_to);
#if defined(__TARGET_ARCH_x86)
	f->bp = ctx->bp;
	f->regs[0] = ctx->bx;
	f->regs[1] = ctx->r12;
	f->regs[2] = ctx->r13;
	f->regs[3] = ctx->r14;
	f->regs[4] = ctx->r15;
#else
	f->bp = ctx->regs[29];
	__builtin_memcpy(f->regs, &ctx->regs[19], sizeof(f->regs));
#endif
	/* a tail call finds the pending return probe's trampoline in its place */
	outer = &t->frames[(d - 1) & (CT_MAX_FRAMES - 1)];
	if (d && outer->sp == sp)
		f->ip_to = outer->ip_to;
}

/* Returns 0 when the return is wanted, 1 when not (a session program's answer). */
static __always_inline int enter(struct pt_regs *ctx, __u64 cookie)
{
	__u32 func = CT_COOKIE_FUNC(cookie), d, depth = 0, nwords;
	const volatile struct ct_spec *spec;
	__u64 sp = ENTRY_SP(ctx), ip = PT_REGS_IP(ctx);
	struct frame *f, *top;
	struct thread *t;
	bool entry_only;
	__u8 flags;

	if (!ready || func >= CT_MAX_FUNCS)
		return 1;
	spec = &specs[func];
	flags = spec->flags;
	if (counts_entries() && count_entry(ctx, func))
		return 1;
	t = thread_get();
	if (!t)
		return 1;
	d = t->depth;
	if (d) {
		if (d > CT_MAX_FRAMES)
			return 1;
		top = &t->frames[(d - 1) & (CT_MAX_FRAMES - 1)];
		if (top->sp < sp) {
			sweep(t, sp);
			d = t->depth;
			top = &t->frames[(d - 1) & (CT_MAX_FRAMES - 1)];
		}
	}
	if (d) {
		if (top->sp == sp) {
			__u64 to = 0;

			/*
			 * While a file's links are being replaced both are on the same function, and the newer
			 * one's program runs first (consumer_add() in kernel/events/uprobes.c adds at the head).
			 * An older one's frame under a newer entry is of a call whose return went with its link.
			 */
			if (top->ip == ip && (top->cookie > cookie || config.by_address))
				return 1;
			RETURN_ADDRESS(ctx, sp, &to);
			if (top->ip == ip || !is_tail_call(to)) {
				sweep(t, sp + 1);
				d = t->depth;
				top = &t->frames[(d - 1) & (CT_MAX_FRAMES - 1)];
			}
		}
	}
	if (d && d <= CT_MAX_FRAMES) {
		depth = top->rec.depth + !(top->spec_flags & CT_S_INTERNAL);
		if (depth && !config.nested && !(flags & CT_S_ALWAYS) && !((flags & CT_S_INNER) && want_inner)) {
			COUNT(folded);
			return 1;
		}
		if (d >= CT_MAX_FRAMES) {
			COUNT(lost[CT_LOSS_DEPTH]);
			return 1;
		}
	}
	nwords = spec->nwords;
	if (nwords > CT_MAX_WORDS)
		return 1;
	f = &t->frames[d & (CT_MAX_FRAMES - 1)];
	if (muted[func]) {
		f->sp = sp;
		f->ip = 0;
		return 1;
	}
	copy_words(ctx, f->data, nwords, sp);
	f->len = nwords * 8;
	if (spec->more & CT_S_FORGETS)
		__sync_fetch_and_add(&forgets, 1);
	if (config.min_size_bytes && (flags & CT_S_MATCH_SIZE) &&
	    f->data[spec->size_word & (CT_MAX_WORDS - 1)] < config.min_size_bytes) {
		f->sp = sp;
		f->ip = 0;
		COUNT(filtered);
		return 1;
	}
	if (!t->announced)
		announce(t);
	f->sp = sp;
	f->ip = ip;
	f->cookie = cookie;
	f->spec_flags = flags;
	f->rec.h.kind = CT_CALL;
	f->rec.h.flags = (CT_COOKIE_PER_THREAD(cookie) ? CT_F_PER_THREAD : 0) |
			 ((flags & CT_S_SHOWN) && (!depth || config.nested) ? 0 : CT_F_HIDDEN);
	f->rec.h.pid = t->id >> 32;
	f->rec.h.tid = t->id;
	f->rec.func = func;
	f->rec.nwords = nwords;
	f->rec.depth = depth;
	f->rec.got = 0;
	f->rec.ret = 0;
	if (config.stacks)
		keep_registers(ctx, t, f, d, sp);
	/* what is counted alone needs no memory of the program's */
	if (spec->nentry && !(config.count && !(flags & (CT_S_ALWAYS | CT_S_INNER))))
		do_reads_whole(f, func, CT_AT_ENTRY, spec->more);
	entry_only = config.no_return || (flags & CT_S_CALLBACK) || (spec->more & CT_S_ENTRY_ONLY);
	/* nor its time, where that is all there will be of it */
	if (!(config.count && config.no_return) || flags & (CT_S_ALWAYS | CT_S_INNER))
		f->rec.h.start_ns = f->rec.h.end_ns = bpf_ktime_get_ns();
	if (entry_only && config.stacks && (spec->more & CT_S_STACK) && !(f->rec.h.flags & CT_F_HIDDEN))
		send_stack(ctx, t, f, d);
	if (config.enter) {
		f->rec.h.kind = CT_ENTER;
		send_call(t, f);
		f->rec.h.kind = CT_CALL;
	}
	if (entry_only) {
		f->rec.h.flags |= CT_F_NO_RETURN;
		f->ip = 0;
		if (is_counted(f))
			count_call(t, f, func, false, false);
		if (!config.enter)
			send_call(t, f);
		return 1;
	}
	t->depth = d + 1;
	return 0;
}

/* The frame is told by the stack pointer alone: of functions that tail-call each other, which share it, the kernel runs
 * the return handlers newest first. */
static __always_inline int leave(struct pt_regs *ctx)
{
	__u64 sp = RETURN_SP(ctx), now = bpf_ktime_get_ns();
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = bpf_task_storage_get(&threads, task, 0, 0);
	const volatile struct ct_spec *spec;
	struct frame *f;
	__u32 d, func, ret;
	bool failed, bad, wanted;

	if (!ready)
		return 0;
	if (!t) {
		/* Not traced, or a call that began before the attach. */
		if (!config.filter_pids && !config.cgroup_id)
			COUNT(lost[CT_LOSS_ORPHAN]);
		return 0;
	}
	d = t->depth - 1;
	if (d >= CT_MAX_FRAMES) {
		/* A frame with ip 0 is done with; where the entry cannot call its return off, its return may follow,
		 * or a second one: of a tail call, or of a link that is being replaced. */
		f = &t->frames[0];
		if (t->id && (f->sp != sp || f->ip))
			COUNT(lost[CT_LOSS_ORPHAN]);
		return 0;
	}
	f = &t->frames[d];
	if (f->sp < sp) {
		sweep(t, sp);
		d = t->depth - 1;
		if (d >= CT_MAX_FRAMES) {
			COUNT(lost[CT_LOSS_ORPHAN]);
			return 0;
		}
		f = &t->frames[d];
	}
	if (f->sp != sp)
		return 0; /* inside another call and folded, or the stack was full */
	func = f->rec.func;
	if (func >= CT_MAX_FUNCS)
		return 0;
	t->depth = d;
	f->ip = 0;
	spec = &specs[func];
	f->rec.ret = PT_REGS_RC(ctx);
	f->rec.h.end_ns = now;
	ret = f->rec.ret;
	failed = (spec->flags & CT_S_ERROR) && ret;
	bad = failed && !((spec->flags & CT_S_NOT_READY) && ret == NOT_READY);
	wanted = !(config.failed_only && !bad) &&
		 !(config.min_duration_ns && now - f->rec.h.start_ns < config.min_duration_ns);
	if (wanted && is_counted(f))
		count_here(t, f, func, bad, true);
	/* what names kernels is needed whatever is shown */
	if (!(spec->flags & CT_S_ALWAYS)) {
		if (!wanted)
			COUNT(filtered);
		if (!wanted || config.count)
			return 0;
	}
	if (!failed && spec->nreads > spec->nentry)
		do_reads_whole(f, func, CT_AT_RETURN, spec->more);
	if (config.stacks && (spec->more & CT_S_STACK) && !(f->rec.h.flags & CT_F_HIDDEN))
		send_stack(ctx, t, f, d);
	send_call(t, f);
	return 0;
}

#endif
