/* SPDX-License-Identifier: BSD-2-Clause */
/* columns.c - see columns.h. */
#include <stdio.h>

#include "columns.h"

/* ---- numbers ---- */

static void scaled(char *buf, size_t size, double v, double step, const char *units)
{
	int u = 0;

	while (v >= (step == 1024 ? 1023.95 : 9999.5) && units[u + 1]) {
		v /= step;
		u++;
	}
	if (u)
		snprintf(buf, size, v < 99.95 ? "%.1f%c" : "%.0f%c", v, units[u]);
	else if (v && v < 0.995)
		snprintf(buf, size, "%.2f", v);
	else
		snprintf(buf, size, v && v < 99.95 && v != (double)(int)v ? "%.1f" : "%.0f", v);
}

void columns_count(char *buf, size_t size, double v)
{
	scaled(buf, size, v, 1000, " kMGTP");
}

void columns_bytes(char *buf, size_t size, double v)
{
	scaled(buf, size, v < 1 ? 0 : v < 1024 ? (double)(long)v : v, 1024, " KMGTP");
}

void columns_percent(char *buf, size_t size, double v)
{
	snprintf(buf, size, v < 999.95 ? "%.1f" : "%.0f", v < 99999 ? v : 99999);
}

void columns_gpu(struct gpu_texts *t, const struct top_gpu *g)
{
	*t = (struct gpu_texts){ "-", "-", "-", "-" };
	if (g->util >= 0)
		columns_percent(t->util, sizeof(t->util), g->util);
	if (g->memory >= 0)
		columns_bytes(t->used, sizeof(t->used), g->memory);
	if (g->memory_bytes)
		columns_bytes(t->all, sizeof(t->all), (double)g->memory_bytes);
	if (g->power >= 0)
		snprintf(t->power, sizeof(t->power), "%.0f", g->power);
}

void columns_duty(char *buf, size_t size, const struct probe_cost *c)
{
	char duty[64] = "", cost[48] = "", limit[32] = "";

	buf[0] = '\0';
	if (!c->reported)
		return;
	if (c->functions)
		snprintf(duty, sizeof(duty), "; duty %.3g%% for %u function%s", c->duty * 100,
			 c->functions, c->functions == 1 ? "" : "s");
	if (c->cost >= 0)
		snprintf(cost, sizeof(cost), "; probes %.2g%% of the programs' CPU time",
			 c->cost * 100);
	if (c->max_cost > 0)
		snprintf(limit, sizeof(limit), " (limit %.2g%%)", c->max_cost * 100);
	snprintf(buf, size, "%s%s%s", duty, cost, limit);
}

void columns_time(char *buf, size_t size, double ns)
{
	if (ns < 999.5)
		snprintf(buf, size, "%.0fns", ns);
	else if (ns < 999950)
		snprintf(buf, size, ns < 99950 ? "%.1fus" : "%.0fus", ns / 1e3);
	else if (ns < 999950000)
		snprintf(buf, size, ns < 99950000 ? "%.1fms" : "%.0fms", ns / 1e6);
	else
		snprintf(buf, size, "%.1fs", ns / 1e9);
}

/* ---- the columns ---- */

/* What is an estimate, at least in part, begins with ~, and with > where it may be many times as
 * much. */
static char *mark(const struct top_sums *s, const struct top_sums *total, char *buf, size_t *size)
{
	if (!s->estimated)
		return buf;
	*buf = total->error / 2 > total->calls ? '>' : '~';
	--*size;
	return buf + 1;
}

#define PUT(name, how, conv, member, marked)                                            \
	static void name(const struct top_model *m, const struct top_row *r, char *buf, \
			 size_t size)                                                   \
	{                                                                               \
		if ((marked) && r->period.member)                                       \
			buf = mark(&r->period, &r->total, buf, &size);                  \
		how(buf, size, conv(m, r->period.member));                              \
	}
PUT(put_calls, columns_count, model_rate, calls, true)
PUT(put_launches, columns_count, model_rate, launches, true)
PUT(put_failed, columns_count, model_rate, failed, false)
PUT(put_htod, columns_bytes, model_rate, htod, true)
PUT(put_dtoh, columns_bytes, model_rate, dtoh, true)
PUT(put_api, columns_percent, model_percent, api_ns, true)
PUT(put_sync, columns_percent, model_percent, sync_ns, false)

static void put_id(const struct top_model *m, const struct top_row *r, char *buf, size_t size)
{
	(void)m;
	snprintf(buf, size, "%u", r->id);
}

static void put_user(const struct top_model *m, const struct top_row *r, char *buf, size_t size)
{
	(void)m;
	snprintf(buf, size, "%s", r->user && *r->user ? r->user : "-");
}

static void put_container(const struct top_model *m, const struct top_row *r, char *buf,
			  size_t size)
{
	(void)m;
	snprintf(buf, size, "%s", r->container && *r->container ? r->container : "-");
}

static void put_total(const struct top_model *m, const struct top_row *r, char *buf, size_t size)
{
	(void)m;
	buf = mark(&r->total, &r->total, buf, &size);
	columns_count(buf, size, (double)r->total.calls);
}

static void put_mean(const struct top_model *m, const struct top_row *r, char *buf, size_t size)
{
	(void)m;
	if (r->period.calls)
		columns_time(buf, size, (double)r->period.api_ns / (double)r->period.calls);
	else
		snprintf(buf, size, "-");
}

static void put_gpu(const struct top_model *m, const struct top_row *r, char *buf, size_t size)
{
	if (m->device)
		columns_percent(buf, size, model_percent(m, r->period.gpu_ns));
	else
		snprintf(buf, size, "-");
}

static void put_busy(const struct top_model *m, const struct top_row *r, char *buf, size_t size)
{
	if (m->device)
		columns_percent(buf, size, model_percent(m, r->period.busy_ns));
	else
		snprintf(buf, size, "-");
}

static void put_memory(const struct top_model *m, const struct top_row *r, char *buf, size_t size)
{
	char bytes[32];

	(void)m;
	columns_bytes(bytes, sizeof(bytes), (double)(r->memory < 0 ? -r->memory : r->memory));
	snprintf(buf, size, "%s%s",
		 !r->has_memory	 ? ""
		 : r->memory < 0 ? "-"
				 : "+",
		 r->has_memory ? bytes : "-");
}

#define P (1u << TOP_PROCESSES)
#define F (1u << TOP_FUNCTIONS)
#define K (1u << TOP_KERNELS)
#define T (1u << TOP_THREADS)
static const struct column columns[] = {
	{ "PID", 7, P, TOP_BY_PID, 0, 0, false, put_id },
	{ "USER", 12, P, TOP_SORT_END, 11, COLUMNS_WIDE, false, put_user },
	{ "CONTAINER", 14, P, TOP_SORT_END, 12, COLUMNS_WIDE, false, put_container },
	{ "TID", 7, T, TOP_BY_PID, 0, 0, false, put_id },
	{ "CALLS/s", 8, P | F | K | T, TOP_BY_CALLS, 1, 0, false, put_calls },
	{ "LAUNCH/s", 9, P | T, TOP_BY_LAUNCHES, 4, 0, false, put_launches },
	{ "API%", 7, P | F | K | T, TOP_BY_API, 2, 0, false, put_api },
	{ "MEAN", 8, F | K, TOP_SORT_END, 3, 0, false, put_mean },
	{ "SYNC%", 7, P | T, TOP_BY_SYNC, 3, 0, false, put_sync },
	{ "GPU%", 7, P | K, TOP_BY_GPU, 8, 0, true, put_gpu },
	{ "BUSY%", 7, P, TOP_BY_BUSY, 9, 0, true, put_busy },
	{ "HtoD/s", 7, P | F | T, TOP_BY_HTOD, 6, 0, false, put_htod },
	{ "DtoH/s", 7, P | F | T, TOP_BY_DTOH, 7, 0, false, put_dtoh },
	{ "MEMORY", 8, P, TOP_BY_MEMORY, 10, 0, false, put_memory },
	{ "FAIL/s", 7, P | F | T, TOP_BY_FAILED, 5, 0, false, put_failed },
	{ "CALLS", 8, F | K | T, TOP_SORT_END, 7, 0, false, put_total },
};

int columns_pick(enum top_view view, unsigned int width, bool device, const struct column **out)
{
	unsigned int all = 1 + COLUMNS_NAME_MIN;
	int n = 0;

	for (size_t i = 0; i < ARRAY_LEN(columns) && n < COLUMNS_MAX; i++) {
		if (!(columns[i].views & 1u << view) || width < columns[i].from)
			continue;
		out[n++] = &columns[i];
		all += columns[i].width;
	}
	while (all > width && n > 1) {
		int worst = 0;

		for (int i = 1; i < n; i++) {
			int drop = out[i]->drop + (out[i]->device && !device ? 100 : 0);

			if (drop >= out[worst]->drop + (out[worst]->device && !device ? 100 : 0))
				worst = i;
		}
		all -= out[worst]->width;
		for (int i = worst; i < n - 1; i++)
			out[i] = out[i + 1];
		n--;
	}
	return n;
}

const char *columns_name(enum top_view view)
{
	static const char *const names[TOP_VIEW_END] = {
		[TOP_PROCESSES] = "COMMAND",
		[TOP_FUNCTIONS] = "FUNCTION",
		[TOP_KERNELS] = "KERNEL",
		[TOP_THREADS] = "COMMAND",
	};

	return names[view];
}
