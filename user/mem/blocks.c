/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * blocks.c - see blocks.h.
 *
 * What each call site held at the peak is known without a look at all of them at each peak: a peak
 * only increases the number of peaks. A row that changes later first keeps what it held until then.
 */
#include <stdlib.h>
#include <string.h>

#include "../event/scopes/block_report.h"
#include "../event/scopes/lineage.h"
#include "blocks.h"

#define NESTED_MAX 64 /* operators in each other */
#define NO_NAME 0

/* Begins with its key. A hash of 64 bits is trusted, as for call sites. */
struct operator_name {
	uint64_t hash;
	char *text;
};

void blocks_init(struct blocks *b, uint32_t live_max)
{
	memset(b, 0, sizeof(*b));
	hash_map_open_of(&b->totals, struct blocks_total, device, BLOCKS_TOTALS);
	hash_map_open_of(&b->rows, struct blocks_row, of, BLOCKS_ROWS);
	hash_map_open_of(&b->live, struct block, total, live_max ? live_max : BLOCKS_MAX);
	hash_map_open_of(&b->names, struct operator_name, hash, BLOCKS_OPERATORS);
}

void blocks_free(struct blocks *b)
{
	struct operator_name *name;

	hash_map_each(&b->names, name) free(name->text);
	hash_map_close(&b->totals);
	hash_map_close(&b->rows);
	hash_map_close(&b->live);
	hash_map_close(&b->names);
}

bool blocks_has(const struct ct_call *c)
{
	struct block_report said;

	return block_report(c, &said) && said.type == BLOCK_REPORT_CUDA;
}

/* ---- operators ---- */

const char *blocks_operator(const struct blocks *b, uint32_t number)
{
	const struct operator_name *name =
		number && number <= b->names.n ? hash_map_at(&b->names, number - 1) : NULL;

	return name ? name->text : NULL;
}

/* The operator that the program itself called: nearly all blocks are taken by aten::empty, in another one. */
static const char *operator_around(const struct event *ev)
{
	const uint32_t kinds = 1u << CT_SCOPE_OPERATOR;
	const char *found = NULL;
	uint32_t id = ev->scope_id;
	bool known;

	for (int i = 0; ev->lineage && i < NESTED_MAX; i++) {
		const struct scope_line *line =
			lineage_of_kind(ev->lineage, ev->rec->pid, id, kinds, &known);

		if (!line)
			break;
		found = line->name;
		id = line->parent;
	}
	return found;
}

static uint32_t operator_number(struct blocks *b, const struct event *ev)
{
	const char *text = operator_around(ev);
	uint64_t hash = text ? hash_bytes(text, strlen(text)) : 0;
	struct operator_name *name;
	bool made;

	if (!text)
		return NO_NAME;
	name = hash_map_get(&b->names, &hash, &made);
	if (name && made && !(name->text = strdup(text))) {
		hash_map_remove(&b->names, name);
		name = NULL;
	}
	if (!name) {
		b->no_row++;
		return NO_NAME;
	}
	return (uint32_t)(((char *)name - b->names.items) / b->names.size) + 1;
}

/* ---- sums ---- */

static struct blocks_total *total_at(const struct blocks *b, uint32_t i)
{
	return hash_map_at(&b->totals, i);
}

uint64_t blocks_at_peak(const struct blocks *b, const struct blocks_row *r, uint64_t *n)
{
	bool kept = r->epoch == blocks_total(b, r->total)->epoch;

	if (n)
		*n = kept ? r->at_peak_n : r->n;
	return kept ? r->at_peak : r->bytes;
}

/* Keeps what the row held at the last peak, before it changes. */
static void keep_peak(const struct blocks *b, struct blocks_row *r)
{
	uint64_t n, bytes = blocks_at_peak(b, r, &n);

	r->at_peak = bytes;
	r->at_peak_n = n;
	r->epoch = blocks_total(b, r->total)->epoch;
}

static void blocks_add_up(uint64_t *sum, uint64_t bytes)
{
	if (__builtin_add_overflow(*sum, bytes, sum))
		*sum = UINT64_MAX;
}

static void blocks_take_off(uint64_t *sum, uint64_t bytes)
{
	*sum -= bytes < *sum ? bytes : *sum;
}

static void sum(struct blocks *b, const struct block *k, enum blocks_by by, uint32_t of, bool taken)
{
	struct blocks_row key = { .total = k->total, .by = by, .of = of };
	bool made;
	struct blocks_row *r = hash_map_get(&b->rows, &key, &made);

	if (!r) {
		b->no_row++;
		return;
	}
	if (made)
		r->epoch = blocks_total(b, k->total)->epoch; /* it had nothing at that peak */
	else
		keep_peak(b, r);
	if (taken) {
		blocks_add_up(&r->bytes, k->bytes);
		blocks_add_up(&r->taken, k->bytes);
		r->n++;
		r->taken_n++;
	} else {
		blocks_take_off(&r->bytes, k->bytes);
		r->n -= r->n > 0;
		r->freed_n++;
	}
}

static void sums(struct blocks *b, const struct block *k, bool taken)
{
	struct blocks_total *t = total_at(b, k->total);

	sum(b, k, BLOCKS_BY_STACK, k->site, taken);
	sum(b, k, BLOCKS_BY_OPERATOR, k->operator_name, taken);
	if (taken) {
		blocks_add_up(&t->bytes, k->bytes);
		blocks_add_up(&t->taken, k->bytes);
		t->n++;
		t->taken_n++;
	} else {
		blocks_take_off(&t->bytes, k->bytes);
		t->n--;
		t->freed_n++;
	}
}

static void blocks_tell(const struct blocks *b, const struct block_change *c)
{
	if (b->changed)
		b->changed(b->ctx, c);
}

static void remove_block(struct blocks *b, struct block *k, const struct block_change *by)
{
	struct block_change c = *by;

	c.what = BLOCK_GIVEN_BACK;
	c.bytes = k->bytes;
	blocks_tell(b, &c);
	sums(b, k, false);
	hash_map_remove(&b->live, k);
}

/* ---- blocks ---- */

static uint64_t magnitude(int64_t size)
{
	return size < 0 ? -(uint64_t)size : (uint64_t)size;
}

/* The allocator's own totals. */
static void follow(struct blocks_total *t, const struct block_report *s, uint64_t at_ns)
{
	uint64_t before = s->allocated - (uint64_t)s->size; /* not below 0: it is not odd */

	if (!t->heard)
		t->before = before;
	else if (t->allocated != before)
		t->gaps_n++;
	t->heard = true;
	t->allocated = s->allocated;
	t->reserved = s->reserved;
	if (s->reserved > t->reserved_peak)
		t->reserved_peak = s->reserved;
	if (s->allocated <= t->peak)
		return;
	t->peak = s->allocated;
	t->peak_ns = at_ns;
	t->epoch++;
}

static void taken(struct blocks *b, const struct block *key, const struct block_change *c,
		  uint32_t name)
{
	struct blocks_total *t = total_at(b, key->total);
	struct block *k = hash_map_find(&b->live, key);
	bool made;

	if (k) {
		t->unfreed_n++;
		remove_block(b, k, c);
	}
	blocks_tell(b, c);
	k = hash_map_get(&b->live, key, &made);
	if (!k) {
		t->no_room++;
		return;
	}
	k->site = key->site;
	k->bytes = c->bytes;
	k->taken_ns = c->at_ns;
	k->operator_name = name;
	sums(b, k, true);
}

static void given_back(struct blocks *b, const struct block *key, const struct block_change *c)
{
	struct blocks_total *t = total_at(b, key->total);
	struct block *k = hash_map_find(&b->live, key);

	if (!k) {
		t->unseen_n++;
		blocks_add_up(&t->unseen_bytes, c->bytes);
		blocks_tell(b, c);
		return;
	}
	t->odd_n += k->bytes != c->bytes;
	remove_block(b, k, c);
}

/* ---- segments ---- */

static int blocks_by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b; /* both kinds begin with their address */

	return *x != *y ? (*x < *y ? -1 : 1) : 0;
}

struct blocks_span *blocks_spans(const struct live *live, uint32_t process, size_t *n)
{
	struct blocks_span *spans = NULL;
	const struct live_entry *e;
	size_t count = 0, last = 0;

	*n = 0;
	for (int round = 0; round < 2; round++) {
		for (uint32_t at = 0; (e = live_next(live, &at));) {
			if (e->process != process || !e->bytes ||
			    e->bytes > UINT64_MAX - e->address ||
			    (e->space != API_SPACE_DEVICE && e->space != API_SPACE_MAPPED))
				continue;
			if (round)
				spans[*n] = (struct blocks_span){ .address = e->address,
								  .end = e->address + e->bytes,
								  .site = e->site,
								  .device = e->device,
								  .space = e->space,
								  .own = e->allocator };
			count += !round;
			*n += round;
		}
		if (!round && (!count || !(spans = malloc(count * sizeof(*spans)))))
			return NULL;
	}
	qsort(spans, *n, sizeof(*spans), blocks_by_address);
	for (size_t i = 1; i < *n; i++) {
		if (spans[i].space == API_SPACE_MAPPED && spans[last].space == API_SPACE_MAPPED &&
		    spans[i].address == spans[last].end)
			spans[last].end = spans[i].end;
		else
			spans[++last] = spans[i];
	}
	*n = last + 1;
	return spans;
}

struct block *blocks_held(const struct blocks *b, uint32_t total, size_t *n)
{
	const struct blocks_total *t = blocks_total(b, total);
	struct block *list = t->n ? malloc(t->n * sizeof(*list)) : NULL;

	*n = 0;
	for (size_t i = 0; list && i < b->live.n && *n < t->n; i++) {
		const struct block *k = hash_map_at(&b->live, i);

		if (k->total == total)
			list[(*n)++] = *k;
	}
	if (list)
		qsort(list, *n, sizeof(*list), blocks_by_address);
	return list;
}

/* A stretch without a block, between two blocks of a segment (NULL: its begin, its end). */
static void stretch(struct blocks_frag *f, uint64_t from, uint64_t to, const struct block *before,
		    const struct block *behind, uint64_t *longest)
{
	if (from >= to)
		return;
	f->holes++;
	f->holes_bytes += to - from;
	if (to - from > f->largest)
		f->largest = to - from;
	if (to - from <= *longest)
		return;
	*longest = to - from;
	f->before = before ? before->site : 0;
	f->behind = behind ? behind->site : 0;
}

static void one_segment(struct blocks_frag *f, const struct blocks_span *s,
			const struct block *list, size_t n, uint64_t *longest)
{
	uint64_t at = s->address;

	f->segments++;
	f->bytes += s->end - s->address;
	for (size_t i = 0; i < n; i++) {
		uint64_t end = list[i].address + list[i].bytes;

		stretch(f, at, list[i].address, i ? &list[i - 1] : NULL, &list[i], longest);
		end = end > s->end ? s->end : end; /* what the program says may overlap */
		if (end > at)
			f->used += end - (list[i].address > at ? list[i].address : at);
		at = end > at ? end : at;
	}
	stretch(f, at, s->end, &list[n - 1], NULL, longest);
}

static void no_segment(struct blocks_frag *f, const struct block *k)
{
	f->outside++;
	blocks_add_up(&f->outside_bytes, k->bytes);
}

static void no_block(struct blocks_frag *f, const struct blocks_span *s)
{
	f->empty++;
	f->empty_bytes += s->end - s->address;
	if (s->end - s->address > f->largest)
		f->largest = s->end - s->address;
}

struct blocks_frag blocks_fragments(const struct blocks *b, uint32_t total,
				    const struct live *segments)
{
	const struct blocks_total *t = blocks_total(b, total);
	struct blocks_frag f = { 0 };
	uint64_t longest = 0;
	size_t nspans, n, at = 0, first;
	struct block *list;
	struct blocks_span *spans;

	if (t->ended)
		return t->frag;
	spans = blocks_spans(segments, t->process, &nspans);
	list = blocks_held(b, total, &n);
	for (size_t i = 0; i < nspans; i++) {
		while (at < n && list[at].address < spans[i].address)
			no_segment(&f, &list[at++]);
		for (first = at; at < n && list[at].address < spans[i].end;)
			at++;
		if (at > first)
			one_segment(&f, &spans[i], &list[first], at - first, &longest);
		else if (spans[i].own &&
			 (spans[i].device == t->device || spans[i].device == LIVE_NO_DEVICE))
			no_block(&f, &spans[i]);
	}
	while (at < n)
		no_segment(&f, &list[at++]);
	free(spans);
	free(list);
	return f;
}

void blocks_segment(struct blocks *b, const struct block_change *c)
{
	blocks_tell(b, c);
	for (uint32_t i = 0; i < b->totals.n; i++) {
		struct blocks_total *t = total_at(b, i);

		if (t->process != c->process || t->ended ||
		    (t->device != c->device && c->device != LIVE_NO_DEVICE))
			continue;
		if (c->what == BLOCK_SEGMENT_TAKEN || c->what == BLOCK_SEGMENT_MAPPED)
			blocks_add_up(&t->reserved, c->bytes);
		else
			blocks_take_off(&t->reserved, c->bytes);
		return;
	}
}

/* ---- an allocation that failed ---- */

static void find_holders(const struct blocks *b, struct blocks_oom *o)
{
	for (size_t i = 0; i < b->rows.n; i++) {
		const struct blocks_row *r = hash_map_at(&b->rows, i);

		if (r->total == o->total && r->by == BLOCKS_BY_STACK && r->bytes)
			holders_add(&o->holders, &(struct holder){ r->of, r->bytes, r->n });
	}
}

static const struct blocks_oom *no_memory(struct blocks *b, const struct block_report *said,
					  uint32_t total, uint32_t site, uint64_t at_ns,
					  const struct live *segments)
{
	struct blocks_total *t = total_at(b, total);
	struct blocks_oom *o = &b->ooms[b->nooms];

	t->ooms++;
	if (b->nooms == BLOCKS_OOMS)
		return NULL;
	b->nooms++;
	*o = (struct blocks_oom){ .total = total,
				  .site = site,
				  .at_ns = at_ns,
				  .asked = (uint64_t)said->size,
				  .allocated = said->allocated,
				  .reserved = said->reserved,
				  .frag = blocks_fragments(b, total, segments) };
	find_holders(b, o);
	return o;
}

const struct blocks_oom *blocks_report(struct blocks *b, const struct event *ev, uint32_t process,
				       uint32_t site, const struct live *segments)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	bool made;
	struct blocks_total key = { .process = process }, *t;
	struct block_change change = { .at_ns = c->h.start_ns, .process = process, .site = site };
	struct block k = { .site = site };
	struct block_report said;

	if (!block_report(c, &said) || said.type != BLOCK_REPORT_CUDA)
		return NULL;
	key.device = said.device;
	t = hash_map_get(&b->totals, &key, &made);
	if (!t) {
		b->no_row++;
		return NULL;
	}
	k.total = (uint32_t)(((char *)t - b->totals.items) / b->totals.size);
	change.device = (uint16_t)said.device;
	change.address = said.address;
	change.bytes = magnitude(said.size);
	if (said.no_memory && !block_report_odd(&said)) {
		change.what = BLOCK_NO_MEMORY;
		blocks_tell(b, &change);
		return no_memory(b, &said, k.total, site, c->h.start_ns, segments);
	}
	if (said.no_memory || block_report_odd(&said)) {
		t->odd_n++;
		return NULL;
	}
	k.address = said.address;
	change.what = said.size > 0 ? BLOCK_TAKEN : BLOCK_GIVEN_BACK;
	if (said.size > 0)
		taken(b, &k, &change, operator_number(b, ev));
	else if (said.size < 0)
		given_back(b, &k, &change);
	follow(total_at(b, k.total), &said, c->h.start_ns);
	return NULL;
}

void blocks_end(struct blocks *b, uint32_t process, const struct live *segments)
{
	bool any = false;
	struct block *k;

	for (uint32_t i = 0; i < b->totals.n; i++) {
		struct blocks_total *t = total_at(b, i);

		if (t->process != process || t->ended)
			continue;
		t->frag = blocks_fragments(b, i, segments);
		t->ended = true;
		any |= t->n > 0;
	}
	if (!any)
		return;
	hash_map_each(&b->live, k)
	{
		if (total_at(b, k->total)->process == process)
			hash_map_remove(&b->live, k);
	}
}

/* ---- rows ---- */

static int more_at_peak(const void *a, const void *b, void *blocks)
{
	const struct blocks_row *x = *(const struct blocks_row *const *)a,
				*y = *(const struct blocks_row *const *)b;
	uint64_t px = blocks_at_peak(blocks, x, NULL), py = blocks_at_peak(blocks, y, NULL);

	if (px != py)
		return px > py ? -1 : 1;
	if (x->taken != y->taken)
		return x->taken > y->taken ? -1 : 1;
	return x < y ? -1 : x > y;
}

const struct blocks_row **blocks_rows(const struct blocks *b, uint32_t total, enum blocks_by by,
				      uint32_t *n)
{
	const struct blocks_row **rows = b->rows.n ? malloc(b->rows.n * sizeof(*rows)) : NULL;

	*n = 0;
	for (size_t i = 0; rows && i < b->rows.n; i++) {
		const struct blocks_row *r = hash_map_at(&b->rows, i);

		if (r->total == total && r->by == by)
			rows[(*n)++] = r;
	}
	if (*n)
		qsort_r(rows, *n, sizeof(*rows), more_at_peak, (void *)(uintptr_t)b);
	return rows;
}
