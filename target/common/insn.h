/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * insn.h - decodes an x86-64 instruction as far as is needed to move the first instruction of a
 * function: its length, and which part of it depends on its address. It knows the instructions with
 * which compilers begin functions; everything else is refused, not guessed. tests/hooks/test_insn.c
 * compares it with Zydis.
 */
#ifndef CT_HOOKS_INSN_H
#define CT_HOOKS_INSN_H

#include <linux/types.h>
#include <stdbool.h>

enum insn_kind {
	INSN_UNKNOWN = 0, /* refused; len is not valid */
	/* does the same at any address, and continues with the next instruction */
	INSN_PLAIN,
	INSN_RELATIVE, /* the same as INSN_PLAIN after the 4 bytes at disp_at are corrected */
	INSN_BRANCH,   /* may continue elsewhere */
	INSN_END,      /* never continues with the next instruction: ret, jmp */
	INSN_TRAP,     /* int3 */
};

struct insn {
	enum insn_kind kind;
	__u8 len;
	__u8 disp_at; /* of INSN_RELATIVE: a displacement from the instruction's end */
	/* push of a register, or endbr64: no jump inside a function leads back to it */
	bool pushes;
	/* If the first byte is a REX prefix: the bits of it that the instruction ignores, which can
	 * therefore be changed. 0: there is no such prefix or bit. */
	__u8 rex_free;
};

/* Decodes the instruction at the start of n bytes (15 are enough for any instruction). */
struct insn insn_decode(const __u8 *bytes, unsigned int n);

#endif
