/* SPDX-License-Identifier: BSD-2-Clause */
/* batch.c - see batch.h. Knows no terminal. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "../flow/json_text.h"
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
	int n = columns_pick(TOP_PROCESSES, COLUMNS_WIDE - 1, m->device, cols);

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

static void sums_json(struct json *j, const struct top_model *m, const struct top_sums *p)
{
	json_put_u64(j, "calls", p->calls);
	json_put_u64(j, "failed", p->failed);
	json_put_u64(j, "launches", p->launches);
	json_put_u64(j, "api_ns", p->api_ns);
	json_put_u64(j, "sync_ns", p->sync_ns);
	json_put_u64(j, "htod_bytes", p->htod);
	json_put_u64(j, "dtoh_bytes", p->dtoh);
	json_put_real(j, "calls_per_s", 3, model_rate(m, p->calls));
	json_put_real(j, "launches_per_s", 3, model_rate(m, p->launches));
	json_put_real(j, "api_percent", 3, model_percent(m, p->api_ns));
	json_put_real(j, "sync_percent", 3, model_percent(m, p->sync_ns));
	if (p->estimated)
		json_put_u64(j, "estimated", p->estimated);
	if (m->device) {
		json_put_u64(j, "gpu_ns", p->gpu_ns);
		json_put_u64(j, "gpu_busy_ns", p->busy_ns);
	}
}

/* Each thing is an object on a line of its own. */
static void head_json(struct json *j, const struct top_model *m, const struct draw_head *h,
		      const char *type)
{
	char now[32];

	iso_time(now, sizeof(now), h->realtime_s);
	json_open_object(j, NULL);
	json_put_str(j, "type", type);
	json_put_str(j, "time", now);
	json_put_u64(j, "interval_ns", m->interval_ns);
}

static void end_json(struct json *j)
{
	json_end(j);
	out_char(j->out, '\n');
}

static void machine_json(struct json *j, const struct top_model *m, const struct draw_head *h)
{
	head_json(j, m, h, "top_machine");
	if (h->host)
		json_put_str(j, "host", h->host);
	json_put_u64(j, "processes", m->nprocs);
	sums_json(j, m, &m->period);
	json_put_holes(j, h->holes);
	json_put_u64(j, "lost", h->lost);
	json_put_u64(j, "no_room", m->no_room);
	json_put_real(j, "own_percent", 3, h->own_percent);
	if (h->cost_percent >= 0) {
		json_put_real(j, "cost_percent_at_least", 3, h->cost_percent);
		json_put_u64(j, "probe_ns", h->probe_ns);
	}
	if (h->no_queries)
		json_put_bool(j, "queries_counted", false);
	if (h->probes.reported) {
		json_put_real(j, "duty", 6, h->probes.duty);
		json_put_u64(j, "functions_on_duty", h->probes.functions);
	}
	if (h->probes.reported && h->probes.cost >= 0)
		json_put_real(j, "cost", 6, h->probes.cost);
	if (h->probes.reported && h->probes.max_cost > 0)
		json_put_real(j, "max_cost", 6, h->probes.max_cost);
	end_json(j);
}

static void gpu_json(struct json *j, const struct top_model *m, const struct draw_head *h,
		     const struct top_gpu *g)
{
	head_json(j, m, h, "top_gpu");
	json_put_u64(j, "gpu", g->index);
	json_put_str(j, "name", g->name);
	if (g->util >= 0)
		json_put_real(j, "percent", 3, g->util);
	if (g->memory >= 0)
		json_put_real(j, "memory_bytes", 0, g->memory);
	if (g->memory_bytes)
		json_put_u64(j, "memory_total_bytes", g->memory_bytes);
	if (g->power >= 0)
		json_put_real(j, "power_w", 1, g->power);
	if (g->suspect)
		json_put_bool(j, "suspect", true);
	end_json(j);
}

void batch_json(struct out *out, struct top_screen *s, struct top_model *m,
		const struct draw_head *h)
{
	struct json j = json_to(out);

	machine_json(&j, m, h);
	for (unsigned int i = 0; i < m->ngpus; i++)
		gpu_json(&j, m, h, &m->gpus[i]);
	for (long r = 0; r < s->nrows; r++) {
		head_json(&j, m, h, "top_process");
		json_put_u64(&j, "pid", s->rows[r].id);
		json_put_str(&j, "process", s->rows[r].label);
		sums_json(&j, m, &s->rows[r].period);
		json_put_u64(&j, "calls_total", s->rows[r].total.calls);
		if (s->rows[r].total.estimated || s->rows[r].total.error)
			json_put_u64(&j, "calls_total_error", s->rows[r].total.error);
		if (s->rows[r].has_memory)
			json_put_i64(&j, "memory_change_bytes", s->rows[r].memory);
		json_put_bool(&j, "ended", s->rows[r].ended);
		end_json(&j);
	}
}
