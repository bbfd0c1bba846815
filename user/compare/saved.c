/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * saved.c - see saved.h. A file is read piece by piece and one object at a time, so that what
 * json-c holds of it is bounded by OBJECT_MAX and PARTS_MAX, whatever the file's size.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "../util/table/array.h"
#include "../util/msg.h"
#include "saved.h"

#define OBJECT_MAX (16u << 20) /* bytes of one run */
/*
 * What json-c makes of a run is bounded by its parts, not by its bytes: an empty object, of two
 * bytes, takes 760. They are counted as they are written, before they are made, in the rough
 * unit of 64 bytes. A row that `stat --save` writes counts 50, and has 230 bytes.
 */
#define PARTS_ROWS 70000u
/* of one run: 270 MB at most; OBJECT_MAX has room for as many real rows */
#define PARTS_MAX (PARTS_ROWS * PARTS_ROW)
#define PARTS_OBJECT 12u
#define PARTS_ARRAY 4u
#define PARTS_KEY 2u
#define PARTS_VALUE 1u
#define PARTS_ROW 60u
#define PART_BYTES 4096u       /* so many parts are counted before they are made */
#define NAMES_MAX (256u << 20) /* bytes of the names of all rows */
#define DEPTH_MAX 8
#define ENTRIES_MAX 1000000 /* rows of all runs: 130 MB */
#define NAME_MAX_BYTES 16384
#define SCHEMA "cudatrace-stat"

/* A row of one run. */
struct run_row {
	enum saved_section section;
	char *name;
	size_t run;
	double v[SAVED_FIELD_END];
};

struct saved_room {
	struct run_row *entries;
	size_t nentries, names; /* names: bytes */
	double *values;
	bool full; /* there were more rows, or longer names, than there is room for */
	struct run_row nowhere;
};

static const char *const sections[SAVED_SECTION_END] = {
	[SAVED_SUMMARY] = "summary", [SAVED_KERNELS] = "kernels", [SAVED_COPIES] = "copies",
	[SAVED_SYNC] = "sync",	     [SAVED_TRAFFIC] = "traffic", [SAVED_COUNTERS] = "counters",
};

static const struct {
	const char *name, *json; /* in expressions; in the file */
	enum saved_unit unit;
} fields[SAVED_FIELD_END] = {
	[SAVED_VALUE] = { "value", "avg", SAVED_UNIT_NUMBER },
	[SAVED_CALLS] = { "calls", "calls", SAVED_UNIT_NUMBER },
	[SAVED_FAILED] = { "failed", "failed", SAVED_UNIT_NUMBER },
	[SAVED_TIME] = { "time", "total_ns", SAVED_UNIT_NS },
	[SAVED_AVG] = { "avg", "avg_ns", SAVED_UNIT_NS },
	[SAVED_MEDIAN] = { "median", "median_ns", SAVED_UNIT_NS },
	[SAVED_P90] = { "p90", "p90_ns", SAVED_UNIT_NS },
	[SAVED_P99] = { "p99", "p99_ns", SAVED_UNIT_NS },
	[SAVED_MIN] = { "min", "min_ns", SAVED_UNIT_NS },
	[SAVED_MAX] = { "max", "max_ns", SAVED_UNIT_NS },
	[SAVED_STDDEV] = { "stddev", "stddev_ns", SAVED_UNIT_NS },
	[SAVED_BYTES] = { "bytes", "bytes", SAVED_UNIT_BYTES },
	[SAVED_OCCUPANCY] = { "occupancy", "occupancy", SAVED_UNIT_SHARE },
	[SAVED_ERROR] = { "error", "error", SAVED_UNIT_NUMBER },
	[SAVED_BANDWIDTH] = { "bandwidth", NULL, SAVED_UNIT_GBS },
};

/* In expressions; in files, if that is another: files before version 2 have the first; in words; SUM: it grows with the
 * length of a run. */
static const struct {
	const char *key, *json, *words;
	enum saved_unit unit;
	bool sum;
} keys[] = {
#define SUM true
	{ "total_api_time", "total_api_time_ns", "time in CUDA calls", SAVED_UNIT_NS, SUM },
	{ "total_api_calls", NULL, "CUDA calls", SAVED_UNIT_NUMBER, SUM },
	{ "failed_calls", NULL, "failed calls", SAVED_UNIT_NUMBER, SUM },
	{ "sync_time", "sync_time_ns", "time in calls that wait", SAVED_UNIT_NS, SUM },
	{ "launches", NULL, "kernel launches", SAVED_UNIT_NUMBER, SUM },
	{ "graph_launches", NULL, "graph launches", SAVED_UNIT_NUMBER, SUM },
	{ "launch_threads", NULL, "GPU threads launched", SAVED_UNIT_NUMBER, SUM },
	{ "stream_launches", NULL, "launches on own streams", SAVED_UNIT_NUMBER, SUM },
	{ "moves", NULL, "copies and sets", SAVED_UNIT_NUMBER, SUM },
	{ "async_moves", NULL, "copies and sets, async", SAVED_UNIT_NUMBER, SUM },
	{ "bytes_moved", NULL, "bytes copied and set", SAVED_UNIT_BYTES, SUM },
	{ "kernel_time", "kernel_time_ns", "time of kernels", SAVED_UNIT_NS, SUM },
	{ "copy_time", "copy_time_ns", "time of copies", SAVED_UNIT_NS, SUM },
	{ "kernel_utilization", NULL, "device busy with kernels", SAVED_UNIT_SHARE, false },
	{ "memory_efficiency", "memory_efficiency_gb_per_second", "bandwidth of copies",
	  SAVED_UNIT_GBS, false },
	{ "peak_bytes", NULL, "peak of device memory", SAVED_UNIT_BYTES, false },
	{ "span_ns", NULL, "from beginning to end", SAVED_UNIT_NS, SUM },
	{ "own_cost_ns", NULL, "cost of the probes", SAVED_UNIT_NS, SUM },
#undef SUM
};

const char *saved_section_name(enum saved_section s)
{
	return sections[s] ? sections[s] : api_domain_name((enum api_domain)(s - SAVED_CALLS_OF));
}

const char *saved_field_name(enum saved_field f)
{
	return fields[f].name;
}

enum saved_unit saved_field_unit(enum saved_field f)
{
	return fields[f].unit;
}

int saved_field_find(const char *name, size_t len)
{
	for (int i = SAVED_CALLS; i < SAVED_FIELD_END; i++)
		if (strlen(fields[i].name) == len && !memcmp(fields[i].name, name, len))
			return i;
	return -1;
}

const char *saved_key(unsigned int i)
{
	return i < ARRAY_LEN(keys) ? keys[i].key : NULL;
}

const char *saved_key_json(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!strcmp(keys[i].key, key))
			return keys[i].json ? keys[i].json : key;
	return key;
}

const char *saved_key_of(const char *json)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].json && !strcmp(keys[i].json, json))
			return keys[i].key;
	return json;
}

const char *saved_key_words(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!strcmp(keys[i].key, key))
			return keys[i].words;
	return NULL;
}

enum saved_unit saved_key_unit(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!strcmp(keys[i].key, key))
			return keys[i].unit;
	return SAVED_UNIT_NUMBER;
}

/* ---- one run ---- */

static double saved_number(struct json_object *in, const char *key)
{
	struct json_object *o;
	double v;

	if (!key || !json_object_object_get_ex(in, key, &o) ||
	    (!json_object_is_type(o, json_type_int) && !json_object_is_type(o, json_type_double)))
		return NAN;
	v = json_object_get_double(o);
	return isfinite(v) && v >= 0 ? v : NAN;
}

/* If there is no room, the row is not stored, and add_run() refuses the run. */
static struct run_row *add_entry(struct saved *s, enum saved_section section, const char *name)
{
	struct saved_room *r = s->room;
	struct run_row *e = &r->nowhere;
	char *copy = NULL;

	r->names += strnlen(name, NAME_MAX_BYTES) + 1;
	if (r->nentries < ENTRIES_MAX && r->names <= NAMES_MAX &&
	    array_room(r->entries, r->nentries))
		copy = strndup(name, NAME_MAX_BYTES);
	if (copy)
		e = &r->entries[r->nentries++];
	r->full |= !copy;
	*e = (struct run_row){ .section = section, .run = s->nruns, .name = copy };
	for (int i = 0; i < SAVED_FIELD_END; i++)
		e->v[i] = NAN;
	return e;
}

static const char *text_of(struct json_object *in, const char *key)
{
	struct json_object *o;

	return json_object_object_get_ex(in, key, &o) && json_object_is_type(o, json_type_string)
		       ? json_object_get_string(o)
		       : NULL;
}

/* NULL: it is not a row. */
static struct run_row *add_row(struct saved *s, enum saved_section section, struct json_object *row)
{
	const char *name = text_of(row, section == SAVED_TRAFFIC ? "direction" : "name");
	char counter[256];
	struct run_row *e;

	if (!name || !*name)
		return NULL;
	if (section == SAVED_COUNTERS) {
		double device = saved_number(row, "device");

		snprintf(counter, sizeof(counter), "%.0f/%s",
			 device >= 0 && device < 1e6 ? device : 0, name);
		name = counter;
	}
	e = add_entry(s, section, name);
	if (section == SAVED_COUNTERS) {
		e->v[SAVED_VALUE] = saved_number(row, "avg");
		return e;
	}
	for (int i = SAVED_CALLS; i < SAVED_FIELD_END; i++)
		e->v[i] = saved_number(row, fields[i].json);
	if (section == SAVED_TRAFFIC) {
		e->v[SAVED_CALLS] = saved_number(row, "count");
		e->v[SAVED_TIME] = saved_number(row, "device_ns");
		if (e->v[SAVED_TIME] > 0)
			e->v[SAVED_BANDWIDTH] = e->v[SAVED_BYTES] / e->v[SAVED_TIME];
	}
	return e;
}

/* Sections that a file of an earlier version may not have. */
static bool may_lack(enum saved_section s)
{
	return s >= SAVED_TRAFFIC ||
	       (s >= SAVED_CALLS_OF && s < SAVED_KERNELS && !api_domains[s - SAVED_CALLS_OF].folds);
}

static int add_section(struct saved *s, struct json_object *run, enum saved_section section)
{
	static const enum saved_field added[] = { SAVED_CALLS, SAVED_FAILED, SAVED_TIME,
						  SAVED_BYTES, SAVED_ERROR };
	double sums[SAVED_FIELD_END] = { 0 };
	struct json_object *rows;
	struct run_row *e;

	if (!json_object_object_get_ex(run, saved_section_name(section), &rows))
		return may_lack(section) ? 0 : -EBADMSG;
	if (!json_object_is_type(rows, json_type_array))
		return -EBADMSG;
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		e = add_row(s, section, json_object_array_get_idx(rows, i));
		if (!e)
			return -EBADMSG;
		for (size_t k = 0; k < ARRAY_LEN(added); k++)
			sums[added[k]] += isnan(e->v[added[k]]) ? 0 : e->v[added[k]];
	}
	if (section >= SAVED_TRAFFIC)
		return 0;
	e = add_entry(s, section, "");
	for (size_t k = 0; k < ARRAY_LEN(added); k++)
		e->v[added[k]] = sums[added[k]];
	e->v[SAVED_AVG] = sums[SAVED_CALLS] > 0 ? sums[SAVED_TIME] / sums[SAVED_CALLS] : NAN;
	return 0;
}

/* True if a row of what was not seen says that the number of calls, or of device work, is not known. */
static bool unseen(struct json_object *run)
{
	struct json_object *rows;

	if (!json_object_object_get_ex(run, "not_seen", &rows) ||
	    !json_object_is_type(rows, json_type_array))
		return json_object_object_get_ex(run, "unprobed", NULL);
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		const char *state = text_of(row, "state"), *layer = text_of(row, "layer");

		if (state && layer && (!strcmp(layer, "calls") || !strcmp(layer, "device work")) &&
		    strcmp(state, "muted") && strcmp(state, "lost"))
			return true;
	}
	return false;
}

static int add_summary(struct saved *s, struct json_object *run)
{
	struct json_object *summary, *lost;
	bool device;

	if (!json_object_object_get_ex(run, "summary", &summary) ||
	    !json_object_is_type(summary, json_type_object))
		return -EBADMSG;
	json_object_object_foreach(summary, key, val)
	{
		double v = saved_number(summary, key);

		(void)val;
		if (!isnan(v))
			add_entry(s, SAVED_SUMMARY, saved_key_of(key))->v[SAVED_VALUE] = v;
	}
	device = !isnan(saved_number(summary, saved_key_json("kernel_time"))) ||
		 !isnan(saved_number(summary, "kernel_time"));
	s->device = device && (s->device || !s->nruns);
	s->unseen += unseen(run);
	if (!json_object_object_get_ex(run, "lost", &lost) ||
	    !json_object_is_type(lost, json_type_object))
		return 0;
	json_object_object_foreach(lost, cause, count)
	{
		double v = saved_number(lost, cause);

		(void)count;
		s->lost += v < 1e18 ? (uint64_t)v : 0;
	}
	return 0;
}

static int add_run(struct saved *s, struct json_object *run)
{
	const char *schema = json_object_is_type(run, json_type_object) ? text_of(run, "schema")
									: NULL;
	double version = schema ? saved_number(run, "version") : 0;
	int err;

	if (!schema || strcmp(schema, SCHEMA)) {
		msg_error("%s: not what 'cudatrace stat --save' writes", s->path);
		return -EINVAL;
	}
	if (version != 1 && version != SAVED_VERSION) {
		msg_error("%s: written by another version of cudatrace (%g instead of %d); save it "
			  "again",
			  s->path, version, SAVED_VERSION);
		return -EINVAL;
	}
	err = add_summary(s, run);
	for (int i = SAVED_CALLS_OF; i < SAVED_SECTION_END && !err; i++)
		err = add_section(s, run, (enum saved_section)i);
	if (!err && s->room->full)
		err = -E2BIG;
	if (!err)
		s->nruns++;
	else if (err == -EBADMSG)
		msg_error("%s: run %zu is damaged: a part of it is missing or has the wrong type",
			  s->path, s->nruns + 1);
	else
		msg_error("%s: more than %d rows in all its runs, or no memory for them; save "
			  "fewer kinds of calls (-e)",
			  s->path, ENTRIES_MAX);
	return err;
}

/* ---- the file ---- */

struct reading {
	struct saved *s;
	struct json_tokener *tok;
	size_t fed;	/* of the object under way; 0: none is */
	uint32_t parts; /* of it */
};

/* In a text they count too, which does no harm: names with commas are few. */
static uint32_t parts_of(const char *p, size_t n)
{
	uint32_t parts = 0;

	for (size_t i = 0; i < n; i++)
		parts += p[i] == '{'   ? PARTS_OBJECT
			 : p[i] == '[' ? PARTS_ARRAY
			 : p[i] == ':' ? PARTS_KEY
			 : p[i] == ',' ? PARTS_VALUE
				       : 0;
	return parts;
}

static size_t blanks(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t'))
		i++;
	return i;
}

static int feed(struct reading *r, const char *p, size_t n)
{
	while (n) {
		size_t skip = r->fed ? 0 : blanks(p, n), used, some;
		struct json_object *run;
		int err;

		p += skip;
		n -= skip;
		if (!n)
			return 0;
		some = n < PART_BYTES ? n : PART_BYTES;
		r->parts += parts_of(p, some);
		if (r->parts > PARTS_MAX) {
			msg_error("%s: a run has more parts than %u rows need; save fewer kinds of "
				  "calls (-e)",
				  r->s->path, PARTS_ROWS);
			return -EINVAL;
		}
		run = json_tokener_parse_ex(r->tok, p, (int)some);
		used = run ? json_tokener_get_parse_end(r->tok) : some;
		r->fed += used;
		if (!run && json_tokener_get_error(r->tok) != json_tokener_continue) {
			msg_error("%s: not valid JSON: %s", r->s->path,
				  json_tokener_error_desc(json_tokener_get_error(r->tok)));
			return -EINVAL;
		}
		if (r->fed > OBJECT_MAX) {
			json_object_put(run);
			msg_error("%s: a run of more than %u MiB", r->s->path, OBJECT_MAX >> 20);
			return -EINVAL;
		}
		if (!run) {
			p += used;
			n -= used;
			continue;
		}
		err = add_run(r->s, run);
		json_object_put(run);
		json_tokener_reset(r->tok);
		r->fed = r->parts = 0;
		if (err)
			return err;
		p += used;
		n -= used;
	}
	return 0;
}

static int saved_read_all(struct reading *r, int fd)
{
	char buf[65536];
	ssize_t n;
	int err;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		err = feed(r, buf, (size_t)n);
		if (err)
			return err;
	}
	if (n < 0) {
		err = -errno;
		msg_error("%s cannot be read: %s", r->s->path, strerror(-err));
		return err;
	}
	if (r->fed || !r->s->nruns) {
		msg_error(r->fed ? "%s: its end is missing" : "%s: there is nothing in it",
			  r->s->path);
		return -EINVAL;
	}
	return 0;
}

/* ---- rows ---- */

static int by_row(const void *pa, const void *pb)
{
	const struct run_row *a = pa, *b = pb;
	int d;

	if (a->section != b->section)
		return a->section < b->section ? -1 : 1;
	d = strcmp(a->name, b->name);
	return d ? d : a->run < b->run ? -1 : a->run > b->run;
}

static bool is_count(int field)
{
	return field == SAVED_CALLS || field == SAVED_FAILED || field == SAVED_TIME ||
	       field == SAVED_BYTES;
}

/* If a run has no row of something, then that did not happen in the run. */
static double of_nothing(enum saved_section section, int field)
{
	return section != SAVED_SUMMARY && section != SAVED_COUNTERS && is_count(field) ? 0 : NAN;
}

static int saved_make_rows(struct saved *s)
{
	struct saved_room *r = s->room;
	size_t n = 0, at = 0;

	qsort(r->entries, r->nentries, sizeof(*r->entries), by_row);
	for (size_t i = 0; i < r->nentries; i++)
		n += !i || r->entries[i].section != r->entries[i - 1].section ||
		     strcmp(r->entries[i].name, r->entries[i - 1].name);
	if (n > ENTRIES_MAX * 2 / s->nruns) {
		msg_error("%s: %zu rows of %zu runs are more than fits; save fewer kinds of calls "
			  "(-e)",
			  s->path, n, s->nruns);
		return -E2BIG;
	}
	s->rows = calloc(n + 1, sizeof(*s->rows));
	r->values = calloc(n * s->nruns + 1, SAVED_FIELD_END * sizeof(double));
	if (!s->rows || !r->values) {
		msg_error("%s: no memory for it", s->path);
		return -ENOMEM;
	}
	for (size_t i = 0; i < r->nentries; i++) {
		struct run_row *e = &r->entries[i];
		struct saved_row *row = &s->rows[s->nrows - (s->nrows != 0)];

		if (!s->nrows || row->section != e->section || strcmp(row->name, e->name)) {
			row = &s->rows[s->nrows++];
			*row = (struct saved_row){ e->section, e->name, r->values + at };
			at += s->nruns * SAVED_FIELD_END;
			for (size_t k = 0; k < s->nruns * SAVED_FIELD_END; k++)
				row->values[k] = of_nothing(e->section, (int)(k % SAVED_FIELD_END));
		}
		memcpy(row->values + e->run * SAVED_FIELD_END, e->v, sizeof(e->v));
	}
	return 0;
}

int saved_open(struct saved *s, int fd, const char *path)
{
	struct reading r = { .s = s };
	int err;

	*s = (struct saved){ .path = path, .room = calloc(1, sizeof(*s->room)) };
	r.tok = json_tokener_new_ex(DEPTH_MAX);
	if (!s->room || !r.tok) {
		msg_error("%s: no memory for it", path);
		err = -ENOMEM;
		goto out;
	}
	json_tokener_set_flags(r.tok, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
	err = saved_read_all(&r, fd);
	if (!err)
		err = saved_make_rows(s);
out:
	if (r.tok)
		json_tokener_free(r.tok);
	return err;
}

void saved_close(struct saved *s)
{
	for (size_t i = 0; s->room && i < s->room->nentries; i++)
		free(s->room->entries[i].name);
	if (s->room) {
		free(s->room->entries);
		free(s->room->values);
	}
	free(s->room);
	free(s->rows);
	memset(s, 0, sizeof(*s));
}

const struct saved_row *saved_find(const struct saved *s, enum saved_section section,
				   const char *name)
{
	size_t from = 0, to = s->nrows;

	while (from < to) {
		size_t mid = (from + to) / 2;
		const struct saved_row *row = &s->rows[mid];
		int d = row->section != section ? (row->section < section ? -1 : 1)
						: strcmp(row->name, name);

		if (!d)
			return row;
		if (d < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return NULL;
}

size_t saved_values(const struct saved *s, const struct saved_row *row, enum saved_section section,
		    enum saved_field field, double *v)
{
	size_t n = 0;

	if ((section == SAVED_KERNELS || section == SAVED_COPIES) && !s->device)
		return 0;
	for (size_t i = 0; i < s->nruns; i++) {
		double value = row ? row->values[i * SAVED_FIELD_END + field]
				   : of_nothing(section, field);

		if (!isnan(value))
			v[n++] = value;
	}
	return n;
}

static bool is_sum(const struct saved_row *row, int field)
{
	if (row->section == SAVED_COUNTERS)
		return false;
	for (size_t i = 0; row->section == SAVED_SUMMARY && i < ARRAY_LEN(keys); i++)
		if (!strcmp(keys[i].key, row->name))
			return field == SAVED_VALUE && keys[i].sum;
	return field == SAVED_CALLS || field == SAVED_FAILED || field == SAVED_TIME ||
	       field == SAVED_BYTES || field == SAVED_ERROR;
}

void saved_divide(struct saved *s, const double *by)
{
	for (size_t i = 0; i < s->nrows; i++)
		for (size_t run = 0; run < s->nruns; run++)
			for (int f = 0; f < SAVED_FIELD_END; f++)
				if (is_sum(&s->rows[i], f))
					s->rows[i].values[run * SAVED_FIELD_END + (size_t)f] /=
						by[run];
}
