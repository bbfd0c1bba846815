/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * count_record.h - makes CT_CALL_COUNT records of sums that were counted in the kernel, or by hooks in
 * the program. Knows no map and no area.
 */
#ifndef CT_COUNT_RECORD_H
#define CT_COUNT_RECORD_H

#include "../util/types.h"
#include "../../wire/cudatrace.h"
#include "../../wire/control.h"

union count_record {
	struct ct_call_count t;
	char room[sizeof(struct ct_call_count) + sizeof(struct ct_hist)];
};

/* The parts that all have; times are those of the stretch that the sums are of. */
void count_record_begin(union count_record *, const struct ct_count_key *, uint64_t start_ns,
			uint64_t end_ns);
/* Sums as they are counted: the fewer of the timed and the untimed calls, and the shortest duration
 * as its complement. timed: durations were measured. */
void count_record_sums(union count_record *, const struct ct_count_key *, const struct ct_sums *,
		       bool timed);
/* Where the histogram of durations is to be copied to, and that it was. */
void *count_record_hist(union count_record *);
void count_record_has_hist(union count_record *);
void count_record_sizes(union count_record *, const struct ct_sizes *);

#endif
