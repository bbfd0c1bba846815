/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * both_merge.h - puts the calls of processes that have hooks, and probes for some functions, into one order, and decides which
 * of them are inside others: by their times, in their thread. Knows no source.
 */
#ifndef CT_BOTH_MERGE_H
#define CT_BOTH_MERGE_H

#include "../../event/event.h"
#include "../../flow/plan.h"

struct both_merge;

/* Whether what is inside can be decided at all for such a plan: calls that are only counted have no times, and of calls that
 * are captured and not sent nothing is known here; nor when one has ended that is left out for its result or duration. */
bool both_merge_suits(const struct capture_plan *);
struct both_merge *both_merge_open(const struct capture_plan *); /* NULL: no memory */
void both_merge_close(struct both_merge *);			 /* takes NULL */

/* A record of such a process: of its hooks, or of probes. What probes say of the process itself is left out, since hooks say
 * it. Returns 0 or -ENOMEM. */
int both_merge_put(struct both_merge *, const struct ct_hdr *, bool probes);
/* A record of the hooks of a process that has no probes, which is handed out at once: such a process may get some. */
void both_merge_pass(struct both_merge *, const struct ct_hdr *);
/* Says that so many records were lost before one that is not handed out. */
int both_merge_lost(const struct ct_hdr *, uint64_t count, emit_fn emit, void *ctx);
/* Hands out what ended before both were complete, and what has waited for a second. hooks_ns: until when the records of hooks are
 * complete. under_way: hands out the calls that are under way in the hooks of such processes. last: nothing will come any more. Returns
 * 0, 1 for a pause, or -errno. */
struct both_merge_until {
	uint64_t hooks_ns, probes_ns, now_ns;
	uint64_t (*clock)(void); /* says what is now; NULL: now_ns */
	int (*under_way)(void *ctx, emit_fn emit, void *emit_ctx);
	void *ctx;
	const bool *paused;
	bool nested; /* launches inside others are wanted (source_ops.nested) */
	bool last;
};
int both_merge_flush(struct both_merge *, const struct both_merge_until *, emit_fn emit, void *ctx);
/* Until when all has been handed out; at most ns. */
uint64_t both_merge_complete(const struct both_merge *, uint64_t ns);
/* Calls that were taken for a part of another one. */
uint64_t both_merge_folded(const struct both_merge *);

#endif
