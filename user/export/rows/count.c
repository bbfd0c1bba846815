/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * count.c - counts and times by function, printed at the end, in strace -c's manner:
 *
 *   % time     seconds  usecs/call     calls    errors function
 *   ------ ----------- ----------- --------- --------- ----------------
 *    97.13    0.001124         112        10           cudaMalloc
 *
 * Device work has a separate table below: its time is the devices' time, which passes in parallel
 * to the calls' time. Knows no function by name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../event/device.h"
#include "../../flow/sink.h"
#include "../../render/table.h"

struct count {
	uint64_t calls, errors, ns;
	struct ct_estimated unseen; /* part of the calls is an estimate */
};

#define COPIES (CT_COPY_PTOP + 1)

struct counts {
	struct count of[CT_MAX_FUNCS];
	struct muted_sum muted[CT_MAX_FUNCS];
	struct count device[CT_KIND_END], copies[COPIES]; /* by kind; of CT_COPY by its own */
};

static int count_open(struct sink *s, const struct sink_opts *opts)
{
	s->opts = opts;
	s->priv = calloc(1, sizeof(struct counts));
	return s->priv ? 0 : -ENOMEM;
}

static int count_device(struct counts *counts, const struct ct_hdr *h)
{
	uint8_t kind = h->kind == CT_COPY ? ((const struct ct_copy *)h)->kind : 0;
	struct count *n;

	if (!kind_is(h->kind, KIND_TIMED))
		return 0;
	n = h->kind == CT_COPY ? &counts->copies[kind < COPIES ? kind : 0]
			       : &counts->device[h->kind];
	n->calls++;
	n->ns += h->end_ns - h->start_ns;
	return 1;
}

static int count_event(struct sink *s, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	struct counts *counts = s->priv;
	struct count *n;

	if (c->h.kind == CT_MUTED) {
		int func = muted_func((const struct ct_muted *)ev->rec);

		if (func >= 0)
			muted_add(&counts->muted[func], (const struct ct_muted *)ev->rec);
		return 0;
	}
	if (c->h.kind != CT_CALL)
		return count_device(counts, ev->rec);
	if (c->h.flags & CT_F_PENDING)
		return 0;
	n = &counts->of[c->func];
	n->calls++;
	n->errors += api_failed(c);
	if (!(c->h.flags & CT_F_UNFINISHED))
		n->ns += c->h.end_ns - c->h.start_ns;
	return 1;
}

/* A row of the output; first: what it is sorted by before anything else, the largest first. */
struct line {
	struct count n;
	uint64_t first;
	const char *name;
};

static int count_by_time(const void *pa, const void *pb)
{
	const struct line *a = pa, *b = pb;

	if (a->first != b->first)
		return a->first < b->first ? 1 : -1;
	if (a->n.ns != b->n.ns)
		return a->n.ns < b->n.ns ? 1 : -1;
	if (a->n.calls != b->n.calls)
		return a->n.calls < b->n.calls ? 1 : -1;
	return strcmp(a->name, b->name);
}

static int count_by_name(const void *pa, const void *pb)
{
	const struct line *a = pa, *b = pb;

	return strcmp(a->name, b->name);
}

static void sort(struct line *lines, int n, uint8_t by)
{
	for (int i = 0; i < n; i++)
		lines[i].first = by == SINK_COUNT_BY_CALLS    ? lines[i].n.calls
				 : by == SINK_COUNT_BY_ERRORS ? lines[i].n.errors
							      : 0;
	qsort(lines, (size_t)n, sizeof(*lines),
	      by == SINK_COUNT_BY_NAME ? count_by_name : count_by_time);
}

#define DEVICES 1u /* what the lines are about; else calls */

/* The context of the table is the time of all lines. */
static struct cell line_percent(const struct table_at *at)
{
	uint64_t all_ns = *(const uint64_t *)at->ctx;

	return cell_real(all_ns ? (double)((const struct line *)at->row)->n.ns / (double)all_ns
				: 0);
}

TABLE_GET(line_seconds, struct line, l, cell_real((double)l->n.ns / 1e9))
TABLE_GET(line_each, struct line, l,
	  cell_real(l->n.calls ? (double)l->n.ns / 1e3 / (double)l->n.calls : 0))

static const char *show_calls(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct line *l = at->row;

	return muted_number(buf, TABLE_CELL, l->n.calls, &l->n.unseen);
}

static const char *show_errors(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct line *l = at->row;

	return l->n.errors ? muted_failures(buf, TABLE_CELL, l->n.errors, &l->n.unseen) : "";
}

static void write_name(struct out *o, const struct table_at *at)
{
	const struct line *l = at->row;
	char margin[96];

	muted_margin(margin, sizeof(margin), l->n.calls, &l->n.unseen);
	out_fmt(o, "%s%s%s", l->name, *margin ? "  calls" : "", margin);
}

/* clang-format off */
static const struct table_column columns[] = {
	{ .head = "% time", .text = 1, .width = 6, .unit = TABLE_SHARE, .digits = 2, .get = line_percent },
	{ .head = "seconds", .text = 2, .width = 11, .unit = TABLE_FIXED, .digits = 6, .get = line_seconds },
	{ .head = "usecs/call", .text = 3, .width = 11, .unit = TABLE_FIXED, .unless = DEVICES, .get = line_each },
	{ .head = "usecs/each", .text = 3, .width = 11, .unit = TABLE_FIXED, .needs = DEVICES, .get = line_each },
	{ .head = "calls", .text = 4, .width = 9, .unless = DEVICES, .show = show_calls },
	{ .head = "number", .text = 4, .width = 9, .needs = DEVICES, .show = show_calls },
	{ .head = "errors", .text = 5, .width = 9, .unless = DEVICES, .show = show_errors },
	{ .head = "", .text = 5, .width = 9, .needs = DEVICES, .show = show_errors },
	{ .head = "function", .text = 6, .width = -1, .unless = DEVICES, .write = write_name },
	{ .head = "on devices", .text = 6, .width = -1, .needs = DEVICES, .write = write_name },
};
/* clang-format on */

/* The lines, sorted, and their sum. */
static void print_lines(struct out *o, uint32_t about, struct line *lines, int n, uint8_t by,
			const struct line *total)
{
	static const char rule[] =
		"------ ----------- ----------- --------- --------- ----------------\n";
	struct table t = TABLE_OF(columns, about, &total->n.ns);

	t.edge = true;
	sort(lines, n, by);
	table_text_heads(&t, o);
	out_str(o, rule);
	for (int i = 0; i < n; i++)
		table_text_row(&t, o, &lines[i]);
	out_str(o, rule);
	table_text_row(&t, o, total);
}

static void add_line(struct line *lines, int *n, const struct count *c, const char *name)
{
	if (c->calls)
		lines[(*n)++] = (struct line){ .n = *c, .name = name };
}

/* Prints what devices did, if anything. */
static void print_devices(const struct counts *counts, struct out *o, uint8_t by)
{
	struct line lines[CT_KIND_END + COPIES], total = { .name = "total" };
	char names[CT_KIND_END + COPIES][32];
	int n = 0;

	for (int i = 0; i < CT_KIND_END; i++) {
		snprintf(names[i], sizeof(names[i]), "[%s]",
			 kind_is((uint16_t)i, KIND_TIMED) ? record_kinds[i].json : "");
		add_line(lines, &n, &counts->device[i], names[i]);
	}
	for (uint32_t i = 0; i < COPIES; i++) {
		char *name = names[CT_KIND_END + i];

		snprintf(name, sizeof(names[0]), "[memcpy %s]", device_copy_kind(i));
		add_line(lines, &n, &counts->copies[i], name);
	}
	if (!n)
		return;
	for (int i = 0; i < n; i++) {
		total.n.calls += lines[i].n.calls;
		total.n.ns += lines[i].n.ns;
	}
	out_char(o, '\n');
	print_lines(o, DEVICES, lines, n, by, &total);
}

/* Calls that had no records of their own. */
static void add_muted(struct count *n, const struct muted_sum *m)
{
	n->calls += muted_calls(m);
	n->errors += m->failed;
	n->ns += muted_ns(m);
	n->unseen = m->unseen;
}

static int count_close(struct sink *s, const struct sink_end *end)
{
	struct counts *counts = s->priv;
	struct line total = { .name = "total" }, *lines;
	struct out *o;
	int n = 0;

	(void)end;
	if (!counts)
		return 0;
	o = s->opts->out;
	lines = calloc((size_t)api_nfuncs + 1, sizeof(*lines));
	if (!lines) {
		free(counts);
		s->priv = NULL;
		return -ENOMEM;
	}
	for (int i = 0; i < api_nfuncs && i < CT_MAX_FUNCS; i++) {
		add_muted(&counts->of[i], &counts->muted[i]);
		if (!counts->of[i].calls)
			continue;
		lines[n].n = counts->of[i];
		lines[n++].name = api_funcs[i].name;
		total.n.calls += counts->of[i].calls;
		total.n.errors += counts->of[i].errors;
		total.n.ns += counts->of[i].ns;
		muted_add_unseen(&total.n.unseen, &counts->of[i].unseen);
	}
	if (s->opts->look.counts && !s->opts->look.counts_only)
		out_char(o, '\n');
	print_lines(o, 0, lines, n, s->opts->look.counts_by, &total);
	print_devices(counts, o, s->opts->look.counts_by);
	free(lines);
	free(counts);
	s->priv = NULL;
	return o->error;
}

const struct sink_ops sink_count = {
	.name = "count",
	.open = count_open,
	.event = count_event,
	.close = count_close,
};
