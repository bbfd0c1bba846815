/* SPDX-License-Identifier: BSD-2-Clause */
/* nvtx_image.c - the object for NVTX 3 (hooks/nvtx.c), which is part of the binary. */
#include "nvtx_image.h"
#include "../../util/io/embed.h"

EMBED(nvtx_image, CT_NVTX_FILE);

void nvtx_image(struct agent_image *i)
{
	i->name = "nvtx";
	i->bytes = nvtx_image_begin;
	i->n = (size_t)(nvtx_image_end - nvtx_image_begin);
}
