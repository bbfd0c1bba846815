/* SPDX-License-Identifier: BSD-2-Clause */
/* safe_open.h - opens a file for writing without being led elsewhere by another user, and gives
 * what is new to the user who called sudo. */
#ifndef CT_SAFE_OPEN_H
#define CT_SAFE_OPEN_H

#include <sys/stat.h>
#include <sys/types.h>

#include "../types.h"

/*
 * As open(2). In a folder that everybody may write to and only the owners may remove from, as
 * /tmp, what belongs neither to us nor to the folder's owner is not followed (symbolic links, at
 * any place of the path) and not written to (files, pipes), nor is a file that has another name
 * too: as fs.protected_symlinks, _regular, _fifos and _hardlinks of the kernel, but whatever
 * they are set to. Returns the descriptor, or -errno: -EACCES for these.
 *
 * Under sudo (root, with SUDO_UID and SUDO_GID of somebody else) a file that this call makes
 * belongs to the user who called sudo, if he may write to its folder. Else one message says how he
 * gets it: who may only run this program by sudo must not get a file of his own in a folder of root's.
 * Files that are there keep their owner; in a folder as /tmp the user's files are written to.
 */
int safe_open(const char *path, int flags, mode_t mode);
/* The same of a file that takes the place of another one, which was renamed or will be: in a
 * folder as /tmp it belongs to sudo's user only if that one did. NULL: there is none. */
int safe_open_instead(const char *path, const struct stat *old, int flags, mode_t mode);
/* Makes a new file (for reading and writing) or folder, which is to become `becomes`. The last
 * XXXXXX of the path, before `suffix` more bytes, is replaced by what no other name has. Its mode
 * follows the umask. `old` as above. Returns a descriptor of it, or -errno. */
int safe_new(char *path, size_t suffix, bool folder, const char *becomes, const struct stat *old);
/* The capability that this needs; 0: nobody has called sudo. */
uint64_t safe_open_caps(void);

#endif
