/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * insn.h - as much of x86-64's instructions as moving a function's first one takes: its length, and
 * what in it depends on where it stands. It knows the instructions that compilers begin functions
 * with; everything else is refused, not guessed. tests/hooks/test_insn.c compares it with Zydis.
 */
#ifndef CT_HOOKS_INSN_H
#define CT_HOOKS_INSN_H

#include <linux/types.h>
#include <stdbool.h>

enum insn_kind {
	INSN_UNKNOWN = 0, /* refused; len is not valid */
	INSN_PLAIN,	  /* does the same wherever it stands, and goes on behind itself */
	INSN_RELATIVE,	  /* as INSN_PLAIN once the 4 bytes at disp_at are corrected */
	INSN_BRANCH,	  /* may go on elsewhere */
	INSN_END,	  /* never goes on behind itself: ret, jmp */
	INSN_TRAP,	  /* int3 */
};

struct insn {
	enum insn_kind kind;
	__u8 len;
	__u8 disp_at; /* of INSN_RELATIVE: a displacement from the instruction's end */
	bool pushes; /* push of a register, or endbr64: nothing jumps back to it inside a function */
	/* The bits of a REX prefix that is the first byte, which mean nothing to the instruction:
	 * with any of them changed it is the same one. 0: there is no such prefix or bit. */
	__u8 rex_free;
};

/* The instruction at the start of n bytes (15 are enough for any). */
struct insn insn_decode(const __u8 *bytes, unsigned int n);

#endif
