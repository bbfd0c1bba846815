/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * open_scopes.h - calls of functions of layers (NVTX, NCCL): each thread's stack of open scopes, apart
 * from its calls in flight. Nothing folds here, and nothing of it takes a call's number. Compiled
 * twice: for the kernel side, and for the hooks inside a process, so that both make the same records.
 *
 * Only numbers are kept of a scope; its record has the rest. A scope that is closed while others
 * above it are open (another domain's, or a call that was left) stays on the stack, marked as gone,
 * until it is on top. Which calls were left, and which one returns, is for the including side to say.
 *
 * Who includes it has included reads.h before, and defines: struct thread, barrier(), barrier_var(),
 *
 *	SCOPES_REGS		the type of what has a call's arguments
 *	SCOPES_OF_CALL		members of a scope that is a call, for the including side alone
 *	SCOPES_PID(t), SCOPES_TID(t)	of the thread
 *	SCOPES_DROPPED(t)	counts a scope for which there is no room
 *	SCOPES_UNBEGUN(t)	counts the end of a scope whose begin was not seen
 *	SCOPES_SEND(t, h, size)	sends a record
 *	copy_words(regs, to, n, place, max)
 *	SCOPES_TENSORS(regs, f, symbol)	adds the tensors of an operator's arguments to its record
 *
 * A call's `place` is a number that no other call of the thread has which is under way; never 0.
 */
#ifndef CT_OPEN_SCOPES_H
#define CT_OPEN_SCOPES_H

#define SCOPES_MAX 64
#define OWN_DOMAIN (~0ULL) /* no program has a domain at this address */
#define SCOPE_WORDS 8 /* calls under way whose words are kept, for what is read at their return */

struct open_scope {
	__u64 place;	/* of a call that is under way; 0: pushed */
	__u64 start_ns; /* of a call */
	__u64 domain;	/* the program's, of one that was pushed */
	__u32 serial;	/* of a call that is no scope: that of the scope around it */
	__u16 func;	/* of a call */
	__u8 gone;
	__u8 pad;
	SCOPES_OF_CALL
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
		if (e->place && s->calls)
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
		if (e->place || e->gone || e->domain != domain)
			continue;
		e->gone = 1;
		return e->serial;
	}
	return 0;
}

static __always_inline void scope_head(struct thread *t, struct frame *f, __u16 kind, __u32 func,
				       __u32 nwords)
{
	f->rec.h.kind = kind;
	f->rec.h.flags = 0;
	f->rec.h.pid = SCOPES_PID(t);
	f->rec.h.tid = SCOPES_TID(t);
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
	SCOPES_SEND(t, &f->rec.h, sizeof(f->rec) + len + 8);
}

/* Puts a scope or a call on the stack. keeps: the words of the call are needed at its return. Returns
 * its entry; NULL: there is no room. */
static __always_inline struct open_scope *open_scope(struct thread *t, struct scopes *s,
						     __u64 place, __u64 now, __u64 domain,
						     __u32 serial, __u32 func, bool keeps)
{
	struct open_scope *e;
	__u32 d = s->depth;

	if (d >= SCOPES_MAX) {
		SCOPES_DROPPED(t);
		return NULL;
	}
	e = &s->open[d & (SCOPES_MAX - 1)];
	e->place = place;
	e->start_ns = now;
	e->domain = domain;
	e->serial = serial;
	e->func = func;
	e->gone = 0;
	if (place)
		s->calls++;
	if (keeps) {
		__builtin_memcpy(s->words[d & (SCOPE_WORDS - 1)], s->f.data, sizeof(s->words[0]));
		s->words_of[d & (SCOPE_WORDS - 1)] = d + 1;
	}
	barrier();
	s->depth = d + 1;
	return e;
}

/* The call of a function of a row for many begins. Returns its entry; NULL: there is no room. */
static __always_inline struct open_scope *begin_operator(SCOPES_REGS *regs, struct thread *t,
							 struct scopes *s, __u32 func, __u32 symbol,
							 __u64 place, __u64 now)
{
	struct frame *f = &s->f;
	__u32 parent = innermost(s);
	struct open_scope *e = open_scope(t, s, place, now, 0, ++s->serial, func, false);

	if (!e)
		return NULL;
	scope_head(t, f, CT_LAYER_BEGIN, func, 1);
	f->rec.h.start_ns = f->rec.h.end_ns = now;
	f->data[0] = symbol;
	SCOPES_TENSORS(regs, f, symbol);
	send_scope(t, f, s->serial, parent);
	return e;
}

/* The one at this entry returns. */
static __always_inline void end_operator(struct thread *t, struct scopes *s, __u32 func,
					 struct open_scope *e, __u64 now)
{
	struct frame *f = &s->f;
	__u32 serial = e->serial;

	scope_head(t, f, CT_LAYER_END, func, 1);
	f->rec.h.start_ns = e->start_ns;
	f->rec.h.end_ns = now;
	e->gone = 1;
	trim_scopes(s);
	f->data[0] = 0;
	send_scope(t, f, serial, innermost(s));
}

/* A call of another function of a layer. Returns the entry of a call whose return is wanted; NULL: it
 * is not. */
static __always_inline struct open_scope *enter_scope(SCOPES_REGS *regs, struct thread *t,
						      struct scopes *s, __u32 func, __u64 place,
						      __u64 now)
{
	READS_SPEC struct ct_spec *spec = &specs[func & (CT_MAX_FUNCS - 1)];
	__u32 nwords = spec->nwords, parent, serial = 0;
	__u8 layer = spec->layer, how = CT_LAYER_HOW(layer);
	struct open_scope *e = NULL;
	struct frame *f = &s->f;
	__u64 domain = 0;

	if (nwords > CT_LAYER_WORDS)
		return NULL;
	copy_words(regs, f->data, nwords, place, CT_LAYER_WORDS);
	scope_head(t, f, CT_LAYER_BEGIN, func, nwords);
	f->rec.h.start_ns = f->rec.h.end_ns = now;
	if (layer & CT_LAYER_DOMAIN)
		domain = f->data[0];
	else if (layer & CT_LAYER_OWN)
		domain = OWN_DOMAIN;
	if (how == CT_LAYER_POP) {
		if (s->over) {
			s->over--;
			return NULL;
		}
		serial = pop_scope(s, domain);
		trim_scopes(s);
		if (!serial) {
			SCOPES_UNBEGUN(t);
			return NULL;
		}
		f->rec.h.kind = CT_LAYER_END;
		send_scope(t, f, serial, innermost(s));
		return NULL;
	}
	parent = innermost(s);
	if (how == CT_LAYER_PUSH || how == CT_LAYER_CALL)
		serial = ++s->serial;
	if (how == CT_LAYER_PUSH && !open_scope(t, s, 0, now, domain, serial, func, false)) {
		s->over++;
		return NULL;
	}
	if (how == CT_LAYER_CALL) {
		e = open_scope(t, s, place, now, 0, serial, func, true);
		if (!e)
			return NULL;
	}
	if (how == CT_LAYER_AFTER)
		return open_scope(t, s, place, now, 0, parent, func, true);
	if (spec->nentry)
		do_reads(f, func, CT_AT_ENTRY);
	send_scope(t, f, serial, parent);
	return e;
}

/* The call in open[d] returns; d is less than SCOPES_MAX. Returns CT_LAYER_WAITS if its thread shall
 * wait until what it made has been read, else 0; -1: the entry makes no sense. */
static __always_inline int leave_scope(struct thread *t, struct scopes *s, __u32 d, __s64 ret,
				       __u64 now)
{
	struct open_scope *e = &s->open[d];
	__u32 func = e->func, nwords, serial = e->serial, how, at = d & (SCOPE_WORDS - 1);
	READS_SPEC struct ct_spec *spec;
	struct frame *f = &s->f;

	if (func >= CT_MAX_FUNCS)
		return -1;
	spec = &specs[func];
	nwords = spec->nwords;
	how = CT_LAYER_HOW(spec->layer);
	if (nwords > CT_LAYER_WORDS)
		return -1;
	scope_head(t, f, CT_LAYER_END, func, nwords);
	f->rec.ret = ret;
	f->rec.h.start_ns = e->start_ns;
	f->rec.h.end_ns = now;
	e->gone = 1;
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
	return how == CT_LAYER_CALL ? spec->layer & CT_LAYER_WAITS : 0;
}

#endif
