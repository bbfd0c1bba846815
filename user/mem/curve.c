/* SPDX-License-Identifier: BSD-2-Clause */
/* curve.c - see curve.h. Changes are appended as they come, and added up when the room is used
 * up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "curve.h"

#define CAP (1u << 18)
#define FIRST_WIDTH_NS 100000
#define COARSEST 64 /* number of buckets in use: fewer buckets show nothing useful */

int curve_init(struct curve *c, uint64_t start_ns, uint32_t cap)
{
	memset(c, 0, sizeof(*c));
	c->start_ns = c->last_ns = start_ns;
	c->width_ns = FIRST_WIDTH_NS;
	c->cap = cap && cap < CAP ? cap : CAP;
	c->points = malloc(c->cap * sizeof(*c->points));
	return c->points ? 0 : -ENOMEM;
}

void curve_free(struct curve *c)
{
	free(c->points);
	c->points = NULL;
}

static int by_bucket(const void *a, const void *b)
{
	const struct curve_point *x = a, *y = b;

	if (x->bucket != y->bucket)
		return x->bucket < y->bucket ? -1 : 1;
	return x->series < y->series ? -1 : x->series > y->series;
}

static int by_series(const void *a, const void *b)
{
	const struct curve_point *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return x->bucket < y->bucket ? -1 : x->bucket > y->bucket;
}

/* Adds up the points, so that there is one for each series and bucket. */
static void curve_merge(struct curve *c, int (*order)(const void *, const void *))
{
	uint32_t n = 0;

	qsort(c->points, c->n, sizeof(*c->points), order);
	for (uint32_t i = 0; i < c->n; i++) {
		struct curve_point *p = &c->points[i];

		if (n && c->points[n - 1].bucket == p->bucket &&
		    c->points[n - 1].series == p->series) {
			if (__builtin_add_overflow(c->points[n - 1].delta, p->delta,
						   &c->points[n - 1].delta))
				c->points[n - 1].delta = p->delta < 0 ? INT64_MIN : INT64_MAX;
			continue;
		}
		if (n && !c->points[n - 1].delta)
			n--;
		c->points[n++] = *p;
	}
	if (n && !c->points[n - 1].delta)
		n--;
	c->n = n;
}

/* Makes each step twice as long. */
static void widen(struct curve *c)
{
	c->width_ns *= 2;
	for (uint32_t i = 0; i < c->n; i++)
		c->points[i].bucket /= 2;
	for (int w = 0; w < CURVE_WHERES; w++) {
		uint64_t *p = c->peak[w];

		for (uint32_t i = 0; i < CURVE_BUCKETS / 2; i++)
			p[i] = p[2 * i] > p[2 * i + 1] ? p[2 * i] : p[2 * i + 1];
		memset(p + CURVE_BUCKETS / 2, 0, CURVE_BUCKETS / 2 * sizeof(*p));
	}
}

static void curve_make_room(struct curve *c)
{
	curve_merge(c, by_bucket);
	while (c->n > c->cap / 4 * 3 && (c->last_ns - c->start_ns) / c->width_ns >= COARSEST) {
		widen(c);
		curve_merge(c, by_bucket);
	}
	if (c->n <= c->cap / 4 * 3)
		return;
	c->coarse = true;
	for (uint32_t i = 0; i < c->n; i++)
		c->points[i].series %= CURVE_WHERES;
	curve_merge(c, by_bucket);
	/* this many buckets need less than the room there is */
	while (c->n > c->cap / 4 * 3) {
		widen(c);
		curve_merge(c, by_bucket);
	}
}

void curve_add(struct curve *c, uint64_t at_ns, uint32_t series, int64_t delta)
{
	uint32_t w = series % CURVE_WHERES;
	uint64_t *total = &c->total[w], *peak, at;

	at = at_ns > c->start_ns ? at_ns - c->start_ns : 0;
	if (c->start_ns + at > c->last_ns)
		c->last_ns = c->start_ns + at;
	while (at / c->width_ns >= CURVE_BUCKETS)
		widen(c);
	peak = &c->peak[w][at / c->width_ns];
	*peak = *total > *peak ? *total : *peak;
	if (delta >= 0)
		*total = *total + (uint64_t)delta < *total ? UINT64_MAX : *total + (uint64_t)delta;
	else
		*total -= -(uint64_t)delta < *total ? -(uint64_t)delta : *total;
	*peak = *total > *peak ? *total : *peak;
	if (c->n == c->cap)
		curve_make_room(c);
	c->points[c->n++] =
		(struct curve_point){ (uint32_t)(at / c->width_ns), c->coarse ? w : series, delta };
}

/*
 * What came and went within one bucket adds up to 0, and a series with nothing else would not be
 * visible. So it is shown to end one bucket later. Returns the last bucket that is used.
 */
static uint32_t show_short_ones(struct curve *c)
{
	uint32_t last = 0;

	qsort(c->points, c->n, sizeof(*c->points), by_series);
	for (uint32_t i = 0, end; i < c->n; i = end) {
		struct curve_point *p = &c->points[i];

		for (end = i + 1; end < c->n && c->points[end].series == p->series; end++)
			;
		if (c->points[end - 1].bucket == p->bucket && p->bucket + 1 < CURVE_BUCKETS)
			for (uint32_t k = i; k < end; k++)
				c->points[k].bucket += c->points[k].delta < 0;
		for (uint32_t k = i; k < end; k++)
			last = c->points[k].bucket > last ? c->points[k].bucket : last;
	}
	return last;
}

uint32_t curve_finish(struct curve *c)
{
	uint32_t n = (uint32_t)((c->last_ns - c->start_ns) / c->width_ns) + 1,
		 last = show_short_ones(c);

	n = last >= n ? last + 1 : n;
	curve_merge(c, by_series);
	/* if nothing changed, it stays as before: the sum of all series */
	for (int w = 0; w < CURVE_WHERES; w++) {
		int64_t change[CURVE_BUCKETS] = { 0 }, now = 0;

		for (uint32_t i = 0; i < c->n; i++)
			if (c->points[i].series % CURVE_WHERES == (uint32_t)w)
				change[c->points[i].bucket] =
					(int64_t)((uint64_t)change[c->points[i].bucket] +
						  (uint64_t)c->points[i].delta);
		for (uint32_t i = 0; i < n; i++) {
			now = (int64_t)((uint64_t)now + (uint64_t)change[i]);
			if (now > 0 && c->peak[w][i] < (uint64_t)now)
				c->peak[w][i] = (uint64_t)now;
		}
	}
	return n;
}
