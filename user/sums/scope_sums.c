/* SPDX-License-Identifier: BSD-2-Clause */
/* scope_sums.c - see scope_sums.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../event/scopes/lineage.h"
#include "../event/scopes/moved.h"
#include "../util/table/hash_map.h"
#include "book.h"
#include "work_class.h"
#include "overlap.h"
#include "scope_sums.h"

#define ROWS_MAX 65536
#define MOVED_MAX 524288   /* collectives and products that are remembered, and as many older */
#define OVERLAP_MAX 262144 /* pieces of device work, and collectives' kernels, at a time */
#define OVERLAP_SLACK 10000000000ULL /* ns: device records come so late */
#define WITHIN_MAX 64		     /* scopes inside each other that a piece of work counts for */

/* A collective whose bytes, or a product whose FLOP, have been counted. */
struct moved {
	uint32_t pid, id;
	uint32_t number; /* of the call that launched its kernels: a graph is launched again */
};

struct scope_sums {
	struct hash_map rows;
	struct hash_map moved, older; /* older: what `moved` had when it was full */
	uint32_t kinds;
	uint64_t no_room;
	bool device; /* there is device work */
	bool collectives, gemms, classes;
	struct overlap *overlap; /* what runs beside collectives; NULL: that is not asked for */
};

/* A collective's kernel was exposed where nothing computed. tag: the hash of its row's name. */
static void expose(void *ctx, uint64_t tag, const uint64_t ns[OVERLAP_END])
{
	struct scope_sums *s = ctx;
	struct scope_row *r = hash_map_find(&s->rows, &(struct scope_row){ .what = SCOPE_ROW_NAMED,
									   .hash = tag });

	if (!r)
		return;
	for (int i = 0; i < OVERLAP_END; i++)
		r->moved.kernels_ns += ns[i];
	r->moved.exposed_ns += ns[OVERLAP_COLLECTIVE];
}

struct scope_sums *scope_sums_open(uint32_t kinds)
{
	struct scope_sums *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->kinds = kinds;
	s->collectives = kinds & 1u << CT_SCOPE_COLLECTIVE;
	hash_map_open_of(&s->rows, struct scope_row, hash, ROWS_MAX);
	hash_map_open_of(&s->moved, struct moved, number, MOVED_MAX);
	hash_map_open_of(&s->older, struct moved, number, MOVED_MAX);
	s->gemms = kinds & 1u << CT_SCOPE_GEMM;
	s->classes = kinds == BOOK_CLASSES;
	if (!s->collectives)
		return s;
	s->overlap = overlap_open(OVERLAP_MAX, OVERLAP_SLACK, expose, s);
	if (s->overlap)
		return s;
	scope_sums_close(s);
	return NULL;
}

void scope_sums_close(struct scope_sums *s)
{
	struct scope_row *r;

	if (!s)
		return;
	hash_map_each(&s->rows, r)
	{
		free(r->name);
		collective_sums_free(&r->moved);
	}
	overlap_close(s->overlap);
	hash_map_close(&s->rows);
	hash_map_close(&s->moved);
	hash_map_close(&s->older);
	free(s);
}

uint64_t scope_sums_no_room(const struct scope_sums *s)
{
	return s->no_room;
}

/* The row of a name. NULL: there is no room. */
static struct scope_row *row_named(struct scope_sums *s, enum scope_row_what what, const char *name)
{
	struct scope_row key = { .what = what, .hash = hash_bytes(name, strlen(name)) }, *r;
	bool made;

	r = hash_map_get(&s->rows, &key, &made);
	if (!r)
		return NULL;
	if (made)
		r->name = strdup(name);
	if (r->name)
		return r;
	hash_map_remove(&s->rows, r);
	return NULL;
}

static struct scope_row *scope_sums_row_of(struct scope_sums *s, const struct scope_line *line,
					   bool known)
{
	return line    ? row_named(s, SCOPE_ROW_NAMED, line->name)
	       : known ? row_named(s, SCOPE_ROW_NONE, "none")
		       : row_named(s, SCOPE_ROW_UNKNOWN, "unknown");
}

/* Remembers a collective or product. *first: it was not remembered before. Its kernels come within
 * some seconds, so the oldest may be forgotten. */
static int scope_sums_remember(struct scope_sums *s, const struct moved *key, bool *first)
{
	struct hash_map full = s->moved;

	*first = false;
	if (hash_map_find(&s->older, key))
		return 0;
	if (full.n == MOVED_MAX && !hash_map_find(&full, key)) {
		s->moved = s->older;
		s->older = full;
		hash_map_clear(&s->moved);
	}
	return hash_map_get(&s->moved, key, first) ? 0 : -ENOMEM;
}

/* Adds a kernel of a collective, or of a product; the bytes or FLOP when the first kernel comes. */
static int add_moved(struct scope_sums *s, struct scope_row *r, const struct scope_line *line,
		     const struct event *ev)
{
	struct moved key = { .pid = line->pid,
			     .id = line->id,
			     .number = ev->capture ? ev->number : 0 };
	uint64_t ns = ev->rec->end_ns - ev->rec->start_ns;
	bool first;
	int err;

	if (!moved_bytes(line, &(double){ 0 }) && !line->flop)
		return 0;
	err = scope_sums_remember(s, &key, &first);
	if (err)
		return err;
	if (line->kind == CT_SCOPE_GEMM) {
		gemm_sums_kernel(&r->gemm, line, ev, first);
		return 0;
	}
	return collective_sums_add(&r->moved, line, ns, first);
}

/* What runs on the device beside collectives. A kernel of which it is not known whether it is one
 * of a collective hides none. */
static int add_overlap(struct scope_sums *s, const struct scope_row *r, const struct ct_work *w)
{
	const struct ct_hdr *h = &w->h;
	uint64_t device = (uint64_t)h->pid << 32 | w->device;
	int err;

	if (!s->overlap || h->kind != CT_KERNEL || r->what == SCOPE_ROW_UNKNOWN)
		return 0;
	if (r->what == SCOPE_ROW_NONE)
		return overlap_work(s->overlap, device, OVERLAP_COMPUTE, h->start_ns, h->end_ns);
	err = overlap_work(s->overlap, device, OVERLAP_COLLECTIVE, h->start_ns, h->end_ns);
	return err ? err : overlap_window(s->overlap, device, r->hash, h->start_ns, h->end_ns);
}

/* Adds time to each row of a scope that the event is inside of. */
static void add_inclusive(struct scope_sums *s, const struct event *ev, uint64_t ns, bool work)
{
	struct scope_row *seen[WITHIN_MAX], *r;
	uint32_t id = lineage_from(ev, s->kinds), n = 0;
	const struct scope_line *line;
	bool known;

	/* scopes of a recording may lie around each other in a circle: each counts once, and there is an end */
	for (int steps = 0; steps < WITHIN_MAX; steps++) {
		line = lineage_of_kind(ev->lineage, ev->rec->pid, id, s->kinds, &known);
		if (!line)
			return;
		id = line->parent;
		r = hash_map_find(
			&s->rows,
			&(struct scope_row){ .what = SCOPE_ROW_NAMED,
					     .hash = hash_bytes(line->name, strlen(line->name)) });
		for (uint32_t i = 0; i < n && r; i++)
			r = seen[i] == r ? NULL : r;
		if (!r)
			continue;
		seen[n++] = r;
		*(work ? &r->inclusive_ns : &r->inclusive_calls_ns) += ns;
	}
}

/* Makes the rows of all scopes around an event first: rows move when one is made. */
static void scope_sums_make_rows(struct scope_sums *s, const struct event *ev)
{
	uint32_t id = lineage_from(ev, s->kinds);
	const struct scope_line *line;
	bool known;

	for (int i = 0; i < WITHIN_MAX; i++) {
		line = lineage_of_kind(ev->lineage, ev->rec->pid, id, s->kinds, &known);
		if (!line)
			return;
		if (!scope_sums_row_of(s, line, true))
			return;
		id = line->parent;
	}
}

static int add_event(struct scope_sums *s, const struct event *ev, bool work)
{
	const struct ct_hdr *h = ev->rec;
	const struct scope_line *line;
	struct scope_row *r;
	uint64_t ns = h->end_ns - h->start_ns;
	bool known;
	int err = 0;

	scope_sums_make_rows(s, ev);
	line = lineage_of_kind(ev->lineage, h->pid, lineage_from(ev, s->kinds), s->kinds, &known);
	r = scope_sums_row_of(s, line, known);
	if (!r) {
		s->no_room++;
		return 0;
	}
	if (work) {
		s->device = true;
		r->kernels += h->kind == CT_KERNEL;
		r->work_ns += ns;
		if (line && (s->gemms || s->collectives) && h->kind == CT_KERNEL)
			err = add_moved(s, r, line, ev);
		if (!err)
			err = add_overlap(s, r, (const struct ct_work *)h);
	} else {
		ns = h->flags & (CT_F_NO_RETURN | CT_F_UNFINISHED) ? 0 : ns;
		r->calls++;
		r->calls_ns += ns;
	}
	add_inclusive(s, ev, ns, work);
	return err ? err : 1;
}

static int add_scope(struct scope_sums *s, const struct ct_scope *scope, const struct event *ev)
{
	const struct scope_line *line = lineage_find(ev->lineage, scope->h.pid, scope->id);
	struct scope_row *r;

	if (!line || !(s->kinds >> scope->kind & 1))
		return 1; /* it is in no row, and nobody asked for it */
	r = scope_sums_row_of(s, line, true);
	if (!r)
		return 0; /* a scope that is not shown, and counted as one */
	if (s->gemms)
		gemm_sums_call(&r->gemm, scope_gemm(scope));
	r->scopes++;
	r->scopes_ns += scope->h.end_ns - scope->h.start_ns;
	return 1;
}

/* Adds work to the row of its class. */
static int add_class(struct scope_sums *s, const struct event *ev)
{
	const char *class = work_class(ev);
	struct scope_row *r = class ? row_named(s, SCOPE_ROW_NAMED, class)
				    : row_named(s, SCOPE_ROW_UNKNOWN, "unknown");

	s->device = true;
	if (!r) {
		s->no_room++;
		return 0;
	}
	r->kernels++;
	r->work_ns += ev->rec->end_ns - ev->rec->start_ns;
	return 1;
}

int scope_sums_event(struct scope_sums *s, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	if (s->classes)
		return kind_is(h->kind, KIND_BUSY) ? add_class(s, ev) : 0;
	if (h->kind == CT_SCOPE_END)
		return add_scope(s, (const struct ct_scope *)h, ev);
	if (kind_is(h->kind, KIND_BUSY))
		return add_event(s, ev, true);
	if (h->kind == CT_CALL && !(h->flags & (CT_F_HIDDEN | CT_F_PENDING)) &&
	    !((const struct ct_call *)h)->depth)
		return add_event(s, ev, false);
	return 0;
}

/* ---- at the end ---- */

/* The most time first: on the device if there is device work, else in calls. Then by name; "none"
 * and "unknown" are last. */
static int scope_sums_by_time(const void *pa, const void *pb)
{
	const struct scope_row *a = *(const struct scope_row *const *)pa,
			       *b = *(const struct scope_row *const *)pb;

	if (a->what != b->what)
		return a->what < b->what ? -1 : 1;
	if (a->work_ns != b->work_ns)
		return a->work_ns > b->work_ns ? -1 : 1;
	if (a->calls_ns != b->calls_ns)
		return a->calls_ns > b->calls_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* All rows in order; NULL: no memory. */
static struct scope_row **sorted(struct scope_sums *s)
{
	struct scope_row **rows = calloc(s->rows.n + 1, sizeof(*rows)), *r;
	size_t n = 0;

	if (!rows)
		return NULL;
	hash_map_each(&s->rows, r) rows[n++] = r;
	qsort(rows, n, sizeof(*rows), scope_sums_by_time);
	return rows;
}

struct scope_row **scope_sums_rows(struct scope_sums *s, struct scope_sums_all *all)
{
	struct scope_row *r;

	if (s->overlap && overlap_settle(s->overlap))
		return NULL;
	*all = (struct scope_sums_all){ .nrows = s->rows.n,
					.device = s->device,
					.classes = s->classes,
					.collectives = s->collectives,
					.gemms = s->gemms,
					.late = s->overlap ? overlap_late(s->overlap) : 0 };
	hash_map_each(&s->rows, r)
	{
		all->work_ns += r->work_ns;
		all->calls_ns += r->calls_ns;
		all->kernels += r->kernels;
		all->calls += r->calls;
	}
	return sorted(s);
}
