/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * throttle.h - notices a function that a process calls more often than THROTTLE_RATE, so that its
 * calls can be counted in windows (sampler.h) instead of one by one. Nine calls in ten of a
 * PyTorch step are cudaGetDevice and its like. Counts, and does nothing else.
 */
#ifndef CT_THROTTLE_H
#define CT_THROTTLE_H

#include "../../util/types.h"

#define THROTTLE_RATE 20000		/* calls a second, of one function in one process */
#define THROTTLE_RATE_DUTY 1000		/* likewise, with --duty or --max-cost */
#define THROTTLE_WINDOW_NS 500000000ULL /* the rate is taken over this long */

struct throttle;

/* rate: calls a second from which on a function is noticed. NULL: no memory. */
struct throttle *throttle_open(uint64_t rate);
/* Counts calls that have ended by `now` (CLOCK_MONOTONIC). Returns true when the function has
 * passed the rate. */
bool throttle_calls(struct throttle *, uint32_t pid, uint32_t func, uint64_t calls, uint64_t now);
/* From here on functions are noticed from this rate on. */
void throttle_least(struct throttle *, uint64_t rate);
/* How often the last noticed function was called: "23456 times a second", or "more than 20000 times a second" where
 * the calls came before it was known for how long. */
const char *throttle_text(const struct throttle *);
/* The last noticed function was called so often, as the caller knows. */
void throttle_is(struct throttle *, uint64_t rate);
void throttle_close(struct throttle *);

#endif
