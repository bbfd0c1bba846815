/* SPDX-License-Identifier: BSD-2-Clause */
/* nvtx_image.c - the object for NVTX 3 (target/nvtx/nvtx.c), which is part of the binary. */
#include "nvtx_image.h"
#include "../../util/io/embed.h"

EMBED(nvtx_image, CT_NVTX_FILE);

void nvtx_image(struct agent_image *i)
{
	*i = (struct agent_image){ .name = "nvtx",
				   .title = "the object",
				   .start = "cudatrace_nvtx_start",
				   .bytes = nvtx_image_begin,
				   .n = (size_t)(nvtx_image_end - nvtx_image_begin) };
}
