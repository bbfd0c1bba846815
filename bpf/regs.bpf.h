/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * regs.bpf.h - the user registers of a thread that an unwinder begins from. For each BPF object.
 */
#ifndef CT_REGS_BPF_H
#define CT_REGS_BPF_H

/* The part of a thread's registers that is read. On aarch64 all of them would not fit on the stack:
 * 512 bytes are all that the programs that call each other have together. */
#if defined(__TARGET_ARCH_x86)
#define user_part pt_regs
#define USER_PART_AT 0
#define USER_MODE(r) ((r)->cs == 0x33) /* __USER_CS: 64-bit code */
/* to: what has ip, sp, bp, lr and regs[10] */
#define COPY_USER_REGS(to, r)             \
	do {                              \
		(to)->ip = (r)->ip;       \
		(to)->sp = (r)->sp;       \
		(to)->bp = (r)->bp;       \
		(to)->regs[0] = (r)->bx;  \
		(to)->regs[1] = (r)->r12; \
		(to)->regs[2] = (r)->r13; \
		(to)->regs[3] = (r)->r14; \
		(to)->regs[4] = (r)->r15; \
	} while (0)
#else
struct user_part {
	__u64 regs[12]; /* x19 to x30 */
	__u64 sp, pc, pstate;
};
#define USER_PART_AT \
	(19 * 8) /* offsets in struct user_pt_regs, which is the first member of pt_regs */
#define USER_MODE(r) (!((r)->pstate & 0x1f)) /* PSR_MODE_EL0t, not AArch32's */
#define COPY_USER_REGS(to, r)                                                \
	do {                                                                 \
		(to)->ip = (r)->pc;                                          \
		(to)->sp = (r)->sp;                                          \
		(to)->bp = (r)->regs[29 - 19];                               \
		(to)->lr = (r)->regs[30 - 19];                               \
		__builtin_memcpy((to)->regs, (r)->regs, sizeof((to)->regs)); \
	} while (0)
#endif

#endif
