/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * html.c - a timeline as one page that needs no network: timeline.html, with the data in place of a
 * mark in it.
 *
 * Records are written as they come, in blocks of columns with RECORDS records each. The details
 * that the page shows when a record is clicked are in separate blocks, which the page unpacks only
 * when they are needed. What is known only at the end (names, tracks, stacks) comes last, as one
 * JSON object. So the memory needed depends on the names and stacks, not on the records.
 * docs/exports-html.md describes the layout of a block.
 *
 * Every name comes from the traced programs: '<' is written as an escape, and the page shows
 * names as text only.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../event/device.h"
#include "../../event/gpus.h"
#include "../../event/muted.h"
#include "../../util/msg.h"
#include "../../util/strings.h"
#include "../../flow/about.h"
#include "html_details.h"
#include "html_holes.h"
#include "html_pack.h"
#include "../../event/memory/inuse.h"
#include "../../flow/row.h"
#include "../../flow/table_text.h"
#include "../slice/tracks.h"
#include "../../util/io/embed.h"

#define MARK "@DATA@"
#define RECORDS 32768		/* in a block */
#define DETAILS 4096		/* records in a block of details at most */
#define DETAIL_BYTES (1u << 20) /* approximate size of a block of details before it is packed */
#define RECORDS_MAX 8000000u	/* a browser cannot open a page with more */
#define NAMES_BYTES (32u << 20)
#define STACKS_BYTES (64u << 20)
#define SERIES_MAX 4096
#define STACK_CACHE 4096 /* a power of two */
#define TITLE_BYTES 1024
#define ROOM 512

EMBED(timeline_page, "user/export/html/timeline.html");

#define FLAG_FAILED 0x10
#define FLAG_UNFINISHED 0x20
#define FLAG_NO_TIME 0x40
#define FLAG_ALL 0x80 /* of what was not seen: any record may be missing */

enum column {
	COL_KIND,
	COL_TRACK,
	COL_START,
	COL_DURATION,
	COL_NAME,
	COL_NUMBER,
	COL_VALUE,
	COLUMNS
};

/* A series of values: a metric of a device, or the memory in use by a process. */
struct series {
	uint32_t device;     /* the GPU's number in the trace */
	uint32_t name, unit; /* numbers in `names` */
	/* process_unique() of the process whose memory in use it is; 0: a metric */
	uint32_t pid;
	int64_t in_use_bytes;
};

struct html {
	struct text columns[COLUMNS];
	uint32_t in_block;
	/* base: start of the first record; last: start of the previous record, relative to base */
	uint64_t base_ns, last_ns, records, left_out;
	uint32_t last_number;
	struct text detail; /* the block */
	uint32_t in_detail;
	uint64_t detail_first; /* its first record */

	struct tracks tracks;
	struct strings names, stacks, keys; /* keys: of the series */
	struct text classes;		    /* a letter for each name */
	struct series series[SERIES_MAX];
	struct {
		uint32_t id, at;
	} stack_cache[STACK_CACHE]; /* id 0: none */
	struct inuse *in_use;
	struct html_holes holes;
	struct text devices; /* "12345\t0\tNVIDIA H200\n", escaped */

	struct text text;
	struct row w;
};

/* ---- numbers for what repeats ---- */

/* hole: what is filled in of a record that says what was not seen; NULL: it is another one. */
static uint32_t html_name_of(struct html *t, const struct sink_opts *o, const struct event *ev,
			     struct html_hole *hole)
{
	uint32_t before = t->names.n, at;
	char class = '.';

	t->text.len = 0;
	if (hole)
		*hole = html_holes_say(&t->text, ev);
	else
		about_name(&t->text, o, ev);
	at = t->text.bad ? STRINGS_NONE : strings_add(&t->names, t->text.s, t->text.len);
	t->text.bad = false;
	if (t->names.n != before) {
		if (ev->rec->kind == CT_CALL)
			class = (char)('a' +
				       api_funcs[((const struct ct_call *)ev->rec)->func].class);
		text_mem(&t->classes, &class, 1);
	}
	return at;
}

/* Returns STRINGS_NONE if there is no room. */
static uint32_t stack_of(struct html *t, const struct sink_opts *o, const struct stack *stack)
{
	uint32_t place = stack->id & (STACK_CACHE - 1);

	if (!stack->id || t->stack_cache[place].id != stack->id) {
		t->text.len = 0;
		table_stack(&t->text, o, stack);
		t->stack_cache[place].id = stack->id;
		t->stack_cache[place].at =
			t->text.bad ? STRINGS_NONE
				    : strings_add(&t->stacks, t->text.s, t->text.len);
		t->text.bad = false;
	}
	return t->stack_cache[place].at;
}

static uint32_t add_name(struct html *t, const char *s)
{
	uint32_t before = t->names.n, at = strings_add(&t->names, s, strlen(s));

	if (t->names.n != before)
		text_mem(&t->classes, ".", 1);
	return at;
}

/* Returns SERIES_MAX if there is no room. Metric 0 is the memory in use. */
static uint32_t series_of(struct html *t, const struct event *ev, uint32_t device, uint32_t metric)
{
	const struct metric *m = metric && ev->metrics ? metric_table_find(ev->metrics, metric)
						       : NULL;
	uint32_t pid = metric ? 0 : process_unique(ev->proc);
	uint32_t before = t->keys.n, at;
	char key[64];
	int n = snprintf(key, sizeof(key), "%u %u %u", pid, device, metric);

	at = strings_add(&t->keys, key, (size_t)n);
	if (at >= SERIES_MAX)
		return SERIES_MAX;
	if (t->keys.n == before)
		return at;
	n = snprintf(key, sizeof(key), "metric %u", metric);
	t->series[at] = (struct series){ .device = device,
					 .pid = pid,
					 .name = add_name(t, !metric ? "memory in use"
							     : m     ? m->name
								     : key),
					 .unit = add_name(t, !metric ? "bytes"
							     : m     ? m->unit
								     : "") };
	return at;
}

/* ---- blocks ---- */

static int flush_details(struct html *t, struct out *out)
{
	int err;

	if (!t->in_detail)
		return 0;
	err = t->detail.bad
		      ? -ENOMEM
		      : pack_write(out, "details", t->detail_first, t->detail.s, t->detail.len);
	t->detail_first += t->in_detail;
	t->in_detail = 0;
	t->detail.len = 0;
	return err;
}

static int flush_block(struct html *t, struct out *out)
{
	struct text all = { 0 };
	int err;

	if (!t->in_block)
		return 0;
	pack_u64(&all, t->in_block);
	for (int i = 0; i < COLUMNS; i++) {
		all.bad |= t->columns[i].bad;
		pack_u64(&all, t->columns[i].len);
		text_mem(&all, t->columns[i].s, t->columns[i].len);
		t->columns[i].len = 0;
	}
	err = all.bad ? -ENOMEM
		      : pack_write(out, "records", t->records - t->in_block, all.s, all.len);
	text_free(&all);
	t->in_block = 0;
	t->last_ns = 0;
	t->last_number = 0;
	return err;
}

/* The members of a record other than its name and details. */
struct html_record {
	int kind;
	uint32_t track, name, number;
	uint64_t start_ns, duration_ns;
	bool has_value;
	double value;
};

/* The text of the details has been begun in t->detail at `detail_at` (its length comes before it). */
static int put_record(struct html *t, struct out *out, const struct html_record *s,
		      const struct text *detail)
{
	char kind = (char)s->kind;
	uint64_t at;
	int err = 0;

	if (!t->records)
		t->base_ns = s->start_ns;
	at = s->start_ns - t->base_ns;
	text_mem(&t->columns[COL_KIND], &kind, 1);
	pack_u64(&t->columns[COL_TRACK], s->track);
	pack_i64(&t->columns[COL_START], (int64_t)(at - t->last_ns));
	pack_u64(&t->columns[COL_DURATION], s->duration_ns);
	pack_u64(&t->columns[COL_NAME], s->name);
	pack_i64(&t->columns[COL_NUMBER], (int64_t)s->number - t->last_number);
	if (s->has_value)
		pack_f64(&t->columns[COL_VALUE], s->value);
	t->last_ns = at;
	t->last_number = s->number;
	t->records++;
	t->in_block++;
	pack_u64(&t->detail, detail ? detail->len : 0);
	if (detail && detail->len)
		text_mem(&t->detail, detail->s, detail->len);
	t->in_detail++;
	if (t->in_detail == DETAILS || t->detail.len > DETAIL_BYTES)
		err = flush_details(t, out);
	if (!err && t->in_block == RECORDS)
		err = flush_block(t, out);
	return err ? err : out->error;
}

/* ---- what comes ---- */

static bool is_page_hole(int page)
{
	return page == PAGE_LOST || page > PAGE_COUNTER;
}

/* Returns how the page draws the record (enum slice_page); -1: it does not. */
static int html_kind(struct html *t, const struct ct_hdr *h)
{
	const struct slice_row *row = slice_row(h->kind);

	if (!row || !slice_is_shown(h) ||
	    (is_page_hole(row->page) && !html_holes_has(&t->holes, h)))
		return -1;
	return row->page;
}

/* Writes a value at a time; it is left out if there is no room for the series. */
static int put_point(struct html *t, struct out *out, uint32_t series, uint64_t at_ns, double value)
{
	struct html_record s = { .kind = PAGE_COUNTER,
				 .track = series,
				 .start_ns = at_ns,
				 .has_value = true,
				 .value = value };

	if (series == SERIES_MAX || t->records >= RECORDS_MAX) {
		t->left_out++;
		return 0;
	}
	return put_record(t, out, &s, NULL);
}

static int put_counter(struct html *t, struct out *out, const struct event *ev)
{
	const struct ct_counter *c = (const struct ct_counter *)ev->rec;
	int err = 0;

	for (uint32_t i = 0; i < c->n && !err; i++) {
		double v;

		memcpy(&v, &c->values[i].bits, sizeof(v));
		if (isfinite(v) && !(c->values[i].flags & CT_VALUE_SUSPECT) && c->values[i].metric)
			err = put_point(t, out,
					series_of(t, ev, ev->gpu ? ev->gpu->number : c->device,
						  c->values[i].metric),
					c->h.end_ns, v);
	}
	return err ? err : c->n > 0;
}

/* Writes how much device memory a process holds, after a call that took or gave back some. */
static int put_in_use(struct html *t, struct out *out, const struct event *ev)
{
	const struct gpu *gpu;
	uint32_t device, at;
	int64_t delta;

	if (!inuse_call(t->in_use, ev, &device, &delta))
		return 0;
	gpu = gpu_table_find(ev->gpus, ev->proc, device);
	at = series_of(t, ev, gpu ? gpu->number : device, 0);
	if (at == SERIES_MAX ||
	    __builtin_add_overflow(t->series[at].in_use_bytes, delta, &t->series[at].in_use_bytes))
		return 0;
	return put_point(t, out, at, ev->rec->end_ns, (double)t->series[at].in_use_bytes);
}

/* Sets the memory in use to 0 when a process has ended or become another program. */
static int end_in_use(struct html *t, struct out *out, const struct event *ev)
{
	int err = 0;

	inuse_forget(t->in_use, ev->rec->pid);
	for (uint32_t i = 0; i < t->keys.n && i < SERIES_MAX && !err; i++) {
		if (t->series[i].pid != process_unique(ev->proc) || !t->series[i].in_use_bytes)
			continue;
		t->series[i].in_use_bytes = 0;
		err = put_point(t, out, i, ev->rec->end_ns, 0);
	}
	return err;
}

static int put_event(struct html *t, const struct sink_opts *o, const struct event *ev, int kind)
{
	struct html_record s = { .kind = kind,
				 .number = ev->number,
				 .start_ns = ev->rec->start_ns,
				 .duration_ns = about_duration_ns(ev->rec) };
	bool is_hole = is_page_hole(kind);
	struct text detail = { 0 };
	struct html_hole hole;
	uint32_t stack;
	int err;

	s.name = html_name_of(t, o, ev, is_hole ? &hole : NULL);
	s.track = tracks_find(&t->tracks, ev);
	if (s.name == STRINGS_NONE || s.track == TRACKS_NONE || t->records >= RECORDS_MAX) {
		t->left_out++;
		return 0;
	}
	if (ev->rec->kind == CT_CALL && api_failed((const struct ct_call *)ev->rec))
		s.kind |= FLAG_FAILED;
	if (kind == PAGE_CALL && ev->rec->flags & CT_F_UNFINISHED)
		s.kind |= FLAG_UNFINISHED;
	if (kind_is(ev->rec->kind, KIND_WORK) && ev->rec->flags & CT_F_NO_TIME)
		s.kind |= FLAG_NO_TIME;
	if (is_hole) {
		s.kind |= hole.all ? FLAG_ALL : 0;
		s.has_value = true;
		s.value = (double)hole.number;
	}
	stack = ev->stack ? stack_of(t, o, ev->stack) : STRINGS_NONE;
	html_details(&detail, o, ev, stack == STRINGS_NONE ? -1 : (int64_t)stack);
	err = put_record(t, o->out, &s, detail.bad ? NULL : &detail);
	text_free(&detail);
	if (!err && ev->rec->kind == CT_CALL)
		err = put_in_use(t, o->out, ev);
	return err ? err : !is_hole;
}

static void learn_device(struct html *t, const struct event *ev)
{
	const struct ct_device *d = (const struct ct_device *)ev->rec;

	if (t->devices.len > DETAIL_BYTES)
		return;
	text_u64(&t->devices, d->h.pid ? process_unique(ev->proc) : 0);
	text_str(&t->devices, "\t");
	text_u64(&t->devices, ev->gpu ? ev->gpu->number : d->id);
	text_str(&t->devices, "\t");
	about_text(&t->devices, d->name, d->name_len);
	text_str(&t->devices, "\n");
}

static int html_event(struct sink *s, const struct event *ev)
{
	struct html *t = s->priv;
	int kind = html_kind(t, ev->rec);

	if (kind >= 0)
		return put_event(t, s->opts, ev, kind);
	switch (ev->rec->kind) {
	case CT_COUNTER: return put_counter(t, s->opts->out, ev);
	case CT_DEVICE: learn_device(t, ev); break;
	case CT_EXEC:
	case CT_EXIT: return end_in_use(t, s->opts->out, ev);
	}
	return 0;
}

/* ---- beginning and end ---- */

static const char *page_mark(void)
{
	return memmem(timeline_page_begin, (size_t)(timeline_page_end - timeline_page_begin), MARK,
		      strlen(MARK));
}

static int html_open(struct sink *s, const struct sink_opts *opts)
{
	struct html *t = calloc(1, sizeof(*t));

	s->opts = opts;
	s->priv = t;
	if (!t || !page_mark())
		return t ? -EINVAL : -ENOMEM;
	t->in_use = inuse_open();
	tracks_init(&t->tracks);
	if (!t->in_use || strings_init(&t->names, NAMES_BYTES, UINT32_MAX) ||
	    strings_init(&t->stacks, STACKS_BYTES, UINT32_MAX) ||
	    strings_init(&t->keys, SERIES_MAX * 64, UINT32_MAX))
		return -ENOMEM;
	out_mem(opts->out, timeline_page_begin, (size_t)(page_mark() - timeline_page_begin));
	return 0;
}

static void html_put_string(struct html *t, const char *s)
{
	size_t from = 0;

	t->text.len = 0;
	text_json(&t->text, s, 65536);
	if (t->text.bad) {
		t->text.bad = false;
		t->text.len = 0;
		text_str(&t->text, "\"?\"");
	}
	for (size_t i = 0; i < t->text.len; i++) {
		if (t->text.s[i] != '<')
			continue;
		row_mem(&t->w, t->text.s + from, i - from);
		row_mem(&t->w, "\\u003c", 6);
		from = i + 1;
	}
	row_mem(&t->w, t->text.s + from, t->text.len - from);
	row_room(&t->w, ROOM);
}

static void put_strings(struct html *t, const char *key, const struct strings *s)
{
	row_room(&t->w, ROOM);
	t->w.p = put_str(put_str(put_lit(t->w.p, ",\n\""), key), "\":[");
	for (uint32_t i = 0; i < s->n; i++) {
		row_room(&t->w, ROOM);
		if (i)
			*t->w.p++ = ',';
		html_put_string(t, strings_get(s, i));
	}
	*t->w.p++ = ']';
}

static void html_put_text(struct html *t, const char *key, struct text *value)
{
	row_room(&t->w, ROOM);
	t->w.p = put_str(put_str(put_lit(t->w.p, ",\n\""), key), "\":");
	text_mem(value, "", 1);
	html_put_string(t, value->bad ? "" : value->s);
}

/* [kind, pid, first, second, "name", "process"] */
static void put_tracks(struct html *t)
{
	row_room(&t->w, ROOM);
	t->w.p = put_lit(t->w.p, ",\n\"tracks\":[");
	for (uint32_t i = 0; i < t->tracks.all.n; i++) {
		const struct track *k = tracks_at(&t->tracks, i);
		struct text name = { 0 }, process = { 0 };

		tracks_name(&name, k);
		tracks_process(&process, k);
		text_mem(&name, "", 1);
		text_mem(&process, "", 1);
		row_room(&t->w, ROOM);
		t->w.p = put_u64(i ? put_lit(t->w.p, ",\n[") : put_lit(t->w.p, "["), k->key.page);
		t->w.p = put_u64(put_char(t->w.p, ','), k->key.pid);
		t->w.p = put_u64(put_char(t->w.p, ','), k->key.first);
		t->w.p = put_char(put_u64(put_char(t->w.p, ','), k->key.second), ',');
		html_put_string(t, name.bad ? "" : name.s);
		*t->w.p++ = ',';
		html_put_string(t, process.bad ? "" : process.s);
		*t->w.p++ = ']';
		text_free(&name);
		text_free(&process);
	}
	*t->w.p++ = ']';
}

/* [pid, device, "name", "unit"] */
static void put_series(struct html *t)
{
	row_room(&t->w, ROOM);
	t->w.p = put_lit(t->w.p, ",\n\"series\":[");
	for (uint32_t i = 0; i < t->keys.n && i < SERIES_MAX; i++) {
		const struct series *s = &t->series[i];

		row_room(&t->w, ROOM);
		t->w.p = put_u64(i ? put_lit(t->w.p, ",\n[") : put_lit(t->w.p, "["), s->pid);
		t->w.p = put_char(put_u64(put_char(t->w.p, ','), s->device), ',');
		html_put_string(t, s->name == STRINGS_NONE ? "?" : strings_get(&t->names, s->name));
		*t->w.p++ = ',';
		html_put_string(t, s->unit == STRINGS_NONE ? "" : strings_get(&t->names, s->unit));
		*t->w.p++ = ']';
	}
	*t->w.p++ = ']';
}

static void put_lost(struct html *t, const struct losses *l)
{
	bool first = true;

	t->w.p = put_lit(t->w.p, ",\n\"lost\":[");
	for (int i = 0; i < CT_LOSS_END; i++) {
		if (!l->lost[i] || i == CT_LOSS_ORPHAN)
			continue;
		row_room(&t->w, ROOM);
		t->w.p = first ? put_lit(t->w.p, "[") : put_lit(t->w.p, ",[");
		t->w.p = put_char(put_u64(t->w.p, l->lost[i]), ',');
		html_put_string(t, loss_text((enum ct_loss)i));
		*t->w.p++ = ']';
		first = false;
	}
	*t->w.p++ = ']';
}

/* Writes the names of the classes, in the order of their letters in `classes`. */
static void put_class_names(struct html *t)
{
	t->w.p = put_lit(t->w.p, ",\n\"class_names\":[");
	for (int i = 0; i < API_CLASS_END; i++) {
		row_room(&t->w, ROOM);
		if (i)
			*t->w.p++ = ',';
		html_put_string(t, api_class_name((enum api_class)i));
	}
	row_room(&t->w, ROOM);
	*t->w.p++ = ']';
}

static void put_end(struct html *t, const struct sink_opts *o, const struct sink_end *end)
{
	char clause[1536];

	row_room(&t->w, ROOM);
	t->w.p = put_lit(t->w.p, "<script id=\"meta\" type=\"application/json\">{\"version\":");
	html_put_string(t, o->version ? o->version : "");
	t->w.p = put_lit(t->w.p, ",\"title\":");
	html_put_string(t, o->title ? o->title : "");
	t->w.p = put_u64(put_lit(t->w.p, ",\"records\":"), t->records);
	t->w.p = put_u64(put_lit(t->w.p, ",\"left_out\":"), t->left_out);
	/* as strings: they have more digits than a number of JavaScript can keep */
	t->w.p = put_u64(put_lit(t->w.p, ",\"base_ns\":\""), t->base_ns);
	t->w.p = put_u64(put_lit(t->w.p, "\",\"realtime_offset_ns\":\""), o->realtime_offset_ns);
	t->w.p = put_lit(t->w.p, "\",\"reason\":");
	html_put_string(t, end->reason ? end->reason : "");
	t->w.p = put_lit(t->w.p, ",\"muted\":");
	html_put_string(t, muted_clause(clause, sizeof(clause), &end->muted_calls, end->muted));
	put_lost(t, &end->losses);
	put_tracks(t);
	put_series(t);
	html_put_text(t, "devices", &t->devices);
	html_put_text(t, "classes", &t->classes);
	put_class_names(t);
	put_strings(t, "names", &t->names);
	put_strings(t, "stacks", &t->stacks);
	row_room(&t->w, ROOM);
	t->w.p = put_lit(t->w.p, "}</script>\n");
}

static void html_free(struct html *t)
{
	for (int i = 0; i < COLUMNS; i++)
		text_free(&t->columns[i]);
	text_free(&t->detail);
	text_free(&t->classes);
	text_free(&t->devices);
	text_free(&t->text);
	tracks_free(&t->tracks);
	strings_free(&t->names);
	strings_free(&t->stacks);
	strings_free(&t->keys);
	inuse_close(t->in_use);
	free(t);
}

static int html_close(struct sink *s, const struct sink_end *end)
{
	struct html *t = s->priv;
	struct out *out = s->opts->out;
	const char *rest = page_mark();
	int err;

	if (!t)
		return 0;
	err = flush_details(t, out);
	if (!err)
		err = flush_block(t, out);
	if (!err && rest) {
		rest += strlen(MARK);
		row_begin(&t->w, out);
		put_end(t, s->opts, end);
		row_end(&t->w);
		out_mem(out, rest, (size_t)(timeline_page_end - rest));
	}
	if (t->left_out)
		msg_note("the page has room for %u records; left out: %llu; choose some by time or "
			 "with -e",
			 RECORDS_MAX, (unsigned long long)t->left_out);
	html_free(t);
	s->priv = NULL;
	return err ? err : out->error;
}

const struct sink_ops sink_html = {
	.name = "html",
	.open = html_open,
	.event = html_event,
	.close = html_close,
};
