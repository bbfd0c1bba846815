/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spans.h - the union of intervals: computes when something was busy, from intervals that come almost in order: a bounded
 * number of spans, each with its busy time. Gaps shorter than the quantum are inside spans.
 * Knows no record.
 */
#ifndef CT_SPANS_H
#define CT_SPANS_H

#include "../util/types.h"

#define SPANS_QUANTUM_NS 20000ULL /* at first; grows when there are more than SPANS_MAX */
#define SPANS_MAX 32768
#define SPANS_RAW_MAX 16384 /* intervals may be so many places out of order */

struct span {
	uint64_t start_ns, end_ns, busy_ns;
	uint32_t tag;  /* of its first interval */
	uint16_t kind; /* likewise */
	uint16_t pad;
};

struct spans {
	struct span *raw, *at; /* at: in order, disjoint, once settled */
	uint32_t nraw, n;
	uint64_t quantum_ns;
	/* intervals that came too late for their place: their part before the last span is not
	 * counted */
	uint64_t late;
	bool disorder;
};

/* Returns 0 or -ENOMEM. An interval that ends before it starts is ignored. */
int spans_add(struct spans *, uint64_t start_ns, uint64_t end_ns, uint16_t kind, uint32_t tag);
/* Puts all intervals into at[]. Returns 0 or -ENOMEM. */
int spans_settle(struct spans *);
/* The time in which something was busy so far, settled or not. */
uint64_t spans_busy_ns(const struct spans *);
/* Of settled spans: a gap with a part that was not seen is no gap, as if there had been work. */
struct holes_stretch;
void spans_fill(struct spans *, const struct holes_stretch *, size_t n);
void spans_free(struct spans *);

#endif
