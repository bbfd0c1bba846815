/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_image.c - the object that comes into programs, which is part of the binary. */
#include "hooks_image.h"
#include "../../util/io/embed.h"

EMBED(hooks_image, CT_HOOKS_FILE);

void hooks_image(struct agent_image *i)
{
	*i = (struct agent_image){ .name = "hooks",
				   .title = "the hooks",
				   .start = "cudatrace_hooks_start",
				   .bytes = hooks_image_begin,
				   .n = (size_t)(hooks_image_end - hooks_image_begin) };
}
