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
#include "../render/table.h"
#include "../util/msg.h"

#define METRICS_MAX 1024
#define NAME_MAX_BYTES 400
#define COLUMN_MIN 6
#define HEAD_EVERY 40 /* rows, on a terminal */

struct named {
	char *name, *unit;
	uint32_t column;
};

#define ALWAYS \
	2 /* columns that are always there: the time and the GPU; behind them comes one for each name of a metric */

struct counters_print {
	struct out *out;
	enum counters_format format;
	uint64_t start_ns;
	struct named metrics[METRICS_MAX]; /* by id */
	struct table_column columns[ALWAYS + METRICS_MAX];
	uint32_t ncolumns,
		headed; /* the number of metrics' columns that there are, and that the heading shows */
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

static double counters_print_value_of(const struct ct_value *v)
{
	double d;

	memcpy(&d, &v->bits, sizeof(d));
	return d;
}

/* Large numbers, such as bytes, are printed without decimals, which would mean nothing there. */
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

static char *counters_print_copy(const char *text, size_t n)
{
	char *s = strndup(text, n);

	/* Names go to a terminal, and into CSV. */
	for (char *at = s; at && *at; at++)
		if ((unsigned char)*at <= ' ' || *at == 0x7f || *at == '"' || *at == ',')
			*at = '?';
	return s;
}

static struct cell sample_value(const struct table_at *);
static const char *show_value(const struct table_at *, char buf[TABLE_CELL]);

static int add_column(struct counters_print *p, const struct named *of)
{
	const struct shown *s = shown_of(of->unit);
	struct table_column *c = &p->columns[ALWAYS + p->ncolumns];
	const char *under = s ? s->table : of->unit;
	size_t n = strlen(of->name), u = strlen(under), w = n > u ? n : u;
	char *key;

	/* a spreadsheet would take it as a formula */
	if (asprintf(&key, "%s%s [%s]", strchr("=+-@", *of->name) ? "'" : "", of->name, of->unit) <
	    0)
		return -ENOMEM;
	*c = (struct table_column){ .key = key,
				    .head = of->name,
				    .under = under,
				    .name = of->unit,
				    .text = ALWAYS + 1,
				    .csv = ALWAYS + 1,
				    .width = (int16_t)(w > COLUMN_MIN ? w : COLUMN_MIN),
				    .offset = p->ncolumns,
				    .get = sample_value,
				    .show = show_value };
	p->ncolumns++;
	return 0;
}

static int add_metric(struct counters_print *p, const struct ct_metric *m)
{
	struct named *to;

	if (!m->id || m->id >= METRICS_MAX || p->metrics[m->id].name ||
	    m->name_len > NAME_MAX_BYTES || m->unit_len > NAME_MAX_BYTES)
		return 0;
	to = &p->metrics[m->id];
	to->name = counters_print_copy(m->text, m->name_len);
	to->unit = counters_print_copy(m->text + m->name_len, m->unit_len);
	if (!to->name || !to->unit)
		return -ENOMEM;
	for (to->column = 0; to->column < p->ncolumns; to->column++)
		if (!strcmp(p->columns[ALWAYS + to->column].head, to->name))
			return 0;
	return add_column(p, to);
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
	/* Events from before the first sample have the time 0. */
	return ns > p->start_ns ? (double)(ns - p->start_ns) / 1e9 : 0;
}

struct sample {
	const struct counters_print *p;
	const struct ct_counter *c;
};

TABLE_GET(sample_time, struct sample, s, cell_real(seconds(s->p, s->c->h.end_ns)))

static const struct ct_value *value_at(const struct table_at *at)
{
	const struct sample *s = at->row;

	return value_in(s->p, s->c, at->column->offset);
}

static const char *value_text(const struct table_at *at, char buf[TABLE_CELL], bool scaled)
{
	const struct ct_value *v = value_at(at);

	if (!v)
		return NULL;
	format_value(buf, TABLE_CELL - 1, at->column->name, counters_print_value_of(v), scaled);
	if (v->flags & CT_VALUE_SUSPECT)
		strcat(buf, "?");
	return buf;
}

static struct cell sample_value(const struct table_at *at)
{
	const char *text = value_text(at, (char *)at->ctx, false);

	return text ? cell_word(text) : cell_none();
}

static const char *show_value(const struct table_at *at, char buf[TABLE_CELL])
{
	const char *text = value_text(at, buf, true);

	return text ? text : "-";
}

/* clang-format off */
static const struct table_column always[ALWAYS] = {
	{ .key = "time [s]", .head = "TIME", .under = "s", .text = 1, .csv = 1, .width = 10, .unit = TABLE_FIXED, .digits = 3,
	  .json_digits = 6, .get = sample_time },
	{ .key = "gpu", .head = "GPU", .under = "", .text = 2, .csv = 2, .width = 3, TABLE_THROUGH(struct sample, c, struct ct_counter, device) },
};
/* clang-format on */

static void print_sample(struct counters_print *p, const struct ct_counter *c)
{
	char text[TABLE_CELL];
	struct sample s = { p, c };
	struct table t = { .columns = p->columns, .ctx = text, .edge = true, .end = "\n" };
	bool new_columns = p->headed != p->ncolumns;

	/* A metric that begins later has no column in CSV. */
	if (p->format == COUNTERS_TABLE || !p->rows)
		p->headed = p->ncolumns;
	t.n = ALWAYS + p->headed;
	if (p->format == COUNTERS_CSV) {
		if (!p->rows)
			table_csv_heads(&t, p->out);
		table_csv_row(&t, p->out, &s);
		return;
	}
	if (new_columns || (p->out->is_tty && p->rows % HEAD_EVERY == 0))
		table_text_heads(&t, p->out);
	table_text_row(&t, p->out, &s);
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

/* What happened between the samples. */
struct happening {
	double at_s;
	char gpu[16], text[320];
};

TABLE_GET(happening_text, struct happening, h, cell_bytes(h->text, strlen(h->text), true))

/* clang-format off */
static const struct table_column happening_columns[] = {
	{ .text = 1, .width = 10, .unit = TABLE_FIXED, .digits = 3, TABLE_AT(struct happening, at_s) },
	{ .text = 2, .width = 3, TABLE_CHARS_AT(struct happening, gpu) },
	{ .text = 3, .width = -1, .get = happening_text },
};
/* clang-format on */

static void print_happening(struct counters_print *p, const struct happening *h)
{
	struct table t = TABLE_OF(happening_columns, 0, NULL);

	t.edge = true;
	table_text_row(&t, p->out, h);
}

static void text_event(struct counters_print *p, const struct ct_event *e)
{
	struct happening h = { .at_s = seconds(p, e->h.end_ns), .gpu = "-" };

	event_text(h.text, sizeof(h.text), e);
	if (e->device != CT_UNKNOWN)
		snprintf(h.gpu, sizeof(h.gpu), "%u", e->device);
	if (p->format == COUNTERS_TABLE)
		print_happening(p, &h);
	else
		msg_warn("GPU %s at %.3f s: %s", h.gpu, h.at_s, h.text);
}

static void text_lost(struct counters_print *p, const struct ct_lost *l)
{
	struct happening h = { .at_s = seconds(p, l->h.end_ns), .gpu = "-" };

	snprintf(h.text, sizeof(h.text), "%llu samples lost", (unsigned long long)l->count);
	if (p->format == COUNTERS_TABLE)
		print_happening(p, &h);
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
	memcpy(p->columns, always, sizeof(always));
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
		print_sample(p, (const struct ct_counter *)rec);
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
	for (uint32_t i = 0; i < p->ncolumns; i++)
		free((char *)p->columns[ALWAYS + i].key);
	for (uint32_t i = 0; i < METRICS_MAX; i++) {
		free(p->metrics[i].name);
		free(p->metrics[i].unit);
	}
	free(p);
}
