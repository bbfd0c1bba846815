/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * owned.h - things of many owners in one table, of which each owner has a part at most, so that the others
 * keep theirs. The things are structs of one size; the key that each begins with begins with the number of
 * its owner, a uint32_t. Knows no domain.
 */
#ifndef CT_OWNED_H
#define CT_OWNED_H

#include "hash_map.h"

struct owned {
	struct hash_map things;
	void (*drop)(
		void *thing); /* called before a thing is taken out; NULL: nothing is to be done */
	/* the rest is its own */
	struct hash_map counts; /* of those who have any */
	uint32_t each;
};

/* One owner has a part'th of `max` at most. Otherwise as hash_map_open(). */
void owned_open(struct owned *, size_t size, size_t key_size, size_t max, uint32_t part);
#define owned_open_of(s, type, last, max, part) \
	owned_open(s, sizeof(type), offsetof(type, last) + sizeof(((type *)0)->last), max, part)
void owned_close(struct owned *);
/* NULL: not there. */
static inline void *owned_find(const struct owned *s, const void *key)
{
	return hash_map_find(&s->things, key);
}
/* The thing, made if it is not there: *made says so. NULL: all, or its owner, have too many, or there is no
 * memory; then *made is false. */
void *owned_get(struct owned *, const void *key, bool *made);
void owned_remove(struct owned *, void *thing);
/* How many things an owner has. */
uint32_t owned_of(const struct owned *, uint32_t owner);
/* Takes all things of an owner out. Of one that has none, which is the usual case, this costs little. */
void owned_forget(struct owned *, uint32_t owner);
void owned_clear(struct owned *);

#define owned_each(s, thing) hash_map_each(&(s)->things, thing)

#endif
