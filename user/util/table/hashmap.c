/* SPDX-License-Identifier: BSD-2-Clause */
/* hashmap.c - see hashmap.h: linear probing, and what follows a hole moves up. */
#include <stdlib.h>
#include <string.h>

#include "hashmap.h"

#define FIRST 64

void hashmap_open(struct hashmap *k, size_t size, size_t key_size, size_t max)
{
	*k = (struct hashmap){ .size = size,
			       .key_size = key_size,
			       .max = max < UINT32_MAX ? max : UINT32_MAX - 1 };
}

void hashmap_close(struct hashmap *k)
{
	free(k->items);
	free(k->buckets);
	k->items = NULL;
	k->buckets = NULL;
	k->n = k->room = k->nbuckets = 0;
}

static size_t hashmap_bucket_of(const struct hashmap *k, const void *key)
{
	size_t at = hashmap_hash(key, k->key_size) & (k->nbuckets - 1);

	while (k->buckets[at] && memcmp(hashmap_at(k, k->buckets[at] - 1), key, k->key_size))
		at = (at + 1) & (k->nbuckets - 1);
	return at;
}

void *hashmap_find(const struct hashmap *k, const void *key)
{
	return hashmap_look_for(k, key, k->key_size);
}

/* Room for one more; at most half of the buckets are taken. */
static bool hashmap_grow(struct hashmap *k)
{
	size_t room = k->room ? k->room + k->room / 2 : FIRST,
	       nbuckets = k->nbuckets ? k->nbuckets * 2 : FIRST * 2;
	uint32_t *old = k->buckets, *buckets;
	char *items;

	if (k->n == k->room) {
		room = room < k->max ? room : k->max;
		items = realloc(k->items, room * k->size);
		if (!items)
			return false;
		k->items = items;
		k->room = room;
	}
	if ((k->n + 1) * 2 <= k->nbuckets)
		return true;
	buckets = calloc(nbuckets, sizeof(*buckets));
	if (!buckets)
		return false;
	k->buckets = buckets;
	k->nbuckets = nbuckets;
	for (size_t i = 0; i < k->n; i++)
		k->buckets[hashmap_bucket_of(k, hashmap_at(k, i))] = (uint32_t)i + 1;
	free(old);
	return true;
}

void hashmap_clear(struct hashmap *k)
{
	k->n = 0;
	if (k->nbuckets)
		memset(k->buckets, 0, k->nbuckets * sizeof(*k->buckets));
}

size_t hashmap_bytes(const struct hashmap *k)
{
	return k->room * k->size + k->nbuckets * sizeof(*k->buckets);
}

void *hashmap_get(struct hashmap *k, const void *key, bool *made)
{
	void *item = hashmap_find(k, key);

	*made = false;
	if (item)
		return item;
	if (k->n >= k->max || !hashmap_grow(k))
		return NULL;
	*made = true;
	item = hashmap_at(k, k->n);
	memset(item, 0, k->size);
	memcpy(item, key, k->key_size);
	k->buckets[hashmap_bucket_of(k, key)] = (uint32_t)++k->n;
	return item;
}

void hashmap_remove(struct hashmap *k, void *item)
{
	size_t mask = k->nbuckets - 1, hole = hashmap_bucket_of(k, item), at = hole;
	void *last = hashmap_at(k, k->n - 1);

	INVARIANT(k->n && k->buckets[hole] && hashmap_at(k, k->buckets[hole] - 1) == item);
	if (item != last) {
		k->buckets[hashmap_bucket_of(k, last)] = k->buckets[hole];
		memcpy(item, last, k->size);
	}
	k->n--;
	k->buckets[hole] = 0;
	for (at = (at + 1) & mask; k->buckets[at]; at = (at + 1) & mask) {
		size_t home = hashmap_hash(hashmap_at(k, k->buckets[at] - 1), k->key_size) & mask;

		/* it may move to the hole if that does not lie before its home */
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		k->buckets[hole] = k->buckets[at];
		k->buckets[at] = 0;
		hole = at;
	}
}
