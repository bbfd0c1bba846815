/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * viz_state.c - see viz.h: what a process held. Readers of a snapshot expect each block to lie in a
 * segment. Of a program that ran before, segments are not known: stretches of blocks that adjoin are
 * taken for segments then.
 */
#include <stdlib.h>

#include "../../util/table/array.h"
#include "viz.h"

struct range {
	uint64_t address, end;
	uint16_t device;
};

struct ranges {
	struct range *at;
	size_t n;
	bool failed;
};

void viz_state_free(struct viz_state *s)
{
	free(s->segments);
	free(s->blocks);
	*s = (struct viz_state){ 0 };
}

/* Blocks, segments and ranges begin with their address. */
static int viz_state_by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x != *y ? (*x < *y ? -1 : 1) : 0;
}

static int by_device(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->device != y->device ? (x->device < y->device ? -1 : 1)
				      : viz_state_by_address(a, b);
}

static uint64_t end_of(uint64_t address, uint64_t size)
{
	return size > UINT64_MAX - address ? UINT64_MAX : address + size;
}

static void viz_state_add(struct ranges *r, uint64_t address, uint64_t end, uint16_t device)
{
	struct range *to = array_add(r->at, r->n);

	if (to)
		*to = (struct range){ address, end, device };
	else
		r->failed = true;
}

/* Ranges that overlap or adjoin become one, if they are of one device. */
static void viz_state_merge(struct ranges *r)
{
	size_t last = 0;

	for (size_t i = 1; i < r->n; i++) {
		struct range *to = &r->at[last], *next = &r->at[i];

		if (to->device != next->device || next->address > to->end)
			r->at[++last] = *next;
		else if (next->end > to->end)
			to->end = next->end;
	}
	r->n = r->n ? last + 1 : 0;
}

static bool covers(const struct ranges *r, uint64_t address)
{
	size_t n = array_before(r->at, r->n, x, x->address <= address);

	return n && address < r->at[n - 1].end;
}

static bool is_of_block(const struct block_change *e)
{
	return e->what == BLOCK_TAKEN || e->what == BLOCK_GIVEN_BACK;
}

/* All memory that was ever a segment, whatever its device. */
static void find_known(struct ranges *known, const struct viz_state *s, const struct viz_history *h)
{
	for (size_t i = 0; i < s->nsegments; i++)
		viz_state_add(known, s->segments[i].address, s->segments[i].end, 0);
	for (size_t i = 0; i < h->n; i++) {
		const struct block_change *e = viz_history_at(h, i);

		if (e->process == s->process && !is_of_block(e) && e->what != BLOCK_NO_MEMORY)
			viz_state_add(known, e->address, end_of(e->address, e->bytes), 0);
	}
	if (known->n)
		qsort(known->at, known->n, sizeof(*known->at), viz_state_by_address);
	viz_state_merge(known);
}

static void find_unknown(struct ranges *unknown, const struct ranges *known,
			 const struct viz_state *s, const struct viz_history *h)
{
	for (size_t i = 0; i < s->nblocks; i++) {
		const struct viz_block *b = &s->blocks[i];

		if (!covers(known, b->address))
			viz_state_add(unknown, b->address, end_of(b->address, b->bytes), b->device);
	}
	for (size_t i = 0; i < h->n; i++) {
		const struct block_change *e = viz_history_at(h, i);

		if (e->process == s->process && is_of_block(e) && !covers(known, e->address))
			viz_state_add(unknown, e->address, end_of(e->address, e->bytes), e->device);
	}
	if (unknown->n)
		qsort(unknown->at, unknown->n, sizeof(*unknown->at), by_device);
	viz_state_merge(unknown);
}

static void add_unseen(struct viz_state *s, const struct ranges *unknown)
{
	struct viz_segment *more;

	if (!unknown->n)
		return;
	more = realloc(s->segments, (s->nsegments + unknown->n) * sizeof(*more));
	if (!more) {
		s->incomplete = true;
		return;
	}
	s->segments = more;
	for (size_t i = 0; i < unknown->n; i++)
		more[s->nsegments++] = (struct viz_segment){ .address = unknown->at[i].address,
							     .end = unknown->at[i].end,
							     .device = unknown->at[i].device,
							     .unseen = true };
}

/* Which blocks lie in which segment. */
static void assign(struct viz_state *s)
{
	size_t at = 0;

	for (size_t i = 0; i < s->nsegments; i++) {
		struct viz_segment *g = &s->segments[i];

		while (at < s->nblocks && s->blocks[at].address < g->address)
			at++;
		for (g->first = at; at < s->nblocks && s->blocks[at].address < g->end;)
			at++;
		g->n = at - g->first;
	}
}

void viz_state_arrange(struct viz_state *s, const struct viz_history *h)
{
	struct ranges known = { 0 }, unknown = { 0 };

	find_known(&known, s, h);
	find_unknown(&unknown, &known, s, h);
	add_unseen(s, &unknown);
	s->incomplete |= known.failed || unknown.failed;
	free(known.at);
	free(unknown.at);
	if (s->nsegments)
		qsort(s->segments, s->nsegments, sizeof(*s->segments), viz_state_by_address);
	if (s->nblocks)
		qsort(s->blocks, s->nblocks, sizeof(*s->blocks), viz_state_by_address);
	assign(s);
}
