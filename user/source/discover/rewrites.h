/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rewrites.h - inside discover: the kernel's word (inotify) that a file is written to, or has
 * lost a name. A file system that tells nothing (NFS), or a write through a shared mapping, is
 * not noticed here: the file is compared when it is mapped again.
 */
#ifndef CT_REWRITES_H
#define CT_REWRITES_H

#include "../../util/types.h"

struct rewrites;

enum rewrite { REWRITE_WRITTEN, REWRITE_CLOSED, REWRITE_RENAMED };

/* mark: what rewrites_add() returned. REWRITE_RENAMED: its names or attributes are others, or
 * its file system is unmounted. */
typedef void (*rewrites_fn)(void *ctx, int mark, enum rewrite);

/* Returns 0 or -errno. */
int rewrites_open(struct rewrites **);
int rewrites_fd(const struct rewrites *);
/* Tells of the file behind the descriptor from here on. Returns a mark >= 0, or -errno. With
 * NULL -ENOSYS. */
int rewrites_add(struct rewrites *, int fd);
void rewrites_remove(struct rewrites *, int mark);
/* Hands out what has been told. Returns 1 when the kernel dropped something: then any file may
 * have been written to. */
int rewrites_drain(struct rewrites *, rewrites_fn, void *ctx);
void rewrites_close(struct rewrites *);

#endif
