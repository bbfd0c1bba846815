/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_image.c - the object that comes into programs, which is part of the binary. */
#include "hooks_image.h"

__asm__(".section .rodata\n"
	".balign 16\n"
	".global hooks_image_begin, hooks_image_end\n"
	"hooks_image_begin:\n"
	".incbin \"" CT_HOOKS_FILE "\"\n"
	"hooks_image_end:\n"
	".previous\n");
extern const char hooks_image_begin[], hooks_image_end[];

void hooks_image(struct agent_image *i)
{
	i->name = "hooks";
	i->bytes = hooks_image_begin;
	i->n = (size_t)(hooks_image_end - hooks_image_begin);
}
