/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call.c - what happens at the entry and at the return of a hooked function, on the program's
 * thread. The rules of engine.h for entry() and leave() hold here too: a signal may come between
 * any two instructions, and its handler may make hooked calls. engine_state.h says which states a frame
 * has.
 */
#include <errno.h>
#include <linux/types.h>
#include <sys/syscall.h>

#include "engine_state.h"

struct hot engine_hot[HOOK_FUNCS];
__thread uintptr_t hooks_top __attribute__((tls_model("initial-exec")));
__thread const struct counting *hooks_counting __attribute__((tls_model("initial-exec")));
static __thread unsigned int guards __attribute__((tls_model("initial-exec")));
struct call_losses call_losses;
__u64 call_probes_lo, call_probes_hi;
bool call_wants_probes;
static bool sandboxed; /* no system call is made that a sandbox may forbid */
static const __u64 no_word;
static const __u64 *filtered = &no_word; /* not 0: the same */

/* For the assembler: rax and rdx. */
struct onward {
	__u64 stub; /* the stub that calls the function; 0: the function is reached by a jump */
	__u64 go;
};
struct onward call_enter(struct hook_regs *, const struct hot *);
void call_leave(struct hook_frame *, __u64 result);

static void count(__u64 *what)
{
	__atomic_fetch_add(what, 1, __ATOMIC_RELAXED);
}

/* Returns the area of the thread whose first free frame is at `top`, or whose frames end there. */
static struct area *area_under(uintptr_t top)
{
	return area_of((const struct hook_frame *)(top - 1));
}

/* Returns whether the area is the calling thread's. */
static bool is_own(const struct area *a)
{
	uintptr_t top = hooks_top & ~(uintptr_t)GUARD_BIT;

	return top && area_under(top) == a;
}

/* ---- is a call still under way? ---- */

static bool same_page(__u64 a, __u64 b)
{
	return a / HOOK_PAGE == b / HOOK_PAGE;
}

void engine_sandboxed(void)
{
	__atomic_store_n(&sandboxed, true, __ATOMIC_RELAXED);
}

void engine_watches(const __u64 *word)
{
	__atomic_store_n(&filtered, word ? word : &no_word, __ATOMIC_RELEASE);
}

COLD bool call_is_sandboxed(void)
{
	return __atomic_load_n(&sandboxed, __ATOMIC_RELAXED) ||
	       __atomic_load_n(__atomic_load_n(&filtered, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* Copies memory of a stack that is not ours, and that may be unmapped at any time. Returns how many
 * bytes it has copied; 0: nothing is mapped there; -1: that is not known. */
static COLD long copy_foreign(void *to, __u64 from, __u64 n)
{
	long got = -EPERM;

	if (!call_is_sandboxed())
		got = sys_copy(to, from, n);
	return got > 0 ? got : got == -EFAULT ? 0 : -1;
}

/*
 * Reads the word at `address`, which was part of a stack when a call was made there. That stack may
 * have been unmapped since then (one of a coroutine, or of a thread that has ended). If all memory
 * from sp, our stack pointer, up to the word is mapped, and the call is one of our thread, the word
 * is on our stack, which stays mapped while we run. Returns 1, or as copy_foreign().
 */
#define NEAR_PAGES 16
static int peek(struct area *a, __u64 sp, __u64 address, __u64 *word)
{
	__u64 page = sp & ~(__u64)(HOOK_PAGE - 1),
	      end = (address & ~(__u64)(HOOK_PAGE - 1)) + HOOK_PAGE;

	if (address % 8)
		return 0;
	if (same_page(sp, address))
		goto there;
	if (address < sp || end - page > NEAR_PAGES * HOOK_PAGE || !is_own(a)) {
		long got = copy_foreign(word, address, sizeof(*word));

		return got > 0 ? got == sizeof(*word) : (int)got;
	}
	if (sp >= a->lo && address < a->hi)
		goto there;
	if (call_is_sandboxed())
		return -1;
	for (__u64 at = page + HOOK_PAGE; at < end; at += HOOK_PAGE)
		if (!sys_readable(at))
			return 0;
	a->hi = 0;
	barrier();
	a->lo = page;
	barrier();
	a->hi = end;
there:
	*word = *(const volatile __u64 *)address;
	return 1;
}

enum standing { UNDER_WAY, GONE, UNKNOWN };

#if !HOOK_RA_ON_STACK
#include "mark.h"
#endif

/* The state of the call of a frame that is not busy. sp: our stack pointer. */
static COLD enum standing stands(const struct hook_frame *f, __u64 state, __u64 sp)
{
	const struct hook_frame *g;
	__u64 word;
	int got;

#if !HOOK_RA_ON_STACK
	if (state && state != sp)
		return call_is_sandboxed() ? UNKNOWN : stands_elsewhere(f, state, sp);
#endif
	got = state ? peek(area_of(f), sp, state, &word) : 0;
	if (got <= 0)
		return got ? UNKNOWN : GONE;
	if (word == frame_mark(f))
		return UNDER_WAY;
	/* If the function has made a tail call of another hooked function, that one has its own
	 * mark there. */
	g = frame_marked(word);
	for (int i = 0; i < HOOK_DEPTH && g && area_of(g) == area_of(f);
	     i++, g = frame_marked(g->ra))
		if (g->number > f->number && g->ra == frame_mark(f))
			return UNDER_WAY;
	if (word >= call_probes_lo && word < call_probes_hi)
		return UNKNOWN;
	if (!call_probes_lo)
		call_wants_probes = true;
	return GONE;
}

bool call_claim_left(struct hook_frame *f)
{
	return !(__atomic_fetch_or(&f->flags, HOOK_LEFT, __ATOMIC_ACQ_REL) & HOOK_LEFT);
}

/* Returns false in a forked child, which has its parent's frames but must not touch its records. */
static bool is_here(void)
{
	return engine_live->here;
}

/* ---- frames ---- */

static void set_top(const struct hook_frame *f)
{
	barrier();
	hooks_top = (uintptr_t)f;
	barrier();
}

static COLD void drop(struct hook_frame *f)
{
	f->state = HOOK_BUSY;
	barrier();
	if (is_here() && call_claim_left(f)) {
		count(&call_losses.left);
		if (engine_ops->left)
			engine_ops->left(f);
	}
}

/*
 * Frees the frames below `top` whose calls were left without a return. A call further up the stack
 * is assumed to be under way. But if all frames are in use (all), each call is checked. Returns the
 * new top.
 */
static COLD struct hook_frame *settle(struct area *a, struct hook_frame *top, __u64 sp, bool all)
{
	while (top > area_frames(a)) {
		struct hook_frame *f = top - 1;
		__u64 state = f->state;

		if (state == HOOK_BUSY || (state > sp && !(all && HOOK_RA_ON_STACK)) ||
		    stands(f, state, sp) != GONE)
			break;
		drop(f);
		set_top(f);
		top = f;
	}
	return top;
}

/* Takes frame f, which is the first free one. */
static struct hook_frame *take_top(struct hook_frame *f)
{
	set_top(f + 1);
	return f;
}

/* Calls of coroutines do not end in the reverse order of their begins, so a frame between others
 * may be free. Takes such a frame. */
static COLD struct hook_frame *take_hole(struct area *a)
{
	struct hook_frame *f = area_frames(a);

	for (int i = 0; i < HOOK_DEPTH; i++) {
		__u64 free = 0;

		if (__atomic_compare_exchange_n(&f[i].state, &free, HOOK_BUSY, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return &f[i];
	}
	return NULL;
}

static COLD void miss(__u32 id, enum hook_miss why)
{
	count(why == HOOK_MISS_THREADS ? &call_losses.no_thread : &call_losses.too_deep);
	if (is_here() && engine_ops->missed)
		engine_ops->missed(id, why);
}

/* Returns why no frame of the area is free. Only code that runs now, or that was left by a jump, has
 * busy frames, and few frames belong to code that runs now. */
static COLD enum hook_miss why_full(struct area *a)
{
	int busy = 0;

	for (int i = 0; i < HOOK_DEPTH; i++)
		busy += area_frames(a)[i].state == HOOK_BUSY;
	return busy > HOOK_DEPTH / 2 ? HOOK_MISS_LEFT : HOOK_MISS_DEEP;
}

/* Takes a frame for a call of function id, when the short way has found no free frame, or is not
 * sure. part: the call is a part of another one, which was counted if it was missed. Returns NULL if there is
 * none. */
static COLD struct hook_frame *take_slowly(uintptr_t top, __u64 sp, __u32 id, bool part)
{
	struct hook_frame *f;
	struct area *a;

	if (top & GUARD_BIT) {
		/* we are in a signal handler that interrupted the code below, which gets an area */
		if (!guards)
			miss(id, HOOK_MISS_THREADS);
		return NULL;
	}
	if (!top) {
		/* A child of vfork() has its parent's thread-local words, and may be killed here. */
		if (!call_is_sandboxed() && !threads_is_here())
			return NULL;
		/* A signal handler must not take a second area for this thread. */
		hooks_top = GUARD_BIT;
		barrier();
		a = threads_get();
		if (!a) {
			hooks_top = 0;
			if (!part)
				miss(id, HOOK_MISS_THREADS);
			return NULL;
		}
		if (engine_ops->begin)
			engine_ops->begin(&a->thread);
		hooks_counting = &engine_counting[a->thread.index];
		return take_top(area_frames(a));
	}
	a = area_under(top);
	f = settle(a, (struct hook_frame *)top, sp, false);
	if (f == area_frames(a) + HOOK_DEPTH)
		f = settle(a, f, sp, true);
	if (f != area_frames(a) + HOOK_DEPTH)
		return take_top(f);
	f = take_hole(a);
	if (!f)
		miss(id, why_full(a));
	return f;
}

/* Frees a frame that is not the thread's latest one, or that belongs to another thread: the call
 * returned in a coroutine that another thread continued, or the calls after it were left. */
static COLD void release_slowly(struct hook_frame *f, __u64 sp)
{
	uintptr_t top = hooks_top & ~(uintptr_t)GUARD_BIT, guard = hooks_top & GUARD_BIT;
	struct area *a = area_of(f);

	/* With 0 here the frame's own thread finds that the call is over, and takes the frame again. */
	f->flags |= HOOK_LEFT;
	barrier();
	f->state = 0;
	if (!top || area_under(top) != a)
		return;
	while (top > (uintptr_t)area_frames(a)) {
		struct hook_frame *g = (struct hook_frame *)top - 1;
		__u64 state = g->state;

		if (state == HOOK_BUSY || (state && (g < f || stands(g, state, sp) != GONE)))
			break;
		if (state)
			drop(g);
		g->state = HOOK_BUSY;
		top = (uintptr_t)g;
		barrier();
		hooks_top = top | guard;
	}
}

static void release(struct hook_frame *f, __u64 sp)
{
	if (likely(hooks_top == (uintptr_t)(f + 1)))
		set_top(f);
	else
		release_slowly(f, sp);
}

/* ---- the two ends of a call ---- */

/* The hooks were taken off while entry() ran. Undoes what it has done. */
static COLD void undo(struct hook_frame *f, struct hook_regs *regs)
{
	f->state = HOOK_BUSY;
	barrier();
	regs->ra = f->ra;
	if (is_here() && call_claim_left(f) && engine_ops->left)
		engine_ops->left(f);
}

/* Counts a call that the function's stub could not count, because the thread had no counts yet.
 * Returns false if the call is not one that is only counted. */
static COLD bool count_alone(struct hook_thread *t, __u32 flags, __u64 ra)
{
	int in = HOOK_COUNTED_IN(flags);
	__u64 *counts;

	if (flags & HOOK_FOLDS && hook_is_within(ra))
		in = HOOK_FOLDED;
	else if (!(flags & HOOK_COUNT))
		return false;
	if (!t->counts && engine_ops->counts)
		engine_ops->counts(t);
	/* engine_forget_counts() may come at this moment */
	counts = __atomic_load_n(&t->counts, __ATOMIC_RELAXED);
	if (counts)
		counts[in]++;
	return true;
}

HOOK_WAY(3) void hook_count_into(struct hook_thread *t, __u64 *counts)
{
	set_counts(t, counts);
}

HOOK_WAY(1) struct onward call_enter(struct hook_regs *regs, const struct hot *hot)
{
	__u64 sp = (__u64)(uintptr_t)&regs->ra;
	struct onward away = { 0, hot->go };
	const struct hook_frame *outer;
	uintptr_t top = hooks_top;
	struct hook_frame *f = (struct hook_frame *)top;
	__u32 flags = hot->flags;

	if (unlikely(!engine_live->on))
		return away;
	if (unlikely((top & (AREA_FIRST | GUARD_BIT)) != AREA_FIRST || f[-1].state <= sp)) {
		f = take_slowly(top, sp, hot->id, hook_is_part(flags, regs->ra));
		if (!f)
			return away;
	} else {
		set_top(f + 1);
	}
	if (unlikely(flags & (HOOK_COUNT | HOOK_FOLDS)) &&
	    count_alone(&area_of(f)->thread, flags, regs->ra)) {
		release(f, sp);
		return away;
	}
	f->ra = f->ip = regs->ra;
	f->sp = sp;
	f->id = hot->id;
	f->flags = flags;
	f->number = ++area_of(f)->numbers;
	for (outer = frame_marked(f->ra); unlikely(outer); outer = frame_marked(outer->ra))
		f->ip = outer->ip;
	if (!engine_ops->entry(f, regs) || (flags & HOOK_ENTRY_ONLY)) {
		release(f, sp);
		return away;
	}
	regs->ra = frame_mark(f);
	barrier();
	f->state = sp;
	barrier();
	if (unlikely(!engine_live->on)) {
		undo(f, regs);
		release(f, sp);
		return away;
	}
	return (struct onward){ (__u64)(uintptr_t)f - HOOK_PART, hot->go };
}

/* Called at a call's return. f is busy, and the true return address is on the stack again. */
HOOK_WAY(5) void call_leave(struct hook_frame *f, __u64 result)
{
	if (likely(engine_live->on) && likely(!(f->flags & HOOK_LEFT)))
		engine_ops->leave(f, result);
	else if (is_here() && call_claim_left(f) && engine_ops->left)
		engine_ops->left(f); /* engine_remove() has found the frame busy */
	release(f, f->sp);
}

/* ---- for consumers ---- */

static __u64 here(void)
{
	return (__u64)(uintptr_t)__builtin_frame_address(0);
}

bool hook_is_under_way(const struct hook_frame *f)
{
	__u64 state = f->state;

	return state == HOOK_BUSY || (state && stands(f, state, here()) != GONE);
}

bool hook_is_busy(const struct hook_frame *f)
{
	return f->state == HOOK_BUSY;
}

bool call_is_led_to(const struct hook_frame *f)
{
#if HOOK_RA_ON_STACK
	return hook_is_under_way(f);
#else
	return hook_is_busy(f) || (f->state && has_mark_below(f, f->state));
#endif
}

struct hook_frame *hook_outer(const struct hook_frame *inner)
{
	struct hook_frame *f = area_frames(area_of(inner)), *end = f + HOOK_DEPTH, *outer = NULL;
	uintptr_t top = hooks_top & ~(uintptr_t)GUARD_BIT;

	if (top >= (uintptr_t)f && top <= (uintptr_t)end && inner < (struct hook_frame *)top)
		end = (struct hook_frame *)top;
	for (; f < end; f++) {
		__u64 state = f->state;

		/* A busy frame: the signal interrupted entry() or leave() of a call that has not
		 * begun, or is over. */
		if (state == HOOK_BUSY || state < inner->sp || f->number >= inner->number ||
		    (outer && (state > outer->state ||
			       (state == outer->state && f->number < outer->number))))
			continue;
		if (stands(f, state, inner->sp) != GONE)
			outer = f;
	}
	return outer;
}

#if !HOOK_RA_ON_STACK
__u64 hook_true_return(__u64 word)
{
	const struct hook_frame *f = frame_marked(word & ADDRESS_BITS);

	return f ? f->ip : word;
}
#endif

HOOK_WAY(3) struct hook_thread *hook_self(void)
{
	uintptr_t top = hooks_top & ~(uintptr_t)GUARD_BIT;

	return top ? &(area_under(top))->thread : NULL;
}

void hook_guard_enter(void)
{
	if (!guards++) {
		barrier();
		hooks_counting = NULL;
		hooks_top |= GUARD_BIT;
	}
	barrier();
}

void hook_guard_leave(void)
{
	barrier();
	if (!--guards) {
		struct hook_thread *t = hook_self();

		barrier();
		hooks_top &= ~(uintptr_t)GUARD_BIT;
		if (t)
			hooks_counting = &engine_counting[t->index];
	}
}
