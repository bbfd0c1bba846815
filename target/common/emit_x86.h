/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * emit_x86.h - the instructions that the engine writes: jumps, and the code that leads to
 * hooks_entry.
 */
#ifndef CT_HOOKS_EMIT_X86_H
#define CT_HOOKS_EMIT_X86_H

#include <linux/types.h>
#include <stdint.h>
#include <string.h>

#include "hook.h"

#define INSN_JMP 0xe9
#define INSN_JMP_SHORT 0xeb
#define INSN_TEST_AL 0xa8 /* followed by any byte, an instruction that only sets flags */
#define INSN_INT3 0xcc
#define JUMP_FAR 14 /* bytes of put_jump_far() */

/* Each returns the number of bytes. */
static inline unsigned int put_jump(__u8 *code, __u64 code_at, __u64 to)
{
	__s32 displacement = (__s32)(to - (code_at + 5));

	code[0] = INSN_JMP;
	memcpy(code + 1, &displacement, 4);
	return 5;
}

static inline unsigned int put_jump_far(__u8 *code, __u64 to)
{
	memcpy(code, "\xff\x25\0\0\0\0", 6); /* jmp *0(%rip) */
	memcpy(code + 6, &to, 8);
	return JUMP_FAR;
}

/* mov $number, %r11d; jmp hooks_entry */
static inline unsigned int put_entry(__u8 *code, unsigned int number)
{
	void (*entry)(void) = hooks_entry;

	memcpy(code, "\x41\xbb", 2);
	memcpy(code + 2, &number, 4);
	return 6 + put_jump_far(code + 6, (__u64)(uintptr_t)entry);
}

#endif
