/* SPDX-License-Identifier: BSD-2-Clause */
/* keyed.c - see keyed.h: linear probing, and what follows a hole moves up. */
#include <stdlib.h>
#include <string.h>

#include "keyed.h"

#define FIRST 64

void keyed_open(struct keyed *k, size_t size, size_t key_size, size_t max)
{
	*k = (struct keyed){ .size = size,
			     .key_size = key_size,
			     .max = max < UINT32_MAX ? max : UINT32_MAX - 1 };
}

void keyed_close(struct keyed *k)
{
	free(k->items);
	free(k->slots);
	k->items = NULL;
	k->slots = NULL;
	k->n = k->room = k->nslots = 0;
}

static size_t slot_of(const struct keyed *k, const void *key)
{
	size_t at = keyed_hash(key, k->key_size) & (k->nslots - 1);

	while (k->slots[at] && memcmp(keyed_at(k, k->slots[at] - 1), key, k->key_size))
		at = (at + 1) & (k->nslots - 1);
	return at;
}

void *keyed_find(const struct keyed *k, const void *key)
{
	return keyed_look_for(k, key, k->key_size);
}

/* Room for one more; at most half of the slots are taken. */
static bool grow(struct keyed *k)
{
	size_t room = k->room ? k->room + k->room / 2 : FIRST,
	       nslots = k->nslots ? k->nslots * 2 : FIRST * 2;
	uint32_t *old = k->slots, *slots;
	char *items;

	if (k->n == k->room) {
		room = room < k->max ? room : k->max;
		items = realloc(k->items, room * k->size);
		if (!items)
			return false;
		k->items = items;
		k->room = room;
	}
	if ((k->n + 1) * 2 <= k->nslots)
		return true;
	slots = calloc(nslots, sizeof(*slots));
	if (!slots)
		return false;
	k->slots = slots;
	k->nslots = nslots;
	for (size_t i = 0; i < k->n; i++)
		k->slots[slot_of(k, keyed_at(k, i))] = (uint32_t)i + 1;
	free(old);
	return true;
}

void keyed_clear(struct keyed *k)
{
	k->n = 0;
	if (k->nslots)
		memset(k->slots, 0, k->nslots * sizeof(*k->slots));
}

size_t keyed_bytes(const struct keyed *k)
{
	return k->room * k->size + k->nslots * sizeof(*k->slots);
}

void *keyed_get(struct keyed *k, const void *key, bool *made)
{
	void *item = keyed_find(k, key);

	*made = !item;
	if (item)
		return item;
	if (k->n >= k->max || !grow(k))
		return NULL;
	item = keyed_at(k, k->n);
	memset(item, 0, k->size);
	memcpy(item, key, k->key_size);
	k->slots[slot_of(k, key)] = (uint32_t)++k->n;
	return item;
}

void keyed_remove(struct keyed *k, void *item)
{
	size_t mask = k->nslots - 1, hole = slot_of(k, item), at = hole;
	void *last = keyed_at(k, k->n - 1);

	INVARIANT(k->n && k->slots[hole] && keyed_at(k, k->slots[hole] - 1) == item);
	if (item != last) {
		k->slots[slot_of(k, last)] = k->slots[hole];
		memcpy(item, last, k->size);
	}
	k->n--;
	k->slots[hole] = 0;
	for (at = (at + 1) & mask; k->slots[at]; at = (at + 1) & mask) {
		size_t home = keyed_hash(keyed_at(k, k->slots[at] - 1), k->key_size) & mask;

		/* it may move to the hole if that does not lie before its home */
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		k->slots[hole] = k->slots[at];
		k->slots[at] = 0;
		hole = at;
	}
}
