/* SPDX-License-Identifier: BSD-2-Clause */
/* now.h - reads a clock, in nanoseconds. Knows no domain. */
#ifndef CT_NOW_H
#define CT_NOW_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC, the clock of records. */
static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

#endif
