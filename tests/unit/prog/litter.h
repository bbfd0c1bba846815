/* SPDX-License-Identifier: BSD-2-Clause */
/* litter.h - for programs that something is injected into: a stack with words of calls long over. */
#ifndef CT_LITTER_H
#define CT_LITTER_H

#include <stdlib.h>

/* Frames all over the stack, the innermost in malloc: their words stay, and are in the midst of
 * a large frame that comes after. */
static void __attribute__((noinline)) litter(int depth)
{
	volatile char room[256];
	void *p = malloc(100000 + (size_t)depth);

	room[0] = p != NULL;
	free(p);
	if (depth && room[0])
		litter(depth - 1);
	room[1] = 0;
}

#endif
