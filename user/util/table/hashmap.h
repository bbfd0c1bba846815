/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hashmap.h - a hash map of structs of one size, which are found by the bytes that they begin with: an array
 * without holes, and a hash of indices into it. Knows no domain.
 */
#ifndef CT_HASHMAP_H
#define CT_HASHMAP_H

#include <stddef.h>
#include <string.h>

#include "../hash.h"
#include "../types.h"

struct hashmap {
	char *items; /* n of them; they move when one is added or removed */
	size_t n;
	/* the rest is its own */
	size_t size, key_size, max, room;
	uint32_t *buckets; /* place + 1; 0: free */
	size_t nbuckets;
};

/* Items of `size` bytes, zeroed, that begin with `key_size` bytes of key (no padding in them);
 * at most `max`. */
void hashmap_open(struct hashmap *, size_t size, size_t key_size, size_t max);
/* The same of a struct whose key ends with this member. */
#define hashmap_open_of(k, type, last, max) \
	hashmap_open(k, sizeof(type), offsetof(type, last) + sizeof(((type *)0)->last), max)
void hashmap_close(struct hashmap *);
static inline void *hashmap_at(const struct hashmap *k, size_t i)
{
	return k->items + i * k->size;
}
/* NULL: not there. */
void *hashmap_find(const struct hashmap *, const void *key);
/* The item, made if it is not there: *made says so. NULL: it is full, or there is no memory; then
 * *made is false. */
void *hashmap_get(struct hashmap *, const void *key, bool *made);
/* Takes an item out; the last one moves to its place. */
void hashmap_remove(struct hashmap *, void *item);
/* Takes all out. The room stays. */
void hashmap_clear(struct hashmap *);
/* Bytes that it takes. */
size_t hashmap_bytes(const struct hashmap *);

/* Each item, from the last one to the first: the one that is looked at may be taken out. */
#define hashmap_each(k, item)           \
	for (size_t hashmap_i = (k)->n; \
	     hashmap_i && ((item) = hashmap_at((k), hashmap_i - 1), true); hashmap_i--)

/* ---- for keys that are looked up for each record: the key's size is known to the compiler ---- */

/* Not the same in each run: hash.h. */
static inline uint64_t hashmap_hash(const void *key, size_t key_size)
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
hashmap_look_for(const struct hashmap *k, const void *key, size_t key_size)
{
	size_t mask = k->nbuckets - 1;

	if (!k->n)
		return NULL;
	for (size_t at = hashmap_hash(key, key_size) & mask; k->buckets[at]; at = (at + 1) & mask) {
		void *item = hashmap_at(k, k->buckets[at] - 1);

		if (!memcmp(item, key, key_size))
			return item;
	}
	return NULL;
}

/* hashmap_find(), inlined. `key` points to a variable or a member of the key's type. */
#define hashmap_look(k, key) hashmap_look_for(k, key, sizeof(*(key)))

#endif
