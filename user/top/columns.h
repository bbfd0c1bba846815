/* SPDX-License-Identifier: BSD-2-Clause */
/* columns.h - the columns of each view, which of them fit, and their values as text. Knows no
 * terminal. */
#ifndef CT_TOP_COLUMNS_H
#define CT_TOP_COLUMNS_H

#include "model.h"

struct column {
	const char *title;
	unsigned int width; /* its width, with the blank before it */
	unsigned int views; /* the views that have it: a bit for each enum top_view */
	enum top_sort sort; /* the order that it is the key of; TOP_SORT_END: none */
	int drop;	   /* columns with a higher number are dropped first on a narrow terminal */
	unsigned int from; /* shown on terminals of so many cells */
	bool device;	   /* known only with device records: dropped first without them */
	void (*put)(const struct top_model *, const struct top_row *, char *buf, size_t size);
};
#define COLUMNS_MAX 16
#define COLUMNS_WIDE 140    /* cells, from which on users, containers and command lines are shown */
#define COLUMNS_NAME_MIN 10 /* cells for the name, which stands last */

/* Finds the columns of a view that fit into `width` cells, and returns their number. The cells that are left are
 * for the name. */
int columns_pick(enum top_view, unsigned int width, bool device, const struct column **out);
/* The name's title: COMMAND, FUNCTION... */
const char *columns_name(enum top_view);

/* Numbers of at most 6 cells: "0", "0.25", "12.3", "1234", "12.3k"; bytes by 1024: "1.5M";
 * percent: "99.9". */
void columns_count(char *buf, size_t size, double);
void columns_bytes(char *buf, size_t size, double);
void columns_percent(char *buf, size_t size, double);
/* "; duty 5 % for 12 functions, probes 0.42 % of CPU (limit 1 %)"; "" where there is none. */
void columns_duty(char *buf, size_t size, const struct probe_cost *);
void columns_time(char *buf, size_t size, double ns);

/* Of a GPU: percent, bytes, bytes, watts; "-": not known. */
struct gpu_texts {
	char util[32], used[32], all[32], power[32];
};
void columns_gpu(struct gpu_texts *, const struct top_gpu *);

#endif
