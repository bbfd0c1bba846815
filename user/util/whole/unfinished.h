/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unfinished.h - a file that is written as a whole or not at all: until it is complete a process
 * of its own watches us, and removes it when we end before that, also by a signal that nobody can
 * catch, or after privileges were given up.
 */
#ifndef CT_UNFINISHED_H
#define CT_UNFINISHED_H

#include "../types.h"

struct unfinished {
	int fd; /* closed: the watcher looks; below 0: there is none */
	pid_t watcher;
};

/* Before the file is opened, and before confine(). One at a time. Without a watcher the file stays,
 * whatever comes. */
void unfinished_open(struct unfinished *, const char *path);
/* What is written through the descriptor is what is to be removed, if it has the path's name then,
 * or `name` in the same folder; NULL: that of the path. Whoever writes says so once the file is its
 * own: one that is there, and that nobody has begun to write to, is kept. Nothing is done for a
 * command without unfinished_open(). */
void unfinished_begun(int fd, const char *name);
/* whole: the file is complete. */
void unfinished_close(struct unfinished *, bool whole);

#endif
