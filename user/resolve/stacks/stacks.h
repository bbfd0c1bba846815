/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stacks.h - turns raw stacks into records of frames and stacks: joins a call's native frames with
 * its Python frames, and sends each frame and each stack once.
 */
#ifndef CT_STACKS_H
#define CT_STACKS_H

#include "../../event/event.h"
#include "../../proc/target.h"

struct stacks;

struct objects;

/* out gets CT_FRAME and CT_STACK records. lent: the files that the caller has open, which outlive it; NULL: none.
 * impatient: as objects_impatient() has it. NULL: no memory. */
struct stacks *stacks_open(emit_fn out, void *ctx, struct objects *lent, bool impatient);
void stacks_close(struct stacks *); /* takes NULL */

/* Keeps a raw record for its call (the same pid, tid and start_ns): CT_USER_STACK, CT_PY_STACK,
 * CT_PY_CODE; others are ignored. Returns 0, -EBADMSG or -ENOMEM. */
int stacks_record(struct stacks *, struct target *, const struct ct_hdr *);
/* Resolves a call's raw stack. The records that the stack needs go to `out` first. target may be
 * NULL: the process is gone. Returns the stack's id; 0: the call has none. */
uint32_t stacks_of_call(struct stacks *, struct target *, const struct ct_call *);
/* Takes CT_PROCESS, CT_EXEC, CT_EXIT, CT_FORK and CT_MAP: the process's mappings have changed, and
 * are read at once. */
void stacks_process(struct stacks *, struct target *, const struct ct_hdr *);
/* Returns the error of `out` when it did not take a record; 0: it took all. */
int stacks_error(const struct stacks *);
void stacks_totals(const struct stacks *, uint64_t *resolved, uint64_t *broken);

#endif
