/* SPDX-License-Identifier: BSD-2-Clause */
/* spans.c - see spans.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../event/holes/holes.h"
#include "spans.h"
#include "../util/table/array.h"

static int by_start(const void *pa, const void *pb)
{
	const struct span *a = pa, *b = pb;

	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static int by_size(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

/* Half of the gaps become parts of spans: the smaller ones. */
static int coalesce(struct spans *s)
{
	uint64_t *gaps = malloc(s->n * sizeof(*gaps));
	uint32_t kept = 0, merged = 0;

	if (!gaps)
		return -ENOMEM;
	for (uint32_t i = 1; i < s->n; i++)
		gaps[i - 1] = s->at[i].start_ns - s->at[i - 1].end_ns;
	qsort(gaps, s->n - 1, sizeof(*gaps), by_size);
	s->quantum_ns = gaps[s->n / 2];
	free(gaps);
	for (uint32_t i = 1; i < s->n; i++) {
		struct span *last = &s->at[kept];
		uint64_t gap = s->at[i].start_ns - last->end_ns;

		/* if all gaps are alike, half of them */
		if (gap < s->quantum_ns || (gap == s->quantum_ns && merged < s->n / 2)) {
			merged++;
			last->end_ns = s->at[i].end_ns;
			last->busy_ns += s->at[i].busy_ns;
		} else {
			s->at[++kept] = s->at[i];
		}
	}
	s->n = kept + 1;
	return 0;
}

/* Adds an interval, which starts no earlier than those before it, unless it came late. */
static int settle_one(struct spans *s, struct span one)
{
	struct span *last = s->n ? &s->at[s->n - 1] : NULL;

	if (last && one.start_ns < last->start_ns)
		s->late++;
	if (last && one.start_ns < last->end_ns) {
		if (one.end_ns <= last->end_ns)
			return 0;
		last->busy_ns += one.end_ns - last->end_ns;
		last->end_ns = one.end_ns;
		return 0;
	}
	if (last && one.start_ns - last->end_ns < s->quantum_ns) {
		last->busy_ns += one.end_ns - one.start_ns;
		last->end_ns = one.end_ns;
		return 0;
	}
	if ((s->n == SPANS_MAX && coalesce(s)) || !array_room(s->at, s->n))
		return -ENOMEM;
	one.busy_ns = one.end_ns - one.start_ns;
	s->at[s->n++] = one;
	return 0;
}

static int settle(struct spans *s, uint32_t n)
{
	int err = 0;

	if (s->disorder)
		qsort(s->raw, s->nraw, sizeof(*s->raw), by_start);
	s->disorder = false;
	for (uint32_t i = 0; i < n && !err; i++)
		err = settle_one(s, s->raw[i]);
	s->nraw -= n;
	memmove(s->raw, s->raw + n, s->nraw * sizeof(*s->raw));
	return err;
}

int spans_add(struct spans *s, uint64_t start_ns, uint64_t end_ns, uint16_t kind, uint32_t tag)
{
	if (end_ns < start_ns)
		return 0;
	if (!s->quantum_ns)
		s->quantum_ns = SPANS_QUANTUM_NS;
	if (s->nraw == SPANS_RAW_MAX && settle(s, SPANS_RAW_MAX / 2))
		return -ENOMEM;
	if (!array_room(s->raw, s->nraw))
		return -ENOMEM;
	s->disorder |= s->nraw && start_ns < s->raw[s->nraw - 1].start_ns;
	s->raw[s->nraw++] =
		(struct span){ .start_ns = start_ns, .end_ns = end_ns, .kind = kind, .tag = tag };
	return 0;
}

int spans_settle(struct spans *s)
{
	return s->nraw ? settle(s, s->nraw) : 0;
}

uint64_t spans_busy_ns(const struct spans *s)
{
	uint64_t until = s->n ? s->at[s->n - 1].end_ns : 0, ns = 0;
	struct span *raw = s->nraw ? malloc(s->nraw * sizeof(*raw)) : NULL;

	for (uint32_t i = 0; i < s->n; i++)
		ns += s->at[i].busy_ns;
	if (!raw)
		return ns;
	memcpy(raw, s->raw, s->nraw * sizeof(*raw));
	qsort(raw, s->nraw, sizeof(*raw), by_start);
	for (uint32_t i = 0; i < s->nraw; i++) {
		if (raw[i].end_ns <= until)
			continue;
		ns += raw[i].end_ns - (raw[i].start_ns > until ? raw[i].start_ns : until);
		until = raw[i].end_ns;
	}
	free(raw);
	return ns;
}

void spans_fill(struct spans *s, const struct holes_stretch *unseen, size_t n)
{
	for (uint32_t i = 1; i < s->n && n; i++) {
		struct span *before = &s->at[i - 1];
		uint64_t to = s->at[i].start_ns;

		if (!holes_within_ns(unseen, n, before->end_ns, to))
			continue;
		before->busy_ns += to - before->end_ns;
		before->end_ns = to;
	}
}

void spans_free(struct spans *s)
{
	free(s->raw);
	free(s->at);
	memset(s, 0, sizeof(*s));
}
