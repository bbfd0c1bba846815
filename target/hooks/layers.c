/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layers.c - see layers.h. A call is identified by the engine's frame, which shows whether the call
 * was left and which call returns.
 *
 * A signal may come between any two instructions. If it comes while the thread changes its stack of
 * scopes, the handler's calls of layers find the stack busy: they are counted, and open no scope.
 *
 * What is read of an operator's tensors is read ahead: one system call copies what all arguments point to,
 * and one more copies the tensors that these refer to. Each system call takes far longer than what it copies.
 */
#include "layers.h"

#include <sys/uio.h>

#include "capture.h"
#include "inside.h"
#include "ring_write.h"

/* An address that is further away may be on another stack. */
#define STACK_BYTES (8ULL << 20)

#define frame hooks_call
#define thread hooks_thread
#define specs capture_specs
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline static __attribute__((noinline))
#define barrier() __asm__ volatile("" ::: "memory")
#define barrier_var(x) ((void)(x))
#define READS_SPEC const
#define do_reads(f, func, when) capture_reads(f, func, when)
#define copy_words(regs, to, n, place, max) capture_words(regs, to, n)
#define SCOPES_REGS const struct hook_regs
#define SCOPES_OF_CALL __u64 number; /* the engine's, of the call in its thread */
#define SCOPES_PID(t) capture_process()
#define SCOPES_TID(t) ((t)->tid)
#define SCOPES_DROPPED(t) ring_add(&(t)->scopes_dropped, 1)
#define SCOPES_UNBEGUN(t) ring_add(&(t)->scopes_unbegun, 1)
#define SCOPES_SEND(t, h, size) capture_put(t, h, size)
#define SCOPES_TENSORS(regs, f, symbol) operator_tensors(regs, f, symbol)
#define TENSORS_READ(to, n, from) read_tensor(f, to, n, from)
static int read_tensor(struct hooks_call *, void *to, __u64 n, __u64 from);
static void read_ahead(struct hooks_call *, const __u64 *regs, __u32 plan);
#include "../../capture/read_tensors.h"

static __u32 tensors[CT_SYMBOLS];

static void operator_tensors(const struct hook_regs *r, struct hooks_call *f, __u32 symbol)
{
	__u32 plan = __atomic_load_n(&tensors[symbol & (CT_SYMBOLS - 1)], __ATOMIC_RELAXED);

	__u64 regs[CT_TENSORS_REGS + 1] = { 0 };

	if (!plan)
		return;
	memcpy(regs, r->args, CT_TENSORS_REGS * sizeof(regs[0]));
	read_ahead(f, regs, plan);
	add_tensors(f, regs, plan);
}
#include "../../capture/open_scopes.h"
#undef frame
#undef thread

void layers_tensors(__u64 cookie, __u32 plan)
{
	__atomic_store_n(&tensors[CT_COOKIE_SYMBOL(cookie)], plan, __ATOMIC_RELAXED);
}

/* Memory of the program that was read together: blocks at addresses, one behind the other in bytes[]. */
#define AHEAD_BLOCKS 14
#define AHEAD_BYTES 904
struct ahead {
	__u32 blocks, used;
	struct iovec at[AHEAD_BLOCKS];
	__u8 bytes[AHEAD_BYTES];
};

struct own_scopes {
	__u64 busy; /* the stack pointer of the code that changes it; 0: none */
	struct scopes s;
	struct ahead ahead; /* of the record at work */
};
_Static_assert(sizeof(struct own_scopes) <= sizeof(((struct hooks_thread *)0)->scopes),
	       "its room in a thread's block");

static struct own_scopes *own_of(struct hooks_thread *t)
{
	return (struct own_scopes *)t->scopes;
}

/* ---- tensors ---- */

static struct ahead *ahead_of(struct hooks_call *f)
{
	return &((struct own_scopes *)((char *)f - offsetof(struct own_scopes, s.f)))->ahead;
}

/* What does not fit is read when it is asked for. */
static void want(struct ahead *a, __u64 at, __u64 n)
{
	if (!at || a->blocks == AHEAD_BLOCKS || a->used + n > AHEAD_BYTES)
		return;
	a->at[a->blocks++] = (struct iovec){ (void *)at, n };
	a->used += (__u32)n;
}

/* Reads the blocks from that one on, whose bytes begin at `begin`. From the first one that is not mapped
 * whole on they are forgotten. */
static void fetch(struct ahead *a, __u32 from, __u32 begin)
{
	__u64 got = 0, n;
	__u32 blocks = from, used = begin;

	if (from < a->blocks)
		got = capture_gather(a->bytes + begin, a->used - begin, a->at + from,
				     a->blocks - from);
	for (; blocks < a->blocks; blocks++, used += (__u32)n, got -= n) {
		n = a->at[blocks].iov_len;
		if (n > got)
			break;
	}
	a->blocks = blocks;
	a->used = used;
}

/* The bytes at an address, if they have been read; else NULL. */
static const __u8 *fetched(const struct ahead *a, __u64 at, __u64 n)
{
	__u32 begin = 0;

	for (__u32 i = 0; i < a->blocks; i++) {
		__u64 block = (__u64)a->at[i].iov_base, bytes = a->at[i].iov_len;

		if (at >= block && at - block <= bytes && n <= bytes - (at - block))
			return a->bytes + begin + (at - block);
		begin += (__u32)bytes;
	}
	return NULL;
}

static int read_tensor(struct hooks_call *f, void *to, __u64 n, __u64 from)
{
	const __u8 *bytes = fetched(ahead_of(f), from, n);

	if (!bytes)
		return capture_memory(to, n, from);
	for (__u64 i = 0; i < n; i++)
		((volatile __u8 *)to)[i] = bytes[i];
	return 0;
}

static __u64 word_of(const struct ahead *a, __u64 at)
{
	const __u8 *bytes = fetched(a, at, 8);
	__u64 word = 0;

	if (bytes)
		__builtin_memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Where n addresses of tensors are, of one argument. */
static __u64 tensors_of(const struct ahead *a, __u32 how, const __u64 *regs, __u32 plan, __u64 *n)
{
	bool by_reference = plan & CT_TENSORS_BY_REFERENCE;

	*n = 1;
	if (how == CT_TENSORS_OPTIONAL) /* without a value its first word may be anything */
		*n = word_of(a, regs[0] + 8) & 0xff ? 1 : 0;
	if (how != CT_TENSORS_LIST)
		return regs[0];
	*n = by_reference ? word_of(a, regs[0] + 8) : regs[1];
	if (*n > CT_TENSOR_EACH)
		*n = CT_TENSOR_EACH;
	return by_reference ? word_of(a, regs[0]) : regs[0];
}

/* As add_tensors() will read it, in two or three steps, each of which needs what was read before. */
static void read_ahead(struct hooks_call *f, const __u64 *regs, __u32 plan)
{
	struct ahead *a = ahead_of(f);
	__u32 from, begin;
	__u64 n, at;

	a->blocks = a->used = 0;
	for (int i = 0; i < CT_TENSORS_REGS; i++) {
		__u32 how = CT_TENSORS_REG(plan, i);
		bool reference = how == CT_TENSORS_LIST && plan & CT_TENSORS_BY_REFERENCE;

		n = 1;
		if (how == CT_TENSORS_LIST && !reference)
			tensors_of(a, how, regs + i, plan, &n);
		if (how)
			want(a, regs[i], reference ? 24 : how == CT_TENSORS_OPTIONAL ? 16 : 8 * n);
	}
	fetch(a, 0, 0);
	from = a->blocks;
	begin = a->used;
	for (int i = 0; i < CT_TENSORS_REGS && plan & CT_TENSORS_BY_REFERENCE; i++)
		if (CT_TENSORS_REG(plan, i) == CT_TENSORS_LIST) {
			at = tensors_of(a, CT_TENSORS_LIST, regs + i, plan, &n);
			want(a, at, 8 * n);
		}
	fetch(a, from, begin);
	from = a->blocks;
	begin = a->used;
	for (int i = 0; i < CT_TENSORS_REGS; i++) {
		if (!CT_TENSORS_REG(plan, i))
			continue;
		at = tensors_of(a, CT_TENSORS_REG(plan, i), regs + i, plan, &n);
		for (__u64 k = 0; k < n; k++) {
			__u64 tensor = word_of(a, at + 8 * k);

			if (tensor)
				want(a, tensor + CT_TENSORS_RANK_WORD(plan) * 8,
				     sizeof(struct tensor_sizes) + TENSOR_BETWEEN +
					     sizeof(struct tensor_type));
		}
	}
	fetch(a, from, begin);
}

void layers_begin(struct hooks_thread *t)
{
	struct own_scopes *own = own_of(t);

	own->busy = 0;
	own->s.depth = own->s.over = own->s.serial = own->s.calls = 0;
	for (int i = 0; i < SCOPE_WORDS; i++)
		own->s.words_of[i] = 0;
}

static bool is_below(__u64 a, __u64 b)
{
	return a < b && b - a < STACK_BYTES;
}

/* Returns NULL if the stack is busy. If its holder is further down the same stack, the holder was
 * left by a handler's longjmp. */
static struct scopes *take(struct hooks_thread *t)
{
	struct own_scopes *own = own_of(t);
	__u64 sp = (__u64)__builtin_frame_address(0), busy = own->busy;

	if (busy && !is_below(busy, sp))
		return NULL;
	own->busy = sp;
	barrier();
	return &own->s;
}

static void give_back(struct hooks_thread *t)
{
	barrier();
	own_of(t)->busy = 0;
}

/* Returns whether the call has ended or was left, as seen from a call at sp. */
static bool is_over(const struct open_scope *e, __u64 sp)
{
	const struct hook_frame *f = (const struct hook_frame *)e->place;

	return f->number != e->number || is_below(f->sp, sp) || !hook_is_under_way(f);
}

/* Marks the calls that have ended, down to the first that has not. returns: a frame whose call
 * returns. Returns the place of that call, or -1. */
static int sweep(struct scopes *s, __u64 sp, const struct hook_frame *returns)
{
	for (__u64 d = s->depth; d && d <= SCOPES_MAX; d--) {
		struct open_scope *e = &s->open[d - 1];

		if (!e->place || e->gone)
			continue;
		if (returns && e->place == (__u64)returns && e->number == returns->number)
			return (int)d - 1;
		if (is_over(e, sp))
			e->gone = 1;
		else if (!returns)
			break;
	}
	return -1;
}

static void tidy(struct scopes *s, __u64 sp)
{
	if (!s->calls)
		return;
	sweep(s, sp, NULL);
	trim_scopes(s);
}

__u32 layers_around(struct hooks_thread *t, __u64 sp)
{
	struct scopes *s = take(t);
	__u32 serial;

	if (!s)
		return CT_SCOPE_UNKNOWN;
	tidy(s, sp);
	serial = innermost(s);
	give_back(t);
	return serial;
}

bool layers_enter(struct hooks_thread *t, const struct hook_frame *f, const struct hook_regs *r,
		  __u64 cookie, const struct ct_spec *spec)
{
	__u64 now = capture_now(), place = (__u64)f;
	__u32 func = CT_COOKIE_FUNC(cookie);
	struct scopes *s = take(t);
	struct open_scope *e;

	if (!s) {
		SCOPES_DROPPED(t);
		return false;
	}
	tidy(s, f->sp);
	e = CT_LAYER_HOW(spec->layer) == CT_LAYER_OPERATOR
		    ? begin_operator(r, t, s, func, CT_COOKIE_SYMBOL(cookie), place, now)
		    : enter_scope(r, t, s, func, place, now);
	if (e)
		e->number = f->number;
	give_back(t);
	return e != NULL;
}

bool layers_leave(struct hooks_thread *t, const struct hook_frame *f, __u64 cookie,
		  const struct ct_spec *spec, __u64 result)
{
	__u64 now = capture_now();
	struct scopes *s = take(t);
	int d, waits = 0;

	if (!s) {
		SCOPES_DROPPED(t);
		return false;
	}
	d = sweep(s, f->sp, f);
	if (d < 0)
		SCOPES_UNBEGUN(t);
	else if (CT_LAYER_HOW(spec->layer) == CT_LAYER_OPERATOR)
		end_operator(t, s, CT_COOKIE_FUNC(cookie), &s->open[d], now);
	else
		waits = leave_scope(t, s, (__u32)d, (__s64)result, now);
	give_back(t);
	return waits > 0;
}
