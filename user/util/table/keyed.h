/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keyed.h - structs of one size, found by the bytes that they begin with: a dense array, and a
 * hash of places in it. Knows no domain.
 */
#ifndef CT_KEYED_H
#define CT_KEYED_H

#include <stddef.h>
#include <string.h>

#include "../hash.h"
#include "../types.h"

struct keyed {
	char *items; /* n of them; they move when one is added or removed */
	size_t n;
	/* the rest is its own */
	size_t size, key_size, max, room;
	uint32_t *buckets; /* place + 1; 0: free */
	size_t nbuckets;
};

/* Items of `size` bytes, zeroed, that begin with `key_size` bytes of key (no padding in them);
 * at most `max`. */
void keyed_open(struct keyed *, size_t size, size_t key_size, size_t max);
/* The same of a struct whose key ends with this member. */
#define keyed_open_of(k, type, last, max) \
	keyed_open(k, sizeof(type), offsetof(type, last) + sizeof(((type *)0)->last), max)
void keyed_close(struct keyed *);
static inline void *keyed_at(const struct keyed *k, size_t i)
{
	return k->items + i * k->size;
}
/* NULL: not there. */
void *keyed_find(const struct keyed *, const void *key);
/* The item, made if it is not there: *made says so. NULL: it is full, or there is no memory; then
 * *made is false. */
void *keyed_get(struct keyed *, const void *key, bool *made);
/* Takes an item out; the last one moves to its place. */
void keyed_remove(struct keyed *, void *item);
/* Takes all out. The room stays. */
void keyed_clear(struct keyed *);
/* Bytes that it takes. */
size_t keyed_bytes(const struct keyed *);

/* Each item, from the last one to the first: the one that is looked at may be taken out. */
#define keyed_each(k, item)                                                                   \
	for (size_t keyed_i = (k)->n; keyed_i && ((item) = keyed_at((k), keyed_i - 1), true); \
	     keyed_i--)

/* ---- for keys that are looked up for each record: the key's size is known to the compiler ---- */

/* Not the same in each run: hash.h. */
static inline uint64_t keyed_hash(const void *key, size_t key_size)
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

static inline __attribute__((always_inline)) void *keyed_look_for(const struct keyed *k,
								  const void *key, size_t key_size)
{
	size_t mask = k->nbuckets - 1;

	if (!k->n)
		return NULL;
	for (size_t at = keyed_hash(key, key_size) & mask; k->buckets[at]; at = (at + 1) & mask) {
		void *item = keyed_at(k, k->buckets[at] - 1);

		if (!memcmp(item, key, key_size))
			return item;
	}
	return NULL;
}

/* keyed_find(), inlined. `key` points to a variable or a member of the key's type. */
#define keyed_look(k, key) keyed_look_for(k, key, sizeof(*(key)))

#endif
