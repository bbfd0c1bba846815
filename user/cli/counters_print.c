/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters_print.c - see counters_print.h. A column is a name: two GPUs that count by different
 * methods have different metrics of one name, and share it.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../session/clocks.h"
#include "counters_print.h"
#include "../event/device.h"
#include "../util/msg.h"

#define METRICS_MAX 1024
#define NAME_MAX_BYTES 400
#define COLUMN_MIN 6
#define HEAD_EVERY 40 /* rows, on a terminal */

struct named {
	char *name, *unit;
	uint32_t column;
};

struct column {
	const char *name, *unit;
	int width;
};

struct counters_print {
	struct out *out;
	enum counters_format format;
	uint64_t start_ns;
	struct named metrics[METRICS_MAX]; /* by id */
	struct column columns[METRICS_MAX];
	uint32_t ncolumns, headed; /* how many of them the heading has */
	uint64_t rows;
	/* JSON */
	struct sink sink;
	struct sink_opts sink_opts;
	struct metric_table *names;
	struct process_table *procs;
};

/* How a unit is shown. */
static const struct shown {
	const char *unit, *table;
	double divisor;
	int digits; /* behind the point */
} shown[] = {
	{ "%", "%", 1, 1 },	{ "B/s", "GB/s", 1e9, 2 }, { "W", "W", 1, 1 },
	{ "MHz", "MHz", 1, 0 }, { "C", "C", 1, 0 },	   { "B", "MiB", 1048576, 0 },
};

static const struct shown *shown_of(const char *unit)
{
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (!strcmp(shown[i].unit, unit))
			return &shown[i];
	return NULL;
}

/* As NVML numbers them (nvmlClocksEventReason*); the words are ours. */
static void put_reasons(char *buf, size_t size, uint64_t bits)
{
	static const char *const words[] = { "idle",	    "app-clocks", "power",
					     "hw-slowdown", "sync-boost", "thermal",
					     "hw-thermal",  "brake",	  "display",
					     "board",	    "reliability" };
	size_t n = 0;

	snprintf(buf, size, "none");
	for (unsigned int i = 0; i < 64 && n < size; i++)
		if (bits >> i & 1) {
			if (i < ARRAY_LEN(words))
				n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? "+" : "",
						      words[i]);
			else
				n += (size_t)snprintf(buf + n, size - n, "%s0x%llx", n ? "+" : "",
						      1ULL << i);
		}
}

static double value_of(const struct ct_value *v)
{
	double d;

	memcpy(&d, &v->bits, sizeof(d));
	return d;
}

/* Large numbers in whole, as bytes are: what is behind the point means nothing there. */
static void format_number(char *buf, size_t size, double v)
{
	snprintf(buf, size, fabs(v) >= 1e6 && fabs(v) < 1e18 ? "%.0f" : "%.9g", v);
}

static void format_value(char *buf, size_t size, const char *unit, double v, bool scaled)
{
	const struct shown *s = shown_of(unit);

	if (!strcmp(unit, "reasons"))
		put_reasons(buf, size, v >= 0 && v < 1e18 ? (uint64_t)v : 0);
	else if (s && scaled && fabs(v) < 1e30)
		snprintf(buf, size, "%.*f", s->digits, v / s->divisor);
	else if (scaled)
		snprintf(buf, size, "%.6g", v);
	else
		format_number(buf, size, v);
}

/* ---- metrics and columns ---- */

static int width_of(const struct column *c)
{
	const struct shown *s = shown_of(c->unit);
	int n = (int)strlen(c->name), u = (int)strlen(s ? s->table : c->unit), w = n > u ? n : u;

	return w > COLUMN_MIN ? w : COLUMN_MIN;
}

static char *copy(const char *text, size_t n)
{
	char *s = strndup(text, n);

	/* Names go to a terminal, and into CSV. */
	for (char *at = s; at && *at; at++)
		if ((unsigned char)*at <= ' ' || *at == 0x7f || *at == '"' || *at == ',')
			*at = '?';
	return s;
}

static int add_metric(struct counters_print *p, const struct ct_metric *m)
{
	struct named *to;

	if (!m->id || m->id >= METRICS_MAX || p->metrics[m->id].name ||
	    m->name_len > NAME_MAX_BYTES || m->unit_len > NAME_MAX_BYTES)
		return 0;
	to = &p->metrics[m->id];
	to->name = copy(m->text, m->name_len);
	to->unit = copy(m->text + m->name_len, m->unit_len);
	if (!to->name || !to->unit)
		return -ENOMEM;
	for (to->column = 0; to->column < p->ncolumns; to->column++)
		if (!strcmp(p->columns[to->column].name, to->name))
			return 0;
	p->columns[p->ncolumns] = (struct column){ .name = to->name, .unit = to->unit };
	p->columns[p->ncolumns].width = width_of(&p->columns[p->ncolumns]);
	p->ncolumns++;
	return 0;
}

static const struct named *metric_of(const struct counters_print *p, uint32_t id)
{
	return id < METRICS_MAX && p->metrics[id].name ? &p->metrics[id] : NULL;
}

static const struct ct_value *value_in(const struct counters_print *p, const struct ct_counter *c,
				       uint32_t column)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct named *m = metric_of(p, c->values[i].metric);

		if (m && m->column == column)
			return &c->values[i];
	}
	return NULL;
}

/* ---- table and CSV ---- */

static double seconds(const struct counters_print *p, uint64_t ns)
{
	/* What was there before the first sample is told of at the start. */
	return ns > p->start_ns ? (double)(ns - p->start_ns) / 1e9 : 0;
}

static void table_head(struct counters_print *p)
{
	out_fmt(p->out, "%10s %3s", "TIME", "GPU");
	for (uint32_t i = 0; i < p->ncolumns; i++)
		out_fmt(p->out, " %*s", p->columns[i].width, p->columns[i].name);
	out_fmt(p->out, "\n%10s %3s", "s", "");
	for (uint32_t i = 0; i < p->ncolumns; i++) {
		const struct shown *s = shown_of(p->columns[i].unit);

		out_fmt(p->out, " %*s", p->columns[i].width, s ? s->table : p->columns[i].unit);
	}
	out_char(p->out, '\n');
}

static void csv_head(struct counters_print *p)
{
	out_str(p->out, "time [s],gpu");
	for (uint32_t i = 0; i < p->ncolumns; i++)
		/* a spreadsheet would take it as a formula */
		out_fmt(p->out, ",%s%s [%s]", strchr("=+-@", *p->columns[i].name) ? "'" : "",
			p->columns[i].name, p->columns[i].unit);
	out_char(p->out, '\n');
}

static void head(struct counters_print *p)
{
	if (p->format == COUNTERS_TABLE) {
		if (p->headed != p->ncolumns || (p->out->is_tty && p->rows % HEAD_EVERY == 0))
			table_head(p);
	} else if (!p->rows) {
		csv_head(p);
	}
	/* A metric that begins later has no column in CSV. */
	if (p->format == COUNTERS_TABLE || !p->rows)
		p->headed = p->ncolumns;
}

static void text_row(struct counters_print *p, const struct ct_counter *c)
{
	bool table = p->format == COUNTERS_TABLE;

	head(p);
	if (table)
		out_fmt(p->out, "%10.3f %3u", seconds(p, c->h.end_ns), c->device);
	else
		out_fmt(p->out, "%.6f,%u", seconds(p, c->h.end_ns), c->device);
	for (uint32_t i = 0; i < p->headed; i++) {
		const struct ct_value *v = value_in(p, c, i);
		char text[256] = "-";

		if (v) {
			format_value(text, sizeof(text) - 1, p->columns[i].unit, value_of(v),
				     table);
			if (v->flags & CT_VALUE_SUSPECT)
				strcat(text, "?");
		}
		if (table)
			out_fmt(p->out, " %*s", p->columns[i].width, text);
		else
			out_fmt(p->out, ",%s", v ? text : "");
	}
	out_char(p->out, '\n');
}

static const char *const event_types[] = { [CT_EVENT_XID] = "XID",
					   [CT_EVENT_ECC] = "ECC",
					   [CT_EVENT_CLOCK] = "clocks",
					   [CT_EVENT_TRUNCATED] = "truncated",
					   [CT_EVENT_UNDECIDED] = "undecided" };

static const char *event_type(uint32_t type)
{
	return type < ARRAY_LEN(event_types) && event_types[type] ? event_types[type] : "event";
}

/* "XID 79: the GPU has fallen off the bus" */
static void event_text(char *buf, size_t size, const struct ct_event *e)
{
	char text[256];
	size_t n = e->text_len < sizeof(text) - 1 ? e->text_len : sizeof(text) - 1;

	memcpy(text, e->text, n);
	text[n] = '\0';
	for (char *at = text; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	if (e->type == CT_EVENT_XID)
		snprintf(buf, size, "XID %llu: %s", (unsigned long long)e->code, text);
	else
		snprintf(buf, size, "%s: %s", event_type(e->type), text);
}

static void text_event(struct counters_print *p, const struct ct_event *e)
{
	char text[320], gpu[16] = "-";

	event_text(text, sizeof(text), e);
	if (e->device != CT_UNKNOWN)
		snprintf(gpu, sizeof(gpu), "%u", e->device);
	if (p->format == COUNTERS_TABLE)
		out_fmt(p->out, "%10.3f %3s %s\n", seconds(p, e->h.end_ns), gpu, text);
	else
		msg_warn("GPU %s at %.3f s: %s", gpu, seconds(p, e->h.end_ns), text);
}

static void text_lost(struct counters_print *p, const struct ct_lost *l)
{
	if (p->format == COUNTERS_TABLE)
		out_fmt(p->out, "%10.3f   - %llu samples lost\n", seconds(p, l->h.end_ns),
			(unsigned long long)l->count);
}

/* ---- JSON: as every trace has it ---- */

static int json_open(struct counters_print *p)
{
	struct ct_clock now;

	clocks_read(&now);
	p->sink_opts = (struct sink_opts){
		.out = p->out,
		.start_ns = p->start_ns,
		.realtime_offset_ns = now.realtime_ns - now.h.start_ns,
		.version = CT_VERSION,
	};
	p->sink = (struct sink){ .ops = &sink_json, .opts = &p->sink_opts };
	p->names = metric_table_open();
	p->procs = process_table_open();
	return p->names && p->procs ? p->sink.ops->open(&p->sink, &p->sink_opts) : -ENOMEM;
}

static int json_record(struct counters_print *p, const struct ct_hdr *rec)
{
	struct event ev = { .rec = rec,
			    .device = CT_UNKNOWN,
			    .context = CT_UNKNOWN,
			    .stream = CT_UNKNOWN,
			    .metrics = p->names };
	int err = metric_table_record(p->names, rec);

	ev.proc = process_table_find(p->procs, 0);
	if (err || !ev.proc)
		return -ENOMEM;
	err = p->sink.ops->event(&p->sink, &ev);
	return err < 0 ? err : rec->kind == CT_COUNTER;
}

/* ---- the interface ---- */

struct counters_print *counters_print_open(struct out *out, enum counters_format format,
					   uint64_t start_ns)
{
	struct counters_print *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->out = out;
	p->format = format;
	p->start_ns = start_ns;
	if (format == COUNTERS_JSON && json_open(p)) {
		counters_print_close(p, NULL);
		return NULL;
	}
	return p;
}

int counters_print_record(struct counters_print *p, const struct ct_hdr *rec)
{
	if (p->format == COUNTERS_JSON)
		return json_record(p, rec);
	switch (rec->kind) {
	case CT_METRIC: return add_metric(p, (const struct ct_metric *)rec);
	case CT_COUNTER:
		if (rec->pid)
			return 0; /* what a process has of a device */
		text_row(p, (const struct ct_counter *)rec);
		p->rows++;
		return 1;
	case CT_EVENT: text_event(p, (const struct ct_event *)rec); return 0;
	case CT_LOST: text_lost(p, (const struct ct_lost *)rec); return 0;
	default: return 0;
	}
}

void counters_print_close(struct counters_print *p, const struct sink_end *end)
{
	static const struct sink_end none = { .reason = "error" };

	if (!p)
		return;
	if (p->sink.priv)
		p->sink.ops->close(&p->sink, end ? end : &none);
	metric_table_close(p->names);
	process_table_close(p->procs);
	for (uint32_t i = 0; i < METRICS_MAX; i++) {
		free(p->metrics[i].name);
		free(p->metrics[i].unit);
	}
	free(p);
}
