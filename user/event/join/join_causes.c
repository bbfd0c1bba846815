/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join_causes.c - see join_causes.h. A ring of the newest causes, which grows up to a bound, and a
 * hash with chains over it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "join_causes.h"

#define FIRST_CAUSES 1024 /* a power of two, as all sizes are */

struct join_causes {
	struct join_cause *ring;
	uint32_t *chains;    /* place + 1; as many as places */
	uint32_t cap, n, at; /* at: the place that is used next */
};

struct join_causes *join_causes_open(void)
{
	return calloc(1, sizeof(struct join_causes));
}

void join_causes_close(struct join_causes *j)
{
	if (!j)
		return;
	free(j->ring);
	free(j->chains);
	free(j);
}

/* Ids come in order: this hash keeps ids of the same time close together. */
static uint32_t *chain_of(const struct join_causes *j, uint32_t process, uint32_t correlation)
{
	uint32_t h = (correlation >> 8 ^ process * 0x9e3779b9u) * 2654435761u;

	return &j->chains[((h ^ h >> 15) << 8 | (correlation & 255)) & (j->cap - 1)];
}

static struct join_cause *join_causes_look_up(const struct join_causes *j, uint32_t process,
					      uint32_t correlation)
{
	if (!j->cap)
		return NULL;
	for (uint32_t i = *chain_of(j, process, correlation); i; i = j->ring[i - 1].next)
		if (j->ring[i - 1].correlation == correlation && j->ring[i - 1].process == process)
			return &j->ring[i - 1];
	return NULL;
}

static void link_in(struct join_causes *j, uint32_t place)
{
	uint32_t *chain = chain_of(j, j->ring[place].process, j->ring[place].correlation);

	j->ring[place].next = *chain;
	*chain = place + 1;
}

static void unlink_from(struct join_causes *j, uint32_t place)
{
	uint32_t *i = chain_of(j, j->ring[place].process, j->ring[place].correlation);

	while (*i != place + 1)
		i = &j->ring[*i - 1].next;
	*i = j->ring[place].next;
}

static int join_causes_grow(struct join_causes *j)
{
	uint32_t cap = j->cap ? j->cap * 2 : FIRST_CAUSES;
	struct join_cause *ring = realloc(j->ring, cap * sizeof(*ring));
	uint32_t *chains;

	if (!ring)
		return -ENOMEM;
	j->ring = ring;
	chains = calloc(cap, sizeof(*chains));
	if (!chains)
		return -ENOMEM;
	free(j->chains);
	j->chains = chains;
	/* the ring was not full before: places 0..n are in the order of age */
	j->at = j->n;
	j->cap = cap;
	for (uint32_t i = 0; i < j->n; i++)
		link_in(j, i);
	return 0;
}

int join_causes_add(struct join_causes *j, uint32_t process, const struct ct_cause *c)
{
	struct join_cause *e = join_causes_look_up(j, process, c->correlation), made = {
		.start_ns = c->h.start_ns,
		.end_ns = c->h.end_ns,
		.process = process,
		.correlation = c->correlation,
		.tid = c->h.tid,
		.func = c->func,
	};
	int err;

	if (e) {
		bool overlap = e->tid == made.tid && e->start_ns <= made.end_ns &&
			       made.start_ns <= e->end_ns;

		if (overlap && e->start_ns <= made.start_ns && e->end_ns >= made.end_ns)
			return 0;
		made.next = e->next;
		*e = made;
		return 0;
	}
	if (j->n == j->cap && j->cap < JOIN_CAUSES_MAX) {
		err = join_causes_grow(j);
		if (err)
			return err;
	}
	if (j->n == j->cap)
		unlink_from(j, j->at);
	else
		j->n++;
	j->ring[j->at] = made;
	link_in(j, j->at);
	j->at = (j->at + 1) & (j->cap - 1);
	return 0;
}

const struct join_cause *join_causes_find(const struct join_causes *j, uint32_t process,
					  uint32_t correlation)
{
	return join_causes_look_up(j, process, correlation);
}

size_t join_causes_bytes(const struct join_causes *j)
{
	return j->cap * (sizeof(struct join_cause) + sizeof(uint32_t));
}
