/* SPDX-License-Identifier: BSD-2-Clause */
/* rows.c - see model.h: makes sorted and filtered rows of what the model keeps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"
#include "../util/table/array.h"

static struct top_row rows_row_of(const struct top_proc *p)
{
	return (struct top_row){ .pid = p->pid,
				 .start = p->start,
				 .id = p->shown_pid,
				 .label = p->label,
				 .command = p->command,
				 .user = p->user,
				 .container = p->container,
				 .period = p->period,
				 .total = p->total,
				 .memory = p->memory,
				 .has_memory = p->has_memory,
				 .ended = p->ended };
}

static bool belongs(const struct top_entry *e, const struct top_query *q)
{
	if (e->key.proc->pid != q->pid || e->key.proc->start != q->start)
		return false;
	switch (q->view) {
	case TOP_FUNCTIONS: return e->key.how != TOP_DEVICE;
	case TOP_KERNELS: return e->name != NULL;
	case TOP_THREADS: return e->key.how == CT_BY_THREAD;
	default: return false;
	}
}

static int compare_func(const void *a, const void *b)
{
	const struct top_entry *x = *(const struct top_entry *const *)a,
			       *y = *(const struct top_entry *const *)b;

	return (int)x->key.func - (int)y->key.func;
}

static int compare_name(const void *a, const void *b)
{
	return strcmp((*(const struct top_entry *const *)a)->name,
		      (*(const struct top_entry *const *)b)->name);
}

static int compare_by(const void *a, const void *b)
{
	const struct top_entry *x = *(const struct top_entry *const *)a,
			       *y = *(const struct top_entry *const *)b;

	return x->key.by < y->key.by ? -1 : x->key.by > y->key.by;
}

static int (*const groups[TOP_VIEW_END])(const void *, const void *) = {
	[TOP_FUNCTIONS] = compare_func,
	[TOP_KERNELS] = compare_name,
	[TOP_THREADS] = compare_by,
};

static struct top_row row_of_entry(const struct top_entry *e, enum top_view view)
{
	struct top_row r = { .pid = e->key.proc->pid,
			     .start = e->key.proc->start,
			     .ended = e->key.proc->ended };

	r.id = view == TOP_FUNCTIONS ? e->key.func : view == TOP_THREADS ? (uint32_t)e->key.by : 0;
	r.label = view == TOP_FUNCTIONS ? api_funcs[e->key.func].name
		  : view == TOP_KERNELS ? e->name
					: e->key.proc->label;
	return r;
}

static long part_rows(const struct top_state *s, const struct top_query *q, struct top_row **rows)
{
	const struct top_entry **parts = NULL;
	size_t n = 0, out = 0;
	struct top_row *more;

	for (size_t i = 0; i < s->entries.n; i++) {
		if (!belongs(top_entry_at(s, i), q))
			continue;
		if (!array_room(parts, n)) {
			free(parts);
			return -ENOMEM;
		}
		parts[n++] = top_entry_at(s, i);
	}
	more = n ? realloc(*rows, n * sizeof(*more)) : *rows;
	if (n && !more) {
		free(parts);
		return -ENOMEM;
	}
	*rows = more;
	if (n)
		qsort(parts, n, sizeof(const struct top_entry *), groups[q->view]);
	for (size_t i = 0; i < n; i++) {
		if (!i || groups[q->view](&parts[i - 1], &parts[i]))
			more[out++] = row_of_entry(parts[i], q->view);
		top_sums_add(&more[out - 1].period, &parts[i]->period);
		top_sums_add(&more[out - 1].total, &parts[i]->total);
	}
	free(parts);
	return (long)out;
}

static long process_rows(const struct top_state *s, struct top_row **rows)
{
	struct top_row *more = s->procs.n ? realloc(*rows, s->procs.n * sizeof(*more)) : *rows;

	if (s->procs.n && !more)
		return -ENOMEM;
	*rows = more;
	for (size_t i = 0; i < s->procs.n; i++)
		more[i] = rows_row_of(top_proc_at(s, i));
	return (long)s->procs.n;
}

/* ---- order ---- */

static uint64_t rows_key_of(const struct top_row *r, enum top_sort sort)
{
	switch (sort) {
	case TOP_BY_CALLS: return r->period.calls;
	case TOP_BY_LAUNCHES: return r->period.launches;
	case TOP_BY_SYNC: return r->period.sync_ns;
	case TOP_BY_HTOD: return r->period.htod;
	case TOP_BY_DTOH: return r->period.dtoh;
	case TOP_BY_MEMORY: return r->has_memory ? (uint64_t)(r->memory + INT64_MAX / 2) : 0;
	case TOP_BY_FAILED: return r->period.failed;
	case TOP_BY_GPU: return r->period.gpu_ns;
	case TOP_BY_BUSY: return r->period.busy_ns;
	default: return r->period.api_ns;
	}
}

/* Rows with equal sort keys keep their order from one refresh to the next: by number, then by
 * name. */
static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct top_row *x = a, *y = b;
	const struct top_query *q = ctx;
	int order = 0;

	if (q->sort == TOP_BY_NAME) {
		order = strcmp(x->label, y->label);
	} else if (q->sort != TOP_BY_PID) {
		uint64_t kx = rows_key_of(x, q->sort), ky = rows_key_of(y, q->sort);

		order = kx > ky ? -1 : kx < ky;
	}
	/* the views of one process have no pids to sort by: what was used most since the beginning comes first */
	if (!order && q->view != TOP_PROCESSES && q->view != TOP_THREADS && q->sort != TOP_BY_NAME)
		order = x->total.calls > y->total.calls ? -1 : x->total.calls < y->total.calls;
	if (!order)
		order = x->id < y->id ? -1 : x->id > y->id;
	if (!order)
		order = strcmp(x->label, y->label);
	return q->reverse ? -order : order;
}

static long keep_matching(struct top_row *rows, long n, const char *filter)
{
	long kept = 0;

	for (long i = 0; i < n; i++)
		if (strcasestr(rows[i].label, filter))
			rows[kept++] = rows[i];
	return kept;
}

long model_rows(struct top_model *m, const struct top_query *q, struct top_row **rows)
{
	long n = q->view == TOP_PROCESSES ? process_rows(m->state, rows)
					  : part_rows(m->state, q, rows);

	if (n > 0 && q->filter && *q->filter)
		n = keep_matching(*rows, n, q->filter);
	if (n > 0)
		qsort_r(*rows, (size_t)n, sizeof(**rows), compare_rows, (void *)q);
	return n;
}
