/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * scopes.bpf.h - calls of functions of layers (NVTX, NCCL): each thread's stack of open scopes, apart
 * from its calls in flight. Nothing folds here, and nothing of it takes a call's number.
 *
 * Only numbers are kept of a scope; its record has the rest. A scope that is closed while others
 * above it are open (another domain's, or a call that was left) stays on the stack, marked as gone,
 * until it is on top.
 */
#ifndef CT_SCOPES_BPF_H
#define CT_SCOPES_BPF_H

#define SCOPES_MAX 64
#define OWN_DOMAIN (~0ULL) /* no program has a domain at this address */
#define SCOPE_WORDS 8 /* calls under way whose words are kept, for what is read at their return */

struct open_scope {
	__u64 sp;	/* of a call that is under way; 0: pushed */
	__u64 start_ns; /* of a call */
	__u64 domain;	/* the program's, of one that was pushed */
	__u32 serial;	/* of a call that is no scope: that of the scope around it */
	__u16 func;	/* of a call */
	__u8 gone;
	__u8 pad;
};

struct scopes {
	__u32 depth;
	__u32 over;   /* pushed while there was no room */
	__u32 serial; /* of the newest scope */
	__u32 calls;  /* entries of calls, those that are gone too */
	__u64 words[SCOPE_WORDS][CT_LAYER_WORDS];
	__u32 words_of[SCOPE_WORDS]; /* the entry + 1 whose words they are */
	struct open_scope open[SCOPES_MAX];
	struct frame f; /* the record at work */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct scopes);
} scopes SEC(".maps");

/* The number of the innermost open scope. */
static __always_inline __u32 innermost(const struct scopes *s)
{
	__u32 d = s->depth;

	if (s->over)
		return CT_SCOPE_UNKNOWN;
	return d && d <= SCOPES_MAX ? s->open[(d - 1) & (SCOPES_MAX - 1)].serial : CT_SCOPE_NONE;
}

/* Takes what is gone from the top. Not static, here and below: verified once. */
__noinline int trim_scopes(struct scopes *s)
{
	struct open_scope *e;
	__u32 i, d;

	if (!s)
		return 0;
	for (i = 0; i < SCOPES_MAX; i++) {
		d = s->depth - 1;
		barrier_var(d);
		if (d >= SCOPES_MAX)
			break;
		e = &s->open[d];
		if (!e->gone)
			break;
		if (e->sp && s->calls)
			s->calls--;
		s->depth = d;
	}
	return 0;
}

/* Closes the innermost scope that was pushed in this domain. Returns its number; 0: there is none. */
__noinline __u32 pop_scope(struct scopes *s, __u64 domain)
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
		if (e->sp || e->gone || e->domain != domain)
			continue;
		e->gone = 1;
		return e->serial;
	}
	return 0;
}

/* The place + 1 of the call that returns to sp; calls above it were left without a return. 0: none. */
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
		if (!e->sp || e->gone)
			continue;
		if (e->sp == sp)
			return d + 1;
		if (e->sp > sp)
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
		if (!e->sp || e->gone)
			continue;
		if (e->sp >= sp || on_two_stacks(e->sp, sp))
			break;
		e->gone = 1;
	}
	return 0;
}

/* The number of the innermost scope around a call that is entered. */
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

static __always_inline void scope_head(struct thread *t, struct frame *f, __u16 kind, __u32 func,
				       __u32 nwords)
{
	f->rec.h.kind = kind;
	f->rec.h.flags = 0;
	f->rec.h.pid = t->id >> 32;
	f->rec.h.tid = t->id;
	f->rec.func = func;
	f->rec.nwords = nwords;
	f->rec.depth = 0;
	f->rec.got = 0;
	f->rec.ret = 0;
	f->len = nwords * 8;
}

static __always_inline void send_scope(struct thread *t, struct frame *f, __u32 serial,
				       __u32 parent)
{
	__u32 len = f->len;

	if (len > CT_DATA_MAX - 8)
		return;
	*(__u64 *)((void *)f->data + (len & ~7U)) = serial | (__u64)parent << 32;
	f->rec.h.flags |= CT_F_SCOPE;
	send(&f->rec.h, sizeof(f->rec) + len + 8, true,
	     t->sent++ % WAKE_EVERY ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP);
}

/* Puts a scope or a call on the stack. keeps: the words of the call are needed at its return.
 * Returns false if there is no room. */
static __always_inline bool open_scope(struct scopes *s, __u64 sp, __u64 now, __u64 domain,
				       __u32 serial, __u32 func, bool keeps)
{
	struct open_scope *e;
	__u32 d = s->depth;

	if (d >= SCOPES_MAX) {
		COUNT(scopes_dropped);
		return false;
	}
	e = &s->open[d & (SCOPES_MAX - 1)];
	e->sp = sp;
	e->start_ns = now;
	e->domain = domain;
	e->serial = serial;
	e->func = func;
	e->gone = 0;
	if (sp)
		s->calls++;
	if (keeps) {
		__builtin_memcpy(s->words[d & (SCOPE_WORDS - 1)], s->f.data, sizeof(s->words[0]));
		s->words_of[d & (SCOPE_WORDS - 1)] = d + 1;
	}
	barrier();
	s->depth = d + 1;
	return true;
}

/* At a return instruction of an operator the stack pointer is what it was at its entry. What was
 * left by an exception is above it by then, or is swept away at the next entry. */
static __always_inline void leave_operator(struct thread *t, struct scopes *s, __u32 func, __u64 sp,
					   __u64 now)
{
	struct open_scope *e;
	struct frame *f = &s->f;
	__u32 d = find_scope(s, sp) - 1, serial;

	barrier_var(d);
	if (d >= SCOPES_MAX) {
		if (s->depth < SCOPES_MAX) /* else its begin found no room, and was counted */
			COUNT(scopes_unbegun);
		return;
	}
	e = &s->open[d];
	scope_head(t, f, CT_LAYER_END, func, 1);
	f->rec.h.start_ns = e->start_ns;
	f->rec.h.end_ns = now;
	serial = e->serial;
	e->gone = 1;
	trim_scopes(s);
	f->data[0] = 0;
	send_scope(t, f, serial, innermost(s));
}

/* Both the entry and the return instructions have a probe; no return address is replaced. */
static __always_inline int operator_layer(struct pt_regs *ctx, __u32 func, __u64 cookie)
{
	__u64 sp = ENTRY_SP(ctx), now = bpf_ktime_get_ns();
	struct thread *t = thread_get();
	struct scopes *s;
	struct frame *f;
	__u32 parent;

	if (!t)
		return 1;
	s = bpf_task_storage_get(&scopes, bpf_get_current_task_btf(), 0,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s) {
		COUNT(lost[CT_LOSS_STORAGE]);
		return 1;
	}
	if (CT_COOKIE_ENDS(cookie)) {
		leave_operator(t, s, func, sp, now);
		return 1;
	}
	if (!t->announced)
		announce(t);
	if (s->calls) {
		sweep_scopes(s, sp + 1); /* one that began at this very place is over too */
		trim_scopes(s);
	}
	f = &s->f;
	parent = innermost(s);
	if (!open_scope(s, sp, now, 0, ++s->serial, func, false))
		return 1;
	scope_head(t, f, CT_LAYER_BEGIN, func, 1);
	f->rec.h.start_ns = f->rec.h.end_ns = now;
	f->data[0] = CT_COOKIE_SYMBOL(cookie);
	send_scope(t, f, s->serial, parent);
	return 1;
}

/* Returns 0 when the return is wanted, 1 when not. */
static __always_inline int enter_layer(struct pt_regs *ctx, __u32 func)
{
	const volatile struct ct_spec *spec = &specs[func & (CT_MAX_FUNCS - 1)];
	__u64 sp = ENTRY_SP(ctx), now = bpf_ktime_get_ns(), domain = 0;
	__u32 nwords = spec->nwords, parent, serial = 0;
	__u8 layer = spec->layer, how = CT_LAYER_HOW(layer);
	struct thread *t = thread_get();
	struct scopes *s;
	struct frame *f;

	if (!t || nwords > CT_LAYER_WORDS)
		return 1;
	s = bpf_task_storage_get(&scopes, bpf_get_current_task_btf(), 0,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s) {
		COUNT(lost[CT_LOSS_STORAGE]);
		return 1;
	}
	if (!t->announced)
		announce(t);
	if (s->calls) {
		sweep_scopes(s, sp);
		trim_scopes(s);
	}
	f = &s->f;
	copy_words(ctx, f->data, nwords, sp, CT_LAYER_WORDS);
	scope_head(t, f, CT_LAYER_BEGIN, func, nwords);
	f->rec.h.start_ns = f->rec.h.end_ns = now;
	if (layer & CT_LAYER_DOMAIN)
		domain = f->data[0];
	else if (layer & CT_LAYER_OWN)
		domain = OWN_DOMAIN;
	if (how == CT_LAYER_POP) {
		if (s->over) {
			s->over--;
			return 1;
		}
		serial = pop_scope(s, domain);
		trim_scopes(s);
		if (!serial) {
			COUNT(scopes_unbegun);
			return 1;
		}
		f->rec.h.kind = CT_LAYER_END;
		send_scope(t, f, serial, innermost(s));
		return 1;
	}
	parent = innermost(s);
	if (how == CT_LAYER_PUSH || how == CT_LAYER_CALL)
		serial = ++s->serial;
	if (how == CT_LAYER_PUSH && !open_scope(s, 0, now, domain, serial, func, false)) {
		s->over++;
		return 1;
	}
	if (how == CT_LAYER_CALL && !open_scope(s, sp, now, 0, serial, func, true))
		return 1;
	if (how == CT_LAYER_AFTER)
		return !open_scope(s, sp, now, 0, parent, func, true);
	if (spec->nentry)
		do_reads(f, func, CT_AT_ENTRY);
	send_scope(t, f, serial, parent);
	return how != CT_LAYER_CALL;
}

/* True if the return was that of a layer's call. */
static __always_inline bool leave_layer(struct thread *t, __u64 sp, __s64 ret)
{
	struct scopes *s = bpf_task_storage_get(&scopes, bpf_get_current_task_btf(), 0, 0);
	const volatile struct ct_spec *spec;
	__u32 d, at, func, nwords, serial, how;
	struct open_scope *e;
	struct frame *f;

	if (!s || !s->calls)
		return false;
	d = t->depth - 1;
	/* of a call that ends with a jump to another one, the inner one returns first */
	if (d < CT_MAX_FRAMES && t->frames[d].sp == sp)
		return false;
	d = find_scope(s, sp) - 1;
	barrier_var(d);
	if (d >= SCOPES_MAX)
		return false;
	e = &s->open[d];
	func = e->func;
	if (func >= CT_MAX_FUNCS)
		return false;
	spec = &specs[func];
	nwords = spec->nwords;
	how = CT_LAYER_HOW(spec->layer);
	if (nwords > CT_LAYER_WORDS)
		return false;
	f = &s->f;
	scope_head(t, f, CT_LAYER_END, func, nwords);
	f->rec.ret = ret;
	f->rec.h.start_ns = e->start_ns;
	f->rec.h.end_ns = bpf_ktime_get_ns();
	serial = e->serial;
	e->gone = 1;
	at = d & (SCOPE_WORDS - 1);
	trim_scopes(s);
	if (s->words_of[at] == d + 1) {
		__builtin_memcpy(f->data, s->words[at], sizeof(s->words[0]));
		if (how == CT_LAYER_AFTER)
			do_reads(f, func, CT_AT_ENTRY);
		if (!(spec->flags & CT_S_ERROR && (__u32)ret))
			do_reads(f, func, CT_AT_RETURN);
	} else {
		__builtin_memset(f->data, 0, sizeof(s->words[0]));
	}
	send_scope(t, f, how == CT_LAYER_AFTER ? CT_SCOPE_NONE : serial, innermost(s));
	if (spec->layer & CT_LAYER_WAITS && how == CT_LAYER_CALL)
		wait_to_be_read();
	return true;
}

/* The thread runs a new program, or has ended. */
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
