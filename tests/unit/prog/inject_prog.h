/* SPDX-License-Identifier: BSD-2-Clause */
/* inject_prog.h - what test_inject and its programs share, in memory behind descriptor 3. */
#ifndef INJECT_PROG_H
#define INJECT_PROG_H

struct shared {
	volatile int ready; /* the program is at work */
	volatile int stop;  /* it is to come to its end */
	volatile long rounds;
	volatile long bad; /* what was not as it should be: 0, or 1000 * line + a number */
	volatile long signals, sum;
	volatile int child;
};

#endif
