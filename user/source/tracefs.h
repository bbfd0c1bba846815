/* SPDX-License-Identifier: BSD-2-Clause */
/* tracefs.h - where the kernel describes its trace events. */
#ifndef CT_TRACEFS_H
#define CT_TRACEFS_H

#include "../util/types.h"

/* A descriptor of its root: where it is mounted, or of a mount of our own that has no place in the
 * file system and goes with its descriptor. Returns it or -errno. */
int tracefs_root(void);
bool tracefs_mounted(void);

#endif
