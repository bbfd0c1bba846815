/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * owned.h - structs of many owners in one table; each owner may use only a part of it, so that the
 * others keep theirs. The structs have one size, and begin with a key that begins with the number
 * of the owner, a uint32_t. Knows no domain.
 */
#ifndef CT_OWNED_H
#define CT_OWNED_H

#include "hash_map.h"

struct owned {
	struct hash_map things;
	void (*drop)(void *thing); /* called before a struct is removed; NULL: nothing is called */
	/* the rest is its own */
	struct hash_map counts; /* of the owners that have any */
	uint32_t each;
};

/* One owner may have at most max / part structs. Otherwise like hash_map_open(). */
void owned_open(struct owned *, size_t size, size_t key_size, size_t max, uint32_t part);
#define owned_open_of(s, type, last, max, part) \
	owned_open(s, sizeof(type), offsetof(type, last) + sizeof(((type *)0)->last), max, part)
void owned_close(struct owned *);
/* Returns NULL if the key is not there. */
static inline void *owned_find(const struct owned *s, const void *key)
{
	return hash_map_find(&s->things, key);
}
/* Returns the struct, and makes it if it is not there: then *made is true. Returns NULL if the
 * table or the owner's part is full, or if there is no memory; then *made is false. */
void *owned_get(struct owned *, const void *key, bool *made);
void owned_remove(struct owned *, void *thing);
/* Returns how many structs an owner has. */
uint32_t owned_of(const struct owned *, uint32_t owner);
/* Removes all structs of an owner. If it has none, which is the usual case, this costs little. */
void owned_forget(struct owned *, uint32_t owner);
void owned_clear(struct owned *);

#define owned_each(s, thing) hash_map_each(&(s)->things, thing)

#endif
