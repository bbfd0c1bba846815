/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * urgent.h - gives us priority over other programs for a short time. Programs that use all
 * processors leave each other thread a few milliseconds out of a hundred, so that work which takes
 * 100 ms takes seconds. Knows no domain.
 */
#ifndef CT_URGENT_H
#define CT_URGENT_H

/* Gives all our threads, and those that are made meanwhile, priority over others, if that is
 * permitted and the user has not asked for the opposite by nice(1). */
void urgent_begin(void);
/* Restores the priority that we had before. */
void urgent_end(void);
/* For a process that one of our threads has made: restores the priority of before
 * urgent_begin(), at once or when that time ends for us. */
enum urgent_child { URGENT_WHILE_WE_ARE, URGENT_NEVER };
void urgent_child(enum urgent_child);

#endif
