/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * emit_aarch64.h - the instructions that the engine writes: jumps, and the code that leads to
 * hooks_entry. At a function's begin x16 and x17 have no meaning, because the linker's own code may
 * have changed them.
 */
#ifndef CT_HOOKS_EMIT_AARCH64_H
#define CT_HOOKS_EMIT_AARCH64_H

#include <linux/types.h>
#include <stdint.h>
#include <string.h>

#include "hook.h"

#define EMIT_FILL 0 /* udf #0 */

/* Returns the number of bytes: PAD_BYTES. */
static inline unsigned int put_jump(__u8 *code, __u64 code_at, __u64 to)
{
	static const __u32 jump[] = {
		0x58000050, /* ldr x16, #8 */
		0xd61f0200, /* br x16 */
	};

	(void)code_at;
	memcpy(code, jump, 8);
	memcpy(code + 8, &to, 8);
	return 16;
}

/* mov w17, #number; jmp hooks_entry */
static inline unsigned int put_entry(__u8 *code, unsigned int number)
{
	const __u32 insns[] = {
		0xd503245f,		    /* bti c */
		0x52800011 | (number << 5), /* mov w17, #number */
	};
	void (*entry)(void) = hooks_entry;

	_Static_assert(HOOK_FUNCS <= 1 << 16, "the number is in one instruction");
	memcpy(code, insns, 8);
	return 8 + put_jump(code + 8, 0, (__u64)(uintptr_t)entry);
}

/* For calls that come from the linker's code, with the slot's address in x16: replaces the bits of
 * x16 from 32 to 47 by `high`, and jumps to the address in the word there. Writes PAD_BYTES bytes. */
static inline void put_jump_by_slot(__u8 *code, __u64 high)
{
	const __u32 insns[] = {
		0xaa1003f1,				  /* mov x17, x16 */
		0xf2c00011 | (__u32)(high & 0xffff) << 5, /* movk x17, #high, lsl #32 */
		0xf9400231,				  /* ldr x17, [x17] */
		0xd61f0220,				  /* br x17 */
	};

	memcpy(code, insns, sizeof(insns));
}

#endif
