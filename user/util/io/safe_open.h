/* SPDX-License-Identifier: BSD-2-Clause */
/* safe_open.h - opens a file for writing so that another user cannot redirect it, and gives new
 * files to the user who called sudo. */
#ifndef CT_SAFE_OPEN_H
#define CT_SAFE_OPEN_H

#include <limits.h>
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

/*
 * Where a path leads: a folder, by its descriptor, and a name in it. All that is done with this
 * struct concerns that folder, even if the path leads elsewhere later. Links are followed as above,
 * the last one too; a link that is put there later is not followed.
 */
struct safe_place {
	int dir; /* of O_PATH; below 0: none */
	char name[NAME_MAX + 1];
};
/* Returns 0, whether the name exists or not, or -errno; -ENXIO: the path leads to something
 * without a name, as /dev/stdout may. */
int safe_place_find(struct safe_place *, const char *path);
/* Says what is there. Returns 0 or -errno; -ENOENT: nothing is there. */
int safe_place_look(const struct safe_place *, struct stat *);
/* As safe_open(). `said`: the path, for a message. `old`: the file takes the place of another one,
 * which was renamed or will be: in a folder as /tmp it belongs to sudo's user only if that one did.
 * NULL: there is none. */
int safe_place_open(const struct safe_place *, const char *said, const struct stat *old, int flags,
		    mode_t mode);
/* Makes a new file (for reading and writing) or folder beside it, which is to take its place. Its
 * mode follows the umask. Returns a descriptor of it, and its place, whose folder is that of the
 * other, or -errno. */
int safe_place_new(const struct safe_place *, struct safe_place *made, bool folder,
		   const char *said, const struct stat *old);
/* Renames it in its folder; a file that has the name is replaced. Only a regular file or a folder is
 * moved, and only to a name that one of them has, or none: a device, a pipe or a link stays where it
 * is. Returns 0 or -errno; -EEXIST: one of these is concerned. */
int safe_place_rename(const struct safe_place *, const char *name);
void safe_place_close(struct safe_place *);
/* Returns the capability that this needs; 0 if nobody has called sudo. */
uint64_t safe_open_caps(void);

#endif
