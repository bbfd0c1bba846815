/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hook.h - what a hook on a function shall do, and what came of putting it on: for the engine of the hooks, and for the agent's hooks
 * on functions of libcupti.
 */
#ifndef CT_HOOK_H
#define CT_HOOK_H

#include <linux/types.h>

#if defined(__x86_64__)
#define HOOK_ARGS 6
#else
#define HOOK_ARGS 8
#endif

/* Registers at a function's entry. */
struct hook_regs {
	__u64 args[HOOK_ARGS]; /* integer argument registers, in the order of the ABI */
	/* x86-64: rax, in which al is the number of vector registers of a variadic call; aarch64:
	 * x8, the address for a result in memory */
	__u64 rax;
	__u64 ra; /* return address, before the stack arguments; x86-64: it is on the stack */
};
static inline const __u64 *hook_stack_args(const struct hook_regs *r)
{
	return &r->ra + 1;
}
/* rbx, rbp, r12 to r15 (aarch64: x19 to x29) at the entry, for functions with HOOK_REGS. */
#if defined(__x86_64__)
#define HOOK_KEPT_REGS 6
#else
#define HOOK_KEPT_REGS 11
#endif
static inline const __u64 *hook_kept_regs(const struct hook_regs *r)
{
	return r->args - (HOOK_KEPT_REGS + HOOK_KEPT_REGS % 2);
}

/* Functions at a time, those of unmapped libraries not counted. A PyTorch program has 11 000: most of
 * its large libraries contain a runtime. The last HOOK_KEPT are only for functions with HOOK_FIRST,
 * whose libraries may be the last ones that are loaded. */
#define HOOK_FUNCS 18432
#define HOOK_KEPT 2048

/* Only entry() is called: the return address is not changed. */
#define HOOK_ENTRY_ONLY 0x1
/* Neither entry() nor leave() is called: the engine adds 1 to one of hook_thread.counts, if the thread has
 * counts. HOOK_COUNT_IN(i): to counts[i]; i is below HOOK_FOLDED. */
#define HOOK_COUNT 0x2
#define HOOK_COUNT_IN(i) (HOOK_COUNT | (__u32)(i) << 16)
#define HOOK_COUNTED_IN(flags) ((int)((flags) >> 16 & (HOOK_COUNTS - 1)))
#define HOOK_COUNTS 64
#define HOOK_FOLDED (HOOK_COUNTS - 1)
/* At entry(), hook_kept_regs() has the registers that functions preserve. */
#define HOOK_REGS 0x4
/* A call from code in engine_within is a part of what this code does: neither entry() nor leave()
 * is called, and 1 is added to counts[HOOK_FOLDED]. */
#define HOOK_FOLDS 0x8
/* engine_count() applies to this function. */
#define HOOK_COUNTABLE 0x10
/* It gets a hook also if there is no room for other functions. */
#define HOOK_FIRST 0x20

struct hook_spec {
	__u64 address; /* of the function's first byte */
	__u64 size;    /* of the function in bytes; 0: not known */
	__u32 id;      /* for the consumer, which gets it in the frame */
	__u32 flags;   /* HOOK_* */
	/* The function's first bytes in the file. If the bytes in memory differ, another program
	 * has changed them. nfile: 0 (not known) to 16. */
	__u8 nfile;
	__u8 file[16];
	__u8 pad[7];
};

/* The result of hooking a function. */
enum hook_result {
	/* it is hooked; if it was hooked before, it now has the new id and flags */
	HOOK_ON = 0,
	HOOK_NO_MEMORY,	 /* no memory, or already as many functions as there may be */
	HOOK_NOT_CODE,	 /* no executable mapping there */
	HOOK_DIFFERS,	 /* the bytes are not those of the file */
	HOOK_BREAKPOINT, /* there is already an int3 of a uprobe or a debugger */
	HOOK_UNKNOWN,	 /* the first instruction is not understood */
	HOOK_BRANCH,	 /* the first instruction is a jump, a call or a return */
	HOOK_FAR,	 /* the first instruction is relative to %rip, and no room is near enough */
	HOOK_SHORT,	 /* the function has less than five bytes */
	HOOK_LOOP,	 /* the function jumps to its own first instruction */
	HOOK_ZONE,	 /* something else is mapped where the jump would land */
	HOOK_SHADOW,	 /* shadow stacks (CET) are in use, so no function can be hooked */
	HOOK_NO_WRITE,	 /* the process may not write to its code through /proc/self/mem */
	/* it has no jump, but is hooked where other code calls it through the dynamic loader's
	 * slots (slots.h); calls by other ways are not seen */
	HOOK_PARTLY,
	HOOK_NO_JUMP, /* no function has a jump on this processor, and no slot leads to this one */
	HOOK_RESULTS
};

/* Where the code of each hook leads (entry_*.S of the engine, watch_*.S of the agent). */
void hooks_entry(void) __attribute__((visibility("hidden")));

#endif
