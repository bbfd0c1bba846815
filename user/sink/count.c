/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * count.c - counts and times by function, printed at the end, in strace -c's manner:
 *
 *   % time     seconds  usecs/call     calls    errors function
 *   ------ ----------- ----------- --------- --------- ----------------
 *    97.13    0.001124         112        10           cudaMalloc
 *
 * Knows no function by name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sink.h"

struct count {
	uint64_t calls, errors, ns;
};

struct counts {
	struct count of[CT_MAX_FUNCS];
};

static int count_open(struct sink *s, const struct sink_opts *opts)
{
	s->opts = opts;
	s->priv = calloc(1, sizeof(struct counts));
	return s->priv ? 0 : -ENOMEM;
}

static int count_event(struct sink *s, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	struct counts *counts = s->priv;
	struct count *n;

	if (c->h.kind != CT_CALL || c->h.flags & CT_F_PENDING)
		return 0;
	n = &counts->of[c->func];
	n->calls++;
	n->errors += api_failed(c);
	if (!(c->h.flags & CT_F_UNFINISHED))
		n->ns += c->h.end_ns - c->h.start_ns;
	return 1;
}

/* A row of the output. */
struct line {
	struct count n;
	const char *name;
};

static int by_time(const void *pa, const void *pb)
{
	const struct line *a = pa, *b = pb;

	if (a->n.ns != b->n.ns)
		return a->n.ns < b->n.ns ? 1 : -1;
	if (a->n.calls != b->n.calls)
		return a->n.calls < b->n.calls ? 1 : -1;
	return strcmp(a->name, b->name);
}

static void print_line(struct out *o, const struct line *l, uint64_t all_ns)
{
	double percent = all_ns ? 100.0 * (double)l->n.ns / (double)all_ns : 0.0;

	out_fmt(o, "%6.2f %11.6f %11.0f %9llu ", percent, (double)l->n.ns / 1e9,
		l->n.calls ? (double)l->n.ns / 1e3 / (double)l->n.calls : 0.0, (unsigned long long)l->n.calls);
	if (l->n.errors)
		out_fmt(o, "%9llu ", (unsigned long long)l->n.errors);
	else
		out_fmt(o, "%9s ", "");
	out_fmt(o, "%s\n", l->name);
}

static int count_close(struct sink *s, const struct sink_end *end)
{
	static const char rule[] = "------ ----------- ----------- --------- --------- ----------------\n";
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
		if (!counts->of[i].calls)
			continue;
		lines[n].n = counts->of[i];
		lines[n++].name = api_funcs[i].name;
		total.n.calls += counts->of[i].calls;
		total.n.errors += counts->of[i].errors;
		total.n.ns += counts->of[i].ns;
	}
	qsort(lines, (size_t)n, sizeof(*lines), by_time);
	if (s->opts->counts && !s->opts->counts_only)
		out_char(o, '\n');
	out_fmt(o, "%6s %11s %11s %9s %9s %s\n%s", "% time", "seconds", "usecs/call", "calls", "errors", "function", rule);
	for (int i = 0; i < n; i++)
		print_line(o, &lines[i], total.n.ns);
	out_str(o, rule);
	print_line(o, &total, total.n.ns);
	free(lines);
	free(counts);
	s->priv = NULL;
	return o->error;
}

const struct sink_ops sink_count = {
	.name = "count",
	.help = "counts and times by function at the end",
	.open = count_open,
	.event = count_event,
	.close = count_close,
};
