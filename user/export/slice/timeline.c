/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline.c - see timeline.h.
 *
 * From time to time the timeline is cut: everything that is over at the cut is handed on, track by
 * track. Tracks from which arrows start come first. The spans of a track are sorted by start, and
 * those before the first span that is not over at the cut are handed on. All of them are also ended
 * at the cut: a later span begins after it or no longer fits on the lane.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "timeline.h"
#include "../../util/table/array.h"
#include "../../util/table/hash_map.h"

#define CUT_EVERY_NS (TIMELINE_HOLD_NS / 8)
#define TRACKS_MAX (128u << 10)
#define SMALL 4096 /* bytes that a track may keep allocated without using them */

/* An arrow some of whose targets are held. */
struct arrow {
	uint64_t id;
	uint32_t targets;
	bool begun; /* its call was handed on with it */
};

struct kept_track {
	struct timeline_key key;
	struct timeline_track *track;
};

struct open {
	uint64_t ends[TIMELINE_DEPTH];
	int n;
};

struct timeline {
	const struct timeline_ops *ops;
	void *ctx;
	struct hash_map tracks; /* struct kept_track, in the order of their making */
	struct timeline_track *last;
	struct hash_map arrows;
	struct open *open; /* TIMELINE_LANES of them, for the track that is handed on */
	uint64_t newest_ns, cut_ns;
	size_t held; /* bytes allocated for what is held */
	uint64_t no_arrow, dropped;
};

/* ---- arrows ---- */

/* Notes that a target is held. */
static int arrow_add(struct timeline *t, uint64_t id)
{
	struct arrow *a = hash_map_get(&t->arrows, &id, &(bool){ false });

	if (!a)
		return -ENOMEM;
	a->targets++;
	return 0;
}

/* Notes that a target is handed on. True: its arrow is drawn. */
static bool arrow_end(struct timeline *t, uint64_t id)
{
	struct arrow *a = hash_map_look(&t->arrows, &id);
	bool begun = a && a->begun;

	if (a && !--a->targets)
		hash_map_remove(&t->arrows, a);
	return begun;
}

/* True if the span is handed on with its arrow. */
static bool arrow_of(struct timeline *t, const struct timeline_span *s)
{
	struct arrow *a;

	if (!s->arrow || s->end == TIMELINE_NO_ARROW)
		return false;
	if (s->end == TIMELINE_TO) {
		if (arrow_end(t, s->arrow))
			return true;
		t->no_arrow++;
		return false;
	}
	a = hash_map_look(&t->arrows, &s->arrow);
	if (a)
		a->begun = true;
	return a;
}

/* ---- tracks ---- */

static struct timeline_track *track_at(const struct timeline *t, size_t i)
{
	return ((const struct kept_track *)hash_map_at(&t->tracks, i))->track;
}

static void tracks_forget(struct timeline *t)
{
	for (size_t i = 0; i < t->tracks.n; i++) {
		free(track_at(t, i)->spans);
		free(track_at(t, i)->bytes);
		free(track_at(t, i)->lanes);
		free(track_at(t, i));
	}
	hash_map_clear(&t->tracks);
	t->last = NULL;
	t->held = 0;
}

struct timeline_track *timeline_track(struct timeline *t, const struct timeline_key *key)
{
	struct timeline_track *tr = t->last;
	struct kept_track *kept;

	if (tr && !memcmp(&tr->key, key, sizeof(*key)))
		return tr;
	kept = hash_map_look(&t->tracks, key);
	if (kept)
		return t->last = kept->track;
	/* so many threads have come and gone that their tracks take too much memory: forget all;
	 * living threads get new tracks */
	if (t->tracks.n >= TRACKS_MAX) {
		if (timeline_flush(t))
			return NULL;
		tracks_forget(t);
	}
	tr = calloc(1, sizeof(*tr));
	kept = tr ? hash_map_get(&t->tracks, key, &(bool){ false }) : NULL;
	if (!kept) {
		free(tr);
		return NULL;
	}
	tr->key = *key;
	return t->last = kept->track = tr;
}

static int set_room(struct timeline *t, struct timeline_track *tr, uint32_t cap, size_t room)
{
	struct timeline_span *spans = tr->spans;
	char *bytes = tr->bytes;

	if (cap != tr->cap) {
		spans = realloc(spans, (cap ? cap : 1) * sizeof(*spans));
		if (!spans)
			return -ENOMEM;
		tr->spans = spans;
		t->held += cap * sizeof(*spans) - tr->cap * sizeof(*spans);
		tr->cap = cap;
	}
	if (room != tr->room) {
		bytes = realloc(bytes, room ? room : 1);
		if (!bytes)
			return -ENOMEM;
		tr->bytes = bytes;
		t->held += room - tr->room;
		tr->room = room;
	}
	return 0;
}

/* ---- handing on ---- */

/* Outer spans first: by begin; then the longer one; then the one that called the other; then the
 * one that came first. */
static int by_begin(const void *pa, const void *pb)
{
	const struct timeline_span *a = pa, *b = pb;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

/* Ends the spans of a lane that are over at `ns`. */
static int end_until(struct timeline *t, struct timeline_track *tr, int lane, uint64_t ns)
{
	struct open *o = &t->open[lane];
	struct timeline_lane *l = &tr->lanes[lane];

	while (o->n && o->ends[o->n - 1] <= ns) {
		int err;

		l->last_ns = o->ends[--o->n];
		err = t->ops->end(t->ctx, tr, l, l->last_ns);
		if (err)
			return err;
	}
	return 0;
}

/* Adds a lane; NULL: the track has the most that it may have. */
static struct timeline_lane *add_lane(struct timeline *t, struct timeline_track *tr)
{
	if (tr->nlanes == TIMELINE_LANES)
		return NULL;
	t->open[tr->nlanes].n = 0;
	return array_add(tr->lanes, tr->nlanes);
}

static bool timeline_fits(const struct timeline_lane *l, const struct open *o,
			  const struct timeline_span *s)
{
	return s->start_ns >= l->last_ns &&
	       (!o->n || (o->n < TIMELINE_DEPTH && s->end_ns <= o->ends[o->n - 1]));
}

static int timeline_place(struct timeline *t, struct timeline_track *tr,
			  const struct timeline_span *s)
{
	struct timeline_lane *l = NULL;
	int lane, err;

	for (lane = 0; lane < tr->nlanes; lane++) {
		err = end_until(t, tr, lane, s->start_ns);
		if (err)
			return err;
		if (s->what == TIMELINE_VALUE ||
		    timeline_fits(&tr->lanes[lane], &t->open[lane], s)) {
			l = &tr->lanes[lane];
			break;
		}
	}
	if (!l)
		l = add_lane(t, tr);
	if (!l) {
		t->dropped++;
		if (s->end == TIMELINE_TO)
			arrow_of(t, s);
		return 0;
	}
	if (s->what == TIMELINE_VALUE) {
		bool late = s->start_ns < l->last_ns;

		if (!late)
			l->last_ns = s->start_ns;
		return t->ops->value(t->ctx, tr, l, s, tr->bytes + s->at, late);
	}
	l->last_ns = s->start_ns;
	err = t->ops->begin(t->ctx, tr, l, lane, s, tr->bytes + s->at, arrow_of(t, s));
	if (s->what == TIMELINE_SPAN)
		t->open[lane].ends[t->open[lane].n++] = s->end_ns;
	return err;
}

/* Forgets the first n spans; their memory is freed if it is much. */
static void timeline_forget(struct timeline *t, struct timeline_track *tr, uint32_t n)
{
	size_t from = SIZE_MAX, room, left;
	uint32_t cap;

	tr->nspans -= n;
	memmove(tr->spans, tr->spans + n, tr->nspans * sizeof(*tr->spans));
	/* bytes are stored in the order of arrival, which is nearly the order of time */
	for (uint32_t i = 0; i < tr->nspans; i++)
		if (tr->spans[i].at < from)
			from = tr->spans[i].at;
	if (!tr->nspans)
		from = tr->len;
	left = tr->len - from;
	memmove(tr->bytes, tr->bytes + from, left);
	tr->len = left;
	for (uint32_t i = 0; i < tr->nspans; i++)
		tr->spans[i].at -= from;
	cap = tr->cap * sizeof(*tr->spans) > SMALL && tr->nspans < tr->cap / 4 ? tr->nspans * 2
									       : tr->cap;
	room = tr->room > SMALL && tr->len < tr->room / 4 ? tr->len * 2 : tr->room;
	set_room(t, tr, cap, room);
}

/* Hands on the spans of one track that are over at `cut_ns`. */
static int timeline_hand_on(struct timeline *t, struct timeline_track *tr, uint64_t cut_ns)
{
	uint32_t i = 0;
	int err = 0;

	if (!tr->nspans)
		return 0;
	if (tr->unsorted)
		qsort(tr->spans, tr->nspans, sizeof(*tr->spans), by_begin);
	tr->unsorted = false;
	for (int lane = 0; lane < tr->nlanes; lane++)
		t->open[lane].n = 0;
	for (; i < tr->nspans && !err; i++) {
		const struct timeline_span *s = &tr->spans[i];

		if (s->end_ns > cut_ns || s->after_ns > cut_ns)
			break;
		err = timeline_place(t, tr, s);
	}
	for (int lane = 0; lane < tr->nlanes && !err; lane++)
		err = end_until(t, tr, lane, UINT64_MAX);
	if (i)
		timeline_forget(t, tr, i);
	return err;
}

static int cut(struct timeline *t, uint64_t cut_ns)
{
	int err = 0;

	for (int late = 0; late < 2; late++)
		for (size_t i = 0; i < t->tracks.n && !err; i++)
			if (!(track_at(t, i)->key.kind & TIMELINE_EARLY) == (late != 0))
				err = timeline_hand_on(t, track_at(t, i), cut_ns);
	t->cut_ns = t->newest_ns;
	return err;
}

/* Shortens the time for which spans are held, because too much is held. */
static int cut_more(struct timeline *t)
{
	uint64_t hold = TIMELINE_HOLD_NS;
	int err = 0;

	while (t->held > TIMELINE_HOLD_BYTES / 2 && !err) {
		hold /= 2;
		err = cut(t, hold > 1000 && t->newest_ns > hold ? t->newest_ns - hold : UINT64_MAX);
		if (hold <= 1000)
			break;
	}
	/* there may be many tracks that each keep a little */
	for (size_t i = 0; i < t->tracks.n && t->held > TIMELINE_HOLD_BYTES / 2; i++)
		if (!track_at(t, i)->nspans)
			set_room(t, track_at(t, i), 0, 0);
	return err;
}

/* ---- from outside ---- */

struct timeline *timeline_open(const struct timeline_ops *ops, void *ctx)
{
	struct timeline *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->ops = ops;
	t->ctx = ctx;
	t->open = calloc(TIMELINE_LANES, sizeof(*t->open));
	hash_map_open_of(&t->tracks, struct kept_track, key, SIZE_MAX);
	hash_map_open_of(&t->arrows, struct arrow, id, SIZE_MAX);
	if (!t->open) {
		timeline_close(t);
		return NULL;
	}
	return t;
}

void timeline_close(struct timeline *t)
{
	if (!t)
		return;
	tracks_forget(t);
	hash_map_close(&t->tracks);
	hash_map_close(&t->arrows);
	free(t->open);
	free(t);
}

int timeline_add(struct timeline *t, struct timeline_track *tr, const struct timeline_span *span,
		 const void *bytes)
{
	struct timeline_span *s;

	if (tr->nspans == tr->cap && set_room(t, tr, tr->cap ? tr->cap * 2 : 4, tr->room))
		return -ENOMEM;
	if (tr->room - tr->len < span->len &&
	    set_room(t, tr, tr->cap,
		     tr->len + span->len > tr->room * 2 ? tr->len + span->len + 128 : tr->room * 2))
		return -ENOMEM;
	if (span->end == TIMELINE_TO && span->arrow && arrow_add(t, span->arrow))
		return -ENOMEM;
	s = &tr->spans[tr->nspans++];
	*s = *span;
	s->at = tr->len;
	if (s->end_ns < s->start_ns)
		s->end_ns = s->start_ns;
	/* a span without a duration would have to end at the moment of its begin, after it */
	if (s->end_ns == s->start_ns && s->what == TIMELINE_SPAN)
		s->what = TIMELINE_INSTANT;
	memcpy(tr->bytes + tr->len, bytes, span->len);
	tr->len += span->len;
	tr->unsorted |= tr->nspans > 1 && by_begin(s - 1, s) > 0;
	if (s->end_ns > t->newest_ns)
		t->newest_ns = s->end_ns;
	if (t->held > TIMELINE_HOLD_BYTES)
		return cut_more(t);
	if (t->newest_ns - t->cut_ns < CUT_EVERY_NS)
		return 0;
	return cut(t, t->newest_ns > TIMELINE_HOLD_NS ? t->newest_ns - TIMELINE_HOLD_NS : 0);
}

int timeline_flush(struct timeline *t)
{
	return cut(t, UINT64_MAX);
}

uint64_t timeline_no_arrow(const struct timeline *t)
{
	return t->no_arrow;
}

uint64_t timeline_dropped(const struct timeline *t)
{
	return t->dropped;
}
