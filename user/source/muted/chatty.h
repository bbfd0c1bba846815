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
#define CHATTY_WINDOW_NS 500000000ULL /* the rate is taken over this long */

struct chatty;

struct chatty *chatty_open(void); /* NULL: no memory */
/* Counts calls that have ended by `now` (CLOCK_MONOTONIC). Returns true when the function has
 * passed the rate. */
bool chatty_calls(struct chatty *, uint32_t pid, uint32_t func, uint64_t calls, uint64_t now);
/* The rate that the last noticed function had, in calls per second. */
uint64_t chatty_rate(const struct chatty *);
void chatty_close(struct chatty *);

#endif
