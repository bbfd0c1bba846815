/* SPDX-License-Identifier: BSD-2-Clause */
/* live.c - see live.h. Open addressing; what is removed lets those behind it move up, so that
 * nothing marks a grave. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"

#define FIRST 1024 /* a power of two */

static int make(struct live *l, uint32_t slots)
{
	l->entries = malloc(slots * sizeof(*l->entries));
	if (!l->entries)
		return -ENOMEM;
	/* one byte says that a place is free, and all bits set are it */
	memset(l->entries, LIVE_FREE, slots * sizeof(*l->entries));
	l->slots = slots;
	return 0;
}

int live_init(struct live *l, uint32_t most)
{
	memset(l, 0, sizeof(*l));
	l->most = most && most < LIVE_MAX ? most : LIVE_MAX;
	return make(l, FIRST);
}

void live_free(struct live *l)
{
	free(l->entries);
	memset(l, 0, sizeof(*l));
}

size_t live_bytes(const struct live *l)
{
	return l->slots * sizeof(*l->entries);
}

static uint32_t home_of(const struct live *l, uint32_t process, uint8_t space, uint64_t address)
{
	uint64_t h =
		(address ^ (uint64_t)process << 40 ^ (uint64_t)space << 3) * 0x9e3779b97f4a7c15ULL;

	return (uint32_t)((h ^ h >> 29) * 0xbf58476d1ce4e5b9ULL >> 32) & (l->slots - 1);
}

static struct live_entry *slot_of(const struct live *l, uint32_t process, uint8_t space,
				  uint64_t address)
{
	uint32_t i = home_of(l, process, space, address);

	for (;; i = (i + 1) & (l->slots - 1)) {
		struct live_entry *e = &l->entries[i];

		if (e->kind == LIVE_FREE ||
		    (e->address == address && e->process == process && e->space == space))
			return e;
	}
}

struct live_entry *live_find(const struct live *l, uint32_t process, uint8_t space,
			     uint64_t address)
{
	struct live_entry *e = slot_of(l, process, space, address);

	return e->kind == LIVE_FREE ? NULL : e;
}

static int grow(struct live *l)
{
	struct live_entry *old = l->entries;
	uint32_t n = l->slots;

	if (make(l, n * 2)) {
		l->entries = old;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		if (old[i].kind != LIVE_FREE)
			*slot_of(l, old[i].process, old[i].space, old[i].address) = old[i];
	free(old);
	return 0;
}

struct live_entry *live_add(struct live *l, uint32_t process, uint8_t space, uint64_t address)
{
	struct live_entry *e;

	if (l->n >= l->most || (l->n >= l->slots / 8 * 7 && grow(l)))
		return NULL;
	e = slot_of(l, process, space, address);
	INVARIANT(e->kind == LIVE_FREE);
	*e = (struct live_entry){
		.address = address, .process = process, .space = space, .device = LIVE_NO_DEVICE
	};
	l->n++;
	return e;
}

void live_remove(struct live *l, struct live_entry *e)
{
	uint32_t mask = l->slots - 1, hole = (uint32_t)(e - l->entries);

	INVARIANT(l->n && hole < l->slots && e->kind != LIVE_FREE);
	for (uint32_t i = (hole + 1) & mask; l->entries[i].kind != LIVE_FREE; i = (i + 1) & mask) {
		const struct live_entry *o = &l->entries[i];
		uint32_t home = home_of(l, o->process, o->space, o->address);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		l->entries[hole] = *o;
		hole = i;
	}
	memset(&l->entries[hole], LIVE_FREE, sizeof(*e));
	l->n--;
}

struct live_entry *live_next(const struct live *l, uint32_t *at)
{
	while (*at < l->slots) {
		struct live_entry *e = &l->entries[(*at)++];

		if (e->kind != LIVE_FREE)
			return e;
	}
	return NULL;
}
