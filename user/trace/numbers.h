/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numbers.h - the numbers of calls across what a recorder writes: how many calls of each process
 * were numbered so far, as the join stage counts them on replay (event/join.h), so that each
 * block can say it. Bounded; knows no file.
 */
#ifndef CT_TRACE_NUMBERS_H
#define CT_TRACE_NUMBERS_H

#include "format.h"

#define NUMBERS_MAX 65536 /* processes at a time */

struct numbers;
struct numbers *numbers_open(void); /* NULL: no memory */
void numbers_close(struct numbers *);

/* From here on each process's number is to be said again before its next call. */
void numbers_begin(struct numbers *);
/* Learns from a record, in the order in which they are stored. True: *out is to be stored before
 * it. */
bool numbers_record(struct numbers *, const struct ct_hdr *, struct ct_number *out);

#endif
