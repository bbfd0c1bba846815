/* SPDX-License-Identifier: BSD-2-Clause */
/* stat_tables.h - the tables of a report: their columns, for text, JSON and CSV. */
#ifndef CT_STAT_TABLES_H
#define CT_STAT_TABLES_H

#include "../render/table.h"
#include "stat_print.h"

/* A row of calls or device work. */
struct section_row {
	enum report_section section;
	const struct report_row *r;	   /* NULL: the sum of all rows of the section */
	const struct ct_sums *n;	   /* r's, or that sum */
	const struct ct_estimated *unseen; /* likewise */
	const struct text *name;	   /* for text */
};
struct table stat_section_table(enum report_section, const struct print_about *);
struct table stat_sizes_table(void);			       /* of struct report_row with sizes */
struct table stat_occupancy_table(const struct print_about *); /* of struct report_row */
struct table stat_gauges_table(void);			       /* of struct gauge */
struct traffic_row {
	enum report_way way;
	const struct report_traffic *t;
};
struct table stat_traffic_table(void); /* of struct traffic_row */

/* Members: the estimated part of the calls and by how much it may be wrong at 95 % confidence, or
 * only the minimum number if text output shows only that. Nothing if each call was counted. */
void stat_put_estimate(struct json *, uint64_t calls, const struct ct_estimated *);

#endif
