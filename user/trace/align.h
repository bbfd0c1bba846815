/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * align.h - converts times of one host's CLOCK_MONOTONIC to another host's, by the time of day that
 * both recordings contain. Knows no file.
 */
#ifndef CT_TRACE_ALIGN_H
#define CT_TRACE_ALIGN_H

#include "format.h"

/* readings kept of one recording; if there are more, every second one is dropped */
#define ALIGN_CLOCKS 4096

struct align {
	struct {
		/* CLOCK_MONOTONIC, and CLOCK_REALTIME minus CLOCK_MONOTONIC */
		uint64_t at_ns, offset_ns;
	} clocks[ALIGN_CLOCKS];
	unsigned int n, every, skipped;
	uint64_t error_ns; /* the largest error of any reading */
};

/* Adds a reading of the clocks. Readings must come in the order of time; others are ignored. */
void align_clock(struct align *, const struct ct_clock *);
/* Returns CLOCK_REALTIME minus CLOCK_MONOTONIC at a time; between two readings it is
 * interpolated. */
uint64_t align_offset(const struct align *, uint64_t at_ns);
/* Converts a time of `from` to the clock of `to`. Both must have a reading. */
uint64_t align_time(const struct align *from, const struct align *to, uint64_t at_ns);
/* Returns by how many ns the offset changed within the recording, from its lowest to its highest
 * value. */
uint64_t align_drift(const struct align *);

#endif
