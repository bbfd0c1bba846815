/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_state.h - what the engine's parts share.
 *
 * A thread's frames are a stack in its area. hooks_top, a thread-local word, points to the first
 * free frame. Its bits below HOOK_PART are 0 if there is no free frame: the thread has no area yet
 * (0), or all frames are in use (the end of the part). GUARD_BIT: the thread's calls must not be
 * recorded.
 *
 * frame.state says what may be done with it:
 *	HOOK_BUSY	the frame is free, or its call is in entry() or leave(). Only the code that
 *			runs there may change this.
 *	an address	the call is under way. The word at this address is the address of the stub,
 *			until the call has returned or was left.
 * Frames that are not in use are HOOK_BUSY. A signal may come just after a frame was taken by
 * moving hooks_top. So its handler cannot mistake this frame for one of a call that was left.
 */
#ifndef CT_HOOKS_STATE_H
#define CT_HOOKS_STATE_H

#include <stdint.h>

#include "engine.h"
#include "area.h"
#include "../common/sys.h"

#define HOOK_BUSY (~0ULL)
#define HOOK_LEFT 0x80000000u /* in frame.flags: left() was called, or is running */
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
/* Keeps a function away from the code of the usual call, which should fit in a few cache lines. */
#define COLD __attribute__((cold, noinline))
/* The compiler moves no memory access across it. So a signal handler, or another core after a
 * membarrier, sees the writes before it first. (On aarch64 this is true for the handler, too.) */
#define barrier() __asm__ volatile("" ::: "memory")

/* The data about a function that the code at a hook needs. */
struct hot {
	__u64 go; /* code that has the same effect as the function */
	__u32 id, flags;
};
_Static_assert(offsetof(struct hot, id) == HOT_ID && offsetof(struct hot, flags) == HOT_FLAGS &&
		       sizeof(struct hot) == 16 && HOT_REGS_BIT == HOOK_REGS &&
		       1 << HOT_REGS_SHIFT == HOOK_REGS,
	       "the assembler's view");
extern struct hot engine_hot[HOOK_FUNCS];

/* A separate page that fork() sets to zero, so that the child writes no records into its parent's
 * memory. */
struct live {
	__u32 on;   /* 1: hooks record calls; 0: they only continue with the function */
	__u32 here; /* 1 in the process that opened the engine */
};
extern struct live *engine_live;
extern const struct hook_ops *engine_ops;

/*
 * The address of a thread's counts, for the code in stubs that only counts (stub_x86.c). There is
 * one for each area, in memory that fork() also sets to zero. NULL: that code leaves the call to
 * call_enter(). hooks_counting points to the one of the calling thread; it is NULL if the thread
 * must not count, or has no area yet. It must have no other initial value: glibc gives zeros in
 * place of initial values to a thread that is made while this object is loaded.
 */
struct counting {
	__u64 *counts;
	__u64 pad[7]; /* each thread has a cache line of its own */
};
extern struct counting *engine_counting; /* HOOK_AREAS of them */
extern __thread const struct counting *hooks_counting __attribute__((tls_model("initial-exec")));

/* The first part of a thread's data. */
struct area {
	struct hook_thread thread;
	__u64 numbers;
	__u64 lo, hi; /* addresses of a stack; all memory between them was found to be mapped */
};
_Static_assert(sizeof(struct area) <= AREA_FIRST - FRAME_SIZE, "and a frame that is always busy");
_Static_assert(sizeof(struct hook_frame) == FRAME_SIZE,
	       "stubs and frames lie at the same distance");
_Static_assert(HOOK_AREAS == HOOK_THREADS, "an area for each thread");
_Static_assert(AREA_FIRST + HOOK_DEPTH * FRAME_SIZE == HOOK_PART && HOOK_AREA == 2 * HOOK_PART,
	       "the frames end where the part does");

extern char hooks_region[] __attribute__((visibility("hidden")));
extern __thread uintptr_t hooks_top __attribute__((tls_model("initial-exec")));

/* Older dynamic loaders align an object's segments only to pages, so the region may begin later. */
static inline char *areas_begin(void)
{
	return (char *)(((uintptr_t)hooks_region + HOOK_PART - 1) & ~(uintptr_t)(HOOK_PART - 1));
}
static inline struct area *area_at(unsigned int i)
{
	return (struct area *)(areas_begin() + (size_t)i * HOOK_AREA + HOOK_PART);
}
static inline struct hook_frame *area_frames(struct area *a)
{
	return (struct hook_frame *)((char *)a + AREA_FIRST);
}
static inline struct area *area_of(const struct hook_frame *f)
{
	return (struct area *)((uintptr_t)f & ~(uintptr_t)(HOOK_PART - 1));
}
static inline void set_counts(struct hook_thread *t, __u64 *counts)
{
	t->counts = counts;
	engine_counting[t->index].counts = counts;
}
/*
 * On x86-64 a call has its return address on the stack, and frame.state is the address of that
 * word. On aarch64 calls have it in a register, and frame.state is the address of the word below
 * the caller's stack. The return address is in that word only during entry() and leave(); at other
 * times it is wherever the function keeps it.
 */
#if defined(__x86_64__)
#define HOOK_RA_ON_STACK 1
#else
#define HOOK_RA_ON_STACK 0
#endif

/* The word that replaces the return address. */
static inline __u64 frame_mark(const struct hook_frame *f)
{
	return (__u64)(uintptr_t)f - HOOK_PART + STUB_BACK;
}
/* Returns the frame that has this mark, or NULL. */
static inline struct hook_frame *frame_marked(__u64 word)
{
	uintptr_t at = (uintptr_t)word - STUB_BACK - (uintptr_t)areas_begin();

	if (at >= (uintptr_t)HOOK_AREAS * HOOK_AREA ||
	    (at & (HOOK_AREA - 1) & ~(uintptr_t)(AREA_FIRST - FRAME_SIZE)) != AREA_FIRST)
		return NULL;
	return (struct hook_frame *)((uintptr_t)word - STUB_BACK + HOOK_PART);
}

/* threads.c: areas for threads. Any thread may call threads_get(), at any place. */
bool threads_is_here(void);	/* returns whether this is the process that opened the engine */
struct area *threads_get(void); /* returns a cleared area for the caller, or NULL */
int threads_open(void);		/* returns 0 or -errno; also for a forked child */
void threads_top_up(void);	/* makes some areas ready */
void threads_fit(
	__u64 bytes); /* gives back the addresses of areas beyond so many bytes, if unused */
void threads_drop_gone(void); /* frees the areas of threads that have ended */
/* returns a number n: only areas below n may have, or have had, a thread */
unsigned int threads_used(void);
/* returns whether this area has a thread, or calls may still return through its frames */
bool threads_has(unsigned int i);
unsigned int threads_count(void);
void threads_end(void); /* tells the consumer that threads are not watched any more */

/* engine.c: returns whether shadow stacks (CET) are in use. Tests replace it, because few machines
 * have them. */
extern __u64 (*engine_shadow_stack)(void);

/* call.c */
extern struct call_losses {
	__u64 no_thread, too_deep, left;
} call_losses;
bool call_claim_left(struct hook_frame *);
/* Returns whether a return address on a stack still leads to this frame of a thread that has
 * ended. */
bool call_is_led_to(const struct hook_frame *);
/* May a system call of the program's threads kill them? */
bool call_is_sandboxed(void);
/* The kernel's page for return probes: return addresses that another tracer has replaced point
 * there. 0: none */
extern __u64 call_probes_lo, call_probes_hi;
/* a word was seen that may point there, so the mappings must be read again to find the page */
extern bool call_wants_probes;

/* entry_*.S */
void hooks_return(void) __attribute__((visibility("hidden")));

#endif
