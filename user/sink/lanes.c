/* SPDX-License-Identifier: BSD-2-Clause */
/* lanes.c - see lanes.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lanes.h"

/* The spans that are open on each lane while a set is handed on: their ends, outermost first. */
struct open {
	uint64_t ends[LANES_MAX][LANES_DEPTH];
	int n[LANES_MAX];
};

int lanes_add(struct lanes *l, uint64_t start_ns, uint64_t end_ns, uint32_t depth, bool instant, size_t len)
{
	if (l->bytes.bad)
		goto no_memory;
	if (l->nspans == l->cap) {
		uint32_t cap = l->cap ? l->cap * 2 : 4;
		struct lanes_span *spans = realloc(l->spans, cap * sizeof(*spans));

		if (!spans)
			goto no_memory;
		l->spans = spans;
		l->cap = cap;
	}
	if (end_ns < start_ns)
		end_ns = start_ns;
	l->spans[l->nspans++] = (struct lanes_span){ .start_ns = start_ns, .end_ns = end_ns, .depth = depth,
						     .len = (uint32_t)len, .at = l->bytes.len - len, .instant = instant };
	l->rooted |= !depth;
	if (end_ns > l->end_ns)
		l->end_ns = end_ns;
	return 0;
no_memory:
	l->bytes.bad = false;
	return -ENOMEM;
}

/* Outer spans first: by begin, then the longer one, then the one that called the other. */
static int by_begin(const void *pa, const void *pb)
{
	const struct lanes_span *a = pa, *b = pb;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return (a->depth > b->depth) - (a->depth < b->depth);
}

/* Ends the spans of a lane that are over at `ns`. */
static int end_until(struct lanes *l, struct open *o, int lane, uint64_t ns, const struct lanes_ops *ops, void *ctx)
{
	while (o->n[lane] && o->ends[lane][o->n[lane] - 1] <= ns) {
		int err;

		l->last_ns[lane] = o->ends[lane][--o->n[lane]];
		err = ops->end(ctx, l, lane, l->last_ns[lane]);
		if (err)
			return err;
	}
	return 0;
}

static bool fits(const struct lanes *l, const struct open *o, int lane, const struct lanes_span *s)
{
	int n = o->n[lane];

	if (l->used & 1 << lane && s->start_ns < l->last_ns[lane])
		return false;
	return !n || (n < LANES_DEPTH && s->end_ns <= o->ends[lane][n - 1]);
}

/* 1: there is no lane for it. */
static int place(struct lanes *l, struct open *o, const struct lanes_span *s, const struct lanes_ops *ops, void *ctx)
{
	for (int lane = 0; lane < LANES_MAX; lane++) {
		int err = end_until(l, o, lane, s->start_ns, ops, ctx);

		if (err)
			return err;
		if (!fits(l, o, lane, s))
			continue;
		err = ops->begin(ctx, l, lane, s, l->bytes.s + s->at);
		l->used |= (uint8_t)(1 << lane);
		l->last_ns[lane] = s->start_ns;
		if (!s->instant)
			o->ends[lane][o->n[lane]++] = s->end_ns;
		return err;
	}
	return 1;
}

int lanes_flush(struct lanes *l, const struct lanes_ops *ops, void *ctx, uint64_t *dropped)
{
	struct open o;
	int err = 0;

	memset(o.n, 0, sizeof(o.n));
	if (l->nspans > 1)
		qsort(l->spans, l->nspans, sizeof(*l->spans), by_begin);
	for (uint32_t i = 0; i < l->nspans && err >= 0; i++) {
		err = place(l, &o, &l->spans[i], ops, ctx);
		if (err > 0)
			++*dropped;
	}
	for (int lane = 0; lane < LANES_MAX && err >= 0; lane++)
		err = end_until(l, &o, lane, UINT64_MAX, ops, ctx);
	l->nspans = 0;
	l->bytes.len = 0;
	l->end_ns = 0;
	l->rooted = false;
	return err < 0 ? err : 0;
}

int lanes_before(struct lanes *l, uint64_t start_ns, const struct lanes_ops *ops, void *ctx)
{
	uint64_t dropped = 0;

	if (!l->nspans || !((l->rooted && start_ns >= l->end_ns) || l->bytes.len >= LANES_HOLD))
		return 0;
	return lanes_flush(l, ops, ctx, &dropped);
}

void lanes_free(struct lanes *l)
{
	free(l->spans);
	text_free(&l->bytes);
	memset(l, 0, sizeof(*l));
}
