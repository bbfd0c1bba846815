/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_print.h - the rows of `cudatrace counters`: a table, JSON lines, CSV, made of records alone. Knows no source.
 */
#ifndef CT_COUNTERS_PRINT_H
#define CT_COUNTERS_PRINT_H

#include "opts.h"

struct counters_print;
/* start_ns: CLOCK_MONOTONIC, the zero of the times of table and CSV. NULL: no memory. */
struct counters_print *counters_print_open(struct out *, enum opts_counters, uint64_t start_ns);
/* CT_DEVICE, CT_METRIC, CT_COUNTER, CT_EVENT, CT_LOST; others are passed over. Metrics come before the first sample with
 * them. Returns 1 when a sample's row came of it, 0 when not, or -ENOMEM. */
int counters_print_record(struct counters_print *, const struct ct_hdr *);
void counters_print_close(struct counters_print *);

#endif
