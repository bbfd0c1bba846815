/* SPDX-License-Identifier: BSD-2-Clause */
/* hash_map.c - see hash_map.h: linear probing, and what follows a hole moves up. */
#include <stdlib.h>
#include <string.h>

#include "hash_map.h"

#define FIRST 64

void hash_map_open(struct hash_map *k, size_t size, size_t key_size, size_t max)
{
	*k = (struct hash_map){ .size = size,
				.key_size = key_size,
				.max = max < UINT32_MAX ? max : UINT32_MAX - 1 };
}

void hash_map_close(struct hash_map *k)
{
	free(k->items);
	free(k->buckets);
	k->items = NULL;
	k->buckets = NULL;
	k->n = k->room = k->nbuckets = 0;
}

static size_t hash_map_bucket_of(const struct hash_map *k, const void *key)
{
	size_t at = hash_map_hash(key, k->key_size) & (k->nbuckets - 1);

	while (k->buckets[at] && memcmp(hash_map_at(k, k->buckets[at] - 1), key, k->key_size))
		at = (at + 1) & (k->nbuckets - 1);
	return at;
}

void *hash_map_find(const struct hash_map *k, const void *key)
{
	return hash_map_look_for(k, key, k->key_size);
}

/* Makes room for one more; at most half of the buckets are used. */
static bool hash_map_grow(struct hash_map *k)
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
		k->buckets[hash_map_bucket_of(k, hash_map_at(k, i))] = (uint32_t)i + 1;
	free(old);
	return true;
}

void hash_map_clear(struct hash_map *k)
{
	k->n = 0;
	if (k->nbuckets)
		memset(k->buckets, 0, k->nbuckets * sizeof(*k->buckets));
}

size_t hash_map_bytes(const struct hash_map *k)
{
	return k->room * k->size + k->nbuckets * sizeof(*k->buckets);
}

void *hash_map_get(struct hash_map *k, const void *key, bool *made)
{
	void *item = hash_map_find(k, key);

	*made = false;
	if (item)
		return item;
	if (k->n >= k->max || !hash_map_grow(k))
		return NULL;
	*made = true;
	item = hash_map_at(k, k->n);
	memset(item, 0, k->size);
	memcpy(item, key, k->key_size);
	k->buckets[hash_map_bucket_of(k, key)] = (uint32_t)++k->n;
	return item;
}

void hash_map_remove(struct hash_map *k, void *item)
{
	size_t mask = k->nbuckets - 1, hole = hash_map_bucket_of(k, item), at = hole;
	void *last = hash_map_at(k, k->n - 1);

	INVARIANT(k->n && k->buckets[hole] && hash_map_at(k, k->buckets[hole] - 1) == item);
	if (item != last) {
		k->buckets[hash_map_bucket_of(k, last)] = k->buckets[hole];
		memcpy(item, last, k->size);
	}
	k->n--;
	k->buckets[hole] = 0;
	for (at = (at + 1) & mask; k->buckets[at]; at = (at + 1) & mask) {
		size_t home = hash_map_hash(hash_map_at(k, k->buckets[at] - 1), k->key_size) & mask;

		/* it may move to the hole if the hole is not before its home bucket */
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		k->buckets[hole] = k->buckets[at];
		k->buckets[at] = 0;
		hole = at;
	}
}
