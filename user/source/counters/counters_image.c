/* SPDX-License-Identifier: BSD-2-Clause */
/* counters_image.c - the counters' helper, a program that the assembler puts in here.
 * CT_COUNTERS_HELPER: its path. */
#include "counters_child.h"
#include "../../util/io/embed.h"

EMBED(counters_image, CT_COUNTERS_HELPER);
