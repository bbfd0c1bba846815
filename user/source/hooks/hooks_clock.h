/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_clock.h - the processor's counter as times of CLOCK_MONOTONIC. Both are read together again
 * and again, and a time between two readings lies on the line between them, so that what the kernel
 * does to its clock is followed. Knows no process.
 */
#ifndef CT_HOOKS_CLOCK_H
#define CT_HOOKS_CLOCK_H

#include "../../util/types.h"

struct hooks_clock;

/* May the counter be used: it is invariant, and the kernel's own clock is made of it? */
bool hooks_clock_usable(void);
struct hooks_clock *hooks_clock_open(void); /* NULL: no memory */
void hooks_clock_close(struct hooks_clock *);
/* Reads both, unless it did so a moment ago. */
void hooks_clock_mark(struct hooks_clock *);
uint64_t hooks_clock_ns(const struct hooks_clock *, uint64_t ticks);
/* Ticks of the counter in so many ns. */
uint64_t hooks_clock_ticks(const struct hooks_clock *, uint64_t ns);
/* The most, in ns, by which a time of the last reading may be wrong. */
uint64_t hooks_clock_error_ns(const struct hooks_clock *);

/* For tests: a reading. */
void hooks_clock_put(struct hooks_clock *, uint64_t ticks, uint64_t ns);

#endif
