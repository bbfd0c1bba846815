/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expose.c - see expose.h.
 *
 * What a process counted is handed in whole at each reading, until it has ended: so a series is what ended processes left
 * (`done`) and what the living ones have (`live`), which each reading makes anew. It never goes backwards.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../event/device.h"
#include "book.h"
#include "expose.h"

#define SERIES_MAX 65536
#define DEVICES_MAX 64
#define VALUES_MAX 64
#define LABEL_MAX 256

enum sum { CALLS, BYTES, FAILED, TIME };
enum label { NONE, DIRECTION, FUNCTION };

static const struct family {
	const char *name, *unit;
	enum sum sum;
	enum label label;
	int class;
	const char *globs, *help;
} families[] = {
#define FAMILY(name, unit, sum, label, class, globs, help) { #name, unit, sum, label, class, globs, help },
#include "families.def"
#undef FAMILY
};

/* A kind of process. Texts are cut at LABEL_MAX. */
struct group {
	char *labels; /* {process="...",container_id="...",pod_uid="..."} without the braces; escaped */
};

struct series {
	uint16_t group, func;
	uint8_t sub;
	bool used;
	struct ct_sums done, live;
};

struct device {
	char uuid[48], *model;
	uint32_t index;
	uint64_t memory_bytes;
	struct {
		char name[64], unit[16];
		double value;
		bool suspect;
	} values[VALUES_MAX];
	int nvalues;
};

struct expose {
	struct expose_opts opts;
	struct group *groups;
	unsigned int ngroups;
	struct series *series; /* open addressing */
	size_t nseries;
	uint64_t no_room;
	struct ct_hist done[API_CLASS_END], live[API_CLASS_END]; /* of durations, by class */
	uint64_t done_ns[API_CLASS_END], live_ns[API_CLASS_END];
	bool any_hist;
	uint64_t wanted[ARRAY_LEN(families)][CT_MAX_FUNCS / 64];
	struct device devices[DEVICES_MAX];
	int ndevices;
};

/* ---- which functions a family sums ------------------------------------------------------------------------- */

static bool matches(const struct family *f, const struct api_func *func)
{
	char glob[256];
	const char *at = f->globs;

	if (f->class != API_CLASS_END && f->class != func->class)
		return false;
	while (at) {
		size_t n = strcspn(at, "|");

		snprintf(glob, sizeof(glob), "%.*s", (int)n, at);
		if (!fnmatch(glob, func->name, 0))
			return true;
		at = at[n] ? at + n + 1 : NULL;
		if (!at)
			return false;
	}
	return true;
}

struct expose *expose_open(const struct expose_opts *opts)
{
	struct expose *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->opts = *opts;
	if (!x->opts.groups)
		x->opts.groups = EXPOSE_GROUPS;
	x->groups = calloc(x->opts.groups + 1, sizeof(*x->groups));
	x->series = calloc(SERIES_MAX, sizeof(*x->series));
	if (!x->groups || !x->series) {
		expose_close(x);
		return NULL;
	}
	for (size_t f = 0; f < ARRAY_LEN(families); f++)
		for (int i = 0; i < api_nfuncs; i++)
			if (matches(&families[f], &api_funcs[i]))
				x->wanted[f][i / 64] |= 1ULL << (i % 64);
	return x;
}

void expose_close(struct expose *x)
{
	if (!x)
		return;
	for (unsigned int i = 0; i < x->ngroups; i++)
		free(x->groups[i].labels);
	for (int i = 0; i < x->ndevices; i++)
		free(x->devices[i].model);
	free(x->groups);
	free(x->series);
	free(x);
}

/* ---- labels ------------------------------------------------------------------------------------------------ */

/* A label's value: what is no UTF-8 becomes '?', as do control characters; '"', '\' and newline are escaped. */
static size_t put_value(char *to, size_t room, const char *s)
{
	size_t n = 0;

	for (size_t i = 0; s[i] && i < LABEL_MAX && n + 3 < room; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '"' || c == '\\')
			to[n++] = '\\';
		to[n++] = c < ' ' || c >= 0x7f ? '?' : (char)c;
	}
	to[n] = '\0';
	return n;
}

static char *labels_of(const struct process *p)
{
	const struct process_info *info = p->info;
	char text[LABEL_MAX * 6 + 128];
	size_t n;

	n = (size_t)snprintf(text, sizeof(text), "process=\"");
	n += put_value(text + n, sizeof(text) - n, p->comm);
	if (info && *info->container) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\",container_id=\"");
		n += put_value(text + n, sizeof(text) - n, info->container);
	}
	if (info && *info->pod) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\",pod_uid=\"");
		n += put_value(text + n, sizeof(text) - n, info->pod);
	}
	snprintf(text + n, sizeof(text) - n, "\"");
	return strdup(text);
}

/* The kind of a process; the last one, "other", when there are too many. -1: no memory. */
static int group_of(struct expose *x, const struct process *p)
{
	char *labels = labels_of(p);

	if (!labels)
		return -1;
	for (unsigned int i = 0; i < x->ngroups; i++) {
		if (!strcmp(x->groups[i].labels, labels)) {
			free(labels);
			return (int)i;
		}
	}
	if (x->ngroups >= x->opts.groups) {
		free(labels);
		if (x->ngroups == x->opts.groups) {
			labels = strdup("process=\"other\"");
			if (!labels)
				return -1;
			x->groups[x->ngroups++].labels = labels;
		}
		return (int)x->ngroups - 1;
	}
	x->groups[x->ngroups].labels = labels;
	return (int)x->ngroups++;
}

/* ---- sums -------------------------------------------------------------------------------------------------- */

static struct series *series_of(struct expose *x, uint16_t group, uint16_t func, uint8_t sub)
{
	uint32_t at = (group * 2654435761u) ^ (func * 40503u) ^ (sub * 97u);

	for (uint32_t i = 0; i < SERIES_MAX; i++) {
		struct series *s = &x->series[(at + i) % SERIES_MAX];

		if (s->used && s->group == group && s->func == func && s->sub == sub)
			return s;
		if (s->used)
			continue;
		if (x->nseries >= SERIES_MAX / 2)
			return NULL;
		x->nseries++;
		*s = (struct series){ .used = true, .group = group, .func = func, .sub = sub };
		return s;
	}
	return NULL;
}

void expose_begin(struct expose *x)
{
	for (size_t i = 0; i < SERIES_MAX; i++)
		if (x->series[i].used)
			memset(&x->series[i].live, 0, sizeof(x->series[i].live));
	memset(x->live, 0, sizeof(x->live));
	memset(x->live_ns, 0, sizeof(x->live_ns));
}

static int tally(struct expose *x, const struct event *ev)
{
	const struct ct_tally *t = (const struct ct_tally *)ev->rec;
	int group = group_of(x, ev->proc), class = api_funcs[t->func].class;
	bool last = t->h.flags & CT_F_LAST;
	struct series *s;

	if (group < 0)
		return -ENOMEM;
	s = series_of(x, (uint16_t)group, t->func, t->sub & CT_SUB_KIND);
	if (!s) {
		x->no_room++;
		return 0;
	}
	book_add(last ? &s->done : &s->live, &t->sums);
	if (t->nbuckets == CT_HIST_BUCKETS) {
		struct ct_hist *h = last ? &x->done[class] : &x->live[class];

		for (int i = 0; i < CT_HIST_BUCKETS; i++)
			h->n[i] += t->hist[i];
		*(last ? &x->done_ns[class] : &x->live_ns[class]) += t->sums.ns;
		x->any_hist = true;
	}
	return 0;
}

/* ---- devices ----------------------------------------------------------------------------------------------- */

static struct device *device_of(struct expose *x, uint32_t index)
{
	for (int i = 0; i < x->ndevices; i++)
		if (x->devices[i].index == index)
			return &x->devices[i];
	if (x->ndevices == DEVICES_MAX)
		return NULL;
	x->devices[x->ndevices].index = index;
	return &x->devices[x->ndevices++];
}

static int device(struct expose *x, const struct ct_device *d)
{
	struct device *to = d->h.pid ? NULL : device_of(x, d->id);
	char *model;

	if (!to)
		return 0;
	model = strndup(d->name, d->name_len);
	if (!model)
		return -ENOMEM;
	free(to->model);
	to->model = model;
	to->memory_bytes = d->memory_bytes;
	snprintf(to->uuid, sizeof(to->uuid),
		 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", d->uuid[0], d->uuid[1],
		 d->uuid[2], d->uuid[3], d->uuid[4], d->uuid[5], d->uuid[6], d->uuid[7], d->uuid[8], d->uuid[9],
		 d->uuid[10], d->uuid[11], d->uuid[12], d->uuid[13], d->uuid[14], d->uuid[15]);
	return 0;
}

static void counter(struct expose *x, const struct event *ev)
{
	const struct ct_counter *c = (const struct ct_counter *)ev->rec;
	struct device *d = device_of(x, c->device);

	for (uint32_t i = 0; d && i < c->n; i++) {
		const struct metric *m = ev->metrics ? metric_table_find(ev->metrics, c->values[i].metric) : NULL;
		int at = 0;

		if (!m)
			continue;
		while (at < d->nvalues && strcmp(d->values[at].name, m->name))
			at++;
		if (at == VALUES_MAX)
			continue;
		if (at == d->nvalues)
			d->nvalues++;
		snprintf(d->values[at].name, sizeof(d->values[at].name), "%s", m->name);
		snprintf(d->values[at].unit, sizeof(d->values[at].unit), "%s", m->unit);
		memcpy(&d->values[at].value, &c->values[i].bits, sizeof(double));
		d->values[at].suspect = c->values[i].flags & CT_VALUE_SUSPECT;
	}
}

int expose_event(struct expose *x, const struct event *ev)
{
	switch (ev->rec->kind) {
	case CT_TALLY:
		return tally(x, ev);
	case CT_DEVICE:
		return device(x, (const struct ct_device *)ev->rec);
	case CT_COUNTER:
		counter(x, ev);
		return 0;
	default:
		return 0;
	}
}

/* ---- writing ----------------------------------------------------------------------------------------------- */

const char *expose_type(enum expose_format format)
{
	return format == EXPOSE_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8" :
					      "text/plain; version=0.0.4; charset=utf-8";
}

enum expose_format expose_wants(const char *accept)
{
	return accept && strstr(accept, "application/openmetrics-text") ? EXPOSE_OPENMETRICS : EXPOSE_TEXT;
}

/* In OpenMetrics a counter's family has no _total, its samples have; before, both have. */
static void head(struct out *o, enum expose_format format, const char *name, const char *unit, const char *type, const char *help)
{
	const char *total = !strcmp(type, "counter") && format == EXPOSE_TEXT ? "_total" : "";

	out_fmt(o, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, total, help, name, total, type);
	if (unit && format == EXPOSE_OPENMETRICS)
		out_fmt(o, "# UNIT %s %s\n", name, unit);
}

static const char *direction(uint8_t sub)
{
	static const char *const names[] = { "HtoH", "HtoD", "DtoH", "DtoD", "default" };

	return (sub & CT_SUB_KIND) < ARRAY_LEN(names) ? names[sub & CT_SUB_KIND] : "unknown";
}

static double value_of(enum sum what, const struct ct_sums *n)
{
	switch (what) {
	case CALLS:
		return (double)n->calls;
	case BYTES:
		return (double)n->bytes;
	case FAILED:
		return (double)n->failed;
	default:
		return (double)n->ns / 1e9;
	}
}

static int by_labels(const void *pa, const void *pb)
{
	const struct series *a = *(const struct series *const *)pa, *b = *(const struct series *const *)pb;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->func != b->func)
		return a->func < b->func ? -1 : 1;
	return a->sub < b->sub ? -1 : a->sub > b->sub;
}

/* A family whose series are sums over functions: neighbours with the same labels are added up. */
static void write_family(struct expose *x, const struct family *f, const uint64_t *wanted, struct series **order, size_t n,
			 enum expose_format format, struct out *o)
{
	double sums[16] = { 0 };
	bool any[16] = { false };

	head(o, format, f->name, f->unit, "counter", f->help);
	for (size_t i = 0; i < n; i++) {
		const struct series *s = order[i];
		struct ct_sums all = s->done;
		int way = f->label == DIRECTION ? s->sub & 15 : 0;
		bool group_ends = i + 1 == n || order[i + 1]->group != s->group;
		bool ends = group_ends || (f->label == FUNCTION && order[i + 1]->func != s->func);

		book_add(&all, &s->live);
		if (wanted[s->func / 64] >> (s->func % 64) & 1) {
			sums[way] += value_of(f->sum, &all);
			any[way] = true;
		}
		if (!ends)
			continue;
		for (int w = 0; w < 16; w++) {
			const struct api_func *func = &api_funcs[s->func];

			if (!any[w])
				continue;
			out_fmt(o, "%s_total{%s", f->name, x->groups[s->group].labels);
			if (f->label == DIRECTION)
				out_fmt(o, ",cuda_memcpy_kind=\"%s\"", direction((uint8_t)w));
			else if (f->label == FUNCTION)
				out_fmt(o, ",domain=\"%s\",class=\"%s\",function=\"%s\"", api_domain_name(func->domain),
					api_class_name(func->class), func->name);
			out_fmt(o, f->sum == TIME ? "} %.9f\n" : "} %.0f\n", sums[w]);
			any[w] = false;
			sums[w] = 0;
		}
	}
}

/* Buckets at powers of two, of which the counts know the exact borders: from 1 us to 8 s or so. */
static void write_histograms(struct expose *x, enum expose_format format, struct out *o)
{
	head(o, format, "gpu_cuda_call_duration_seconds", "seconds", "histogram", "Durations of calls, by class.");
	for (int c = 0; c < API_CLASS_END; c++) {
		uint64_t all = 0, sum = 0;

		for (int i = 0; i < CT_HIST_BUCKETS; i++)
			all += x->done[c].n[i] + x->live[c].n[i];
		if (!all)
			continue;
		for (int i = 0; i < CT_HIST_BUCKETS; i++) {
			sum += x->done[c].n[i] + x->live[c].n[i];
			/* the end of an octave is a power of two: 16 << (i / 8) */
			if (i % 8 != 7 || i / 8 < 6 || i / 8 > 29)
				continue;
			out_fmt(o, "gpu_cuda_call_duration_seconds_bucket{class=\"%s\",le=\"%.9g\"} %llu\n",
				api_class_name((enum api_class)c), (double)(16ULL << (i / 8)) / 1e9, (unsigned long long)sum);
		}
		out_fmt(o, "gpu_cuda_call_duration_seconds_bucket{class=\"%s\",le=\"+Inf\"} %llu\n",
			api_class_name((enum api_class)c), (unsigned long long)all);
		out_fmt(o, "gpu_cuda_call_duration_seconds_sum{class=\"%s\"} %.9f\n", api_class_name((enum api_class)c),
			(double)(x->done_ns[c] + x->live_ns[c]) / 1e9);
		out_fmt(o, "gpu_cuda_call_duration_seconds_count{class=\"%s\"} %llu\n", api_class_name((enum api_class)c),
			(unsigned long long)all);
	}
}

/* What NVML or the counters say of a device, in OpenTelemetry's names where it has one, with DCGM's labels. */
static void write_devices(struct expose *x, enum expose_format format, struct out *o)
{
	static const struct {
		const char *metric, *name, *unit, *help;
		double scale;
	} known[] = {
		{ "gpu", "hw_gpu_utilization_ratio", "ratio", "Share of the time in which the GPU had work.", 0.01 },
		{ "sm", "hw_gpu_sm_active_ratio", "ratio", "Share of the time in which multiprocessors had a warp.", 0.01 },
		{ "dram", "hw_gpu_memory_bandwidth_ratio", "ratio", "Bandwidth of the GPU's memory in use.", 0.01 },
		{ "mem_used", "hw_gpu_memory_usage_bytes", "bytes", "Memory of the GPU that is in use.", 1 },
		{ "power", "hw_power_watts", "watts", "Power that the board draws.", 1 },
		{ "temp", "hw_temperature_celsius", "celsius", "Temperature of the GPU.", 1 },
	};

	for (size_t k = 0; k < ARRAY_LEN(known); k++) {
		bool first = true;

		for (int i = 0; i < x->ndevices; i++) {
			const struct device *d = &x->devices[i];
			char model[LABEL_MAX * 2 + 8];

			put_value(model, sizeof(model), d->model ? d->model : "");
			for (int v = 0; v < d->nvalues; v++) {
				if (strcmp(d->values[v].name, known[k].metric) || d->values[v].suspect)
					continue;
				if (first)
					head(o, format, known[k].name, known[k].unit, "gauge", known[k].help);
				first = false;
				out_fmt(o, "%s{gpu=\"%u\",UUID=\"%s\",modelName=\"%s\"} %.9g\n", known[k].name, d->index,
					d->uuid, model, d->values[v].value * known[k].scale);
			}
		}
	}
	for (int i = 0; i < x->ndevices; i++) {
		const struct device *d = &x->devices[i];
		char model[LABEL_MAX * 2 + 8];

		put_value(model, sizeof(model), d->model ? d->model : "");
		if (!i)
			head(o, format, "hw_gpu_memory_limit_bytes", "bytes", "gauge", "Memory that the GPU has.");
		out_fmt(o, "hw_gpu_memory_limit_bytes{gpu=\"%u\",UUID=\"%s\",modelName=\"%s\"} %llu\n", d->index, d->uuid,
			model, (unsigned long long)d->memory_bytes);
	}
}

static void write_self(struct expose *x, enum expose_format format, const struct expose_about *a, struct out *o)
{
	head(o, format, "cudatrace_lost_records", NULL, "counter", "Records that were lost, by cause.");
	for (int i = 0; i < CT_LOSS_END; i++)
		out_fmt(o, "cudatrace_lost_records_total{cause=\"%s\"} %llu\n", loss_name((enum ct_loss)i),
			(unsigned long long)a->losses->lost[i]);
	head(o, format, "cudatrace_series_without_room", NULL, "counter", "Sums that found no place among the series.");
	out_fmt(o, "cudatrace_series_without_room_total %llu\n", (unsigned long long)x->no_room);
	head(o, format, "cudatrace_scrapes", NULL, "counter", "Answers given before this one.");
	out_fmt(o, "cudatrace_scrapes_total %llu\n", (unsigned long long)a->scrapes);
	head(o, format, "cudatrace_scrape_time_seconds", "seconds", "counter", "Time that making those answers took.");
	out_fmt(o, "cudatrace_scrape_time_seconds_total %.6f\n", a->scrape_seconds);
	head(o, format, "cudatrace_start_time_seconds", "seconds", "gauge", "When cudatrace began, since the epoch.");
	out_fmt(o, "cudatrace_start_time_seconds %.3f\n", a->start_time_s);
	head(o, format, "cudatrace_build_info", NULL, "gauge", "The version of cudatrace.");
	out_fmt(o, "cudatrace_build_info{version=\"%s\"} 1\n", x->opts.version);
}

void expose_write(struct expose *x, enum expose_format format, const struct expose_about *about, struct out *o)
{
	struct series **order = calloc(x->nseries + 1, sizeof(*order));
	size_t n = 0;

	for (size_t i = 0; order && i < SERIES_MAX; i++)
		if (x->series[i].used)
			order[n++] = &x->series[i];
	if (order)
		qsort(order, n, sizeof(*order), by_labels);
	for (size_t f = 0; f < ARRAY_LEN(families); f++)
		write_family(x, &families[f], x->wanted[f], order, n, format, o);
	free(order);
	if (x->any_hist)
		write_histograms(x, format, o);
	write_devices(x, format, o);
	write_self(x, format, about, o);
	if (format == EXPOSE_OPENMETRICS)
		out_str(o, "# EOF\n");
}
