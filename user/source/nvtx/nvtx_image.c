/* SPDX-License-Identifier: BSD-2-Clause */
/* nvtx_image.c - the object for NVTX 3 (hooks/nvtx.c), which is part of the binary. */
#include "nvtx_image.h"

__asm__(".section .rodata\n"
	".balign 16\n"
	".global nvtx_image_begin, nvtx_image_end\n"
	"nvtx_image_begin:\n"
	".incbin \"" CT_NVTX_FILE "\"\n"
	"nvtx_image_end:\n"
	".previous\n");
extern const char nvtx_image_begin[], nvtx_image_end[];

void nvtx_image(struct agent_image *i)
{
	i->name = "nvtx";
	i->bytes = nvtx_image_begin;
	i->n = (size_t)(nvtx_image_end - nvtx_image_begin);
}
