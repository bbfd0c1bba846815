/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_without.h - which of the traced processes use CUDA and have no hooks. The kernel says which
 * processes begin, execute a program, map a file and end (discover/watch); who has hooks is said by
 * whoever knows. Needs the right to watch the whole machine. No event/registry has these processes: no record has
 * told of them yet, a thread is counted off when it ends, and a process is judged a while after its last one.
 */
#ifndef CT_HOOKS_WITHOUT_H
#define CT_HOOKS_WITHOUT_H

#include "hooks_funcs.h"
#include "hooks_ring.h"

struct hooks_without;

/* NULL: the kernel does not tell us, or no memory. follow: children of processes count, too. */
struct hooks_without *hooks_without_open(const struct capture_plan *, struct hooks_files *);
/* All take NULL. */
void hooks_without_close(struct hooks_without *);
/* Readable when there is much to be read; -1: none. */
int hooks_without_fd(const struct hooks_without *);

/* This process is traced, from now on, with the children that it makes. */
void hooks_without_add(struct hooks_without *, pid_t);
/* It is not, any more. */
void hooks_without_remove(struct hooks_without *, pid_t);
/* The program that it ran at this moment has hooks. */
void hooks_without_hooked(struct hooks_without *, pid_t, uint64_t at_ns);
/* It has mapped CUDA, with hooks: a child has that, too. */
void hooks_without_uses(struct hooks_without *, pid_t, uint64_t at_ns);

/* Adds a CT_HOLE for each process that has turned out to be without hooks, and again when that ends.
 * last: nothing will be known of hooks behind this. 0 or -ENOMEM. */
int hooks_without_tell(struct hooks_without *, bool last, struct hooks_batch *);

#endif
