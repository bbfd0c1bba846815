/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keyed.h - structs of one size, found by the bytes that they begin with: a dense array, and a
 * hash of places in it. Knows no domain.
 */
#ifndef CT_KEYED_H
#define CT_KEYED_H

#include <stddef.h>

#include "../types.h"

struct keyed {
	char *items; /* n of them; they move when one is added or removed */
	size_t n;
	/* the rest is its own */
	size_t size, key_size, max, room;
	uint32_t *slots; /* place + 1; 0: free */
	size_t nslots;
};

/* Items of `size` bytes, zeroed, that begin with `key_size` bytes of key (no padding in them);
 * at most `max`. */
void keyed_open(struct keyed *, size_t size, size_t key_size, size_t max);
void keyed_close(struct keyed *);
static inline void *keyed_at(const struct keyed *k, size_t i)
{
	return k->items + i * k->size;
}
/* NULL: not there. */
void *keyed_find(const struct keyed *, const void *key);
/* The item, made if it is not there: *made says so. NULL: it is full, or there is no memory. */
void *keyed_get(struct keyed *, const void *key, bool *made);
/* Takes an item out; the last one moves to its place. */
void keyed_remove(struct keyed *, void *item);

#endif
