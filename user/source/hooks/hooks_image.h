/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_image.h - the object that comes into programs (target/hooks/). */
#ifndef CT_HOOKS_IMAGE_H
#define CT_HOOKS_IMAGE_H

#include "../agent/agent_file.h"

void hooks_image(struct agent_image *);

#endif
