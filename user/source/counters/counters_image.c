/* SPDX-License-Identifier: BSD-2-Clause */
/* counters_image.c - the counters' helper, a program that the assembler puts in here.
 * CT_COUNTERS_HELPER: its path. */
#include "counters_child.h"

__asm__(".section .rodata\n"
	".balign 64\n"
	".global counters_image_begin, counters_image_end\n"
	"counters_image_begin:\n"
	".incbin \"" CT_COUNTERS_HELPER "\"\n"
	"counters_image_end:\n"
	".previous\n");
