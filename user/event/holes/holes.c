/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * holes.c - see holes.h. A dense array of rows; a hash finds a row by its key, another one the newest
 * row of a process, layer, state and reason, which takes what is joined. Words are in holes_text.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/hash.h"
#include "../../util/table/array.h"
#include "../../util/table/hash_map.h"
#include "holes_inside.h"

struct row_key {
	uint64_t start_ns, text; /* the text's hash */
	uint32_t pid, tid, device;
	uint16_t reason;
	uint8_t layer, state;
};
struct indexed {
	struct row_key key;
	uint32_t row;
};

/* Rows of one process that differ in time, thread, device or text. */
struct group_key {
	uint32_t pid;
	uint16_t reason;
	uint8_t layer, state;
};
struct group {
	struct group_key key;
	uint32_t n, newest;
};

struct holes *holes_open(void)
{
	struct holes *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	hash_map_open_of(&l->index, struct indexed, key, 2 * HOLES_ROWS);
	hash_map_open_of(&l->groups, struct group, key, 2 * HOLES_ROWS);
	return l;
}

void holes_close(struct holes *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		free(l->rows[i].text);
	free(l->rows);
	hash_map_close(&l->index);
	hash_map_close(&l->groups);
	free(l);
}

size_t holes_rows(const struct holes *l)
{
	return l ? l->n : 0;
}

const struct holes_row *holes_row(const struct holes *l, size_t i)
{
	return &l->rows[i];
}

/* ---- rows ---- */

/* Adds what another row says to this one. */
static void join_rows(struct holes_row *r, const struct holes_row *more)
{
	if (more->start_ns && (!r->start_ns || more->start_ns < r->start_ns))
		r->start_ns = more->start_ns;
	if (more->end_ns > r->end_ns)
		r->end_ns = more->end_ns;
	losses_add(&r->count, more->count);
	losses_add(&r->below, more->below);
	losses_add(&r->above, more->above);
	r->joined++;
}

/* The row that takes what has no place of its own: the newest of its group, or that of its reason without a
 * process. NULL: none yet. */
static struct holes_row *holes_place_of(struct holes *l, struct group *g, const struct holes_row *r)
{
	const struct group_key any = { 0, r->reason, r->layer, r->state };

	if (g && g->n)
		return &l->rows[g->newest];
	g = hash_map_find(&l->groups, &any);
	return g && g->n ? &l->rows[g->newest] : NULL;
}

static struct row_key holes_key_of(const struct holes_row *r, const char *text, size_t n)
{
	return (struct row_key){ .start_ns = r->start_ns,
				 .text = n ? hash_bytes(text, n) : 0,
				 .pid = r->pid,
				 .tid = r->tid,
				 .device = r->device,
				 .reason = r->reason,
				 .layer = r->layer,
				 .state = r->state };
}

/* The row with this key, made if it is not there; *made says so. If there is no place for it, what it says
 * is joined with another row, and NULL is returned with *err 0. */
static struct holes_row *holes_row_of(struct holes *l, const struct holes_row *like,
				      const char *text, size_t n, bool *made, int *err)
{
	const struct row_key key = holes_key_of(like, text, n);
	const struct group_key of = { like->pid, like->reason, like->layer, like->state };
	struct indexed *at = hash_map_find(&l->index, &key);
	struct holes_row *r;
	struct group *g;

	*err = 0;
	*made = false;
	if (at)
		return &l->rows[at->row];
	g = hash_map_get(&l->groups, &of, made);
	if ((g && g->n >= HOLES_INTERVALS) || l->n >= HOLES_ROWS) {
		r = holes_place_of(l, g, like);
		*made = false;
		if (r) {
			l->nopen -= r->end_ns == CT_HOLE_OPEN;
			join_rows(r, like);
			l->nopen += r->end_ns == CT_HOLE_OPEN;
		} else {
			losses_add(&l->homeless, 1);
		}
		return NULL;
	}
	*err = -ENOMEM;
	at = hash_map_get(&l->index, &key, made);
	if (!g || !at || !array_room(l->rows, l->n))
		return NULL;
	r = &l->rows[l->n];
	*r = *like;
	r->text = strndup(text, n);
	if (!r->text) {
		hash_map_remove(&l->index, at);
		return NULL;
	}
	at->row = g->newest = (uint32_t)l->n++;
	g->n++;
	*err = 0;
	*made = true;
	return r;
}

static void holes_name(struct holes_row *r, const struct process *p, const char *comm)
{
	if (p && p->shown_pid)
		r->shown_pid = p->shown_pid;
	if (comm && *comm)
		snprintf(r->comm, sizeof(r->comm), "%.*s", CT_COMM_LEN - 1, comm);
	else if (p && p->heard)
		snprintf(r->comm, sizeof(r->comm), "%.*s", CT_COMM_LEN - 1, p->comm);
}

static int hole(struct holes *l, const struct ct_hole *h, const struct process *p)
{
	struct holes_row like = {
		.pid = h->h.pid,
		.tid = h->h.tid,
		.device = h->device,
		.reason = h->reason,
		.layer = h->layer,
		.state = h->state,
		.start_ns = h->h.start_ns,
		.end_ns = h->until_ns,
		.count = h->count,
		.below = h->below,
		.above = h->above,
		.shown_pid = h->ns_pid ? h->ns_pid : h->h.pid,
	};
	struct holes_row *r;
	bool made;
	int err;

	r = holes_row_of(l, &like, h->text, strnlen(h->text, h->text_len), &made, &err);
	if (!r)
		return err;
	l->nopen += made && r->end_ns == CT_HOLE_OPEN;
	if (!made) {
		l->nopen -= r->end_ns == CT_HOLE_OPEN;
		l->nopen += h->until_ns == CT_HOLE_OPEN;
		r->end_ns = h->until_ns;
		r->count = h->count;
		r->below = h->below;
		r->above = h->above;
	}
	holes_name(r, h->ns_pid ? NULL : p, h->comm);
	return 0;
}

/* ---- records of losses, whose numbers add up ---- */

static uint8_t layer_of(uint32_t cause)
{
	switch (cause) {
	case CT_LOSS_STACK: return CT_HOLE_STACKS;
	case CT_LOSS_DEVICE:
	case CT_LOSS_AGENT:
	case CT_LOSS_TIME:
	case CT_LOSS_TAIL: return CT_HOLE_DEVICE;
	default: return CT_HOLE_CALLS;
	}
}

static int lost(struct holes *l, const struct ct_lost *r, const struct process *p)
{
	const char *word = loss_name((enum ct_loss)r->cause);
	struct holes_row like = { .pid = r->h.pid,
				  .device = CT_UNKNOWN,
				  .reason = CT_HOLE_RECORDS,
				  .layer = layer_of(r->cause),
				  .state = CT_HOLE_LOST,
				  .start_ns = r->h.start_ns,
				  .end_ns = r->h.end_ns,
				  .count = r->count,
				  .shown_pid = r->h.pid };
	struct holes_row *row;
	bool made;
	int err;

	/* the end of a call that was never traced */
	if (r->cause == CT_LOSS_ORPHAN || !r->count)
		return 0;
	row = holes_row_of(l, &like, word, strlen(word), &made, &err);
	if (!row)
		return err;
	if (!made) {
		losses_add(&row->count, r->count);
		row->end_ns = r->h.end_ns > row->end_ns ? r->h.end_ns : row->end_ns;
	}
	holes_name(row, r->h.pid ? p : NULL, NULL);
	return 0;
}

static int unprobed(struct holes *l, const struct ct_unprobed *u)
{
	struct holes_row like = {
		.pid = 0,
		.device = CT_UNKNOWN,
		.reason = CT_HOLE_UNPROBED,
		.layer = CT_HOLE_CALLS,
		.state = CT_HOLE_UNSEEN,
		.start_ns = u->h.start_ns,
		.end_ns = u->h.end_ns,
		.count = u->processes,
		.shown_pid = u->ns_pid,
	};
	struct holes_row *row;
	bool made;
	int err;

	unprobed_add(&l->unprobed, u);
	row = holes_row_of(l, &like, "", 0, &made, &err);
	if (row)
		holes_name(row, NULL, u->comm);
	return err;
}

static int muted(struct holes *l, const struct ct_muted *m, const struct process *p)
{
	struct holes_row like = { .pid = m->h.pid,
				  .device = CT_UNKNOWN,
				  .reason = CT_HOLE_THROTTLED,
				  .layer = CT_HOLE_CALLS,
				  .state = CT_HOLE_MUTED,
				  .shown_pid = m->h.pid };
	struct holes_row *row;
	bool made;
	int err;

	row = holes_row_of(l, &like, m->text + m->domain_len, m->name_len, &made, &err);
	if (!row)
		return err;
	muted_add(&row->muted, m);
	row->count = muted_calls(&row->muted);
	row->below = row->above = muted_error(&row->muted.unseen);
	if (!row->count_from || m->h.start_ns < row->count_from)
		row->count_from = m->h.start_ns;
	if (m->h.end_ns > row->end_ns)
		row->end_ns = m->h.end_ns;
	holes_name(row, p, NULL);
	return 0;
}

/* What goes on ends with its process. */
static void holes_ended(struct holes *l, const struct ct_hdr *h)
{
	for (size_t i = l->nopen ? 0 : l->n; i < l->n; i++)
		if (l->rows[i].pid == h->pid && l->rows[i].end_ns == CT_HOLE_OPEN) {
			l->rows[i].end_ns = h->end_ns;
			l->nopen--;
		}
}

int holes_record(struct holes *l, const struct ct_hdr *h, const struct process *p)
{
	switch (h->kind) {
	case CT_HOLE: return h->flags & CT_F_FINAL ? 0 : hole(l, (const struct ct_hole *)h, p);
	case CT_LOST: return lost(l, (const struct ct_lost *)h, p);
	case CT_UNPROBED: return unprobed(l, (const struct ct_unprobed *)h);
	case CT_MUTED: return muted(l, (const struct ct_muted *)h, p);
	case CT_EXIT: holes_ended(l, h); return 0;
	default: return 0;
	}
}

/* ---- questions ---- */

bool holes_fails(const struct holes *l)
{
	for (size_t i = 0; i < holes_rows(l); i++)
		if (hole_why(l->rows[i].reason)->flags & HOLES_FAILS && !holes_void(&l->rows[i]))
			return true;
	return l && (l->homeless || unprobed_any(&l->unprobed));
}

bool holes_unseen(const struct holes *l)
{
	for (size_t i = 0; i < holes_rows(l); i++) {
		const struct holes_row *r = &l->rows[i];

		if (!holes_void(r) && r->state != CT_HOLE_MUTED && r->reason != CT_HOLE_RECORDS &&
		    !(hole_why(r->reason)->flags & HOLES_SPARES))
			return true;
	}
	return l && (l->homeless || unprobed_any(&l->unprobed));
}

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* How many processes have rows of the reason. One without a number counts by itself. */
static uint64_t holes_processes(const struct holes *l, enum ct_hole_reason reason)
{
	uint32_t *pids = malloc((holes_rows(l) + 1) * sizeof(*pids));
	uint64_t unnamed = 0, n = 0;
	size_t found = 0;

	for (size_t i = 0; i < holes_rows(l) && pids; i++) {
		if (l->rows[i].reason != reason)
			continue;
		if (l->rows[i].pid)
			pids[found++] = l->rows[i].pid;
		else
			unnamed += 1 + (uint64_t)l->rows[i].joined;
	}
	if (found)
		qsort(pids, found, sizeof(*pids), by_value);
	for (size_t i = 0; i < found; i++)
		n += !i || pids[i] != pids[i - 1];
	free(pids);
	return n + unnamed;
}

bool holes_unknown(const struct holes *l, unsigned int layers)
{
	for (size_t i = 0; i < holes_rows(l); i++) {
		const struct holes_row *r = &l->rows[i];

		if (layers >> r->layer & 1 && r->state != CT_HOLE_MUTED &&
		    r->reason != CT_HOLE_RECORDS && !(hole_why(r->reason)->flags & HOLES_SPARES))
			return true;
	}
	return layers & HOLES_OF(CT_HOLE_CALLS) && l && unprobed_any(&l->unprobed);
}

uint64_t holes_number(const struct holes *l, enum ct_hole_reason reason)
{
	uint64_t n = 0;

	if (hole_why(reason)->per == HOLES_PROCESSES)
		return holes_processes(l, reason);
	for (size_t i = 0; i < holes_rows(l); i++)
		if (l->rows[i].reason == reason)
			losses_add(&n, l->rows[i].count);
	return n;
}

const struct unprobed_sum *holes_unprobed(const struct holes *l)
{
	static const struct unprobed_sum none;

	return l ? &l->unprobed : &none;
}

static int by_begin(const void *a, const void *b)
{
	const struct holes_stretch *x = a, *y = b;

	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

size_t holes_stretches(const struct holes *l, uint32_t pid, unsigned int layers,
		       struct holes_stretch **out)
{
	struct holes_stretch *all = holes_rows(l) ? malloc(l->n * sizeof(*all)) : NULL;
	size_t n = 0, kept = 0;

	*out = all;
	for (size_t i = 0; all && i < l->n; i++) {
		const struct holes_row *r = &l->rows[i];

		/* one of which no time is known says nothing of any stretch */
		if (!(layers >> r->layer & 1) || !(hole_why(r->reason)->flags & HOLES_ALL) ||
		    (pid && r->pid && r->pid != pid) || !holes_begin(r) ||
		    r->end_ns <= holes_begin(r))
			continue;
		all[n++] = (struct holes_stretch){ holes_begin(r), r->end_ns };
	}
	if (n)
		qsort(all, n, sizeof(*all), by_begin);
	for (size_t i = 0; i < n; i++) {
		if (kept && all[i].from_ns <= all[kept - 1].to_ns) {
			if (all[i].to_ns > all[kept - 1].to_ns)
				all[kept - 1].to_ns = all[i].to_ns;
		} else {
			all[kept++] = all[i];
		}
	}
	return kept;
}

uint64_t holes_within_ns(const struct holes_stretch *s, size_t n, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t sum = 0;

	for (size_t i = array_before(s, n, x, x->to_ns <= from_ns); i < n && s[i].from_ns < to_ns;
	     i++)
		sum += (s[i].to_ns < to_ns ? s[i].to_ns : to_ns) -
		       (s[i].from_ns > from_ns ? s[i].from_ns : from_ns);
	return sum;
}

uint64_t holes_missing_ns(const struct holes *l, uint32_t pid, unsigned int layers,
			  uint64_t from_ns, uint64_t to_ns)
{
	struct holes_stretch *all;
	size_t n = holes_stretches(l, pid, layers, &all);
	uint64_t sum = holes_within_ns(all, n, from_ns, to_ns);

	free(all);
	return sum;
}
