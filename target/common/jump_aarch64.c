/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jump_aarch64.c - there are no jumps on this processor. A thread may execute an instruction while
 * it is replaced only if both instructions are in a short list (branches, nop, brk and a few more),
 * and functions begin with other ones. So each function is hooked through slots (slots.h).
 */
#include <errno.h>
#include <string.h>

#include "jump.h"
#include "pads.h"

#define INSN_BRK 0xd4200000u
#define INSN_BRK_MASK 0xffe0001fu

void jump_begin(const struct text_maps *maps)
{
	pads_avoid(maps);
}

__u8 jump_byte(void)
{
	return 0;
}

__u64 jump_bytes(void)
{
	return pads_bytes();
}

void jump_release(void)
{
	pads_release();
}

void jump_spare(struct jump *j, const struct hook_spec *spec, unsigned int n)
{
	(void)j;
	(void)spec;
	(void)n;
}

void jump_free(const struct jump *j)
{
	(void)j;
}

enum hook_result jump_make(struct jump *j, const struct hook_spec *spec, unsigned int n)
{
	unsigned int nfile = spec->nfile < 16 ? spec->nfile : 16;
	__u32 first;
	__u8 bytes[16];

	(void)j;
	(void)n;
	if (text_look(spec->address, bytes, sizeof(bytes)))
		return HOOK_NOT_CODE;
	memcpy(&first, bytes, sizeof(first));
	if ((first & INSN_BRK_MASK) == INSN_BRK)
		return HOOK_BREAKPOINT;
	return memcmp(bytes, spec->file, nfile) ? HOOK_DIFFERS : HOOK_NO_JUMP;
}

/* Never writes anything: no function has a jump. */
int jump_write(const struct jump *j, bool on, __u8 *found)
{
	(void)j;
	(void)on;
	*found = 0;
	return -ENOTSUP;
}
