/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * defs.h - keeps the definitions that records have taught so far, in their latest form. A file
 * needs them at its beginning so that it can be read without the file before it. Its memory is
 * bounded. Knows no file.
 */
#ifndef CT_TRACE_DEFS_H
#define CT_TRACE_DEFS_H

#include "format.h"

struct defs;
struct defs *defs_open(void); /* NULL: no memory */
void defs_close(struct defs *);

/* Learns from a definition; other records are ignored. Returns 0 or -ENOMEM. */
int defs_record(struct defs *, const struct ct_hdr *);
/* Emits all definitions, and emits a definition before those that refer to it. Then forgets the
 * processes that have exited. Returns 0 or the error of emit. */
int defs_write(struct defs *, emit_fn emit, void *ctx);
/* frames, stacks and names dropped because there was no room */
uint64_t defs_dropped(const struct defs *);

#endif
