/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * curve.h - memory over time by series (a call site's, on devices or on the host), in at most
 * CURVE_BUCKETS steps. The steps become twice as long whenever the time exceeds them. It takes at
 * most 4 MiB: if more series change than there is room for, the steps become longer too, and at
 * last all series become one. Knows no event and no format.
 */
#ifndef CT_CURVE_H
#define CT_CURVE_H

#include "../util/types.h"

#define CURVE_BUCKETS 2048
#define CURVE_WHERES 2

struct curve_point {
	uint32_t bucket, series; /* series % CURVE_WHERES: which total it belongs to */
	int64_t delta;		 /* what changed in the bucket */
};

struct curve {
	struct curve_point *points;
	uint32_t n, cap;
	uint64_t start_ns, width_ns, last_ns;
	uint64_t total[CURVE_WHERES];
	/* the most at a time in the bucket; 0: nothing changed */
	uint64_t peak[CURVE_WHERES][CURVE_BUCKETS];
	bool coarse; /* series are no longer separate */
};

/* cap: points at most; 0: a default. Returns 0 or -ENOMEM; curve_free() is safe then. */
int curve_init(struct curve *, uint64_t start_ns, uint32_t cap);
void curve_free(struct curve *);
void curve_add(struct curve *, uint64_t at_ns, uint32_t series, int64_t delta);
/* Call it once, at the end: it sorts the points by series and then by bucket, one point for
 * each, and sets the peak of each bucket. Returns the number of buckets. */
uint32_t curve_finish(struct curve *);

#endif
