/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters.h - hardware counters as a source: source_counters makes CT_DEVICE (pid 0),
 * CT_METRIC, CT_COUNTER and CT_EVENT records of what its helper process reads. Of the plan it
 * looks at the counters_ members and cupti.
 */
#ifndef CT_SOURCE_COUNTERS_H
#define CT_SOURCE_COUNTERS_H

#include "../source.h"

/* Whether there are no more counters though there should be: told already. A trace goes on
 * without them. */
bool counters_failed(const struct source *);

/* Hands out the lines that list the metrics: those of cudatrace, then CUPTI's of `chip` (NULL:
 * of the first GPU). Returns 0 or -errno after one message. */
int counters_help(const char *cupti, const char *chip,
		  void (*line)(void *ctx, const char *text, size_t len), void *ctx);

#endif
