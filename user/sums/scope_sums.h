/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scope_sums.h - what calls and device work were for: sums by the names of the scopes that they are
 * inside of, for `stat --by range` and its like.
 *
 * Exclusive: each call and each piece of device work counts for the innermost scope of the asked
 * kinds around it, for the row "none" if there is no such scope, and for "unknown" if that is not
 * known. So the rows add up to all there is. Inclusive: it counts for each scope around it.
 * Knows no format.
 */
#ifndef CT_SCOPE_SUMS_H
#define CT_SCOPE_SUMS_H

#include "../event/event.h"
#include "collective_sums.h"
#include "gemm_sums.h"

struct scope_sums;
/* kinds: bits 1 << enum ct_scope_kind. NULL: no memory. */
struct scope_sums *scope_sums_open(uint32_t kinds);
void scope_sums_close(struct scope_sums *);
/* Returns 1 if the event was counted, 0 if it is of no kind that is counted, or -ENOMEM. */
int scope_sums_event(struct scope_sums *, const struct event *);
/* Calls and device work for which there was no row, because there are too many names. */
uint64_t scope_sums_no_room(const struct scope_sums *);

enum scope_row_what { SCOPE_ROW_NAMED, SCOPE_ROW_NONE, SCOPE_ROW_UNKNOWN };
/* Begins with its key. */
struct scope_row {
	uint64_t what; /* enum scope_row_what */
	uint64_t hash; /* of the name */
	char *name;
	uint64_t scopes, scopes_ns; /* that have ended; their time on the host, added up */
	uint64_t calls, calls_ns;   /* that the program made itself; those whose time is known */
	uint64_t kernels, work_ns;  /* work_ns: also of copies, memsets and graphs */
	uint64_t inclusive_ns, inclusive_calls_ns;
	struct collective_sums moved;
	struct gemm_sums gemm;
};
/* Of all rows together. */
struct scope_sums_all {
	size_t nrows;
	uint64_t work_ns, calls_ns, kernels, calls;
	uint64_t late; /* kernels that came too late to count for what is exposed */
	bool device;   /* there is device work */
	bool classes, collectives, gemms; /* what was asked for */
};
/* What there is at the end: the rows with the most time first, on the device if there is device work,
 * else in calls; "none" and "unknown" are last. The caller frees the array; NULL: no memory. */
struct scope_row **scope_sums_rows(struct scope_sums *, struct scope_sums_all *);

#endif
