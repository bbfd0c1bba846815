/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * absent.h - inside the resolve room: what a call's reads did not find in memory is put into its
 * record, from the files that are mapped there (proc/filed).
 */
#ifndef CT_ABSENT_H
#define CT_ABSENT_H

#include "../event/event.h"
#include "../proc/filed.h"

struct absent;
/* `more` gets CT_MORE records: what a string has beyond the room in its call's record. `recent`
 * as filed_open() has it. NULL: no memory. */
struct absent *absent_open(emit_fn more, void *ctx, filed_recent_fn recent, void *recent_ctx);
void absent_close(struct absent *); /* takes NULL */
/* Lets go of files that were not read for a while. */
void absent_idle(struct absent *);
/* Records were lost: what is kept may belong to a call that never comes. */
void absent_drop(struct absent *);
/* t NULL: the process is gone. */
void absent_add(struct absent *, struct target *t, const struct ct_absent *);
/* Is anything kept for the call's thread and function? Then absent_fill() is to be asked. */
bool absent_has(struct absent *, const struct ct_call *);
/* The call with what could be read; the call itself where nothing could. t NULL: the process is
 * gone. Valid until the next call. */
const struct ct_call *absent_fill(struct absent *, struct target *t, const struct ct_call *);
/* Of reads that did not find their memory, though there is some: how many, and how many were
 * read from files. */
void absent_totals(const struct absent *, uint64_t *missing, uint64_t *filled);

#endif
