/* SPDX-License-Identifier: BSD-2-Clause */
/* mem_print.c - what text and JSON share: words, and the order of rows. */
#include <stdlib.h>
#include <string.h>

#include "../event/holes/holes.h"
#include "mem_print.h"

const char *mem_where_name(enum account_where where)
{
	static const char *const names[] = { "device", "host", "addresses" };

	return names[where];
}

const char *mem_end_name(enum ledger_end end)
{
	static const char *const names[] = { "exited", "execed", "context", "replaced" };

	return names[end];
}

const char *mem_fault_name(enum ledger_fault_what what)
{
	static const char *const names[] = { "double_free", "wrong_free", "invalid_free",
					     "unseen_allocation" };

	return names[what];
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

void mem_frame_text(struct text *t, const struct site_frame *f, bool whole, mem_put_fn put)
{
	if (f->function)
		put(t, f->function, MEM_NAME_BYTES);
	else
		text_hex(t, f->address);
	/* this distinguishes two places of a function without line numbers */
	if (!whole && f->function && !f->line && f->offset) {
		text_str(t, "+");
		text_hex(t, f->offset);
	}
	if (f->file) {
		text_str(t, whole ? " " : " at ");
		put(t, whole ? f->shown_file : base_of(f->file), MEM_NAME_BYTES);
		if (f->line) {
			text_str(t, ":");
			text_u64(t, f->line);
		}
	} else if (f->object) {
		text_str(t, whole ? " " : " in ");
		put(t, whole ? f->object : base_of(f->object), MEM_NAME_BYTES);
	}
}

/* Finds the program's next frame from an index on; nframes: there are no more. */
static uint32_t own_frame(const struct site *s, uint32_t i)
{
	while (i < s->nframes && s->frames[i].interpreter)
		i++;
	return i;
}

static void func_text(struct text *t, const struct site *s)
{
	if (!s->func || (s->reported && s->nframes))
		return;
	text_str(t, s->nframes ? " (" : "");
	text_str(t, s->func);
	text_str(t, s->nframes ? ")" : "");
}

/* Without the function that was called. */
static void place_text(struct text *t, const struct site *s, mem_put_fn put)
{
	if (s->nframes)
		mem_frame_text(t, &s->frames[s->first], false, put);
	else if (!s->func)
		text_str(t, "not known");
	if (s->nframes && s->frames[s->first].kind == CT_FRAME_PYTHON)
		return;
	for (uint32_t i = s->first + 1; i < s->nframes; i++) {
		if (s->frames[i].kind != CT_FRAME_PYTHON)
			continue;
		text_str(t, ", for ");
		mem_frame_text(t, &s->frames[i], false, put);
		break;
	}
}

void mem_site_text(struct text *t, const struct site *s, mem_put_fn put)
{
	place_text(t, s, put);
	func_text(t, s);
}

/* ---- labels that differ where their sites do ---- */

#define CALLERS 4 /* shown at most to tell sites apart */

struct label {
	struct text *text;
	const struct site *site;
	uint32_t number;
};

static int by_text(const void *a, const void *b)
{
	const struct label *x = a, *y = b;
	size_t n = x->text->len < y->text->len ? x->text->len : y->text->len;
	int d = n ? memcmp(x->text->s, y->text->s, n) : 0;

	if (d || x->text->len != y->text->len)
		return d ? d : x->text->len < y->text->len ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static bool same_frame(const struct site *a, const struct site *b, uint32_t i)
{
	const struct site_frame *x = i < a->nframes ? &a->frames[i] : NULL,
				*y = i < b->nframes ? &b->frames[i] : NULL;

	if (!x || !y)
		return x == y;
	if (x->interpreter && y->interpreter)
		return true;
	/* texts are kept once */
	return x->function == y->function && x->file == y->file && x->object == y->object &&
	       x->line == y->line && (x->line || x->address == y->address) && x->kind == y->kind;
}

/* n labels of the same text and of more than one site: the first caller by which they differ is
 * added, or, the last time, a number. */
static void tell_apart(struct label *labels, size_t n, bool last, mem_put_fn put)
{
	uint32_t at = labels[0].site->first + 1, most = 0;
	bool same = true;

	for (size_t i = 0; i < n; i++)
		most = labels[i].site->nframes > most ? labels[i].site->nframes : most;
	for (; at < most && same; at += same)
		for (size_t i = 1; i < n && same; i++)
			same = same_frame(labels[0].site, labels[i].site, at);
	for (size_t i = 0; i < n; i++) {
		const struct site *s = labels[i].site;
		uint32_t own = same || last ? s->nframes : own_frame(s, at);

		if (own < s->nframes) {
			text_str(labels[i].text, ", from ");
			mem_frame_text(labels[i].text, &s->frames[own], false, put);
		} else {
			text_str(labels[i].text, ", call site ");
			text_u64(labels[i].text, labels[i].number);
		}
	}
}

/* Makes one round over all labels. Returns true if any were equal. */
static bool round_of(struct label *labels, size_t n, bool last, mem_put_fn put)
{
	bool any = false;
	size_t end;

	qsort(labels, n, sizeof(*labels), by_text);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1;
		     end < n && labels[end].text->len == labels[i].text->len &&
		     !memcmp(labels[end].text->s, labels[i].text->s, labels[i].text->len);)
			end++;
		if (labels[i].number == labels[end - 1].number)
			continue; /* one, or one site in several rows */
		any = true;
		tell_apart(&labels[i], end - i, last, put);
	}
	return any;
}

void mem_site_texts(const struct sites *sites, const uint32_t *numbers, size_t n, struct text *out,
		    mem_put_fn put)
{
	struct label *labels = calloc(n + 1, sizeof(*labels));

	for (size_t i = 0; i < n; i++) {
		place_text(&out[i], sites_get(sites, numbers[i]), put);
		func_text(&out[i], sites_get(sites, numbers[i]));
		if (labels)
			labels[i] =
				(struct label){ &out[i], sites_get(sites, numbers[i]), numbers[i] };
	}
	for (int i = 0; labels && i <= CALLERS && round_of(labels, n, i == CALLERS, put); i++)
		;
	free(labels);
}

static int larger(const void *a, const void *b)
{
	const struct ledger_row *x = *(const struct ledger_row *const *)a,
				*y = *(const struct ledger_row *const *)b;

	if (x->by == LEDGER_LEAK && x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->where != y->where)
		return x->where < y->where ? -1 : 1;
	if (x->peak != y->peak)
		return x->peak > y->peak ? -1 : 1;
	if (x->taken != y->taken)
		return x->taken > y->taken ? -1 : 1;
	return x < y ? -1 : x > y; /* in the order in which they came */
}

const struct ledger_row **mem_rows(const struct ledger *l, enum ledger_by by, uint32_t *n)
{
	const struct ledger_row **rows;
	uint32_t count = 0;

	for (uint32_t i = 0; i < l->nrows; i++)
		count += l->rows[i].by == by;
	*n = 0;
	rows = count ? malloc(count * sizeof(*rows)) : NULL;
	if (!rows)
		return NULL;
	for (uint32_t i = 0; i < l->nrows; i++)
		if (l->rows[i].by == by)
			rows[(*n)++] = &l->rows[i];
	qsort(rows, count, sizeof(*rows), larger);
	return rows;
}

uint64_t mem_missing(const struct ledger *l, const struct mem_about *a)
{
	uint64_t missing = l->account.no_room + (a->end ? losses_of_sums(&a->end->losses) : 0);

	/* calls that nobody saw may have freed what looks leaked; how many they were is not known */
	if (!missing && a->end && holes_unknown(a->end->losses.holes, HOLES_OF(CT_HOLE_CALLS)))
		return 1;
	return missing;
}

/* ---- handles ---- */

static int made_more(const void *a, const void *b)
{
	const struct ledger_maker *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

bool mem_next_growth(const struct ledger *l, const struct mem_about *a, uint64_t *at,
		     struct mem_growth *out)
{
	uint64_t now = a->start_ns + (a->end ? a->end->uptime_ns : 0);

	for (; *at < (uint64_t)l->account.nprocesses * GROWING_END; ++*at) {
		struct account_process *p = &l->account.processes[*at / GROWING_END];
		enum growing_kind kind = (enum growing_kind)(*at % GROWING_END);
		uint64_t until = p->ended ? p->ended_ns : now > l->last_ns ? now : l->last_ns;

		if (!p->used || !p->handles || !growing_grows(&p->handles->growing, until, kind))
			continue;
		*out = (struct mem_growth){ .process = (uint32_t)(*at / GROWING_END),
					    .kind = kind,
					    .made = p->handles->growing.of[kind].made,
					    .given = p->handles->growing.of[kind].given };
		memcpy(out->makers, p->handles->makers[kind], sizeof(out->makers));
		qsort(out->makers, ARRAY_LEN(out->makers), sizeof(*out->makers), made_more);
		while (out->nmakers < ARRAY_LEN(out->makers) && out->makers[out->nmakers].n)
			out->nmakers++;
		++*at;
		return true;
	}
	return false;
}
