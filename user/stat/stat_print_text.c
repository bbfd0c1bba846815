/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stat_print_text.c - a report for people:
 *
 *   Runtime API calls
 *    Time%      Total       Calls  Failed       Avg       Med       P99       Min       Max
 *               StdDev      Bytes  Name
 *    97.13   1.124 ms          10       0  112.4 us   98.1 us  201.3 us   90.0 us  203.0 us
 *            34.2 us    1.0 MiB  cudaMalloc
 *
 * Knows no source.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../event/holes/holes.h"
#include "../util/units.h"
#include "stat_tables.h"

/* Writes a bar of at most BAR columns; any value above 0 is visible. */
#define BAR 40
static void bar(struct out *o, uint64_t n, uint64_t most, bool utf8)
{
	static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	unsigned int parts = (unsigned int)ceil((double)n * BAR * 8 / (double)most);

	for (unsigned int i = 0; i < parts / 8; i++)
		out_str(o, utf8 ? "█" : "#");
	if (parts % 8)
		out_str(o, utf8 ? eighths[parts % 8] : "#");
}

/* A line for each octave, from the first that has any to the last. */
static void print_histogram(struct out *o, const struct report_row *row, bool utf8)
{
	uint64_t octaves[CT_HIST_BUCKETS / 8] = { 0 }, most = 0;
	char from[32], to[32];
	int first = -1, last = 0;

	for (int i = 0; i < CT_HIST_BUCKETS; i++)
		octaves[i / 8] += row->hist->n[i];
	for (int i = 0; i < CT_HIST_BUCKETS / 8; i++) {
		if (!octaves[i])
			continue;
		first = first < 0 ? i : first;
		last = i;
		most = octaves[i] > most ? octaves[i] : most;
	}
	if (first < 0)
		return;
	out_char(o, ' ');
	out_mem(o, row->label.s, row->label.len);
	out_char(o, '\n');
	for (int i = first; i <= last; i++) {
		print_duration(from, sizeof(from), (double)book_bucket_ns((uint32_t)i * 8));
		/* the last bucket has no end */
		if (i + 1 < CT_HIST_BUCKETS / 8)
			print_duration(to, sizeof(to), (double)book_bucket_ns((uint32_t)i * 8 + 8));
		else
			snprintf(to, sizeof(to), "more");
		out_fmt(o, "  %9s to %9s %12llu%s", from, to, (unsigned long long)octaves[i],
			octaves[i] ? "  " : "");
		bar(o, octaves[i], most, utf8);
		out_char(o, '\n');
	}
}

static void histograms(struct out *o, const struct report *r, enum report_section s, bool utf8)
{
	bool any = false;

	/* the calls that wait are already counted with their API */
	for (size_t i = 0; i < r->nrows[s] && s != REPORT_SYNC; i++) {
		if (!r->rows[s][i].hist)
			continue;
		if (!any)
			out_fmt(o, "%s: durations\n", report_section_title(s));
		any = true;
		print_histogram(o, &r->rows[s][i], utf8);
	}
	if (any)
		out_char(o, '\n');
}

/* The name of a row, and how far off an estimate of its calls may be. */
static void stat_print_text_name_of(struct text *t, const struct section_row *row)
{
	char margin[96];

	if (row->r)
		text_mem(t, row->r->label.s, row->r->label.len);
	else
		text_str(t, "total");
	if (!*muted_margin(margin, sizeof(margin), row->n->calls, row->unseen))
		return;
	text_str(t, row->r ? "  calls" : ", calls");
	text_str(t, margin);
}

static void section_line(struct out *o, const struct table *t, const struct section_row *row)
{
	struct text name = { 0 };
	struct section_row named = *row;

	named.name = &name;
	stat_print_text_name_of(&name, row);
	table_text_row(t, o, &named);
	text_free(&name);
}

/* top: how many of its rows; 0: all. The total is always that of all rows. */
static void section(struct out *o, const struct report *r, enum report_section s,
		    const struct print_about *a)
{
	size_t n = a->top && a->top < r->nrows[s] ? a->top : r->nrows[s];
	const struct table t = stat_section_table(s, a);

	if (!r->nrows[s])
		return;
	out_fmt(o, "%s\n", report_section_title(s));
	table_text_heads(&t, o);
	for (size_t i = 0; i < n; i++)
		section_line(o, &t,
			     &(struct section_row){ .section = s,
						    .r = &r->rows[s][i],
						    .n = &r->rows[s][i].n,
						    .unseen = &r->rows[s][i].unseen });
	if (n < r->nrows[s])
		out_fmt(o, " %6s %10s %11s  and %zu more\n", "", "", "...", r->nrows[s] - n);
	if (r->nrows[s] > 1)
		section_line(o, &t,
			     &(struct section_row){
				     .section = s, .n = &r->totals[s], .unseen = &r->unseen[s] });
	out_char(o, '\n');
}

/* The same operations by their sizes. */
static void sizes(struct out *o, const struct report *r)
{
	const struct table t = stat_sizes_table();
	bool any = false;

	for (size_t i = 0; i < r->nrows[REPORT_COPIES]; i++) {
		const struct report_row *row = &r->rows[REPORT_COPIES][i];

		if (!row->sizes)
			continue;
		if (!any) {
			out_str(o, "GPU memory operations by size\n");
			table_text_heads(&t, o);
		}
		any = true;
		table_text_row(&t, o, row);
	}
	if (any)
		out_char(o, '\n');
}

static void gauges(struct out *o, const struct gauges *g)
{
	const struct table t = stat_gauges_table();

	if (!g->n)
		return;
	out_str(o, "Hardware counters\n");
	table_text_heads(&t, o);
	for (size_t i = 0; i < g->n; i++)
		table_text_row(&t, o, &g->list[i]);
	out_char(o, '\n');
}

static void traffic(struct out *o, const struct report *r)
{
	const struct table t = stat_traffic_table();
	bool any = false;

	for (int w = 0; w < REPORT_WAY_END; w++) {
		const struct traffic_row row = { (enum report_way)w, &r->traffic[w] };

		if (!row.t->copies)
			continue;
		if (!any) {
			out_fmt(o, "Memory traffic (%s)\n",
				r->device ? "on the device" : "as calls asked for it");
			table_text_heads(&t, o);
		}
		any = true;
		table_text_row(&t, o, &row);
	}
	if (any)
		out_char(o, '\n');
}

static void launches(struct out *o, const struct report *r)
{
	char text[32], margin[96];

	if (!r->launches && !r->graph_launches)
		return;
	out_str(o, "Launches\n");
	out_fmt(o, " %-34s %s", "kernel launches",
		muted_number(text, sizeof(text), r->launches, &r->launches_unseen));
	out_str(o, muted_margin(margin, sizeof(margin), r->launches, &r->launches_unseen));
	if (r->span_ns)
		out_fmt(o, "  (%s%.1f a second)", muted_unseen(&r->launches_unseen) ? "~" : "",
			(double)r->launches * 1e9 / (double)r->span_ns);
	out_char(o, '\n');
	if (r->launches) {
		out_fmt(o, " %-34s %.1f %%\n", "on streams of the program's own",
			100.0 * (double)r->on_streams / (double)r->launches);
		if (r->threads)
			out_fmt(o, " %-34s %.0f\n", "threads a launch",
				(double)r->threads / (double)r->launches);
		out_fmt(o, " %-34s %s\n", "dynamic shared memory a block",
			print_bytes(text, sizeof(text),
				    (double)r->shared_bytes / (double)r->launches));
	}
	out_fmt(o, " %-34s %s\n\n", "graph launches",
		muted_number(text, sizeof(text), r->graph_launches, &r->graphs_unseen));
}

static void stat_print_text_memory(struct out *o, const struct book_memory *m)
{
	char text[32], other[32];

	out_fmt(o, " %-34s %s", "memory held at the end", m->device_bytes < 0 ? "-" : "");
	out_fmt(o, "%s on devices", print_bytes(text, sizeof(text), fabs((double)m->device_bytes)));
	if (m->host_bytes)
		out_fmt(o, ", %s%s pinned", m->host_bytes < 0 ? "-" : "",
			print_bytes(other, sizeof(other), fabs((double)m->host_bytes)));
	if (m->unknown)
		out_fmt(o, "; %llu frees of unknown size", (unsigned long long)m->unknown);
	if (m->forgotten)
		out_fmt(o, "; %llu allocations found no room", (unsigned long long)m->forgotten);
	out_char(o, '\n');
}

/* What it took the agent to come in. */
static void entered(struct out *o, const struct entered_sum *e)
{
	char text[32];

	if (e->ns)
		out_fmt(o, " %-34s %s inside %s, and in no sum\n", "the agent's coming in",
			print_duration(text, sizeof(text), (double)e->ns),
			e->func < api_nfuncs ? api_funcs[e->func].name : "calls");
	if (e->in_sums_ns)
		out_fmt(o, " %-34s %s inside a call that is not known: it is in the sums\n",
			"the agent's coming in",
			print_duration(text, sizeof(text), (double)e->in_sums_ns));
}

/* Writes for how much of the time probes were attached, and their cost. */
static void duty(struct out *o, const struct probe_cost *c)
{
	if (!c->reported)
		return;
	if (c->functions)
		out_fmt(o, " %-34s %.3g %% of the time, for %u functions\n", "probes on duty",
			c->duty * 100, c->functions);
	if (c->cpu_ns)
		out_fmt(o, " %-34s %.2g %%", "of the programs' CPU time",
			100.0 * (double)c->ns / (double)c->cpu_ns);
	if (c->cpu_ns && c->cost >= 0)
		out_fmt(o, ", at last %.2g %%", c->cost * 100);
	if (c->cpu_ns && c->max_cost > 0)
		out_fmt(o, " (limit %.2g %%)", c->max_cost * 100);
	if (c->cpu_ns)
		out_char(o, '\n');
}

/* What was not seen: the sums are too small by that. */
static void not_seen(struct out *o, const struct print_about *a)
{
	char text[HOLES_TEXT];

	holes_text(a->end->losses.holes, 0, " not seen                           ", "\n", text,
		   sizeof(text));
	out_str(o, text);
}

static void profile(struct out *o, const struct report *r, const struct print_about *a)
{
	uint64_t compute = r->totals[REPORT_KERNELS].ns, copy = r->totals[REPORT_COPIES].ns;
	struct ct_estimated unseen;
	struct ct_sums calls;
	uint64_t hits;
	char text[32], other[32];
	double ns;

	report_calls(r, &calls, &unseen);
	out_str(o, "Profile\n");
	out_fmt(o, " %-34s %s\n", "observed",
		print_duration(text, sizeof(text), (double)r->span_ns));
	if (calls.ns)
		out_fmt(o, " %-34s %.1f %%\n", "of the time in calls: waiting",
			100.0 * (double)r->totals[REPORT_SYNC].ns / (double)calls.ns);
	if (r->moves)
		out_fmt(o, " %-34s %.1f %%\n", "copies and memsets: asynchronous",
			100.0 * (double)r->moves_async / (double)r->moves);
	if (r->device) {
		out_fmt(o, " %-34s %s / %s", "compute / copy on the device",
			print_duration(text, sizeof(text), (double)compute),
			print_duration(other, sizeof(other), (double)copy));
		if (copy)
			out_fmt(o, "  (%.2f)", (double)compute / (double)copy);
		out_char(o, '\n');
	}
	if (r->ndevices && r->span_ns)
		out_fmt(o, " %-34s %.1f %%\n", "a kernel runs", print_kernel_utilization(r) * 100);
	if (a->peak_bytes)
		out_fmt(o, " %-34s %s\n", "peak of device memory",
			print_bytes(text, sizeof(text), (double)a->peak_bytes));
	if (a->memory && r->memory.calls)
		stat_print_text_memory(o, &r->memory);
	ns = print_own_cost_ns(a, &hits);
	if (ns > 0)
		out_fmt(o, " %-34s %s at the least: %llu hits of %llu ns\n",
			"what the probes cost the programs", print_duration(text, sizeof(text), ns),
			(unsigned long long)hits, (unsigned long long)a->end->losses.pair_ns);
	duty(o, &a->end->losses.probes);
	entered(o, &r->entered);
	if (r->odd_sizes)
		out_fmt(o, " %-34s %llu calls or records: 256 TiB or more, and in no sum\n",
			"sizes that cannot be", (unsigned long long)r->odd_sizes);
	if (losses_total(&a->end->losses))
		out_fmt(o, " %-34s %llu records or calls: the sums are too small\n", "lost",
			(unsigned long long)losses_total(&a->end->losses));
	not_seen(o, a);
	out_char(o, '\n');
}

static void occupancy(struct out *o, const struct report *r, const struct print_about *a)
{
	const struct table t = stat_occupancy_table(a);
	bool any = false;

	for (size_t i = 0; a->device && i < r->nrows[REPORT_KERNELS]; i++) {
		const struct report_row *row = &r->rows[REPORT_KERNELS][i];

		if (report_occupancy(&row->shape, a->device) < 0)
			continue;
		if (!any) {
			out_str(o, "Theoretical occupancy\n");
			table_text_heads(&t, o);
		}
		any = true;
		table_text_row(&t, o, row);
	}
	if (any)
		out_char(o, '\n');
}

double print_own_cost_ns(const struct print_about *a, uint64_t *hits)
{
	const struct losses *l = &a->end->losses;

	*hits = l->counted + l->folded + l->filtered;
	return (double)*hits * (double)l->pair_ns;
}

double print_kernel_utilization(const struct report *r)
{
	return (double)r->busy_ns / (double)r->ndevices / (double)r->span_ns;
}

void print_text(struct out *o, const struct report *r, const struct print_about *a)
{
	for (int s = 0; s < REPORT_SECTION_END; s++) {
		section(o, r, (enum report_section)s, a);
		if (s == REPORT_COPIES)
			sizes(o, r);
	}
	for (int s = 0; s < REPORT_SECTION_END && a->hist; s++)
		histograms(o, r, (enum report_section)s, a->utf8);
	traffic(o, r);
	launches(o, r);
	occupancy(o, r, a);
	gauges(o, r->gauges);
	profile(o, r, a);
}
