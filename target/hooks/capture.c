/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture.c - see capture.h.
 *
 * The calls of a thread that are under way are in its block of the area. The user side sees them
 * there, so it can report those that have not returned, even after the process was killed. A signal
 * may come between any two instructions, and its handler may make calls, so a place for a call is
 * taken before it is filled. This file is built without vector registers, and calls no function of
 * libc, because the registers contain the program's values.
 *
 * The program's memory is read with a system call, which returns an error if a load would crash.
 * Only words that CUDA itself has just written, and bytes beside the caller's stack pointer, are
 * loaded directly.
 */
#include "capture.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "counts.h"
#include "inside.h"
#include "layers.h"
#include "python_frames.h"
#include "reach.h"
#include "ring_write.h"
#include "stack.h"
#include "../common/sys.h"

#define NOT_READY 600 /* cudaErrorNotReady, CUDA_ERROR_NOT_READY */
#define PAGE 4096
#define LOOK_AT 64 /* number of blocks that are checked before another one is made accessible */

struct ct_spec capture_specs[CT_MAX_FUNCS];
static struct ct_config config;
static size_t area_bytes;
static __u32 threads_max;
static __u64 ring_bytes, min_ticks;
static __u32 hint; /* number of a block that may be free */
/* What each call reads is in one cache line. */
#define EACH_CALL __attribute__((section(".data.each_call")))
static EACH_CALL struct hooks_area *area; /* NULL: there was none yet */
static EACH_CALL __u64 generation;
static EACH_CALL __u32 flags;
static EACH_CALL __u32 renames;	 /* how often threads were renamed so far */
static EACH_CALL bool sandboxed; /* a system call might kill the program */
static const __u64 no_word;
static EACH_CALL const __u64 *filtered =
	&no_word;	     /* the same, where the kernel says it; not 0: it is so */
static EACH_CALL bool mutes; /* whether calls of some functions are only counted (muted_funcs.h) */

/*
 * Most calls need nothing of what a spec or the configuration can request at the entry and the
 * return of a call. They take a short way (enters_quickly()). All that it must know of a function
 * is in one word.
 */
static EACH_CALL bool quick; /* the configuration requests nothing that the short way does not do */
static struct quick {
	__u8 nwords, flags; /* of its spec */
	bool is;	    /* its calls take the short way */
	bool reads;	    /* something is read at its return */
} quick_specs[CT_MAX_FUNCS];
#define __cold __attribute__((cold, noinline))
#define likely(x) __builtin_expect(!!(x), 1)
/* 1 in the process that has the area. In a forked child the page is all zeros, in whatever way the
 * child was forked */
static __u32 dead;
static EACH_CALL __u32 *alive = &dead;
static EACH_CALL __attribute__((aligned(64))) pid_t own_pid;

static __thread struct hooks_thread *self __attribute__((tls_model("initial-exec")));
static __thread __u64 self_generation __attribute__((tls_model("initial-exec")));
/* size of the thread's ring in bytes, which may differ from the size in the next area */
static __thread __u64 self_ring __attribute__((tls_model("initial-exec")));

static __u64 now(void)
{
	struct timespec ts = { 0 };

#if defined(__x86_64__)
	if (flags & HOOKS_S_TSC)
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	if (flags & HOOKS_S_TSC) {
		__u64 ticks;

		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
		return ticks;
	}
#endif
	sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&ts, 0, 0, 0, 0);
	return (__u64)ts.tv_sec * 1000000000ULL + (__u64)ts.tv_nsec;
}

static bool is_sandboxed(void)
{
	return __atomic_load_n(&sandboxed, __ATOMIC_RELAXED) ||
	       __atomic_load_n(__atomic_load_n(&filtered, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* ---- the program's memory ---- */

int capture_memory(void *to, __u64 n, __u64 from)
{
	struct iovec here = { to, n }, there = { (void *)from, n };

	if (is_sandboxed())
		return -1;
	return sys_call(SYS_process_vm_readv, own_pid, (long)&here, 1, (long)&there, 1, 0) !=
	       (long)n;
}

__u64 capture_gather(void *to, __u64 bytes, const struct iovec *from, __u32 n)
{
	struct iovec here = { to, bytes };
	long got = -1;

	if (!is_sandboxed())
		got = sys_call(SYS_process_vm_readv, own_pid, (long)&here, 1, (long)from, n, 0);
	return got > 0 ? (__u64)got : 0;
}

/* Reads a string with its NUL, at most n bytes, in pieces that end at a page's end, because the
 * next page may not be mapped. If the string is longer, it is cut off, and still ends with a
 * NUL. */
static long read_string(char *to, __u64 n, __u64 from)
{
	__u64 len = 0;

	while (len < n) {
		__u64 page = PAGE - ((from + len) & (PAGE - 1));
		__u64 want = n - len < page ? n - len : page;

		if (capture_memory(to + len, want, from + len))
			return -EFAULT;
		for (__u64 i = len; i < len + want; i++)
			if (!to[i])
				return (long)i + 1;
		len += want;
	}
	to[n - 1] = '\0';
	return (long)n;
}

/* Returns whether the bytes can be loaded directly because they are in the page of the call's return
 * address, which is below f->sp. Launch configurations usually are in this page, because the caller
 * has them on its stack. Nothing is known about other pages: a pointer can be wrong, and CUDA may
 * refuse the call without reading what it points to. */
static bool is_near_stack(const struct hooks_call *f, __u64 from, __u64 n)
{
	return from >= f->sp && from + n > from &&
	       (from + n - 1) / PAGE == (f->sp - sizeof(__u64)) / PAGE;
}

/* Word by word: gcc would make a call of memcpy(). */
static void load(char *to, __u64 n, __u64 from)
{
	__u64 i = 0;

	for (; i + 8 <= n; i += 8)
		*(volatile __u64 *)(to + i) = *(const __u64 *)(from + i);
	for (; i < n; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
}

static int read_bytes(const struct hooks_call *f, const struct ct_read *r, void *to, __u64 n,
		      __u64 from)
{
	if ((r->when == CT_AT_RETURN && n <= 8 && !(r->from & CT_FROM_READ)) ||
	    is_near_stack(f, from, n)) {
		load(to, n, from);
		return 0;
	}
	return capture_memory(to, n, from);
}

#define specs capture_specs
#define frame hooks_call
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline static __attribute__((noinline))
#define BOUND(x, max)                \
	do {                         \
		if ((x) > (max))     \
			(x) = (max); \
	} while (0)
#define READS_BYTES(f, r, to, n, from) read_bytes(f, r, to, n, from)
#define READS_STRING(to, n, from) read_string(to, n, from)
#define READS_OWN(to, n, from) (*(to) = *(const __u64 *)(from))
#define READS_FAILED(func, i, from) ((void)0)
#define READS_SPEC const
#include "../../capture/reads.h"
#undef frame

/* ---- sending ---- */

/* Returns false if there is no room. Only a call is then counted as lost. A record that names
 * something is sent again, or is missing as it would be on the kernel side. */
static bool put(struct hooks_thread *t, const struct ct_hdr *h, __u64 size)
{
	return ring_put(t, self_ring, h, size);
}

/* The same rules as is_sent() and send_call() of bpf/state.bpf.h. Returns whether the call has a record. */
static bool send_call(struct hooks_thread *t, struct hooks_call *f)
{
	if (!(f->spec_flags & (CT_S_SHOWN | CT_S_ALWAYS) ||
	      (f->rec.depth && f->spec_flags & CT_S_NESTED)) ||
	    (config.count && !(f->spec_flags & (CT_S_ALWAYS | CT_S_NESTED))))
		return false;
	if (config.layers && f->len <= CT_PLAN_MAX) {
		f->data[f->len / 8] = f->scope;
		f->rec.h.flags |= CT_F_SCOPE;
		return capture_put(t, &f->rec.h, sizeof(f->rec) + f->len + 8);
	}
	return capture_put(t, &f->rec.h, sizeof(f->rec) + f->len);
}

/* For the other files that make records. */
__u64 capture_now(void)
{
	return now();
}
__u32 capture_process(void)
{
	return (__u32)own_pid;
}
void capture_reads(struct hooks_call *f, __u32 func, __u32 when)
{
	do_reads(f, func, when);
}
HOOK_WAY(8) bool capture_put(struct hooks_thread *t, const struct ct_hdr *h, __u64 size)
{
	if (put(t, h, size))
		return true;
	ring_add(&t->lost, 1);
	return false;
}

/* Returns whether the call is only counted and not sent. */
static bool is_counted(const struct hooks_call *f)
{
	return config.count && f->spec_flags & CT_S_SHOWN && !(f->rec.h.flags & CT_F_HIDDEN);
}

static const struct ct_spec *spec_of(const struct hooks_call *f)
{
	return &specs[f->rec.func & (CT_MAX_FUNCS - 1)];
}

static __cold void send_unfinished(struct hooks_thread *t, struct hooks_call *f, __u64 end)
{
	if (!f->owed)
		return;
	f->owed = 0;
	f->rec.h.flags |= CT_F_UNFINISHED;
	f->rec.h.end_ns = end > f->rec.h.start_ns ? end : f->rec.h.start_ns;
	if (is_counted(f)) {
		ring_add(&t->unfinished, 1);
		if (!config.filter.failed_only && !config.filter.succeeded_only)
			counts_call(t, f, spec_of(f), false, false);
	}
	send_call(t, f);
}

static __u32 block_number(const struct hooks_thread *t)
{
	return (__u32)((__u64)((const char *)t - (const char *)area - HOOKS_AREA_HEAD) /
		       hooks_block_bytes((__u32)self_ring));
}

/* Sends the stack of a call. The call's record follows it. Returns whether the stack is missing: that
 * counts only if the call has a record. */
static __cold bool send_stack(struct hooks_thread *t, const struct hooks_call *f,
			      const struct ct_spec *spec)
{
	bool missing, native = config.python_only != CT_PY_ALONE, any, calls = !is_sandboxed();

	if (!(spec->more & CT_S_STACK) || f->rec.h.flags & CT_F_HIDDEN || config.count)
		return false;
	missing = !calls && (native || python_is_set());
	if (calls && config.python && python_is_set()) {
		missing |= !python_send(t, block_number(t), f, self_ring, &any);
		native &= !any || config.python_only != CT_PY_FIRST;
	}
	if (calls && native)
		missing |= !stack_send(t, (__u32)(f - t->calls), self_ring, own_pid);
	return missing;
}

/* Sends the rest of a string that was cut off, in pieces. They are made in the thread's block,
 * because the stack is small. */
static __cold void send_more(struct hooks_thread *t, const struct hooks_call *f)
{
	struct ct_more *m = (struct ct_more *)t->more;
	__u64 ptr = f->cut_at;
	__u32 offset = f->cut_len;

	/* we are in a signal handler that interrupted this code */
	if (t->more_used)
		return;
	t->more_used = 1;
	for (int i = 0; i < CT_NAME_MAX / CT_MORE_PIECE;
	     i++, offset += CT_MORE_PIECE - 1, ptr += CT_MORE_PIECE - 1) {
		long n = read_string(m->bytes, CT_MORE_PIECE, ptr);

		if (n <= 0)
			break; /* the piece is missing, so the name stays cut off */
		m->h.kind = CT_MORE;
		m->h.flags = 0;
		m->h.lost = 0;
		m->h.pid = f->rec.h.pid;
		m->h.tid = f->rec.h.tid;
		m->h.start_ns = m->h.end_ns = f->rec.h.end_ns;
		m->func = f->rec.func;
		m->read = (__u8)f->cut_read;
		m->last = n < CT_MORE_PIECE;
		m->offset = offset;
		m->len = (__u32)(n - 1);
		m->pad = 0;
		put(t, &m->h, sizeof(t->more));
		if (m->last)
			break;
	}
	t->more_used = 0;
}

static void reads_whole(struct hooks_thread *t, struct hooks_call *f, __u32 when)
{
	bool whole = specs[f->rec.func].more & CT_S_WHOLE_NAME;

	f->cut_len = 0;
	do_reads(f, f->rec.func, when);
	if (whole && f->cut_len)
		send_more(t, f);
}

/* ---- threads ---- */

/*
 * A place of calls[] that is not taken has this sp, and the number 0. A signal handler may interrupt the two functions
 * at each instruction: its calls take the next place, or the same one, which they give back. If it leaves by a jump, the
 * place that stays taken has the call's sp, by which settle() finds it.
 */
#define NOWHERE (~0ULL)
static void take_place(struct hooks_thread *t, __u32 d, __u64 sp)
{
	struct hooks_call *f = &t->calls[d];

	__atomic_store_n(&f->sp, sp, __ATOMIC_RELAXED);
	__atomic_store_n(&t->depth, d + 1, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&f->sp, sp, __ATOMIC_RELAXED);
}

/* The place d is free, and all above it. */
static void give_place(struct hooks_thread *t, __u32 d)
{
	__atomic_store_n(&t->calls[d].number, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&t->depth, d, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&t->calls[d].sp, NOWHERE, __ATOMIC_RELAXED);
}

/* Takes one of `blocks` blocks for a thread. At most look_at of them are checked. Makes no system call. */
static __cold struct hooks_thread *take_one_of(__u32 blocks, __u32 from, __u32 look_at, __u32 tid)
{
	__u32 ring = (__u32)ring_bytes;

	for (__u32 n = 0; n < look_at && n < blocks; n++) {
		__u32 i = (from + n) % blocks, none = HOOKS_FREE;
		struct hooks_thread *t = hooks_block(area, i, ring);

		if (__atomic_load_n(&t->owner, __ATOMIC_RELAXED) != HOOKS_FREE ||
		    !__atomic_compare_exchange_n(&t->owner, &none, HOOKS_USED, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&hint, i + 1, __ATOMIC_RELAXED);
		for (__u32 had = __atomic_load_n(&area->blocks, __ATOMIC_RELAXED); had <= i;)
			if (__atomic_compare_exchange_n(&area->blocks, &had, i + 1, 0,
							__ATOMIC_RELEASE, __ATOMIC_RELAXED))
				break;
		for (__u32 k = CT_MAX_FRAMES; k > 0; k--)
			give_place(t, k - 1);
		layers_begin(t);
		if (config.count)
			counts_begin(t, i);
		t->renames = __atomic_load_n(&renames, __ATOMIC_RELAXED);
		__atomic_store_n(&t->tid, tid, __ATOMIC_RELEASE);
		return t;
	}
	return NULL;
}

/* Blocks that were given back are taken first, if one is found quickly, because their memory is
 * already present. */
static __cold struct hooks_thread *take_block(void)
{
	__u32 n = reach_blocks(), from = __atomic_load_n(&hint, __ATOMIC_RELAXED),
	      tid = (__u32)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
	struct hooks_thread *t;

	for (;;) {
		t = take_one_of(n, from, LOOK_AT, tid);
		if (t)
			return t;
		if (reach_more_blocks(n + 1))
			return take_one_of(n, 0, n, tid);
		from = n++;
	}
}

/* The same in a sandbox: one that is accessible, and the engine knows the thread. */
static __cold struct hooks_thread *take_ready_block(void)
{
	const struct hook_thread *e = hook_self();
	__u32 n = reach_blocks();

	return e ? take_one_of(n, 0, n, e->tid) : NULL;
}

/* Sends the thread's name: before the thread's first call, and before the first one after a thread
 * was renamed. */
static __cold void tell_name(struct hooks_thread *t)
{
	struct ct_thread_name n;

	t->renames = __atomic_load_n(&renames, __ATOMIC_RELAXED);
	if (is_sandboxed())
		return;
	n.h.kind = CT_THREAD_NAME;
	n.h.flags = 0;
	n.h.lost = 0;
	n.h.pid = (__u32)own_pid;
	n.h.tid = t->tid;
	n.h.start_ns = n.h.end_ns = now();
	if (!sys_call(SYS_prctl, PR_GET_NAME, (long)n.comm, 0, 0, 0, 0) && !put(t, &n.h, sizeof(n)))
		t->renames--; /* so that it is tried again before the next call */
}

/* part: the call is a part of another one, which was counted if the thread has no block. */
static __cold struct hooks_thread *thread_get(bool part)
{
	struct hooks_thread *t;

	if (self && self_generation == generation)
		return self;
	t = is_sandboxed() ? take_ready_block() : take_block();
	/* a signal handler that ran in between has already taken a block for the thread */
	if (t && self && self_generation == generation) {
		t->tid = 0;
		__atomic_store_n(&t->owner, HOOKS_FREE, __ATOMIC_RELEASE);
		return self;
	}
	self_ring = ring_bytes;
	self = t;
	self_generation = generation;
	if (!t && !part)
		__atomic_fetch_add(&area->no_block, 1, __ATOMIC_RELAXED);
	else if (t && t->tid != (__u32)own_pid)
		tell_name(t);
	return t;
}

/* ---- the calls under way ---- */

static bool is_under_way(const struct hooks_call *f)
{
	const struct hook_frame *frame = (const struct hook_frame *)f->frame;

	return frame->number == f->number && hook_is_under_way(frame);
}

/* Does entry() or leave() of the call run, or has a signal handler left it by a jump? */
static bool is_busy(const struct hooks_call *f)
{
	const struct hook_frame *frame = (const struct hook_frame *)f->frame;

	return !f->number || (frame->number == f->number && hook_is_busy(frame));
}

/* Drops calls that have ended without a return that we saw. After this, the top call is the one
 * around the call that is entered at sp. */
static void settle(struct hooks_thread *t, __u64 sp)
{
	while (t->depth && t->depth <= CT_MAX_FRAMES) {
		struct hooks_call *f = &t->calls[t->depth - 1];

		bool busy = is_busy(f);

		/* A call that the interrupted code was about to fill in. But if a call is entered at
		 * the same place of the stack, a signal handler has left that code by a jump. */
		if (!(busy && f->sp == sp) && (!f->number || (f->sp >= sp && is_under_way(f))))
			return;
		if (busy && !f->owed) /* it has no record, or one that may not be complete */
			ring_add(&t->left, 1);
		/* the place is not reused until the call is sent: see enters() */
		f->number = 0;
		send_unfinished(t, f, now());
		give_place(t, t->depth - 1);
	}
}

HOOK_WAY(3) void capture_words(const struct hook_regs *r, __u64 *to, __u32 n)
{
	const __u64 *stack = hook_stack_args(r);

	for (__u32 i = 0; i < n; i++)
		to[i] = i < HOOK_ARGS ? r->args[i] : stack[i - HOOK_ARGS];
}

static inline void fill(struct hooks_thread *t, struct hooks_call *f, __u64 cookie, __u8 nwords,
			__u8 spec_flags, __u32 depth)
{
	f->len = nwords * 8u;
	f->cookie = cookie;
	f->spec_flags = spec_flags;
	f->rec.h.size = 0;
	f->rec.h.kind = CT_CALL;
	f->rec.h.flags =
		(__u16)((CT_COOKIE_PER_THREAD(cookie) ? CT_F_PER_THREAD : 0) |
			(spec_flags & CT_S_SHOWN && (!depth || config.nested) ? 0 : CT_F_HIDDEN));
	f->rec.h.lost = 0;
	f->rec.h.pid = (__u32)own_pid;
	f->rec.h.tid = t->tid;
	f->rec.func = CT_COOKIE_FUNC(cookie);
	f->rec.nwords = nwords;
	f->rec.depth = (__u8)depth;
	f->rec.got = 0;
	f->rec.ret = 0;
	f->frees = 0;
	f->scope = 0;
}

/* The part of a call's entry in which the program's memory is read, and a record may be sent. A
 * call that is only counted needs neither. Returns whether the call's return is needed. */
static bool enters_on(struct hooks_thread *t, struct hooks_call *f, const struct ct_spec *spec)
{
	bool counts = config.count && !(spec->flags & (CT_S_ALWAYS | CT_S_NESTED));
	bool entry_only = config.no_return || spec->flags & CT_S_CALLBACK ||
			  spec->more & CT_S_ENTRY_ONLY;
	bool missing = false, sent = false;

	if (!counts || !config.no_return)
		f->rec.h.start_ns = f->rec.h.end_ns = now();
	if (spec->nentry && !counts)
		reads_whole(t, f, CT_AT_ENTRY);
	if (entry_only)
		missing = send_stack(t, f, spec);
	if (config.enter) {
		f->rec.h.kind = CT_ENTER;
		sent = send_call(t, f);
		f->rec.h.kind = CT_CALL;
	}
	if (entry_only) {
		f->rec.h.flags |= CT_F_NO_RETURN;
		if (is_counted(f))
			counts_call(t, f, spec, false, false);
		if (!config.enter)
			sent = send_call(t, f);
		if (missing && sent)
			ring_add(&t->no_stack, 1);
		return false;
	}
	if (config.memory && spec->memory_how == CT_MEMORY_FREES && !f->rec.depth && is_counted(f))
		counts_free_begins(f, spec);
	return true;
}

/* The same steps as enter() of bpf/capture.bpf.h. */
static bool enters(struct hooks_thread *t, const struct hook_frame *e, const struct hook_regs *r,
		   __u64 cookie, const struct ct_spec *spec)
{
	__u32 depth = 0, d;
	struct hooks_call *f;

	if (t->depth) {
		settle(t, e->sp);
		d = t->depth;
		if (d && d <= CT_MAX_FRAMES)
			depth = t->calls[d - 1].rec.depth +
				!(t->calls[d - 1].spec_flags & CT_S_INTERNAL);
		if (depth && !config.nested && !(spec->flags & CT_S_ALWAYS) &&
		    !(spec->flags & CT_S_NESTED && area->inner)) {
			ring_add(&t->folded, 1);
			return false;
		}
		if (d >= CT_MAX_FRAMES) {
			ring_add(&t->deep, 1);
			return false;
		}
	}
	/* take the place first: a signal handler that comes in between uses the next place, and
	 * gives it back. The number is 0, as in each place that is not taken. */
	d = t->depth;
	f = &t->calls[d];
	take_place(t, d, e->sp);
	f->owed = 0;
	f->ip = e->ip;
	capture_words(r, f->data, spec->nwords);
	if (e->flags & HOOK_REGS)
		ring_copy(f->regs, hook_kept_regs(r), sizeof(f->regs));
	if (spec->more & CT_S_FORGETS)
		ring_add(&t->forgets, 1);
	if (config.filter.min_size_bytes && spec->flags & CT_S_MATCH_SIZE &&
	    f->data[spec->size_word & (CT_MAX_WORDS - 1)] < config.filter.min_size_bytes) {
		give_place(t, d);
		ring_add(&t->filtered, 1);
		return false;
	}
	fill(t, f, cookie, spec->nwords, spec->flags, depth);
	if (config.layers)
		f->scope = layers_around(t, f->sp);
	if (!enters_on(t, f, spec)) {
		give_place(t, d);
		return false;
	}
	f->frame = (__u64)e;
	f->number = e->number;
	__atomic_store_n(&f->owed, 1, __ATOMIC_RELEASE);
	return true;
}

/* ---- calls that are only counted ---- */

_Static_assert(HOOKS_MUTED + 1 == HOOK_COUNTS, "the engine's counts");

/* Sets where the thread's calls are counted. Calls inside a recorded call are counted separately,
 * because they would be folded into it. */
HOOK_WAY(4) static void point_counts(struct hooks_thread *t, struct hook_thread *e)
{
	__u32 d = t->depth;
	const struct hooks_call *f = d && d <= CT_MAX_FRAMES ? &t->calls[d - 1] : NULL;
	bool inside = f && f->rec.depth + !(f->spec_flags & CT_S_INTERNAL) && !config.nested;

	hook_count_into(e, inside ? t->muted_inside : t->muted);
}

void capture_counts(struct hook_thread *e)
{
	struct hooks_thread *t;

	if (!*alive || area->phase != CT_PHASE_RUNNING)
		return;
	t = thread_get(false);
	if (t)
		point_counts(t, e);
}

void capture_mutes(void)
{
	mutes = true;
}

/* Called when the number of a thread's calls that are under way has changed. */
HOOK_WAY(4) static void depth_changed(struct hooks_thread *t)
{
	struct hook_thread *e = mutes ? hook_self() : NULL;

	if (e)
		point_counts(t, e);
}

/* For calls that do not take the short way. */
static __cold bool enters_somehow(struct hook_frame *e, const struct hook_regs *r, __u64 cookie)
{
	bool wanted, part = hook_is_part(e->flags, e->ra);

	__u32 func = CT_COOKIE_FUNC(cookie);
	const struct ct_spec *spec = &specs[func & (CT_MAX_FUNCS - 1)];
	struct hooks_thread *t;

	if (!*alive || area->phase != CT_PHASE_RUNNING || func >= CT_MAX_FUNCS)
		return false;
	/* a part of a call for which there was no place, while there is one now */
	if (part && (!self || self_generation != generation) &&
	    __atomic_load_n(&area->no_block, __ATOMIC_RELAXED))
		return false;
	t = thread_get(part);
	if (t && t->renames != __atomic_load_n(&renames, __ATOMIC_RELAXED))
		tell_name(t);
	if (t && spec->layer)
		return layers_enter(t, e, r, cookie, spec);
	if (!t)
		return false;
	wanted = enters(t, e, r, cookie, spec);
	depth_changed(t);
	return wanted;
}

/* The same steps as those of enters(), for a call that is not inside another one. */
static inline void enters_quickly(struct hooks_thread *t, const struct hook_frame *e,
				  const struct hook_regs *r, __u64 cookie, struct quick spec)
{
	struct hooks_call *f = &t->calls[0];

	ring_expect(t, self_ring, sizeof(f->rec) + spec.nwords * 8u);
	take_place(t, 0, e->sp);
	f->owed = 0;
	f->ip = e->ip;
	capture_words(r, f->data, spec.nwords);
	fill(t, f, cookie, spec.nwords, spec.flags, 0);
	f->rec.h.start_ns = f->rec.h.end_ns = now();
	f->frame = (__u64)e;
	f->number = e->number;
	__atomic_store_n(&f->owed, 1, __ATOMIC_RELEASE);
	depth_changed(t);
}

HOOK_WAY(3) bool capture_enters(struct hook_frame *e, const struct hook_regs *r, __u64 cookie)
{
	struct quick spec = quick_specs[CT_COOKIE_FUNC(cookie) & (CT_MAX_FUNCS - 1)];
	struct hooks_thread *t = self;

	if (!likely(quick && spec.is && *alive && area->phase == CT_PHASE_RUNNING &&
		    CT_COOKIE_FUNC(cookie) < CT_MAX_FUNCS && t && self_generation == generation &&
		    !t->depth && t->renames == __atomic_load_n(&renames, __ATOMIC_RELAXED)))
		return enters_somehow(e, r, cookie);
	enters_quickly(t, e, r, cookie, spec);
	return true;
}

void capture_missed(__u64 cookie, enum hook_miss why)
{
	__u32 func = CT_COOKIE_FUNC(cookie);
	__u64 *counter;

	if (!*alive || area->phase != CT_PHASE_RUNNING || func >= CT_MAX_FUNCS)
		return;
	counter = specs[func].layer	     ? &area->scopes_dropped
		  : why == HOOK_MISS_DEEP    ? &area->too_deep
		  : why == HOOK_MISS_THREADS ? &area->no_block
					     : &area->left;
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static bool is_wanted(const struct hooks_call *f, bool bad)
{
	return !(config.filter.failed_only && !bad) && !(config.filter.succeeded_only && bad) &&
	       !(min_ticks && f->rec.h.end_ns - f->rec.h.start_ns < min_ticks);
}

static void leaves(struct hooks_thread *t, struct hooks_call *f)
{
	const struct ct_spec *spec = spec_of(f);
	bool failed = spec->flags & CT_S_ERROR && (__u32)f->rec.ret;
	bool bad = failed && !(spec->flags & CT_S_NOT_READY && (__u32)f->rec.ret == NOT_READY);
	bool wanted = is_wanted(f, bad), missing;

	if (wanted && is_counted(f))
		counts_call(t, f, spec, bad, true);
	/* calls that name kernels are always needed, even if they are not shown */
	if (!(spec->flags & CT_S_ALWAYS)) {
		if (!wanted)
			ring_add(&t->filtered, 1);
		if (!wanted || config.count)
			return;
	}
	if (!failed && spec->nreads > spec->nentry)
		reads_whole(t, f, CT_AT_RETURN);
	missing = send_stack(t, f, spec);
	if (send_call(t, f) && missing)
		ring_add(&t->no_stack, 1);
}

/* For calls that do not take the short way. */
static __cold bool leaves_somehow(struct hook_frame *e, __u64 cookie, __u64 result, __u64 end)
{
	const struct ct_spec *spec = &specs[CT_COOKIE_FUNC(cookie) & (CT_MAX_FUNCS - 1)];
	struct hooks_thread *t = self;
	struct hooks_call *f = NULL;
	__u32 d;

	if (!*alive || !t || self_generation != generation ||
	    (area->phase != CT_PHASE_RUNNING && area->phase != CT_PHASE_CLOSING))
		return false;
	if (spec->layer)
		return layers_leave(t, e, cookie, spec, result) && config.stop_on_map &&
		       !is_sandboxed();
	for (d = t->depth; d && d <= CT_MAX_FRAMES; d--) {
		f = &t->calls[d - 1];
		if (f->number == e->number)
			break;
	}
	if (!d || d > CT_MAX_FRAMES)
		return false;
	/* calls that began inside this one and did not return were jumped over */
	for (__u32 above = t->depth; above > d; above--) {
		t->calls[above - 1].number = 0;
		send_unfinished(t, &t->calls[above - 1], end);
		t->calls[above - 1].sp = NOWHERE;
	}
	if (f->owed) {
		f->owed = 0;
		f->rec.ret = (__s64)result;
		f->rec.h.end_ns = end;
		leaves(t, f);
	}
	give_place(t, d - 1);
	depth_changed(t);
	return false;
}

/* The same steps as those of leaves_somehow() and leaves(), for the only call of the thread. */
static inline void leaves_quickly(struct hooks_thread *t, struct hooks_call *f, struct quick spec,
				  __u64 result, __u64 end)
{
	f->owed = 0;
	f->rec.ret = (__s64)result;
	f->rec.h.end_ns = end;
	if (spec.reads && !(spec.flags & CT_S_ERROR && (__u32)result))
		do_reads(f, f->rec.func, CT_AT_RETURN);
	capture_put(t, &f->rec.h, sizeof(f->rec) + f->len);
	give_place(t, 0);
	depth_changed(t);
}

HOOK_WAY(7) bool capture_leaves(struct hook_frame *e, __u64 cookie, __u64 result)
{
	struct quick spec = quick_specs[CT_COOKIE_FUNC(cookie) & (CT_MAX_FUNCS - 1)];
	__u64 end = now();
	struct hooks_thread *t = self;

	if (!likely(quick && spec.is && *alive && t && self_generation == generation &&
		    (area->phase == CT_PHASE_RUNNING || area->phase == CT_PHASE_CLOSING) &&
		    t->depth == 1 && t->calls[0].number == e->number && t->calls[0].owed))
		return leaves_somehow(e, cookie, result, end);
	leaves_quickly(t, &t->calls[0], spec, result, end);
	return false;
}

/* ---- the area ---- */

/* Returns whether enters_quickly() and leaves_quickly() do everything that this configuration
 * needs. */
static bool is_quick_config(const struct ct_config *c)
{
	return !c->count && !c->enter && !c->no_return && !c->layers && !c->memory &&
	       !c->filter.min_size_bytes && !c->filter.failed_only && !c->filter.succeeded_only &&
	       !min_ticks;
}

static struct quick quick_of(const struct ct_spec *s)
{
	return (struct quick){ s->nwords, s->flags,
			       s->flags & CT_S_SHOWN && !(s->flags & CT_S_CALLBACK) && !s->more &&
				       !s->nentry && !s->layer,
			       s->nreads != 0 };
}

void capture_spec(unsigned int row, const struct ct_spec *spec)
{
	struct ct_spec s = *spec;

	if (row >= CT_MAX_FUNCS || s.nwords > (s.layer ? CT_LAYER_WORDS : CT_MAX_WORDS) ||
	    s.nreads > CT_MAX_READS || s.nentry > s.nreads)
		return;
	specs[row] = s;
	quick_specs[row] = quick_of(&s);
}

static int make_alive(void)
{
	void *page;

	if (alive == &dead) {
		page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			return -ENOMEM;
		madvise(page, PAGE, MADV_WIPEONFORK);
		alive = page;
	}
	return 0;
}

int capture_open(int fd, const struct hooks_start *s)
{
	size_t bytes = hooks_area_bytes(s->threads, s->ring_bytes, s->cells);
	bool fixed = area && area_bytes >= bytes;
	void *at;
	int err;

	if (!s->threads || s->threads > HOOKS_THREADS_MAX || s->ring_bytes < PAGE ||
	    s->ring_bytes & (s->ring_bytes - 1) || s->cells > HOOKS_CELLS ||
	    s->cells % HOOKS_CHUNK || !s->cells != !s->config.count)
		return -EINVAL;
	if (make_alive())
		return -ENOMEM;
	/* this replaces the area of an earlier attach, to which a thread may still be writing */
	at = reach_map(fixed ? area : NULL, bytes, fd);
	if (at == MAP_FAILED)
		return -errno;
	fixed = fixed && at == area;
	/* much of the area is never touched, but a core dump would allocate all of it */
	madvise(at, bytes, MADV_DONTDUMP);
	err = reach_begin(at, s);
	if (err) {
		reach_map(NULL, 0, -1);
		if (!fixed)
			area_bytes = 0; /* the next one is not made at the former place */
		return err;
	}
	area = at;
	if (!fixed)
		area_bytes = bytes;
	threads_max = s->threads;
	ring_bytes = s->ring_bytes;
	min_ticks = s->min_ticks;
	flags = s->flags;
	config = s->config;
	mutes = false;
	own_pid = getpid();
	hint = 0;
	memset(capture_specs, 0, sizeof(capture_specs));
	memset(quick_specs, 0, sizeof(quick_specs));
	quick = is_quick_config(&config);
	if (config.count && counts_open(area, s, &config))
		return -ENOMEM;
	generation++;
	__atomic_store_n(alive, 1, __ATOMIC_RELEASE);
	return 0;
}

void capture_close(void)
{
	if (!area)
		return;
	*alive = 0;
	python_forget();
	/* the shared memory is unmapped; a thread that is still writing then writes to private
	 * pages that nobody reads; all else is given back */
	reach_map(NULL, 0, -1);
}

void capture_forget(void)
{
	capture_close();
}

void capture_fit(__u64 bytes)
{
	if (*alive)
		reach_fit(bytes);
}

void capture_sandboxed(bool calls)
{
	if (calls)
		reach_ahead();
	__atomic_store_n(&sandboxed, true, __ATOMIC_SEQ_CST);
}

bool capture_by_ticks(void)
{
	return flags & HOOKS_S_TSC;
}

void capture_interrupted(unsigned int functions)
{
	if (area)
		__atomic_store_n(&area->interrupted, functions, __ATOMIC_RELAXED);
}

void capture_gone(void)
{
	if (area)
		__atomic_store_n(&area->gone, now(), __ATOMIC_RELAXED);
}

void capture_in_vfork(void)
{
	if (area && !__atomic_load_n(&area->in_vfork, __ATOMIC_RELAXED))
		__atomic_store_n(&area->in_vfork, flags & HOOKS_S_TSC ? now() : 1,
				 __ATOMIC_RELAXED);
}

bool capture_is_sandboxed(void)
{
	return is_sandboxed();
}

__u64 capture_filters(void)
{
	return __atomic_load_n(__atomic_load_n(&filtered, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

bool capture_is_watched(void)
{
	return __atomic_load_n(&filtered, __ATOMIC_RELAXED) != &no_word;
}

void capture_watches(const __u64 *word)
{
	__atomic_store_n(&filtered, word ? word : &no_word, __ATOMIC_RELEASE);
}

void capture_renames(void)
{
	__atomic_fetch_add(&renames, 1, __ATOMIC_RELAXED);
}

/* The name of the main thread is also the name of the process, which the rows of other threads also
 * show. */
void capture_renamed(void)
{
	struct hooks_thread *t = NULL;

	if (*alive && area->phase == CT_PHASE_RUNNING)
		t = thread_get(false);
	if (t)
		tell_name(t);
}

bool capture_is_open(void)
{
	return *alive != 0;
}

struct hooks_area *capture_area(void)
{
	return area;
}
