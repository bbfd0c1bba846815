/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hash_map.h - a hash map of structs of one size; the bytes with which a struct begins are its key.
 * It has an array without holes, and a hash table of indices into it. Knows no domain.
 */
#ifndef CT_HASHMAP_H
#define CT_HASHMAP_H

#include <stddef.h>
#include <string.h>

#include "../hash.h"
#include "../types.h"

struct hash_map {
	char *items; /* n structs; they move when one is added or removed */
	size_t n;
	/* the rest is its own */
	size_t size, key_size, max, room;
	uint32_t *buckets; /* place + 1; 0: free */
	size_t nbuckets;
};

/* Opens a map of at most `max` items. An item has `size` bytes, is zeroed when it is made, and
 * begins with `key_size` bytes of key, which contain no padding. */
void hash_map_open(struct hash_map *, size_t size, size_t key_size, size_t max);
/* The same of a struct whose key ends with this member. */
#define hash_map_open_of(k, type, last, max) \
	hash_map_open(k, sizeof(type), offsetof(type, last) + sizeof(((type *)0)->last), max)
void hash_map_close(struct hash_map *);
static inline void *hash_map_at(const struct hash_map *k, size_t i)
{
	return k->items + i * k->size;
}
/* Returns NULL if the key is not there. */
void *hash_map_find(const struct hash_map *, const void *key);
/* Returns the item, and makes it if it is not there: then *made is true. Returns NULL if the map
 * is full or there is no memory; then *made is false. */
void *hash_map_get(struct hash_map *, const void *key, bool *made);
/* Removes an item; the last one moves to its place. */
void hash_map_remove(struct hash_map *, void *item);
/* Removes all items, and keeps the memory. */
void hash_map_clear(struct hash_map *);
/* Returns how many bytes of memory the map uses. */
size_t hash_map_bytes(const struct hash_map *);

/* Visits each item, from the last one to the first. The body may remove the one that it looks
 * at. */
#define hash_map_each(k, item)           \
	for (size_t hash_map_i = (k)->n; \
	     hash_map_i && ((item) = hash_map_at((k), hash_map_i - 1), true); hash_map_i--)

/* ---- for keys that are looked up for each record: the key's size is known to the compiler ---- */

/* Not the same in each run: hash.h. */
static inline uint64_t hash_map_hash(const void *key, size_t key_size)
{
	const unsigned char *at = key;
	uint64_t h = hash_key[0], word;

	for (size_t left = key_size; left; at += 8) {
		size_t n = left < 8 ? left : 8;

		word = 0;
		memcpy(&word, at, n);
		left -= n;
		h = hash_word(h, word);
	}
	return hash_word(h, hash_key[0]);
}

static inline __attribute__((always_inline)) void *
hash_map_look_for(const struct hash_map *k, const void *key, size_t key_size)
{
	size_t mask = k->nbuckets - 1;

	if (!k->n)
		return NULL;
	for (size_t at = hash_map_hash(key, key_size) & mask; k->buckets[at];
	     at = (at + 1) & mask) {
		void *item = hash_map_at(k, k->buckets[at] - 1);

		if (!memcmp(item, key, key_size))
			return item;
	}
	return NULL;
}

/* hash_map_find(), inlined. `key` points to a variable or a member of the key's type. */
#define hash_map_look(k, key) hash_map_look_for(k, key, sizeof(*(key)))

#endif
