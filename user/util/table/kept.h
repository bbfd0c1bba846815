/* SPDX-License-Identifier: BSD-2-Clause */
/* kept.h - texts that are stored once each, at an address that does not change. The user of this
 * table limits their number and their bytes. Knows no domain. */
#ifndef CT_KEPT_H
#define CT_KEPT_H

#include "../hash.h"
#include "hash_map.h"

struct kept {
	uint64_t hash; /* if two texts have the same hash, the later one has the next free place */
	char *text;    /* the caller's */
};

static inline void kept_open(struct hash_map *k, size_t max)
{
	hash_map_open_of(k, struct kept, hash, max);
}

/* Returns the place of a text: a pointer to the text, or to NULL, and then the caller puts the
 * text there. Returns NULL if there is no place. */
static inline char **kept_place(struct hash_map *k, const char *text)
{
	uint64_t hash = hash_bytes(text, strlen(text));
	struct kept *t;

	for (;; hash++) {
		t = hash_map_get(k, &hash, &(bool){ false });
		if (!t || !t->text || !strcmp(t->text, text))
			return t ? &t->text : NULL;
	}
}

#endif
