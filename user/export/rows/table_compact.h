/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table_compact.h - what --compact makes of the table's rows, for people at a terminal:
 *
 *   TIME(ms) PROCESS  PID     TOOK  EVENT      DETAILS
 *      0.034 train.py 4001 112.4us  cudaMalloc size=2MiB, devPtr=0x7f81dc800000
 *     31.410 train.py 4001  25.1ms! cudaMemcpy dst=0x1000, src=0x5581, size=1GiB,
 *                                              kind=HostToDevice
 *
 * A column is as wide as the widest value that came so far, and begins as wide as its heading. A
 * process has the name of its command line. TOOK has a ! for a call that took 10 ms or more. A
 * result that is no failure is not shown, and a failure comes first. Knows no record.
 */
#ifndef CT_TABLE_COMPACT_H
#define CT_TABLE_COMPACT_H

#include "../../api/field.h"
#include "../../event/event.h"
#include "../../util/text.h"
#include "../../flow/row.h"

#define COMPACT_SLOW_NS 10000000ULL /* a call that takes this long is marked */

enum compact_column {
	COMPACT_TIME,
	COMPACT_PROCESS,
	COMPACT_PID,
	COMPACT_TID,
	COMPACT_THREAD,
	COMPACT_TOOK,
	COMPACT_EVENT,
	COMPACT_COLUMNS
};

struct compact {
	int widths[COMPACT_COLUMNS]; /* in characters */
};

/* n bytes, which a terminal may show as they are, in a column, and the blank behind it. `right`:
 * at the column's right side. Takes COMPACT_CELL bytes at most, beside those of `s`. */
#define COMPACT_CELL 64
char *compact_cell(struct compact *, char *p, enum compact_column, const char *s, size_t n,
		   bool right);
/* A name of at most n bytes, which is untrusted, in a column. Takes COMPACT_CELL * 4 bytes at
 * most. */
char *compact_name(struct compact *, char *p, enum compact_column, const char *s, size_t n);
/* The name of a process: of a script, for an interpreter that runs one; else of the program; else
 * what the kernel calls it. Points into the process; *n gets its length. */
const char *compact_process(const struct process *, size_t *n);
/* The duration; slow: with its mark. */
char *compact_took(struct compact *, char *p, uint64_t ns, bool slow, bool color);

/* Writes a value that is shorter here than in the table; false: it has no shorter form. The row
 * has 64 bytes of room. */
bool compact_value(struct row *, const struct field *);

/* Appends lines to the row, each cut to so many columns; what is cut ends in '>'. */
void compact_cut(struct row *, const struct text *lines, int columns);

#endif
