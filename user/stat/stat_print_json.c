/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stat_print_json.c - a report for programs: one JSON object (what `compare` reads again), or
 * CSV with a row for each function, kernel and kind of copy. All times in nanoseconds. Knows no
 * source.
 */
#include "../flow/json_text.h"
#include "stat_tables.h"

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
	stat_put_estimate(j, calls.calls, &unseen);
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

static void stat_print_json_memory(struct json *j, const struct book_memory *m)
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
	const struct table t = stat_gauges_table();

	json_line(j, "");
	json_open_array(j, "counters");
	for (size_t i = 0; i < g->n; i++)
		if (g->list[i].samples)
			table_json_row(&t, j, " ", &g->list[i]);
	json_end(j);
}

static void traffic(struct json *j, const struct report *r)
{
	const struct table t = stat_traffic_table();

	json_line(j, "");
	json_open_array(j, "traffic");
	for (int w = 0; w < REPORT_WAY_END; w++)
		if (r->traffic[w].copies)
			table_json_row(&t, j, NULL,
				       &(struct traffic_row){ (enum report_way)w, &r->traffic[w] });
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

static struct section_row stat_print_json_row_of(const struct report *r, enum report_section s,
						 size_t i)
{
	const struct report_row *row = &r->rows[s][i];

	return (struct section_row){ .section = s, .r = row, .n = &row->n, .unseen = &row->unseen };
}

void print_json(struct out *o, const struct report *r, const struct print_about *a)
{
	struct json j = json_to(o);
	struct table t;

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
		t = stat_section_table((enum report_section)s, a);
		for (size_t i = 0; i < r->nrows[s]; i++) {
			const struct section_row row =
				stat_print_json_row_of(r, (enum report_section)s, i);

			table_json_row(&t, &j, " ", &row);
		}
		json_end(&j);
	}
	traffic(&j, r);
	if (a->memory && r->memory.calls)
		stat_print_json_memory(&j, &r->memory);
	counters(&j, r->gauges);
	lost(&j, &a->end->losses);
	json_end(&j);
	out_char(o, '\n');
}

void print_csv(struct out *o, const struct report *r, const struct print_about *a)
{
	struct table t = stat_section_table(REPORT_CALLS, a);

	table_csv_heads(&t, o);
	for (int s = 0; s < REPORT_SECTION_END; s++) {
		for (size_t i = 0; i < r->nrows[s]; i++) {
			const struct section_row row =
				stat_print_json_row_of(r, (enum report_section)s, i);

			table_csv_row(&t, o, &row);
		}
	}
}
