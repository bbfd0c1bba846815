/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_counts.h - calls that were counted inside processes: adds up the cells of their areas, and
 * makes CT_CALL_COUNT records of the sums, as the kernel side's become.
 */
#ifndef CT_HOOKS_COUNTS_READER_H
#define CT_HOOKS_COUNTS_READER_H

#include "../../flow/plan.h"
#include "hooks_muted.h"
#include "hooks_ring.h"

struct hooks_counts;

/* The calls of muted functions are added. NULL: no memory. */
struct hooks_counts *hooks_counts_open(const struct capture_plan *, const struct hooks_muted *);
void hooks_counts_close(struct hooks_counts *);

/* The sums of a process's area become part of what is handed out, for good: it is about to be
 * closed. boottime_ns: when the process began. */
void hooks_counts_keep(struct hooks_counts *, struct hooks_ring *, uint64_t boottime_ns);
/* A call that did not return, and that nothing in the process counted. */
void hooks_counts_unfinished(struct hooks_counts *, const struct ct_call *, uint64_t boottime_ns);

/* Begins a reading; then the areas that are there; then all sums are handed out. */
void hooks_counts_begin(struct hooks_counts *);
void hooks_counts_add(struct hooks_counts *, struct hooks_ring *, uint64_t boottime_ns);
/* As counted until until_ns. 0 or -errno of emit. */
int hooks_counts_emit(struct hooks_counts *, uint64_t until_ns, emit_fn, void *ctx);
/* Calls for which this had no memory. */
uint64_t hooks_counts_lost(const struct hooks_counts *);

#endif
