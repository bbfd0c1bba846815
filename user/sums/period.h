/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * period.h - the period of a sequence: a program that repeats the same step gives nearly the same
 * sequence of operators or launches again and again. Knows no record.
 */
#ifndef CT_PERIOD_H
#define CT_PERIOD_H

#include <stddef.h>

#include "../util/types.h"

#define PERIOD_LEAST 3	      /* times that a period has to be seen */
#define PERIOD_CONFIDENT 0.75 /* below, there is none */

/* One member of the sequence. */
struct beat {
	uint64_t start_ns, end_ns;
	uint64_t symbol; /* the same for the same thing */
};

struct period {
	size_t length; /* in beats; 0: none found */
	/* 0 to 1: how often a beat is followed by the same one a period later, as the mean over
	 * the different symbols, so that a rare one counts as much as one that is frequent within
	 * a step. Of the best candidate, also if it is too low */
	double confidence;
	size_t *starts; /* the beats with which periods begin; owned */
	size_t n;	/* of starts */
	/* the last one is whole although none begins behind it */
	bool last_whole;
};

/* Sorted by start. Looks for the shortest period that is nearly as good as the best one. Returns 0
 * or -ENOMEM; *found is to be freed by period_free() in both cases. */
int period_find(const struct beat *, size_t n, struct period *found);
void period_free(struct period *);

#endif
