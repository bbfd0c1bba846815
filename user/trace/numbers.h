/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numbers.h - counts the calls of each process that have got a number so far, across all files of a
 * recorder, so that each block can contain these counts. It counts as the join stage does on replay
 * (event/join.h). Its memory is bounded. Knows no file.
 */
#ifndef CT_TRACE_NUMBERS_H
#define CT_TRACE_NUMBERS_H

#include "format.h"

#define NUMBERS_MAX 65536 /* processes at a time */

struct numbers;
struct numbers *numbers_open(void); /* NULL: no memory */
void numbers_close(struct numbers *);

/* From now on, each process's number must be stored again before its next call. */
void numbers_begin(struct numbers *);
/* Learns from a record. Records must come in the order in which they are stored. True: *out must be
 * stored before this record. */
bool numbers_record(struct numbers *, const struct ct_hdr *, struct ct_number *out);

#endif
