/* SPDX-License-Identifier: BSD-2-Clause */
/* safe_open.h - opens a file for writing without being led elsewhere by another user. */
#ifndef CT_SAFE_OPEN_H
#define CT_SAFE_OPEN_H

#include <sys/types.h>

/*
 * As open(2). In a folder that everybody may write to and only the owners may remove from, as
 * /tmp, what belongs neither to us nor to the folder's owner is not followed (symbolic links, at
 * any place of the path) and not written to (files, pipes), nor is a file that has another name
 * too: as fs.protected_symlinks, _regular, _fifos and _hardlinks of the kernel, but whatever
 * they are set to. Returns the descriptor, or -errno: -EACCES for these.
 */
int safe_open(const char *path, int flags, mode_t mode);

#endif
