/* SPDX-License-Identifier: BSD-2-Clause */
/* batch.c - see batch.h. Knows no terminal. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "../format/json_text.h"
#include "../util/text.h"
#include "batch.h"
#include "columns.h"

static void iso_time(char *buf, size_t size, int64_t realtime_s)
{
	time_t t = (time_t)realtime_s;
	struct tm tm;

	buf[0] = '\0';
	if (gmtime_r(&t, &tm))
		strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void gpu_text(struct out *out, const struct top_gpu *g)
{
	struct gpu_texts t;

	columns_gpu(&t, g);
	out_fmt(out, "GPU %u: %s %%%s, memory %s of %s, %s W, %s\n", g->index, t.util,
		g->suspect ? "?" : "", t.used, t.all, t.power, g->name);
}

void batch_text(struct out *out, struct top_screen *s, struct top_model *m,
		const struct draw_head *h)
{
	const struct column *cols[COLUMNS_MAX];
	char now[32], calls[32], launches[32], duty[160];
	int n = columns_pick(TOP_PROCESSES, ~0u, m->device, cols);

	iso_time(now, sizeof(now), h->realtime_s);
	columns_count(calls, sizeof(calls), model_rate(m, m->period.calls));
	columns_count(launches, sizeof(launches), model_rate(m, m->period.launches));
	out_fmt(out,
		"%s  %s  %.1f s: %u process%s, %s calls/s, %s launches/s, %" PRIu64
		" lost; cudatrace itself %.1f %% of a core",
		now, h->host ? h->host : "", (double)m->interval_ns / 1e9, m->nprocs,
		m->nprocs == 1 ? "" : "es", calls, launches, h->lost, h->own_percent);
	if (h->cost_percent >= 0)
		out_fmt(out, ", costs the programs %.1f %% or more", h->cost_percent);
	if (h->no_queries)
		out_str(out, "; queries are not counted (--queries)");
	columns_duty(duty, sizeof(duty), &h->probes);
	out_fmt(out, "%s\n", duty);
	for (unsigned int i = 0; i < m->ngpus; i++)
		gpu_text(out, &m->gpus[i]);
	for (int i = 0; i < n; i++)
		out_fmt(out, "%*s", (int)cols[i]->width, cols[i]->title);
	out_fmt(out, " %s\n", columns_name(TOP_PROCESSES));
	for (long r = 0; r < s->nrows; r++) {
		for (int i = 0; i < n; i++) {
			char value[32];

			cols[i]->put(m, &s->rows[r], value, sizeof(value));
			out_fmt(out, "%*s", (int)cols[i]->width, value);
		}
		out_fmt(out, " %s%s\n", s->rows[r].label, s->rows[r].ended ? " (ended)" : "");
	}
	out_char(out, '\n');
}

/* ---- JSON ---- */

static void put_name(struct out *out, const char *key, const char *name)
{
	struct text t = { 0 };

	text_json(&t, name, 4096);
	out_fmt(out, ",\"%s\":", key);
	out_mem(out, t.s, t.len);
	text_free(&t);
}

static void sums_json(struct out *out, const struct top_model *m, const struct top_sums *p)
{
	out_fmt(out,
		",\"calls\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"launches\":%" PRIu64
		",\"api_ns\":%" PRIu64 ",\"sync_ns\":%" PRIu64 ",\"htod_bytes\":%" PRIu64
		",\"dtoh_bytes\":%" PRIu64
		",\"calls_per_s\":%.3f,\"launches_per_s\":%.3f,\"api_percent\":%.3f"
		",\"sync_percent\":%.3f",
		p->calls, p->failed, p->launches, p->api_ns, p->sync_ns, p->htod, p->dtoh,
		model_rate(m, p->calls), model_rate(m, p->launches), model_percent(m, p->api_ns),
		model_percent(m, p->sync_ns));
	if (p->estimated)
		out_fmt(out, ",\"estimated\":%" PRIu64, p->estimated);
	if (m->device)
		out_fmt(out, ",\"gpu_ns\":%" PRIu64 ",\"gpu_busy_ns\":%" PRIu64, p->gpu_ns,
			p->busy_ns);
}

static void head_json(struct out *out, const struct top_model *m, const struct draw_head *h,
		      const char *type)
{
	char now[32];

	iso_time(now, sizeof(now), h->realtime_s);
	out_fmt(out, "{\"type\":\"%s\",\"time\":\"%s\",\"interval_ns\":%" PRIu64, type, now,
		m->interval_ns);
}

void batch_json(struct out *out, struct top_screen *s, struct top_model *m,
		const struct draw_head *h)
{
	char unprobed[JSON_UNPROBED_MAX];

	head_json(out, m, h, "top_machine");
	if (h->host)
		put_name(out, "host", h->host);
	out_fmt(out, ",\"processes\":%u", m->nprocs);
	sums_json(out, m, &m->period);
	json_unprobed(unprobed, sizeof(unprobed), &h->unprobed);
	out_str(out, unprobed);
	out_fmt(out, ",\"lost\":%" PRIu64 ",\"no_room\":%" PRIu64 ",\"own_percent\":%.3f", h->lost,
		m->no_room, h->own_percent);
	if (h->cost_percent >= 0)
		out_fmt(out, ",\"cost_percent_at_least\":%.3f,\"probe_ns\":%" PRIu64,
			h->cost_percent, h->probe_ns);
	if (h->no_queries)
		out_str(out, ",\"queries_counted\":false");
	if (h->probes.told)
		out_fmt(out, ",\"duty\":%.6f,\"functions_on_duty\":%u", h->probes.duty,
			h->probes.functions);
	if (h->probes.told && h->probes.cost >= 0)
		out_fmt(out, ",\"cost\":%.6f", h->probes.cost);
	if (h->probes.told && h->probes.max_cost > 0)
		out_fmt(out, ",\"max_cost\":%.6f", h->probes.max_cost);
	out_str(out, "}\n");
	for (unsigned int i = 0; i < m->ngpus; i++) {
		const struct top_gpu *g = &m->gpus[i];

		head_json(out, m, h, "top_gpu");
		out_fmt(out, ",\"gpu\":%u", g->index);
		put_name(out, "name", g->name);
		if (g->util >= 0)
			out_fmt(out, ",\"percent\":%.3f", g->util);
		if (g->memory >= 0)
			out_fmt(out, ",\"memory_bytes\":%.0f", g->memory);
		if (g->memory_bytes)
			out_fmt(out, ",\"memory_total_bytes\":%" PRIu64, g->memory_bytes);
		if (g->power >= 0)
			out_fmt(out, ",\"power_w\":%.1f", g->power);
		out_str(out, g->suspect ? ",\"suspect\":true}\n" : "}\n");
	}
	for (long r = 0; r < s->nrows; r++) {
		head_json(out, m, h, "top_process");
		out_fmt(out, ",\"pid\":%u", s->rows[r].id);
		put_name(out, "comm", s->rows[r].label);
		sums_json(out, m, &s->rows[r].period);
		out_fmt(out, ",\"calls_total\":%" PRIu64, s->rows[r].total.calls);
		if (s->rows[r].total.estimated || s->rows[r].total.error)
			out_fmt(out, ",\"calls_total_error\":%" PRIu64, s->rows[r].total.error);
		if (s->rows[r].has_memory)
			out_fmt(out, ",\"memory_change_bytes\":%" PRId64, s->rows[r].memory);
		out_fmt(out, ",\"ended\":%s}\n", s->rows[r].ended ? "true" : "false");
	}
}
