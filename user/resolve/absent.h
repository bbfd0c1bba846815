/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * absent.h - inside the resolve room: completes a call's record. What the call's reads did not find
 * in memory is read from the files that are mapped there (proc/filed).
 */
#ifndef CT_ABSENT_H
#define CT_ABSENT_H

#include "../../wire/cudatrace.h"
#include "../event/event.h"
#include "../proc/filed.h"

struct absent;
/* `more` gets CT_MORE records: the part of a string that has no room in its call's record. `recent`
 * is as in filed_open(). NULL: no memory. */
struct absent *absent_open(emit_fn more, void *ctx, filed_recent_fn recent, void *recent_ctx);
void absent_close(struct absent *); /* takes NULL */
/* Closes the files that were not read for a while. */
void absent_idle(struct absent *);
/* Call this after records were lost: what is kept may belong to a call whose record never comes. */
void absent_drop(struct absent *);
/* t NULL: the process is gone. */
void absent_add(struct absent *, struct target *t, const struct ct_absent *);
/* Whether anything is kept for the call's thread and function. If so, call absent_fill(). */
bool absent_has(struct absent *, const struct ct_call *);
/* Returns the call completed with what could be read, or the call itself if nothing could. t NULL:
 * the process is gone. Valid until the next call. */
const struct ct_call *absent_fill(struct absent *, struct target *t, const struct ct_call *);
/* Returns how many reads did not find their memory although it is mapped, and how many of them were
 * read from files; unshown: those of calls that have no row, and that were not. */
void absent_totals(const struct absent *, uint64_t *missing, uint64_t *filled, uint64_t *unshown);

#endif
