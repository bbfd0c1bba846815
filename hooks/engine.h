/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.h - puts hooks on functions of the process that it is linked into, and takes them off,
 * while threads call these functions. docs/hooks.md has the method and why it is safe. It knows no
 * record, no ring, no socket and no function of CUDA.
 *
 * At each call of a hooked function entry() is called, and, if it wants so, leave() when the call
 * returns. Both run on the program's thread, with the program's vector registers in place and at
 * any place of the program: in signal handlers, between vfork and exec, on the small stack of a
 * coroutine, with any lock of the program held. So they, and all that they call,
 *   - are compiled with -mgeneral-regs-only (HOOKS_CFLAGS of hooks/Makefile.inc), and call no
 *     function of the C library, not even memcpy: it may use vector registers;
 *   - take no lock, allocate nothing, use less than 1 KiB of stack, and do not throw;
 *   - may be interrupted at each instruction by a signal whose handler makes hooked calls: entry()
 *     and leave() then run for these, with other frames, before the interrupted one goes on.
 *
 * engine_open(), _install(), _remove(), _check() and _close() are for one thread at a time (a
 * thread of the agent's): they take no lock for each other. They may allocate and use the C library.
 */
#ifndef CT_HOOKS_ENGINE_H
#define CT_HOOKS_ENGINE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define HOOK_THREADS 4096 /* threads at a time whose calls are recorded; the rest are counted */
#define HOOK_DEPTH 16	  /* hooked calls under way in one thread */
#define HOOK_FUNCS 8192	  /* functions over the life of the process */
#if defined(__x86_64__)
#define HOOK_ARGS 6
#else
#define HOOK_ARGS 8
#endif

/* Registers at a function's entry. */
struct hook_regs {
	__u64 args[HOOK_ARGS]; /* integer argument registers, in the order of the ABI */
	__u64 rax;	       /* x86-64: al is the number of vector registers of a variadic call */
	__u64 ra; /* x86-64: this word is the one on the stack; arguments there follow it */
};
static inline const __u64 *hook_stack_args(const struct hook_regs *r)
{
	return &r->ra + 1;
}

/*
 * A call under way, from entry() to leave(). It is the thread's; it is used again for another call
 * once leave() has returned, or the call was left without a return (longjmp, exception).
 */
#define HOOK_DATA 10
struct hook_frame {
	__u64 state;  /* the engine's */
	__u64 ra;     /* the engine's: where the call returns to, which may be code of ours */
	__u64 sp;     /* of the caller as the function sees it: it points to the return address */
	__u64 ip;     /* the return address in the program, whatever stands on the stack */
	__u32 id;     /* of the function, as given to engine_install() */
	__u32 flags;  /* HOOK_* as given to engine_install() */
	__u64 number; /* of the call in this thread, from 1 on: tells two uses of a frame apart */
	__u64 data[HOOK_DATA]; /* the consumer's; undefined at entry() */
};

/* A thread that has made a hooked call. */
struct hook_thread {
	__u32 tid;     /* in the process's own pid namespace */
	__u32 index;   /* below HOOK_THREADS; used again after the thread's end */
	__u64 data;    /* the consumer's, 0 at begin() */
	__u64 *counts; /* HOOK_COUNTS words, the consumer's, NULL at begin(); see HOOK_COUNT */
};

struct hook_ops {
	/* Returns whether leave() is wanted; for a function with HOOK_ENTRY_ONLY the answer does not
	 * count. The registers are to be read only. If it returns false the frame is not used further. */
	bool (*entry)(struct hook_frame *, const struct hook_regs *);
	/* result: rax (x0); what its upper bits hold beyond the function's type is undefined. */
	void (*leave)(struct hook_frame *, __u64 result);
	/*
	 * The call will not come to leave(): it was jumped over (by longjmp, an exception, the end
	 * of the thread in pthread_exit), or the hooks were taken off while it was under way. In the
	 * first case it is called on the thread, as entry() is, when a later hooked call or return finds
	 * it out, or never; in the second, by engine_remove() on the thread that calls this, while the
	 * call goes on. May be NULL.
	 */
	void (*left)(struct hook_frame *);
	/* At a thread's first hooked call, on this thread, before entry(). May be NULL. */
	void (*begin)(struct hook_thread *);
	/* The thread is gone, or, in engine_close(), is not looked at any more. On another thread, as
	 * entry() is or in engine_check(). May be NULL. */
	void (*ended)(struct hook_thread *);
};

/* Entry alone: the return address is not touched. */
#define HOOK_ENTRY_ONLY 0x1
/* Neither entry() nor leave(): one is added to hook_thread.counts[id], if id is below HOOK_COUNTS
 * and the thread has counts. */
#define HOOK_COUNT 0x2
#define HOOK_COUNTS 2048

struct hook_spec {
	__u64 address; /* of the function's first byte */
	__u64 size;    /* of the function in bytes; 0: not known */
	__u32 id;      /* the consumer's, handed to it in the frame */
	__u32 flags;   /* HOOK_* */
	/* The first bytes as the file has them: where memory differs, somebody else has written
	 * there. nfile: 0 (not known) to 16. */
	__u8 nfile;
	__u8 file[16];
	__u8 pad[7];
};

/* What became of a function. */
enum hook_result {
	HOOK_ON = 0,	 /* it is hooked; also if it was before, with the new id and flags */
	HOOK_NO_MEMORY,	 /* none to be had, or HOOK_FUNCS reached */
	HOOK_NOT_CODE,	 /* no executable mapping there */
	HOOK_DIFFERS,	 /* the bytes are not those of the file */
	HOOK_BREAKPOINT, /* int3: a uprobe or a debugger has been there before */
	HOOK_UNKNOWN,	 /* the first instruction is not understood */
	HOOK_BRANCH,	 /* the first instruction is a jump, a call or a return */
	HOOK_FAR,	 /* the first instruction is relative to %rip, and no room is near enough */
	HOOK_SHORT,	 /* the function has less than five bytes */
	HOOK_LOOP,	 /* the function jumps to its own first instruction */
	HOOK_ZONE,	 /* where the jump would land, something else is mapped */
	HOOK_SHADOW,	 /* shadow stacks (CET) are in use: for all functions */
	HOOK_NO_WRITE,	 /* the process may not write to its code through /proc/self/mem */
	HOOK_RESULTS
};
/* A sentence's end, as "something else is mapped where its jump would land". */
const char *hook_result_text(enum hook_result);

/* Before all else; ops stay the caller's and are used until engine_close(). 0 or -errno:
 * -ENOTSUP: shadow stacks are in use, or this processor is not supported. */
int engine_open(const struct hook_ops *);

/*
 * Puts hooks on n functions: results[i] says what became of specs[i]. From its return on, each
 * call that begins is seen, on all cores. Nobody is stopped, and a thread may be anywhere in the
 * functions meanwhile. May be called again, for more functions or the same ones. Returns the number
 * that are on, or -errno if it could not even begin.
 */
int engine_install(const struct hook_spec *specs, unsigned int n, enum hook_result *results);

/* Takes single functions off (by address). A call under way comes to leave() all the same. */
int engine_uninstall(const __u64 *addresses, unsigned int n);

/*
 * Takes all hooks off: the bytes are the original ones again, nobody's return address is ours any
 * more if it could be put back, and entry(), leave() are called no more once it has returned, but
 * for threads that are inside of them at this moment. Calls under way come to left().
 */
struct hook_leftover {
	__u32 foreign;	  /* functions whose first byte is another tracer's now: left as they are */
	__u32 gone;	  /* functions whose library was unmapped meanwhile */
	__u32 put_back;	  /* return addresses put back */
	__u32 inside;	  /* calls under way whose return address could not be put back: they return
			 * through the engine, which must stay mapped */
	__u64 kept_bytes; /* of memory that stays mapped: a thread may stand in it for as long as it
			   * is not scheduled. The next engine_install() uses it again. */
};
int engine_remove(struct hook_leftover *);

/*
 * Once a second: looks at the first byte of each hooked function. Another tracer's uprobe that
 * came and went has put the file's byte back, and the hook off: it is put on again and counted. Makes
 * room for new threads, and takes back that of threads that are gone.
 */
struct hook_state {
	__u32 on;      /* functions whose hook is in place */
	__u32 foreign; /* that have another tracer's int3 in its place now: their calls are not seen */
	__u32 rewritten; /* times that a hook was put on again, since engine_open() */
	__u32 gone;	 /* functions whose library was unmapped */
	__u32 threads;	 /* that have made hooked calls, and are not known to have ended */
	__u64 no_thread; /* calls not recorded, of threads beyond HOOK_THREADS, since engine_open() */
	__u64 too_deep; /* calls not recorded, beyond HOOK_DEPTH */
	__u64 left;	/* calls found to have been jumped over */
};
int engine_check(struct hook_state *);

/* Removes the hooks if that was not done. What is mapped stays. */
void engine_close(void);

/* ---- for entry(), leave(), and others on the program's threads ---- */

/* Is this call still under way: its return address on the stack is ours? Of a frame of this thread. */
bool hook_is_under_way(const struct hook_frame *);

/* The hooked call that this one was made from, as far as the stack tells: the latest of this
 * thread that is under way and lies further up the stack, or, the same place, has jumped to this
 * function as its last act. NULL: there is none. A signal handler's call lies inside the one that
 * the signal interrupted; a coroutine's on a lower stack inside that of a higher one. */
struct hook_frame *hook_outer(const struct hook_frame *);

/* The caller's thread. NULL: it has made no hooked call yet. Costs a load or two. */
struct hook_thread *hook_self(void);

/* Calls that the caller itself makes in between are not seen: for the agent's own threads, and for
 * what calls the program's functions from inside. They nest. */
void hook_guard_enter(void);
void hook_guard_leave(void);

#endif
