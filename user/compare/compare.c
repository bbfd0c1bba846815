/* SPDX-License-Identifier: BSD-2-Clause */
/* compare.c - see compare.h: what is compared. compare_print.c prints it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../util/msg.h"
#include "compare.h"

/* The medians decide which rows changed, before any test: to test every row of a large file would take long. */
struct candidate {
	enum saved_section section;
	const char *name;
	double time, calls; /* how much, in absolute numbers */
};

static int by_weight(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time < b->time ? 1 : -1;
	if (a->calls != b->calls)
		return a->calls < b->calls ? 1 : -1;
	return a->section != b->section ? (int)a->section - (int)b->section
					: strcmp(a->name, b->name);
}

static double mean_of(const struct saved *s, enum saved_section section, const char *name,
		      enum saved_field field, double *room)
{
	size_t n = saved_values(s, saved_find(s, section, name), section, field, room);
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += room[i];
	return n ? sum / (double)n : NAN;
}

/* SAVED_SYNC's rows are among those of the libraries' calls. */
static bool is_wanted(const struct saved_row *row)
{
	return *row->name && ((row->section >= SAVED_CALLS_OF && row->section <= SAVED_COPIES));
}

static void add_candidate(const struct compare *c, const struct saved_row *row, double *room,
			  struct candidate *list, size_t *n)
{
	struct candidate *k = &list[*n];
	double time, calls;

	if (!is_wanted(row))
		return;
	time = mean_of(c->now, row->section, row->name, SAVED_TIME, room) -
	       mean_of(c->base, row->section, row->name, SAVED_TIME, room);
	calls = mean_of(c->now, row->section, row->name, SAVED_CALLS, room) -
		mean_of(c->base, row->section, row->name, SAVED_CALLS, room);
	*k = (struct candidate){ row->section, row->name, isnan(time) ? 0 : fabs(time),
				 isnan(calls) ? 0 : fabs(calls) };
	*n += k->time != 0 || k->calls != 0;
}

static int compare_make_rows(struct compare *c)
{
	struct candidate *list = calloc(c->base->nrows + c->now->nrows + 1, sizeof(*list));
	double *room = calloc(c->base->nruns + c->now->nruns, sizeof(*room));
	size_t n = 0;
	int err = list && room ? 0 : -ENOMEM;

	for (size_t i = 0; i < c->base->nrows && !err; i++)
		add_candidate(c, &c->base->rows[i], room, list, &n);
	for (size_t i = 0; i < c->now->nrows && !err; i++)
		if (!saved_find(c->base, c->now->rows[i].section, c->now->rows[i].name))
			add_candidate(c, &c->now->rows[i], room, list, &n);
	if (!err)
		qsort(list, n, sizeof(*list), by_weight);
	c->nothers = n > COMPARE_ROWS ? n - COMPARE_ROWS : 0;
	n -= c->nothers;
	c->rows = calloc(n + 1, sizeof(*c->rows));
	if (!c->rows)
		err = -ENOMEM;
	for (; c->nrows < n && !err; c->nrows++) {
		const struct candidate *k = &list[c->nrows];
		struct compare_row *row = &c->rows[c->nrows];

		err = judge_change(&row->calls, c->base, c->now, k->section, k->name, SAVED_CALLS,
				   SAVED_UNIT_NUMBER);
		if (!err)
			err = judge_change(&row->time, c->base, c->now, k->section, k->name,
					   SAVED_TIME, SAVED_UNIT_NS);
	}
	free(list);
	free(room);
	return err;
}

static int make_keys(struct compare *c)
{
	int err = 0;

	while (saved_key((unsigned int)c->nkeys))
		c->nkeys++;
	c->keys = calloc(c->nkeys, sizeof(*c->keys));
	if (!c->keys)
		return -ENOMEM;
	for (unsigned int i = 0; saved_key(i) && !err; i++)
		err = judge_change(&c->keys[i], c->base, c->now, SAVED_SUMMARY, saved_key(i),
				   SAVED_VALUE, saved_key_unit(saved_key(i)));
	return err;
}

/* A condition is broken if one row breaks it. If no row breaks it, and there is no row of which that is known,
 * then the result is unknown. */
static void compare_count(struct compare *c, const struct judge_expr *exprs, size_t nexprs)
{
	for (size_t i = 0; i < nexprs; i++) {
		bool hit = false, known = false;

		for (size_t k = 0; k < c->results.n; k++) {
			if (c->results.r[k].expr != &exprs[i])
				continue;
			hit |= c->results.r[k].hit;
			known |= !c->results.r[k].unknown;
		}
		c->regressions += hit;
		c->unknown += !known;
	}
}

int compare_open(struct compare *c, const struct saved *base, const struct saved *now,
		 const struct judge_expr *exprs, size_t nexprs, double level)
{
	int err;

	*c = (struct compare){ .base = base, .now = now };
	err = make_keys(c);
	if (!err)
		err = compare_make_rows(c);
	if (!err)
		err = judge_all(&c->results, exprs, nexprs, base, now, level);
	if (!err)
		compare_count(c, exprs, nexprs);
	return err;
}

void compare_close(struct compare *c)
{
	free(c->keys);
	free(c->rows);
	judge_results_free(&c->results);
	*c = (struct compare){ 0 };
}

/* ---- steps ---- */

/* The row that a metric without a glob is about; NULL: no run has it. */
static const struct saved_row *compare_row_of(const struct saved *s,
					      const struct judge_expr *metric)
{
	for (int i = 0; i < SAVED_SECTION_END; i++) {
		const struct saved_row *row =
			metric->sections & 1u << i
				? saved_find(s, (enum saved_section)i, metric->name)
				: NULL;
		if (row)
			return row;
	}
	return NULL;
}

int compare_by_step(struct saved *s, const struct judge_expr *metric, double steps)
{
	const struct saved_row *row = metric ? compare_row_of(s, metric) : NULL;
	double *by = calloc(s->nruns + 1, sizeof(*by));
	int err = by ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->nruns && !err; i++) {
		by[i] = row ? row->values[i * SAVED_FIELD_END + metric->field] : metric ? 0 : steps;
		if (!(by[i] > 0)) {
			msg_error("--step: run %zu of %s has none of it: give another METRIC, or "
				  "the number of steps",
				  i + 1, s->path);
			err = -EINVAL;
		}
	}
	if (!err)
		saved_divide(s, by);
	free(by);
	return err;
}
