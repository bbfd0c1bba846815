/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_print.h - the rows of `cudatrace counters`: a table, CSV, and JSON as every trace has
 * it. Knows no source.
 */
#ifndef CT_COUNTERS_PRINT_H
#define CT_COUNTERS_PRINT_H

#include "../request/request.h"

enum counters_format { COUNTERS_TABLE, COUNTERS_JSON, COUNTERS_CSV };

struct counters_print;
/* start_ns: CLOCK_MONOTONIC, the zero of the times of table and CSV. NULL: no memory. */
struct counters_print *counters_print_open(struct out *, enum counters_format, uint64_t start_ns);
/* CT_METRIC, CT_COUNTER, CT_EVENT, CT_LOST, in JSON CT_DEVICE too; others are passed over.
 * Metrics come before the first sample with them. Returns 1 when a sample's row came of it, 0
 * when not, or -errno. */
int counters_print_record(struct counters_print *, const struct ct_hdr *);
/* end: for JSON's last line; NULL: it ended by an error. */
void counters_print_close(struct counters_print *, const struct sink_end *end);

#endif
