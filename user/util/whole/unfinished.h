/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unfinished.h - a file that is written as a whole or not at all: until it is complete a process of
 * its own watches us, and removes the file if we end before that, also by a signal that nobody can
 * catch, or after privileges were given up.
 */
#ifndef CT_UNFINISHED_H
#define CT_UNFINISHED_H

#include "../types.h"

struct unfinished {
	int fd; /* closed: the watcher looks; below 0: there is none */
	pid_t watcher;
};

/* Call it before the file is opened, and before confine(). Only one file at a time. If there is
 * no watcher, the file stays in any case. */
void unfinished_open(struct unfinished *, const char *path);
/* Says which file is to be removed: the one of this descriptor, if it then has the path's name,
 * or the name `name` in the same folder (NULL: that of the path). The writer calls it once the
 * file is its own: a file that was there, and to which nobody has begun to write, is kept.
 * Without unfinished_open() it does nothing. */
void unfinished_begun(int fd, const char *name);
/* whole: the file is complete. */
void unfinished_close(struct unfinished *, bool whole);

#endif
