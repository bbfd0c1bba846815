/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem_page.c - see mem_page.h. The data is one JSON object:
 *
 *   {"title":"app","width_ns":100000,"buckets":120,"coarse":false,"peak":[[...],[...]],
 *    "series":[{"where":0,"name":"fill at app.c:12 (cudaMalloc)","stack":["fill
 *    /src/app.c:12"],"peak":4096,"points":[3,4096,9,0]}]}
 *
 * `points`: a bucket, and what the site holds from its end on. `peak` at the top: for each
 * bucket the most at a time, on devices and on the host. All names come from the traced
 * programs: '<' is written as an escape, and the page shows them as text.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mem_page.h"
#include "../util/io/embed.h"

#define MARK "@DATA@"
#define STACK_LINES 64

EMBED(mem_page, "user/mem/mem_page.html");

struct series {
	uint32_t id, first, n; /* of the curve's points */
	uint64_t peak;
};

/* In JSON a '<' occurs only in strings. */
static void mem_page_flush(struct out *o, struct text *t)
{
	size_t from = 0;

	for (size_t i = 0; i < t->len; i++) {
		if (t->s[i] != '<')
			continue;
		out_mem(o, t->s + from, i - from);
		out_str(o, "\\u003c");
		from = i + 1;
	}
	out_mem(o, t->s + from, t->len - from);
	t->len = 0;
}

static void as_it_is(struct text *t, const char *s, size_t max)
{
	size_t n = strnlen(s, max + 1);

	text_mem(t, s, n > max ? text_cut(s, max) : n);
}

static void string_of(struct text *t, struct text *raw)
{
	text_mem(raw, "", 1);
	text_json(t, raw->s && !raw->bad ? raw->s : "", raw->len);
	raw->len = 0;
}

/* What a series holds from the end of a bucket on. The sum is negative if frees came before
 * their allocations. */
static uint64_t held(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

static void points(struct text *t, const struct curve *c, const struct series *s)
{
	int64_t now = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct curve_point *p = &c->points[s->first + i];

		now = (int64_t)((uint64_t)now + (uint64_t)p->delta);
		text_str(t, i ? "," : "");
		text_u64(t, p->bucket);
		text_str(t, ",");
		text_u64(t, held(now));
	}
}

/* name: of its call site. */
static void page_series(struct out *o, struct text *t, const struct ledger *l,
			const struct curve *c, const struct series *s, const struct text *name)
{
	const struct site *site = sites_get(l->sites, s->id / CURVE_WHERES);
	struct text raw = { 0 };

	text_str(t, "\n{\"where\":");
	text_u64(t, s->id % CURVE_WHERES);
	text_str(t, ",\"name\":");
	if (s->id / CURVE_WHERES)
		text_mem(&raw, name->s, name->len);
	else
		text_str(&raw, c->coarse ? "all call sites" : "not known");
	string_of(t, &raw);
	text_str(t, ",\"stack\":[");
	for (uint32_t i = site->first, lines = 0; i < site->nframes && lines < STACK_LINES; i++) {
		if (site->frames[i].interpreter && i != site->first)
			continue;
		text_str(t, lines++ ? "," : "");
		mem_frame_text(&raw, &site->frames[i], true, as_it_is);
		string_of(t, &raw);
	}
	text_str(t, "],\"peak\":");
	text_u64(t, s->peak);
	text_str(t, ",\"points\":[");
	points(t, c, s);
	text_str(t, "]}");
	mem_page_flush(o, t);
	text_free(&raw);
}

/* Writes the sum of all series without a line of their own. */
static void rest(struct out *o, struct text *t, const struct curve *c, const struct series *s,
		 uint32_t n, uint32_t where, uint32_t sites)
{
	int64_t change[CURVE_BUCKETS] = { 0 }, now = 0;
	bool moved[CURVE_BUCKETS] = { false };
	uint64_t peak = 0;
	bool first = true;

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < s[i].n && s[i].id % CURVE_WHERES == where; k++) {
			const struct curve_point *p = &c->points[s[i].first + k];

			change[p->bucket] =
				(int64_t)((uint64_t)change[p->bucket] + (uint64_t)p->delta);
			moved[p->bucket] = true;
		}
	}
	text_str(t, "\n{\"where\":");
	text_u64(t, where);
	text_str(t, ",\"name\":\"");
	text_u64(t, sites);
	text_str(t, " other call sites\",\"stack\":[],\"points\":[");
	for (uint32_t b = 0; b < CURVE_BUCKETS; b++) {
		if (!moved[b])
			continue;
		now = (int64_t)((uint64_t)now + (uint64_t)change[b]);
		peak = held(now) > peak ? held(now) : peak;
		text_str(t, first ? "" : ",");
		first = false;
		text_u64(t, b);
		text_str(t, ",");
		text_u64(t, held(now));
	}
	text_str(t, "],\"peak\":");
	text_u64(t, peak);
	text_str(t, "}");
	mem_page_flush(o, t);
}

static int larger(const void *a, const void *b)
{
	const struct series *x = a, *y = b;

	if (x->peak != y->peak)
		return x->peak > y->peak ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* The series of a curve, the largest first. NULL: no memory. */
static struct series *series_of(const struct curve *c, uint32_t *n)
{
	struct series *all;

	*n = 0;
	for (uint32_t i = 0; i < c->n; i++)
		*n += !i || c->points[i].series != c->points[i - 1].series;
	all = calloc(*n + 1, sizeof(*all));
	if (!all)
		return NULL;
	for (uint32_t i = 0, at = 0; i < c->n; at++) {
		int64_t now = 0;

		all[at].id = c->points[i].series;
		all[at].first = i;
		for (; i < c->n && c->points[i].series == all[at].id; i++) {
			now = (int64_t)((uint64_t)now + (uint64_t)c->points[i].delta);
			all[at].peak = held(now) > all[at].peak ? held(now) : all[at].peak;
			all[at].n++;
		}
	}
	qsort(all, *n, sizeof(*all), larger);
	return all;
}

#define OWN_SERIES (MEM_PAGE_SERIES * CURVE_WHERES)

/* Puts those that have a line of their own first, and returns their number. others: how many
 * more there are, by where. */
static uint32_t with_own_line(struct series *s, uint32_t n, uint32_t others[CURVE_WHERES])
{
	uint32_t shown[CURVE_WHERES] = { 0 }, own = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t w = s[i].id % CURVE_WHERES;
		struct series this = s[i];

		if (shown[w] == MEM_PAGE_SERIES) {
			others[w]++;
			continue;
		}
		shown[w]++;
		/* the order of both is kept */
		memmove(&s[own + 1], &s[own], (i - own) * sizeof(*s));
		s[own++] = this;
	}
	return own;
}

static void all_series(struct out *o, struct text *t, const struct ledger *l, const struct curve *c,
		       struct series *s, uint32_t n)
{
	uint32_t others[CURVE_WHERES] = { 0 }, numbers[OWN_SERIES] = { 0 },
		 own = with_own_line(s, n, others);
	struct text names[OWN_SERIES] = { { 0 } };

	for (uint32_t i = 0; i < own; i++)
		numbers[i] = s[i].id / CURVE_WHERES;
	mem_site_texts(l->sites, numbers, own, names, as_it_is);
	for (uint32_t i = 0; i < own; i++) {
		text_str(t, i ? "," : "");
		page_series(o, t, l, c, &s[i], &names[i]);
		text_free(&names[i]);
	}
	for (uint32_t w = 0; w < CURVE_WHERES; w++) {
		if (!others[w])
			continue;
		text_str(t, ",");
		rest(o, t, c, s + own, n - own, w, others[w]);
	}
}

int mem_page_write(struct out *o, const struct ledger *l, struct curve *c,
		   const struct mem_about *a)
{
	const char *mark =
		memmem(mem_page_begin, (size_t)(mem_page_end - mem_page_begin), MARK, strlen(MARK));
	uint32_t nbuckets = curve_finish(c), n;
	struct series *s = series_of(c, &n);
	struct text t = { 0 };

	if (!s || !mark) {
		free(s);
		return -ENOMEM;
	}
	out_mem(o, mem_page_begin, (size_t)(mark - mem_page_begin));
	text_str(&t, "{\"title\":");
	text_json(&t, a->title ? a->title : "", 1024);
	text_str(&t, ",\"width_ns\":");
	text_u64(&t, c->width_ns);
	text_str(&t, ",\"buckets\":");
	text_u64(&t, nbuckets);
	text_str(&t, c->coarse ? ",\"coarse\":true,\"peak\":[" : ",\"coarse\":false,\"peak\":[");
	for (int w = 0; w < CURVE_WHERES; w++) {
		text_str(&t, w ? ",\n[" : "\n[");
		for (uint32_t i = 0; i < nbuckets; i++) {
			text_str(&t, i ? "," : "");
			text_u64(&t, c->peak[w][i]);
		}
		text_str(&t, "]");
	}
	text_str(&t, "],\n\"series\":[");
	mem_page_flush(o, &t);
	all_series(o, &t, l, c, s, n);
	text_str(&t, "]}");
	mem_page_flush(o, &t);
	mark += strlen(MARK);
	out_mem(o, mark, (size_t)(mem_page_end - mark));
	text_free(&t);
	free(s);
	return o->error;
}
