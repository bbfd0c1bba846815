/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * align.h - brings times of one host's CLOCK_MONOTONIC to another's, by the time of day that
 * both recordings tell. Knows no file.
 */
#ifndef CT_TRACE_ALIGN_H
#define CT_TRACE_ALIGN_H

#include "format.h"

#define ALIGN_CLOCKS 4096 /* of one recording; of more every second one is forgotten */

struct align {
	struct {
		uint64_t at_ns, offset_ns; /* CLOCK_MONOTONIC; CLOCK_REALTIME minus that */
	} clocks[ALIGN_CLOCKS];
	unsigned int n, every, skipped;
	uint64_t error_ns; /* the largest of a reading */
};

/* Learns of a reading; they come in the order of time, others are ignored. */
void align_clock(struct align *, const struct ct_clock *);
/* CLOCK_REALTIME minus CLOCK_MONOTONIC at a time: between two readings on the line between them. */
uint64_t align_offset(const struct align *, uint64_t at_ns);
/* A time of `from` on the clock of `to`. Both have a reading. */
uint64_t align_time(const struct align *from, const struct align *to, uint64_t at_ns);
/* How far the offset went up and down in the recording, ns. */
uint64_t align_drift(const struct align *);

#endif
