/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * defs.h - definitions that records taught so far, as they stand: what a file needs at its
 * beginning so that it can be read without the one before it. Bounded; knows no file.
 */
#ifndef CT_TRACE_DEFS_H
#define CT_TRACE_DEFS_H

#include "format.h"

struct defs;
struct defs *defs_open(void); /* NULL: no memory */
void defs_close(struct defs *);

/* Learns from a definition; other records are ignored. Returns 0 or -ENOMEM. */
int defs_record(struct defs *, const struct ct_hdr *);
/* Hands out all of them, those first that others refer to, and forgets processes that have
 * exited. Returns 0 or emit's. */
int defs_write(struct defs *, emit_fn emit, void *ctx);
uint64_t defs_dropped(const struct defs *); /* for want of room: frames, stacks, names */

#endif
