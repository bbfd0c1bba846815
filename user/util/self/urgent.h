/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * urgent.h - our place among programs that want the processors: for a short time before them. Programs that take all processors
 * leave each other thread some milliseconds of a tenth of a second, and what takes us 100 ms lasts for seconds. Knows no domain.
 */
#ifndef CT_URGENT_H
#define CT_URGENT_H

/* All of our threads, and those that are made meanwhile, come before others, as far as that is permitted and nobody has asked for
 * the opposite (nice(1)). */
void urgent_begin(void);
/* As it was before. */
void urgent_end(void);
/* In a process that one of our threads has made: as we were before urgent_begin(), at once or when that is over for us. */
enum urgent_child { URGENT_WHILE_WE_ARE, URGENT_NEVER };
void urgent_child(enum urgent_child);

#endif
