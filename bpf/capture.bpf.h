/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * capture.bpf.h - entry and return of a call: the in-flight stack, folding, filters.
 */
#ifndef CT_CAPTURE_BPF_H
#define CT_CAPTURE_BPF_H

/* Is the call one of those that are counted in place of being sent? */
static __always_inline bool is_counted(const struct frame *f)
{
	return (config.count || f->sampled) && f->spec_flags & CT_S_SHOWN &&
	       !(f->rec.h.flags & CT_F_HIDDEN);
}

/* A call that will not return. Not static: the verifier checks it once, and not in each turn of
 * the loops that call it. */
__noinline int send_unfinished(struct thread *t, struct frame *f, __u64 now)
{
	if (!t || !f || !take(f))
		return 0;
	f->rec.h.flags |= CT_F_UNFINISHED;
	f->rec.h.end_ns = unfinished_end(f, now);
	/* the probe of a sampled function may have been taken off before the return */
	if (is_shown(f) && !f->sampled)
		COUNT(unfinished);
	if (is_counted(f) && !config.filter.failed_only && !config.filter.succeeded_only)
		count_call(t, f, f->rec.func, false, false);
	if (!f->sampled)
		send_call(t, f);
	return 0;
}

/* ---- the in-flight stack ---- */

/* Sends and drops the frames that lie below sp: their functions were left without a return
 * (longjmp, exception). */
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

/* The relation between the call that is being entered and the frame on top. */
enum stand {
	STAND_INSIDE, /* the frame's call made it, by a call or by a tail call */
	STAND_AGAIN,  /* it is the frame's own call, seen again by a second link */
	STAND_APART,  /* on another stack, while the frame's call is under way */
	STAND_BEHIND, /* the frame's call has ended, but no probe saw it return */
};

static __always_inline enum stand stand_of(struct pt_regs *ctx, const struct frame *f, __u64 sp,
					   __u64 cookie)
{
	bool frame_on_signal = on_signal_stack(f->sp), on_signal = on_signal_stack(sp);

	/* the handler has returned */
	if (frame_on_signal && !on_signal)
		return STAND_BEHIND;
	/*
	 * While a file's links are being replaced, the old and the new link are on the same
	 * function, and the new link's program runs first (consumer_add() in
	 * kernel/events/uprobes.c adds at the head). If a frame of an older link is below an entry
	 * of a newer one, its return probe was removed with its link. Links by address have no
	 * generation, but they have no return probe at this point.
	 */
	if (f->sp == sp && f->ip == PT_REGS_IP(ctx) &&
	    (f->cookie > cookie || (config.by_address && !replaced_at(sp))))
		return STAND_AGAIN;
	if (!is_under_way(ctx, f, sp))
		return STAND_BEHIND;
	if (on_signal != frame_on_signal)
		return STAND_APART;
	if (f->sp >= sp)
		return STAND_INSIDE;
	/* possibly above a call that is still under way: it jumped over that call, or it is on the
	 * stack of a coroutine */
	return on_two_stacks(f->sp, sp) ? STAND_APART : STAND_BEHIND;
}

/* Drops the frames of calls that have ended, until the top frame is related to the new call.
 * Returns the relation; STAND_BEHIND: no frame is left. */
static __noinline int settle(struct pt_regs *ctx, struct thread *t, __u64 cookie)
{
	__u64 sp = ENTRY_SP(ctx);
	enum stand stand;
	struct frame *f;
	__u32 i, d;

	if (!t)
		return STAND_BEHIND;
	for (i = 0; i < CT_MAX_FRAMES; i++) {
		d = t->depth - 1;
		if (d >= CT_MAX_FRAMES)
			break;
		f = &t->frames[d];
		stand = stand_of(ctx, f, sp, cookie);
		if (stand != STAND_BEHIND)
			return stand;
		t->depth = d;
		send_unfinished(t, f, bpf_ktime_get_ns());
	}
	return STAND_BEHIND;
}

/* Called when the top frame does not belong to the call that returns to sp. Drops the frames above
 * that call's frame: those of calls that were jumped over, and of calls without a return probe. If
 * the call was folded and has no frame, nothing is dropped. */
static __noinline int settle_return(struct thread *t, __u64 sp)
{
	struct frame *f;
	__u32 i, d;

	if (!t)
		return 0;
	d = t->depth;
	for (i = 0; i < CT_MAX_FRAMES; i++) {
		if (--d >= CT_MAX_FRAMES)
			break;
		f = &t->frames[d];
		if (f->sp == sp) {
			t->depth = d + 1;
			break;
		}
		if (f->returns_to)
			continue;
		if (f->sp > sp)
			break;
		t->depth = d;
		send_unfinished(t, f, bpf_ktime_get_ns());
	}
	return 0;
}

/* Saves the registers from which the caller's frames are unwound. */
static __always_inline void keep_registers(struct pt_regs *ctx, struct thread *t, struct frame *f,
					   __u32 d, __u64 sp)
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
	/* at a tail call, the pending return probe's trampoline is in its place */
	outer = &t->frames[(d - 1) & (CT_MAX_FRAMES - 1)];
	if (d && outer->sp == sp)
		f->ip_to = outer->ip_to;
}

/* Makes a frame for a call without a return probe, because its nested calls must be recognised too.
 * */
static __always_inline void keep_apart(struct pt_regs *ctx, struct thread *t, struct frame *f,
				       __u32 d)
{
	f->returns_to = 0;
	RETURN_ADDRESS(ctx, f->sp, &f->returns_to);
	f->returns_to = f->returns_to ?: 1;
	f->owed = OWED_NOT;
	t->depth = d + 1;
}

/* A call of which there is nothing to record: its return probe, if it has one, finds no frame. */
static __always_inline int leave_out(struct frame *f, __u64 sp)
{
	f->sp = sp;
	f->ip = 0;
	return 1;
}

/* How a call that is being entered stands to the calls of its thread that are under way. */
struct place {
	__u32 d;     /* the place of its frame */
	__u32 depth; /* how many calls it is inside */
	bool apart;  /* it runs on another stack than the call that it is inside */
};

/* Finds the place of a call. False: it is not recorded, because it is part of another call, was seen already,
 * or there is no room. */
static __always_inline bool find_place(struct pt_regs *ctx, struct thread *t, __u32 func,
				       __u8 flags, __u64 cookie, struct place *at)
{
	int stand = STAND_BEHIND;
	struct frame *top;

	at->d = t->depth;
	if (at->d) {
		if (at->d > CT_MAX_FRAMES)
			return false;
		stand = settle(ctx, t, cookie);
		if (stand == STAND_AGAIN)
			return false;
		at->d = t->depth;
	}
	if (!at->d || at->d > CT_MAX_FRAMES)
		return true;
	top = &t->frames[(at->d - 1) & (CT_MAX_FRAMES - 1)];
	at->apart = stand == STAND_APART || top->returns_to;
	if (stand != STAND_APART && !(top->interrupted && is_programs_own(ctx, top)))
		at->depth = top->rec.depth + !(top->spec_flags & CT_S_INTERNAL);
	if (at->depth && config.samples)
		note_inside(top->rec.func, func);
	if (at->depth && !config.nested && !(flags & CT_S_ALWAYS) &&
	    !((flags & CT_S_NESTED) && want_nested)) {
		COUNT(folded);
		return false;
	}
	if (at->d >= CT_MAX_FRAMES) {
		COUNT(lost[CT_LOSS_DEPTH]);
		return false;
	}
	return true;
}

/* Is the call one of a sampled function that is not recorded now? Sets what its frame says of it. */
static __always_inline bool is_muted(struct thread *t, struct frame *f, __u32 func, __u32 depth)
{
	if (config.samples && sampled[func] == CT_SAMPLED_OFF)
		return true;
	f->sampled = config.samples ? sampled[func] : CT_SAMPLED_NO;
	f->before = 0;
	return config.samples && sampling && !depth && is_unsure(t, f->sampled, &f->before);
}

/* Does the filter leave the call out by its size? */
static __always_inline bool is_filtered(const struct frame *f, const volatile struct ct_spec *spec,
					__u8 flags)
{
	return config.filter.min_size_bytes && (flags & CT_S_MATCH_SIZE) &&
	       f->data[spec->size_word & (CT_MAX_WORDS - 1)] < config.filter.min_size_bytes;
}

/* Fills in the frame and its record, apart from what is read of the program's memory. */
static __always_inline void fill(struct pt_regs *ctx, struct thread *t, struct frame *f,
				 __u64 cookie, __u8 flags, const struct place *at)
{
	f->sp = ENTRY_SP(ctx);
	f->ip = PT_REGS_IP(ctx);
	f->cookie = cookie;
	f->returns_to = 0;
	f->interrupted = false;
	f->in_trampoline = false;
	f->frees = false;
	f->spec_flags = flags;
	f->rec.h.kind = CT_CALL;
	f->rec.h.flags = (CT_COOKIE_PER_THREAD(cookie) ? CT_F_PER_THREAD : 0) |
			 ((flags & CT_S_SHOWN) && (!at->depth || config.nested) ? 0 : CT_F_HIDDEN);
	f->rec.h.pid = t->id >> 32;
	f->rec.h.tid = t->id;
	f->rec.func = CT_COOKIE_FUNC(cookie);
	f->rec.nwords = f->len / 8;
	f->rec.depth = at->depth;
	f->rec.got = 0;
	f->rec.ret = 0;
	f->scope = config.layers ? scope_around(f->sp) : 0;
	if (config.stacks)
		keep_registers(ctx, t, f, at->d, f->sp);
}

/* A call whose return is not waited for: all that is known of it is sent or counted now. */
static __always_inline int enter_only(struct pt_regs *ctx, struct thread *t, struct frame *f,
				      const struct place *at)
{
	f->rec.h.flags |= CT_F_NO_RETURN;
	if (is_counted(f))
		count_call(t, f, f->rec.func, false, false);
	if ((!config.enter || t->beside) && !f->sampled)
		send_call(t, f);
	if (at->apart && !config.no_return)
		keep_apart(ctx, t, f, at->d);
	else
		f->ip = 0;
	return 1;
}

/* Returns 0 when the return is wanted, 1 when not (a session program's answer). */
static __always_inline int enter(struct pt_regs *ctx, __u64 cookie)
{
	__u32 func = CT_COOKIE_FUNC(cookie), nwords;
	const volatile struct ct_spec *spec;
	__u64 sp = ENTRY_SP(ctx);
	struct place at = {};
	struct thread *t;
	struct frame *f;
	bool entry_only;
	__u8 flags;

	if (phase != CT_PHASE_RUNNING || func >= CT_MAX_FUNCS)
		return 1;
	spec = &specs[func];
	flags = spec->flags;
	if (config.layers && CT_LAYER_HOW(spec->layer) == CT_LAYER_OPERATOR)
		return operator_layer(ctx, func, cookie);
	if (config.layers && spec->layer)
		return enter_layer(ctx, func);
	if (counts_entries() && count_entry(ctx, func))
		return 1;
	t = thread_get();
	if (!t)
		return 1;
	if (config.reach)
		note_reach(t, sp);
	nwords = spec->nwords;
	if (!find_place(ctx, t, func, flags, cookie, &at) || nwords > CT_MAX_WORDS)
		return 1;
	f = &t->frames[at.d & (CT_MAX_FRAMES - 1)];
	if (is_muted(t, f, func, at.depth))
		return leave_out(f, sp);
	copy_words(ctx, f->data, nwords, sp, CT_MAX_WORDS);
	f->len = nwords * 8;
	if (spec->more & CT_S_FORGETS)
		__sync_fetch_and_add(&forgets, 1);
	if (is_filtered(f, spec, flags)) {
		COUNT(filtered);
		return leave_out(f, sp);
	}
	if (!t->announced)
		announce(t);
	if (config.samples && sampling && !f->sampled && !at.depth)
		count_progress(t->id >> 32, t->start);
	fill(ctx, t, f, cookie, flags, &at);
	/* a call that is only counted needs no memory of the program */
	if (spec->nentry && !f->sampled &&
	    !(config.count && !(flags & (CT_S_ALWAYS | CT_S_NESTED))))
		do_reads_whole(f, func, CT_AT_ENTRY, spec->more);
	at.apart |= is_dispatched(bpf_get_current_task_btf());
	entry_only = config.no_return || at.apart || (flags & CT_S_CALLBACK) ||
		     (spec->more & CT_S_ENTRY_ONLY);
	/* and it needs no time if it is only counted */
	if (!(config.count && config.no_return) || flags & (CT_S_ALWAYS | CT_S_NESTED))
		f->rec.h.start_ns = f->rec.h.end_ns = bpf_ktime_get_ns();
	if (entry_only && !f->sampled && config.stacks && (spec->more & CT_S_STACK) &&
	    !(f->rec.h.flags & CT_F_HIDDEN))
		send_stack(ctx, t, f, at.d);
	if ((config.enter || t->beside) && !f->sampled) {
		f->rec.h.kind = CT_ENTER;
		send_call(t, f);
		f->rec.h.kind = CT_CALL;
	}
	if (entry_only)
		return enter_only(ctx, t, f, &at);
	if (config.memory && spec->memory_how == CT_MEMORY_FREES && !at.depth && is_counted(f))
		free_begins(t, f);
	f->owed = OWED;
	barrier();
	t->depth = at.d + 1;
	return 0;
}

/* A return without an entry. In CT_PHASE_CLOSING entries are no longer looked at. */
static __always_inline void count_orphan(void)
{
	if (phase == CT_PHASE_RUNNING)
		COUNT(lost[CT_LOSS_ORPHAN]);
}

/* The frame is found by the stack pointer alone. Functions that tail-call each other share it, and
 * the kernel runs their return handlers newest first. */
static __always_inline int leave(struct pt_regs *ctx)
{
	__u64 sp = RETURN_SP(ctx), now = bpf_ktime_get_ns();
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = bpf_task_storage_get(&threads, task, 0, 0);
	const volatile struct ct_spec *spec;
	struct frame *f;
	__u32 d, func, ret;
	bool failed, bad, wanted;

	if (phase != CT_PHASE_RUNNING && phase != CT_PHASE_CLOSING)
		return 0;
	if (!t) {
		/* The process is not traced, or the call began before the probes were attached. */
		if (!config.filter_pids && !config.cgroup_id)
			count_orphan();
		return 0;
	}
	if (config.layers && leave_layer(t, sp, PT_REGS_RC(ctx)))
		return 0;
	d = t->depth - 1;
	if (d >= CT_MAX_FRAMES) {
		/* A frame with ip 0 is finished. If the entry could not cancel the return probe,
		 * its return may still come, or a second one: from a tail call, or from a link that
		 * is being replaced. While functions are sampled, this is the return of a call that
		 * began outside a window and called another function. */
		f = &t->frames[0];
		if (t->id && (f->sp != sp || f->ip) && !(config.samples && sampling))
			count_orphan();
		return 0;
	}
	f = &t->frames[d];
	if (f->sp != sp) {
		settle_return(t, sp);
		d = t->depth - 1;
		if (d >= CT_MAX_FRAMES) {
			count_orphan();
			return 0;
		}
		f = &t->frames[d];
	}
	if (f->sp != sp)
		return 0; /* the call was folded into another one, or the stack was full */
	func = f->rec.func;
	if (func >= CT_MAX_FUNCS)
		return 0;
	t->depth = d;
	f->ip = 0;
	if (!take(f))
		return 0; /* its record was already sent, at its entry or when tracing stopped */
	spec = &specs[func];
	f->rec.ret = PT_REGS_RC(ctx);
	f->rec.h.end_ns = now;
	ret = f->rec.ret;
	failed = (spec->flags & CT_S_ERROR) && ret;
	bad = failed && !((spec->flags & CT_S_NOT_READY) && ret == NOT_READY);
	wanted = !(config.filter.failed_only && !bad) && !(config.filter.succeeded_only && bad) &&
		 !(config.filter.min_duration_ns &&
		   now - f->rec.h.start_ns < config.filter.min_duration_ns);
	if (wanted && is_counted(f))
		count_call(t, f, func, bad, true);
	if (f->sampled) {
		if (!wanted)
			COUNT(filtered);
		return 0;
	}
	/* calls that name kernels are needed whatever is shown */
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
