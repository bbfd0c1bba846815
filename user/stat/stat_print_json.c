/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stat_print_json.c - a report for programs: one JSON object (what `compare` reads again), or
 * CSV with a row for each function, kernel and kind of copy. All times in nanoseconds. Knows no
 * source.
 */
#include <string.h>

#include "../flow/json_text.h"
#include "stat_print.h"

/* Times that are not known (for example of calls without return probes) are left out. */
static void sums(struct json *j, const struct ct_sums *n)
{
	json_put_u64(j, "calls", n->calls);
	json_put_u64(j, "failed", n->failed);
	if (n->timed) {
		json_put_u64(j, "total_ns", n->ns);
		json_put_real(j, "avg_ns", 1, book_mean_ns(n));
		json_put_u64(j, "min_ns", n->min_ns);
		json_put_u64(j, "max_ns", n->max_ns);
		json_put_real(j, "stddev_ns", 1, book_deviation_ns(n));
	}
	json_put_u64(j, "bytes", n->bytes);
}

/* Writes the estimated part of the calls and by how much it may be wrong at 95 % confidence, or
 * only the minimum number if text output shows only that. Writes nothing if each call was
 * counted. */
static void estimate(struct json *j, uint64_t calls, const struct ct_estimated *e)
{
	if (!muted_unseen(e) && !muted_error(e))
		return;
	json_put_u64(j, "estimated", muted_unseen(e));
	json_put_u64(j, "error", muted_error(e));
	if (muted_is_floor(calls, e))
		json_put_u64(j, "at_least", muted_at_least(calls, e));
}

static void sizes(struct json *j, const struct report_row *r)
{
	json_put_real(j, "avg_bytes", 1, book_mean_ns(&r->sizes->n));
	json_put_u64(j, "median_bytes", r->median_bytes);
	json_put_u64(j, "min_bytes", r->sizes->n.min_ns);
	json_put_u64(j, "max_bytes", r->sizes->n.max_ns);
	json_put_real(j, "stddev_bytes", 1, book_deviation_ns(&r->sizes->n));
}

static void histogram(struct json *j, const struct report_row *r)
{
	json_open_array(j, "histogram_ns");
	for (int i = 0; i < CT_HIST_BUCKETS; i++) {
		if (!r->hist->n[i])
			continue;
		json_open_array(j, NULL);
		json_put_u64(j, NULL, book_bucket_ns((uint32_t)i));
		json_put_u64(j, NULL, r->hist->n[i]);
		json_end(j);
	}
	json_end(j);
}

static void row(struct json *j, const struct report_row *r, const struct print_about *a)
{
	double share = a->device && r->what == BOOK_KERNEL ? report_occupancy(&r->shape, a->device)
							   : -1;

	json_line(j, " ");
	json_open_object(j, NULL);
	json_put_bytes(j, "name", r->label.s, r->label.len);
	sums(j, &r->n);
	estimate(j, r->n.calls, &r->unseen);
	json_put_real(j, "share", 6, r->share);
	if (r->hist) {
		json_put_u64(j, "median_ns", r->median_ns);
		json_put_u64(j, "p90_ns", r->p90_ns);
		json_put_u64(j, "p99_ns", r->p99_ns);
	}
	if (r->sizes)
		sizes(j, r);
	if (share >= 0)
		json_put_real(j, "occupancy", 4, share);
	if (a->hist && r->hist)
		histogram(j, r);
	json_end(j);
}

/* Writes values from device work. With --gpu they are there even if no device work came. */
static void derived_device(struct json *j, const struct report *r)
{
	uint64_t bytes = 0, ns = 0;

	for (int w = 0; w < REPORT_WAY_END && r->device; w++) {
		bytes += r->traffic[w].bytes;
		ns += r->traffic[w].ns;
	}
	json_put_u64(j, "kernel_time_ns", r->totals[REPORT_KERNELS].ns);
	json_put_u64(j, "copy_time_ns", r->totals[REPORT_COPIES].ns);
	if (r->span_ns)
		json_put_real(j, "kernel_utilization", 6,
			      r->ndevices ? print_kernel_utilization(r) : 0);
	if (ns)
		json_put_real(j, "memory_efficiency_gb_per_second", 6, (double)bytes / (double)ns);
}

/* Writes the latest share of the time for which probes were attached, and their cost as a share
 * of the programs' CPU time. */
static void duty(struct json *j, const struct probe_cost *c)
{
	json_put_real(j, "duty", 6, c->duty);
	json_put_u64(j, "functions_on_duty", c->functions);
	json_put_u64(j, "probe_cost_ns", c->ns);
	json_put_u64(j, "cpu_ns", c->cpu_ns);
	if (c->cost >= 0)
		json_put_real(j, "cost", 6, c->cost);
	if (c->max_cost > 0)
		json_put_real(j, "max_cost", 6, c->max_cost);
}

/* Writes the derived numbers that compare can use; docs/stat.md defines each. */
static void derived(struct json *j, const struct report *r, const struct print_about *a)
{
	struct ct_estimated unseen;
	struct ct_sums calls;
	uint64_t bytes = 0, hits;
	double cost = print_own_cost_ns(a, &hits);

	report_calls(r, &calls, &unseen);
	for (int w = 0; w < REPORT_WAY_END; w++)
		losses_add(&bytes, r->traffic[w].bytes);
	json_open_object(j, "summary");
	json_put_u64(j, "span_ns", r->span_ns);
	if (r->timed || !calls.calls) {
		json_put_u64(j, "total_api_time_ns", calls.ns);
		json_put_u64(j, "sync_time_ns", r->totals[REPORT_SYNC].ns);
	}
	json_put_u64(j, "total_api_calls", calls.calls);
	estimate(j, calls.calls, &unseen);
	json_put_u64(j, "failed_calls", calls.failed);
	json_put_u64(j, "launches", r->launches);
	if (muted_unseen(&r->launches_unseen) || muted_error(&r->launches_unseen)) {
		json_put_u64(j, "launches_estimated", muted_unseen(&r->launches_unseen));
		json_put_u64(j, "launches_error", muted_error(&r->launches_unseen));
	}
	json_put_u64(j, "graph_launches", r->graph_launches);
	json_put_u64(j, "launch_threads", r->threads);
	json_put_u64(j, "stream_launches", r->on_streams);
	json_put_u64(j, "moves", r->moves);
	json_put_u64(j, "async_moves", r->moves_async);
	json_put_u64(j, "bytes_moved", bytes);
	if (r->entered.ns)
		json_put_u64(j, "agent_entered_ns", r->entered.ns);
	if (r->entered.in_sums_ns)
		json_put_u64(j, "agent_entered_in_sums_ns", r->entered.in_sums_ns);
	if (r->odd_sizes)
		json_put_u64(j, "impossible_sizes", r->odd_sizes);
	if (r->device || a->gpu)
		derived_device(j, r);
	if (a->peak_bytes)
		json_put_u64(j, "peak_bytes", a->peak_bytes);
	if (cost > 0) {
		json_put_u64(j, "probe_hits", hits);
		json_put_real(j, "own_cost_ns", 0, cost);
	}
	if (a->end->losses.probes.reported)
		duty(j, &a->end->losses.probes);
	json_end(j);
}

static void memory(struct json *j, const struct book_memory *m)
{
	json_line(j, "");
	json_open_object(j, "memory");
	json_put_i64(j, "device_held_bytes", m->device_bytes);
	json_put_i64(j, "host_held_bytes", m->host_bytes);
	json_put_u64(j, "frees_of_unknown_size", m->unknown);
	json_put_u64(j, "allocations_without_room", m->forgotten);
	json_end(j);
}

static void counters(struct json *j, const struct gauges *g)
{
	json_line(j, "");
	json_open_array(j, "counters");
	for (size_t i = 0; i < g->n; i++) {
		const struct gauge *k = &g->list[i];

		if (!k->samples)
			continue;
		json_line(j, " ");
		json_open_object(j, NULL);
		json_put_u64(j, "device", k->device);
		if (*k->uuid)
			json_put_str(j, "gpu_uuid", k->uuid);
		json_put_str(j, "name", k->name);
		json_put_str(j, "unit", k->unit);
		json_put_u64(j, "samples", k->samples);
		json_put_u64(j, "suspect", k->suspect);
		json_put_double(j, "avg", gauge_mean(k));
		json_put_double(j, "min", k->least);
		json_put_double(j, "max", k->most);
		json_end(j);
	}
	json_end(j);
}

static void traffic(struct json *j, const struct report *r)
{
	json_line(j, "");
	json_open_array(j, "traffic");
	for (int w = 0; w < REPORT_WAY_END; w++) {
		const struct report_traffic *t = &r->traffic[w];

		if (!t->copies)
			continue;
		json_open_object(j, NULL);
		json_put_str(j, "direction", report_way_name((enum report_way)w));
		json_put_u64(j, "count", t->copies);
		json_put_u64(j, "bytes", t->bytes);
		json_put_u64(j, "device_ns", t->ns);
		estimate(j, t->copies, &t->unseen);
		json_end(j);
	}
	json_end(j);
}

static void lost(struct json *j, const struct losses *l)
{
	json_line(j, "");
	json_open_object(j, "lost");
	for (int i = 0; i < CT_LOSS_END; i++)
		if (l->lost[i])
			json_put_u64(j, loss_name((enum ct_loss)i), l->lost[i]);
	json_end(j);
	json_line(j, "");
	json_put_holes(j, l->holes);
}

void print_json(struct out *o, const struct report *r, const struct print_about *a)
{
	struct json j = json_to(o);

	json_open_object(&j, NULL);
	json_put_str(&j, "schema", "cudatrace-stat");
	json_put_u64(&j, "version", 2);
	json_put_str(&j, "cudatrace", a->version);
	if (a->title)
		json_put_str(&j, "title", a->title);
	derived(&j, r, a);
	for (int s = 0; s < REPORT_SECTION_END; s++) {
		if (!report_section_counts((enum report_section)s))
			continue;
		json_line(&j, "");
		json_open_array(&j, report_section_name((enum report_section)s));
		for (size_t i = 0; i < r->nrows[s]; i++)
			row(&j, &r->rows[s][i], a);
		json_end(&j);
	}
	traffic(&j, r);
	if (a->memory && r->memory.calls)
		memory(&j, &r->memory);
	counters(&j, r->gauges);
	lost(&j, &a->end->losses);
	json_end(&j);
	out_char(o, '\n');
}

static void quoted(struct out *o, const char *s, size_t n)
{
	out_char(o, '"');
	/* a spreadsheet must not take it as a formula, see csv.c */
	if (n && memchr("=+-@\t\r", *s, 6))
		out_char(o, '\'');
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '"')
			out_char(o, '"');
		out_char(o, s[i]);
	}
	out_char(o, '"');
}

void print_csv(struct out *o, const struct report *r, const struct print_about *a)
{
	(void)a;
	out_str(o, "section,name,calls,failed,total_ns,share,avg_ns,median_ns,p99_ns,min_ns,max_ns,"
		   "stddev_ns,bytes,estimated,error\r\n");
	for (int s = 0; s < REPORT_SECTION_END; s++) {
		for (size_t i = 0; i < r->nrows[s]; i++) {
			const struct report_row *row = &r->rows[s][i];
			const struct ct_sums *n = &row->n;

			out_fmt(o, "%s,", report_section_name((enum report_section)s));
			quoted(o, row->label.s, row->label.len);
			out_fmt(o, ",%llu,%llu,", (unsigned long long)n->calls,
				(unsigned long long)n->failed);
			if (n->timed)
				out_fmt(o, "%llu", (unsigned long long)n->ns);
			out_fmt(o, ",%.6f,", row->share);
			if (n->timed)
				out_fmt(o, "%.1f", book_mean_ns(n));
			if (n->timed && row->hist)
				out_fmt(o, ",%llu,%llu", (unsigned long long)row->median_ns,
					(unsigned long long)row->p99_ns);
			else
				out_str(o, ",,");
			if (n->timed)
				out_fmt(o, ",%llu,%llu,%.1f", (unsigned long long)n->min_ns,
					(unsigned long long)n->max_ns, book_deviation_ns(n));
			else
				out_str(o, ",,,");
			out_fmt(o, ",%llu,%llu,%llu\r\n", (unsigned long long)n->bytes,
				(unsigned long long)muted_unseen(&row->unseen),
				(unsigned long long)muted_error(&row->unseen));
		}
	}
}
