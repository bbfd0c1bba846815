/* SPDX-License-Identifier: BSD-2-Clause */
/* expose_collectives.c - see expose_collectives.h. */
#include "expose_collectives.h"

#include <stdlib.h>
#include <string.h>

#include "../event/device.h"

#define GROUPS_MAX 512 /* kinds of processes, of which each may need a series for "other" */
#define GROUP_SHARE 4  /* one kind has this part of the series */
#define FUNCS_MAX 16   /* functions that are collectives */

void expose_collectives_open(struct expose_collectives *c)
{
	hash_map_open(&c->series, sizeof(struct collective_series),
		      sizeof(((struct collective_series *)0)->key),
		      COLLECTIVES_MAX + GROUPS_MAX * FUNCS_MAX);
}

void expose_collectives_close(struct expose_collectives *c)
{
	hash_map_close(&c->series);
}

bool expose_collectives_has(const struct ct_scope *s)
{
	const struct ct_collective *c = scope_collective(s);

	return c && c->flags & CT_COLLECTIVE_COUNT && !(c->flags & CT_COLLECTIVE_INNER);
}

static void remove_series(struct expose_collectives *c, struct collective_series *s)
{
	c->others -= s->key.hash == COLLECTIVES_OTHER;
	hash_map_remove(&c->series, s);
}

/* Forgets series that have not changed for long. */
static void expose_collectives_make_room(struct expose_collectives *c, uint64_t now_ns)
{
	for (size_t i = c->series.n; i-- > 0;) {
		struct collective_series *s = hash_map_at(&c->series, i);

		if (now_ns > s->changed_ns + COLLECTIVES_IDLE_NS)
			remove_series(c, s);
	}
}

static bool has_room(struct expose_collectives *c, uint32_t group)
{
	uint32_t n = 0;

	for (size_t i = 0; i < c->series.n; i++)
		n += ((struct collective_series *)hash_map_at(&c->series, i))->key.group == group;
	return n < COLLECTIVES_MAX / GROUP_SHARE && c->series.n - c->others < COLLECTIVES_MAX;
}

/* The series, made if it is not there; that of "other" if there is no room. NULL: no memory. */
static struct collective_series *series_of(struct expose_collectives *c, uint32_t group,
					   const struct ct_scope *scope, uint64_t now_ns)
{
	const struct ct_collective *what = scope_collective(scope);
	struct collective_series want = { .key = { .hash = what->hash,
						   .group = group,
						   .rank = what->rank,
						   .ranks = what->ranks } },
				 *s;
	size_t n = scope->text_len < COLLECTIVES_FUNC ? scope->text_len : COLLECTIVES_FUNC - 1;
	bool made;

	memcpy(want.key.func, scope->text, n);
	s = hash_map_find(&c->series, &want.key);
	if (s)
		return s;
	if (!has_room(c, group))
		expose_collectives_make_room(c, now_ns);
	if (!has_room(c, group)) {
		want.key.hash = COLLECTIVES_OTHER;
		want.key.rank = want.key.ranks = CT_UNKNOWN;
	}
	s = hash_map_get(&c->series, &want.key, &made);
	if (s && made)
		c->others += want.key.hash == COLLECTIVES_OTHER;
	return s;
}

void expose_collectives_add(struct expose_collectives *c, uint32_t group,
			    const struct ct_scope *scope, uint64_t now_ns)
{
	const struct ct_collective *what = scope_collective(scope);
	struct collective_series *s = series_of(c, group, scope, now_ns);

	if (!s)
		return;
	s->changed_ns = now_ns;
	if (scope->h.kind == CT_SCOPE_BEGIN) {
		if (what->sequence > s->sequence && s->key.hash != COLLECTIVES_OTHER)
			s->sequence = what->sequence;
	} else if (what->flags & CT_COLLECTIVE_RETURNED && !scope_failed(scope)) {
		s->calls++;
		if (what->bytes < CT_SIZE_MOST && s->bytes < CT_SUM_MOST)
			s->bytes += what->bytes;
	}
}

void expose_collectives_drop(struct expose_collectives *c, uint32_t group)
{
	for (size_t i = c->series.n; i-- > 0;) {
		struct collective_series *s = hash_map_at(&c->series, i);

		if (s->key.group == group)
			remove_series(c, s);
	}
}

static int by_key(const void *pa, const void *pb)
{
	const struct collective_series *a = *(const struct collective_series *const *)pa,
				       *b = *(const struct collective_series *const *)pb;

	if (a->key.group != b->key.group)
		return a->key.group < b->key.group ? -1 : 1;
	if (a->key.hash != b->key.hash)
		return a->key.hash < b->key.hash ? -1 : 1;
	if (a->key.rank != b->key.rank)
		return a->key.rank < b->key.rank ? -1 : 1;
	if (a->key.ranks != b->key.ranks)
		return a->key.ranks < b->key.ranks ? -1 : 1;
	return strcmp(a->key.func, b->key.func);
}

struct collective_series **expose_collectives_sorted(struct expose_collectives *c)
{
	struct collective_series **order =
		calloc(c->series.n + 1, sizeof(struct collective_series *));

	for (size_t i = 0; order && i < c->series.n; i++)
		order[i] = hash_map_at(&c->series, i);
	if (order)
		qsort(order, c->series.n, sizeof(struct collective_series *), by_key);
	return order;
}
