/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.h - puts hooks on functions of the process that it is linked into, and takes them off,
 * while threads call these functions. docs/hooks.md describes the method and why it is safe. The
 * engine knows no record, no ring, no socket and no function of CUDA.
 *
 * At each call of a hooked function the engine calls entry(), and, if entry() asked for it, leave()
 * when the call returns. Both run on the program's thread, with the program's values in the vector
 * registers, and at any place of the program: in signal handlers, between vfork and exec, on the
 * small stack of a coroutine, with any lock of the program held. So they, and all functions that
 * they call,
 *   - are compiled with -mgeneral-regs-only (HOOKS_CFLAGS of target/hooks/Makefile.inc), and call no
 *     function of the C library, not even memcpy: it may use vector registers;
 *   - take no lock, allocate nothing, use less than 1 KiB of stack, and do not throw;
 *   - may be interrupted at each instruction by a signal whose handler makes hooked calls: entry()
 *     and leave() then run for these calls, with other frames, before the interrupted one
 *     continues.
 *
 * engine_open(), _install(), _remove(), _check() and _close() are for one thread at a time (a
 * thread of ours), because they take no locks. They may allocate and use the C library.
 */
#ifndef CT_HOOKS_ENGINE_H
#define CT_HOOKS_ENGINE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "../common/hook.h"

/* The functions through which each recorded call goes are next to each other in memory, in the order
 * in which they are called: the program's own code has mostly driven them out of the caches. */
#define HOOK_WAY(n) __attribute__((section(".text.sorted." #n)))

#define HOOK_THREADS 4096 /* threads at a time whose calls can be recorded */
#define HOOK_DEPTH 64	  /* hooked calls under way in one thread */

/*
 * A call under way, from entry() to leave(). The frame belongs to the thread. It is reused for
 * another call after leave() has returned, or after the call was left without a return (longjmp,
 * exception).
 */
#define HOOK_DATA 10
struct hook_frame {
	__u64 state; /* used by the engine */
	/* used by the engine: the address to which the call returns, which may be in our code */
	__u64 ra;
	/* the stack pointer at the function's entry: it points to the return address (aarch64: 8 below it) */
	__u64 sp;
	__u64 ip;    /* the return address in the program, even if the stack holds another one */
	__u32 id;    /* of the function, as given to engine_install() */
	__u32 flags; /* HOOK_* as given to engine_install() */
	/* number of the call in this thread, from 1 on; two uses of a frame have different
	 * numbers */
	__u64 number;
	__u64 data[HOOK_DATA]; /* for the consumer; undefined at entry() */
};

/* A thread that has made a hooked call. */
struct hook_thread {
	__u32 tid;   /* in the process's own pid namespace */
	__u32 index; /* below HOOK_THREADS; used again after the thread's end */
	__u64 data;  /* for the consumer; 0 at begin() */
	/* HOOK_COUNTS words of the consumer; NULL at begin(); only hook_count_into() changes it */
	__u64 *counts;
};

/* Why a call is not recorded. */
enum hook_miss {
	HOOK_MISS_DEEP,	   /* it is nested deeper than HOOK_DEPTH */
	HOOK_MISS_THREADS, /* there are more than HOOK_THREADS threads */
	HOOK_MISS_LEFT	   /* most of the thread's frames belong to calls whose entry() or leave() a
			    * signal handler has left by a jump */
};

struct hook_ops {
	/* Returns whether leave() is wanted; ignored for a function with HOOK_ENTRY_ONLY. It must
	 * not change the registers. If it returns false, the frame is not used any more. */
	bool (*entry)(struct hook_frame *, const struct hook_regs *);
	/* result: rax (x0). If the function's type is narrower, the upper bits are undefined. */
	void (*leave)(struct hook_frame *, __u64 result);
	/*
	 * leave() will not be called for this call. Either the call was jumped over (by longjmp, an
	 * exception, or pthread_exit): then left() is called on the same thread, as entry() is,
	 * when a later hooked call or return detects it, or never. Or the hooks were taken off
	 * while the call was under way: then engine_remove() calls left() on its own thread, while
	 * the call continues. May be NULL.
	 */
	void (*left)(struct hook_frame *);
	/* At a thread's first hooked call, on this thread, before entry(). May be NULL. */
	void (*begin)(struct hook_thread *);
	/* The thread has ended, or engine_close() stops watching it. Called on another thread,
	 * either as entry() is or in engine_check(). May be NULL. */
	void (*ended)(struct hook_thread *);
	/* A call of the function with this id is not recorded. It is called as entry() is. May be
	 * NULL. */
	void (*missed)(__u32 id, enum hook_miss why);
	/* The thread calls a function with HOOK_COUNT and has no counts. The consumer may call
	 * hook_count_into() here. It is called as entry() is. May be NULL. */
	void (*counts)(struct hook_thread *);
};

/* The text of a result, to end a sentence with: "something else is mapped where its jump would
 * land". */
const char *hook_result_text(enum hook_result);

/* Call this first. The caller keeps ops, which are used until engine_close(). Returns 0 or -errno;
 * -ENOTSUP: shadow stacks are in use, or pages are larger than the engine's. */
int engine_open(const struct hook_ops *);

/* At the next engine_install() the slots of all objects are looked at once more. From then on it is called
 * when the loader has filled in the slots of what is mapped, until it is said that this is not so any more. */
void engine_search_again(void);
void engine_slots_late(void);
/*
 * Puts hooks on n functions; results[i] is the result for specs[i]. After it has returned, each new
 * call is seen, on all cores. No thread is stopped, and threads may be anywhere in the functions at
 * that time. It may be called again, for more functions or for the same ones. With n = 0 it only
 * hooks the slots of objects that were mapped since the last call. Returns the number of hooked
 * functions, or -errno if it could not start.
 */
int engine_install(const struct hook_spec *specs, unsigned int n, enum hook_result *results);

/* Gives that address space back, and the addresses for threads beyond so many bytes that no thread has used.
 * Later threads for which there are none left are not recorded. */
void engine_fit(__u64 bytes);

/* Returns how many functions that engine_install() had refused were hooked partly later, because an
 * object that calls them was mapped, or was bound to them, only then. */
unsigned int engine_hooked_late(void);

/* From now on, functions with HOOK_COUNTABLE for which (id of the function & mask) == id are only
 * counted (flags: HOOK_COUNT_IN()), or are recorded again (flags: 0). A thread that is at a hook at
 * this moment does one or the other. */
void engine_count(__u32 mask, __u32 id, __u32 flags);
/* From now on no system call is made at a hook that a sandbox may forbid. Then it is not known of some calls
 * whether they are still under way, and their frames are not used again. */
void engine_sandboxed(void);
/* The kernel sets this word when it is so; NULL: there is none. */
void engine_watches(const __u64 *word);
/* Takes the counts from all threads, because they point to memory of an earlier use. Only to be
 * called while no hooks are on. */
void engine_forget_counts(void);
/* From now on the calling thread counts in these HOOK_COUNTS words; NULL: it does not count. */
void hook_count_into(struct hook_thread *, __u64 *counts);
/* A range of code. Calls of functions with HOOK_FOLDS from there are a part of what this code does.
 * At first `bytes` is 0. */
struct hook_within {
	__u64 lo, bytes;
};
extern struct hook_within engine_within __attribute__((visibility("hidden")));
/* Where calls of functions with HOOK_FOLDS come from that are a part of others, whether any is counted or not:
 * in a thread without an area such a call is not missed by itself. */
void engine_runtime(__u64 lo, __u64 bytes);
extern struct hook_within engine_parts __attribute__((visibility("hidden")));
static inline bool hook_is_part(__u32 flags, __u64 ra)
{
	return flags & HOOK_FOLDS && ra - engine_parts.lo < engine_parts.bytes;
}
void engine_fold_within(__u64 lo, __u64 bytes);
static inline bool hook_is_within(__u64 ip)
{
	return ip - engine_within.lo < engine_within.bytes;
}

/* Takes the hooks off single functions (by address). leave() is still called for calls under
 * way. */
int engine_uninstall(const __u64 *addresses, unsigned int n);

/* From now on hooks only continue with the function, until engine_install() or engine_remove() is
 * called. Makes no system call. */
void engine_rest(void);

/*
 * Takes all hooks off: restores the original bytes, and restores the return addresses where
 * possible. After it has returned, entry() and leave() are not called any more, but a thread may
 * still be inside one of them at that moment. left() is called for the calls under way.
 */
struct hook_leftover {
	/* functions whose first byte now belongs to another tracer: they are not changed */
	__u32 foreign;
	__u32 gone; /* functions whose library was unmapped in the meantime */
	/* functions whose first byte could not be written: it stays changed until the next
	 * engine_remove() that can */
	__u32 stuck;
	__u32 put_back; /* restored return addresses */
	/* calls under way whose return address could not be restored: they return through the
	 * engine, which must stay mapped */
	__u32 inside;
	/* bytes of memory that stay mapped, because a thread that is not scheduled may have stopped
	 * there. The next engine_install() uses them again. */
	__u64 kept_bytes;
};
int engine_remove(struct hook_leftover *); /* or -errno: nothing could be written */

/*
 * Call this once a second. It looks at the first byte of each hooked function. If another tracer's
 * uprobe was there and is gone, it has restored the file's byte and so removed the hook: the hook
 * is put on again and counted. It also makes room for new threads, and frees the room of ended
 * threads.
 */
struct hook_state {
	__u32 on; /* functions whose hook is in place, those with HOOK_PARTLY too */
	/* functions that now have another tracer's int3 instead: their calls are not seen */
	__u32 foreign;
	__u32 rewritten; /* how often a hook was put on again since engine_open() */
	/* functions whose hook was found to be off, because of another tracer, since engine_open():
	 * calls of them were not seen for a time */
	__u32 interrupted;
	__u32 gone;    /* functions whose library was unmapped */
	__u32 threads; /* threads that have made hooked calls, and are not known to have ended */
	/* calls not recorded since engine_open(), because there were more than HOOK_THREADS
	 * threads */
	__u64 no_thread;
	__u64 too_deep; /* calls not recorded, because their thread had no free frame */
	__u64 left;	/* calls found to have been jumped over */
};
int engine_check(struct hook_state *);

/* Returns the same number as hook_state.interrupted, and includes what happened since
 * engine_check(). It changes nothing, and may be called in a signal handler, but not while another
 * function of this file runs. */
unsigned int engine_interrupted(void);

/* Removes the hooks if that was not done yet. The engine's memory stays mapped. */
void engine_close(void);

/* ---- for entry(), leave(), and others on the program's threads ---- */

/* Returns whether this call is still under way, that is, whether its return address on the stack is
 * still ours. Only for frames of the calling thread. */
bool hook_is_under_way(const struct hook_frame *);
/* Returns whether entry() or leave() of the frame's call is running, or was left by a jump. */
bool hook_is_busy(const struct hook_frame *);

/* Returns the hooked call from which this one was made, as far as the stack shows it, or NULL. It
 * is the latest call of this thread that is under way and is further up the stack, or that is at
 * the same place and made this one by a tail call. A signal handler's call counts as inside the
 * interrupted call. A coroutine's call on a lower stack counts as inside a call on a higher one. */
struct hook_frame *hook_outer(const struct hook_frame *);

/* aarch64: returns a word of a stack as it would be without hooks: if it is a return address that
 * leads into our code, the true return address in the program. */
__u64 hook_true_return(__u64 word);

/* Returns the calling thread's struct, or NULL if the thread has made no hooked call yet. This
 * costs one or two loads. */
struct hook_thread *hook_self(void);

/* Calls that the thread makes between hook_guard_enter() and hook_guard_leave() are not seen. This
 * is for our own threads, and for code of ours that calls the program's functions. The
 * pairs may be nested. */
void hook_guard_enter(void);
void hook_guard_leave(void);

#endif
