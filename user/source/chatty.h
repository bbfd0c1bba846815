/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chatty.h - the governor of chatty queries: notices a function of class QUERY that a process calls more often than
 * CHATTY_RATE, so that its probe can be taken off. Nine calls in ten of a PyTorch step are cudaGetDevice and its like.
 *
 * Counts; muting is the caller's. Never notices a function that the plan names, nor anything under keep_chatty or
 * failed_only.
 */
#ifndef CT_CHATTY_H
#define CT_CHATTY_H

#include "plan.h"

#define CHATTY_RATE 20000	       /* calls a second, of one function in one process */
#define CHATTY_WINDOW_NS 500000000ULL /* the rate is taken over this long */

struct chatty;

struct chatty *chatty_open(const struct capture_plan *); /* NULL: no memory */
/* Counts a call. Returns true when its function has just passed the rate. */
bool chatty_call(struct chatty *, const struct ct_call *);
/* The rate that the last noticed function had, in calls per second. */
uint64_t chatty_rate(const struct chatty *);
void chatty_close(struct chatty *);

#endif
