/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chatty.h - notices a function that a process calls more often than CHATTY_RATE, so that its
 * calls can be counted in windows (sampler.h) instead of one by one. Nine calls in ten of a
 * PyTorch step are cudaGetDevice and its like. Counts, and does nothing else.
 */
#ifndef CT_CHATTY_H
#define CT_CHATTY_H

#include "../../util/types.h"

#define CHATTY_RATE 20000	      /* calls a second, of one function in one process */
#define CHATTY_RATE_DUTY 1000	      /* likewise, with --duty or --max-cost */
#define CHATTY_WINDOW_NS 500000000ULL /* the rate is taken over this long */

struct chatty;

/* rate: calls a second from which on a function is noticed. NULL: no memory. */
struct chatty *chatty_open(uint64_t rate);
/* Counts calls that have ended by `now` (CLOCK_MONOTONIC). Returns true when the function has
 * passed the rate. */
bool chatty_calls(struct chatty *, uint32_t pid, uint32_t func, uint64_t calls, uint64_t now);
/* From here on functions are noticed from this rate on. */
void chatty_least(struct chatty *, uint64_t rate);
/* The rate that the last noticed function had, in calls per second. */
uint64_t chatty_rate(const struct chatty *);
void chatty_close(struct chatty *);

#endif
