/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * overlap.h - how the time of a window on a device is split: what computed, what moved data while
 * nothing computed, what did nothing. Work and windows may come in any order, and memory is
 * bounded. Knows no record.
 *
 * At each instant the first class in the order of enum overlap_class counts that has work, so the
 * parts of a window add up to its length.
 */
#ifndef CT_OVERLAP_H
#define CT_OVERLAP_H

#include "../util/types.h"

enum overlap_class { OVERLAP_COMPUTE, OVERLAP_COLLECTIVE, OVERLAP_COPY, OVERLAP_IDLE, OVERLAP_END };

/* Called once for each window; ns: by enum overlap_class. */
typedef void (*overlap_fn)(void *ctx, uint64_t tag, const uint64_t ns[OVERLAP_END]);

struct overlap;
/* max: pieces of work, and windows, that are kept at a time; those that end more than `slack_ns`
 * before the newest are settled when there are more. NULL: no memory. */
struct overlap *overlap_open(size_t max, uint64_t slack_ns, overlap_fn, void *ctx);
void overlap_close(struct overlap *); /* drops windows that are not settled */
/* class: not OVERLAP_IDLE. start_ns <= end_ns. Returns 0 or -ENOMEM. */
int overlap_work(struct overlap *, uint64_t device, enum overlap_class, uint64_t start_ns,
		 uint64_t end_ns);
int overlap_window(struct overlap *, uint64_t device, uint64_t tag, uint64_t start_ns,
		   uint64_t end_ns);
/* Settles all windows that are left. Returns 0 or -ENOMEM. */
int overlap_settle(struct overlap *);
/* Pieces of work that came after windows at their time had been settled. */
uint64_t overlap_late(const struct overlap *);

#endif
