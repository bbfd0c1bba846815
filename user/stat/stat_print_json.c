/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stat_print_json.c - a report for programs: one JSON object (what `compare` reads again), or
 * CSV with a row for each function, kernel and kind of copy. All times in nanoseconds. Knows no
 * source.
 */
#include <string.h>

#include "../format/json_text.h"
#include "stat_print.h"

static void string(struct out *o, const char *s, size_t n)
{
	static const size_t piece = 4096;

	out_char(o, '"');
	for (size_t at = 0; at < n; at += piece) {
		size_t len = n - at <= piece ? n - at : text_cut(s + at, piece);
		char *p = out_reserve(o, piece * 6);

		out_commit(o, (size_t)(escape_json(p, s + at, len) - p));
		if (len < piece && at + len < n)
			at -= piece - len;
	}
	out_char(o, '"');
}

/* Times that are not known (for example of calls without return probes) are left out. */
static void sums(struct out *o, const struct ct_sums *n)
{
	out_fmt(o, "\"calls\":%llu,\"failed\":%llu", (unsigned long long)n->calls,
		(unsigned long long)n->failed);
	if (n->timed)
		out_fmt(o,
			",\"total_ns\":%llu,\"avg_ns\":%.1f,\"min_ns\":%llu,\"max_ns\":%llu,"
			"\"stddev_ns\":%.1f",
			(unsigned long long)n->ns, book_mean_ns(n), (unsigned long long)n->min_ns,
			(unsigned long long)n->max_ns, book_deviation_ns(n));
	out_fmt(o, ",\"bytes\":%llu", (unsigned long long)n->bytes);
}

/* Writes the estimated part of the calls and by how much it may be wrong at 95 % confidence, or
 * only the minimum number if text output shows only that. Writes nothing if each call was
 * counted. */
static void estimate(struct out *o, uint64_t calls, const struct ct_estimated *e)
{
	if (!muted_unseen(e) && !muted_error(e))
		return;
	out_fmt(o, ",\"estimated\":%llu,\"error\":%llu", (unsigned long long)muted_unseen(e),
		(unsigned long long)muted_error(e));
	if (muted_is_floor(calls, e))
		out_fmt(o, ",\"at_least\":%llu", (unsigned long long)muted_at_least(calls, e));
}

static void row(struct out *o, const struct report_row *r, const struct print_about *a)
{
	double share = a->device && r->what == BOOK_KERNEL ? report_occupancy(&r->shape, a->device)
							   : -1;

	out_str(o, "{\"name\":");
	string(o, r->label.s, r->label.len);
	out_char(o, ',');
	sums(o, &r->n);
	estimate(o, r->n.calls, &r->unseen);
	out_fmt(o, ",\"share\":%.6f", r->share);
	if (r->hist)
		out_fmt(o, ",\"median_ns\":%llu,\"p90_ns\":%llu,\"p99_ns\":%llu",
			(unsigned long long)r->median_ns, (unsigned long long)r->p90_ns,
			(unsigned long long)r->p99_ns);
	if (r->sizes)
		out_fmt(o,
			",\"avg_bytes\":%.1f,\"median_bytes\":%llu,\"min_bytes\":%llu,\"max_"
			"bytes\":%llu,\"stddev_bytes\":%.1f",
			book_mean_ns(&r->sizes->n), (unsigned long long)r->median_bytes,
			(unsigned long long)r->sizes->n.min_ns,
			(unsigned long long)r->sizes->n.max_ns, book_deviation_ns(&r->sizes->n));
	if (share >= 0)
		out_fmt(o, ",\"occupancy\":%.4f", share);
	if (a->hist && r->hist) {
		bool any = false;

		out_str(o, ",\"histogram\":[");
		for (int i = 0; i < CT_HIST_BUCKETS; i++) {
			if (!r->hist->n[i])
				continue;
			out_fmt(o, "%s[%llu,%u]", any ? "," : "",
				(unsigned long long)book_bucket_ns((uint32_t)i), r->hist->n[i]);
			any = true;
		}
		out_char(o, ']');
	}
	out_char(o, '}');
}

static void number(struct out *o, const char *key, uint64_t v)
{
	out_fmt(o, ",\"%s\":%llu", key, (unsigned long long)v);
}

/* Writes values from device work. With --gpu they are there even if no device work came. */
static void derived_device(struct out *o, const struct report *r)
{
	uint64_t bytes = 0, ns = 0;

	for (int w = 0; w < REPORT_WAY_END && r->device; w++) {
		bytes += r->traffic[w].bytes;
		ns += r->traffic[w].ns;
	}
	number(o, "kernel_time", r->totals[REPORT_KERNELS].ns);
	number(o, "copy_time", r->totals[REPORT_COPIES].ns);
	if (r->span_ns)
		out_fmt(o, ",\"kernel_utilization\":%.6f",
			r->ndevices ? print_kernel_utilization(r) : 0);
	if (ns)
		out_fmt(o, ",\"memory_efficiency\":%.6f", (double)bytes / (double)ns);
}

/* Writes the latest share of the time for which probes were attached, and their cost as a share
 * of the programs' CPU time. */
static void duty(struct out *o, const struct probe_cost *c)
{
	out_fmt(o, ",\"duty\":%.6f,\"functions_on_duty\":%u,\"probe_cost_ns\":%llu,\"cpu_ns\":%llu",
		c->duty, c->functions, (unsigned long long)c->ns, (unsigned long long)c->cpu_ns);
	if (c->cost >= 0)
		out_fmt(o, ",\"cost\":%.6f", c->cost);
	if (c->max_cost > 0)
		out_fmt(o, ",\"max_cost\":%.6f", c->max_cost);
}

/* Writes the derived numbers that compare can use; docs/stat.md defines each. */
static void derived(struct out *o, const struct report *r, const struct print_about *a)
{
	struct ct_estimated unseen;
	struct ct_sums calls;
	uint64_t bytes = 0, hits;
	double cost = print_own_cost_ns(a, &hits);

	report_calls(r, &calls, &unseen);
	for (int w = 0; w < REPORT_WAY_END; w++)
		bytes += r->traffic[w].bytes;
	out_fmt(o, "\"summary\":{\"span_ns\":%llu", (unsigned long long)r->span_ns);
	if (r->timed || !calls.calls) {
		number(o, "total_api_time", calls.ns);
		number(o, "sync_time", r->totals[REPORT_SYNC].ns);
	}
	number(o, "total_api_calls", calls.calls);
	estimate(o, calls.calls, &unseen);
	number(o, "failed_calls", calls.failed);
	number(o, "launches", r->launches);
	if (muted_unseen(&r->launches_unseen) || muted_error(&r->launches_unseen)) {
		number(o, "launches_estimated", muted_unseen(&r->launches_unseen));
		number(o, "launches_error", muted_error(&r->launches_unseen));
	}
	number(o, "graph_launches", r->graph_launches);
	number(o, "launch_threads", r->threads);
	number(o, "stream_launches", r->on_streams);
	number(o, "moves", r->moves);
	number(o, "async_moves", r->moves_async);
	number(o, "bytes_moved", bytes);
	if (r->device || a->gpu)
		derived_device(o, r);
	if (a->peak_bytes)
		number(o, "peak_bytes", a->peak_bytes);
	if (cost > 0) {
		number(o, "probe_hits", hits);
		out_fmt(o, ",\"own_cost_ns\":%.0f", cost);
	}
	if (a->end->losses.probes.told)
		duty(o, &a->end->losses.probes);
	out_char(o, '}');
}

static void memory(struct out *o, const struct book_memory *m)
{
	out_fmt(o,
		",\n\"memory\":{\"device_held_bytes\":%lld,\"host_held_bytes\":%lld,\"frees_of_"
		"unknown_size\":%llu,\"allocations_without_room\":%llu}",
		(long long)m->device_bytes, (long long)m->host_bytes,
		(unsigned long long)m->unknown, (unsigned long long)m->forgotten);
}

static void counters(struct out *o, const struct gauges *g)
{
	bool any = false;

	out_str(o, ",\n\"counters\":[");
	for (size_t i = 0; i < g->n; i++) {
		const struct gauge *k = &g->list[i];

		if (!k->samples)
			continue;
		out_fmt(o, "%s{\"device\":%u,", any ? ",\n " : "\n ", k->device);
		if (*k->uuid)
			out_fmt(o, "\"gpu_uuid\":\"%s\",", k->uuid);
		out_str(o, "\"name\":");
		string(o, k->name, strlen(k->name));
		out_str(o, ",\"unit\":");
		string(o, k->unit, strlen(k->unit));
		out_fmt(o, ",\"samples\":%llu,\"suspect\":%llu,\"avg\":",
			(unsigned long long)k->samples, (unsigned long long)k->suspect);
		out_double(o, gauge_mean(k));
		out_str(o, ",\"min\":");
		out_double(o, k->least);
		out_str(o, ",\"max\":");
		out_double(o, k->most);
		out_char(o, '}');
		any = true;
	}
	out_char(o, ']');
}

void print_json(struct out *o, const struct report *r, const struct print_about *a)
{
	char unprobed[JSON_UNPROBED_MAX];
	out_str(o, "{\"schema\":\"cudatrace-stat\",\"version\":1,\"cudatrace\":");
	string(o, a->version, strlen(a->version));
	if (a->title) {
		out_str(o, ",\"title\":");
		string(o, a->title, strlen(a->title));
	}
	out_char(o, ',');
	derived(o, r, a);
	for (int s = 0; s < REPORT_SECTION_END; s++) {
		out_fmt(o, ",\n\"%s\":[", report_section_name((enum report_section)s));
		for (size_t i = 0; i < r->nrows[s]; i++) {
			out_str(o, i ? ",\n " : "\n ");
			row(o, &r->rows[s][i], a);
		}
		out_char(o, ']');
	}
	out_str(o, ",\n\"traffic\":[");
	for (int w = 0, any = 0; w < REPORT_WAY_END; w++) {
		const struct report_traffic *t = &r->traffic[w];

		if (!t->copies)
			continue;
		out_fmt(o,
			"%s{\"direction\":\"%s\",\"count\":%llu,\"bytes\":%llu,\"device_ns\":%llu",
			any++ ? "," : "", report_way_name((enum report_way)w),
			(unsigned long long)t->copies, (unsigned long long)t->bytes,
			(unsigned long long)t->ns);
		estimate(o, t->copies, &t->unseen);
		out_char(o, '}');
	}
	out_char(o, ']');
	if (a->memory && r->memory.calls)
		memory(o, &r->memory);
	counters(o, r->gauges);
	out_str(o, ",\n\"lost\":{");
	for (int i = 0, any = 0; i < CT_LOSS_END; i++)
		if (a->end->losses.lost[i])
			out_fmt(o, "%s\"%s\":%llu", any++ ? "," : "", loss_name((enum ct_loss)i),
				(unsigned long long)a->end->losses.lost[i]);
	out_char(o, '}');
	json_unprobed(unprobed, sizeof(unprobed), &a->end->losses.unprobed);
	out_str(o, unprobed);
	if (a->end->losses.refused)
		out_fmt(o, ",\n\"refused_files\":%llu", (unsigned long long)a->end->losses.refused);
	out_str(o, "}\n");
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
