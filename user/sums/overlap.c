/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * overlap.c - see overlap.h.
 *
 * Windows are settled together: the begins and ends of all work, in the order of time, give points
 * at which the class that counts changes, each with the sums up to it. A window's parts are the
 * sums at its end less those at its begin.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../util/table/array.h"
#include "overlap.h"

struct piece {
	uint64_t device, start_ns, end_ns;
	enum overlap_class class;
};

struct window {
	uint64_t device, start_ns, end_ns, tag;
};

/* From `ns` on `class` counts; sums: of the device, up to `ns`. */
struct point {
	uint64_t device, ns;
	enum overlap_class class;
	uint64_t sums[OVERLAP_END];
};

struct edge {
	uint64_t device, ns;
	int8_t step; /* work begins: 1; it ends: -1 */
	uint8_t class;
};

struct overlap {
	struct piece *work;
	struct window *windows;
	size_t nwork, nwindows, max;
	uint64_t slack_ns, newest_ns, settled_ns, late;
	overlap_fn out;
	void *ctx;
};

struct overlap *overlap_open(size_t max, uint64_t slack_ns, overlap_fn out, void *ctx)
{
	struct overlap *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->max = max;
	o->slack_ns = slack_ns;
	o->out = out;
	o->ctx = ctx;
	return o;
}

void overlap_close(struct overlap *o)
{
	if (!o)
		return;
	free(o->work);
	free(o->windows);
	free(o);
}

uint64_t overlap_late(const struct overlap *o)
{
	return o->late;
}

static int overlap_by_time(const void *pa, const void *pb)
{
	const struct edge *a = pa, *b = pb;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return a->ns != b->ns ? a->ns < b->ns ? -1 : 1 : 0;
}

/* Points in the order of device and time. NULL: no memory. *n: how many. */
static struct point *make_points(const struct overlap *o, size_t *n)
{
	struct edge *edges = calloc(2 * o->nwork + 1, sizeof(*edges));
	struct point *points = calloc(2 * o->nwork + 1, sizeof(*points)), *p = points;
	size_t running[OVERLAP_END] = { 0 };

	if (!edges || !points) {
		free(edges);
		free(points);
		return NULL;
	}
	for (size_t i = 0; i < o->nwork; i++) {
		const struct piece *w = &o->work[i];

		edges[2 * i] = (struct edge){ w->device, w->start_ns, 1, (uint8_t)w->class };
		edges[2 * i + 1] = (struct edge){ w->device, w->end_ns, -1, (uint8_t)w->class };
	}
	qsort(edges, 2 * o->nwork, sizeof(*edges), overlap_by_time);
	for (size_t i = 0; i < 2 * o->nwork; i++) {
		const struct edge *e = &edges[i];

		if (p == points || p[-1].device != e->device) {
			memset(running, 0, sizeof(running));
			*p++ = (struct point){ .device = e->device, .ns = e->ns };
		} else if (p[-1].ns != e->ns) {
			*p = p[-1];
			p->ns = e->ns;
			p->sums[p->class] += e->ns - p[-1].ns;
			p++;
		}
		/* of equal times an end may come before its begin: it is right after all of them */
		running[e->class] += (size_t)e->step;
		p[-1].class = OVERLAP_COMPUTE;
		while (p[-1].class < OVERLAP_IDLE && !running[p[-1].class])
			p[-1].class ++;
	}
	free(edges);
	*n = (size_t)(p - points);
	return points;
}

/* The sums of a device up to a time. */
static void sums_at(const struct point *points, size_t n, uint64_t device, uint64_t ns,
		    uint64_t sums[OVERLAP_END])
{
	/* behind the last point that is not behind it */
	size_t low = array_before(points, n, p,
				  p->device < device || (p->device == device && p->ns <= ns));

	memset(sums, 0, OVERLAP_END * sizeof(*sums));
	if (!low || points[low - 1].device != device)
		return;
	memcpy(sums, points[low - 1].sums, OVERLAP_END * sizeof(*sums));
	sums[points[low - 1].class] += ns - points[low - 1].ns;
}

static void settle_window(const struct overlap *o, const struct window *w,
			  const struct point *points, size_t n)
{
	uint64_t from[OVERLAP_END], to[OVERLAP_END], ns[OVERLAP_END], busy = 0;

	sums_at(points, n, w->device, w->start_ns, from);
	sums_at(points, n, w->device, w->end_ns, to);
	for (int i = 0; i < OVERLAP_IDLE; i++) {
		ns[i] = to[i] - from[i];
		busy += ns[i];
	}
	/* before the first work, and behind the last one, there is no point */
	ns[OVERLAP_IDLE] = w->end_ns - w->start_ns - busy;
	o->out(o->ctx, w->tag, ns);
}

/* Settles the windows that have ended at `until`, and drops the work that no other one needs. */
static int settle(struct overlap *o, uint64_t until)
{
	uint64_t needed = until;
	struct point *points;
	size_t n, kept = 0;

	points = make_points(o, &n);
	if (!points)
		return -ENOMEM;
	for (size_t i = 0; i < o->nwindows; i++) {
		const struct window *w = &o->windows[i];

		if (w->end_ns <= until) {
			settle_window(o, w, points, n);
			continue;
		}
		needed = w->start_ns < needed ? w->start_ns : needed;
		o->windows[kept++] = *w;
	}
	free(points);
	o->nwindows = kept;
	kept = 0;
	for (size_t i = 0; i < o->nwork; i++)
		if (o->work[i].end_ns > needed)
			o->work[kept++] = o->work[i];
	o->nwork = kept;
	until = until < o->newest_ns ? until : o->newest_ns;
	o->settled_ns = until > o->settled_ns ? until : o->settled_ns;
	return 0;
}

/* Makes room if there is too much. What is left may still be too much, if all of it is new or one
 * window is long: then all is settled. */
static int overlap_make_room(struct overlap *o)
{
	int err = 0;

	if (o->nwork < o->max && o->nwindows < o->max)
		return 0;
	if (o->newest_ns > o->slack_ns)
		err = settle(o, o->newest_ns - o->slack_ns);
	if (!err && (o->nwork > o->max / 2 || o->nwindows > o->max / 2))
		err = settle(o, UINT64_MAX);
	return err;
}

static void saw(struct overlap *o, uint64_t end_ns)
{
	o->newest_ns = end_ns > o->newest_ns ? end_ns : o->newest_ns;
}

int overlap_work(struct overlap *o, uint64_t device, enum overlap_class class, uint64_t start_ns,
		 uint64_t end_ns)
{
	int err = overlap_make_room(o);
	struct piece *w;

	if (err)
		return err;
	saw(o, end_ns);
	if (start_ns < o->settled_ns)
		o->late++;
	w = start_ns < end_ns ? array_add(o->work, o->nwork) : NULL;
	if (!w)
		return start_ns < end_ns ? -ENOMEM : 0;
	*w = (struct piece){ device, start_ns, end_ns, class };
	return 0;
}

int overlap_window(struct overlap *o, uint64_t device, uint64_t tag, uint64_t start_ns,
		   uint64_t end_ns)
{
	int err = overlap_make_room(o);
	struct window *w;

	if (err)
		return err;
	saw(o, end_ns);
	w = array_add(o->windows, o->nwindows);
	if (!w)
		return -ENOMEM;
	*w = (struct window){ device, start_ns, end_ns, tag };
	return 0;
}

int overlap_settle(struct overlap *o)
{
	return settle(o, UINT64_MAX);
}
