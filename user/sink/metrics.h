/* SPDX-License-Identifier: BSD-2-Clause */
/* metrics.h - what CT_METRIC records told of metrics: a counter's values are numbers of these. Knows no format. */
#ifndef CT_METRICS_H
#define CT_METRICS_H

#include "text.h"
#include "sink.h"

#define METRICS_MAX 4096 /* metrics at most, which have the lowest ids */

struct metric {
	char *name, *unit; /* NULL: never told. Safe to print */
};
struct metrics {
	struct metric *all;
	uint32_t n;
};

/* Learns from a CT_METRIC. Returns 0 or -ENOMEM. */
int metrics_record(struct metrics *, const struct ct_metric *);
/* NULL: not known. */
const struct metric *metrics_find(const struct metrics *, uint32_t id);
void metrics_free(struct metrics *);
/* The value's double; false: it is not finite. */
bool metrics_value(const struct ct_value *, double *);

#endif
