/* SPDX-License-Identifier: BSD-2-Clause */
/* mem_tables.h - the tables of a ledger: their columns, for text and JSON. */
#ifndef CT_MEM_TABLES_H
#define CT_MEM_TABLES_H

#include "../render/table.h"
#include "mem_print.h"

struct mem_table {
	const struct ledger *l;
	const struct mem_about *a;
	bool several; /* labels name the process */
};
struct mem_row {
	const struct ledger_row *r;
	const struct text *site; /* the label of a row by call site; NULL: not made */
	const char *indent;	 /* before the label; NULL: none */
};
#define MEM_WATCH 64 /* in the place of an enum ledger_by: what grew since the last look */
/* Of struct mem_row. by: enum ledger_by, or MEM_WATCH. */
struct table mem_table_of(unsigned int by, const struct mem_table *);
void mem_row_label(struct out *, const struct table_at *at);

/* A row of an allocator's blocks. */
struct mem_blocks_row {
	const struct ledger *l;
	const struct blocks_row *r;
	const struct text *label; /* for text */
	uint64_t at_peak, n_at_peak;
};
struct table mem_blocks_table(enum blocks_by);

/* Since the trace's begin. */
static inline uint64_t mem_since(const struct mem_about *a, uint64_t at_ns)
{
	return at_ns > a->start_ns ? at_ns - a->start_ns : 0;
}

#endif
