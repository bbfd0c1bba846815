/* SPDX-License-Identifier: BSD-2-Clause */
/* nvtx_image.h - the object that makes header-only NVTX 3 visible to probes (target/nvtx/nvtx.c). */
#ifndef CT_NVTX_IMAGE_H
#define CT_NVTX_IMAGE_H

#include "../agent/agent_file.h"

void nvtx_image(struct agent_image *);

#endif
