/* SPDX-License-Identifier: BSD-2-Clause */
/* kept.h - texts that are kept once each, at an address that stays. Whoever keeps them bounds
 * their number and their bytes. Knows no domain. */
#ifndef CT_KEPT_H
#define CT_KEPT_H

#include "../hash.h"
#include "hash_map.h"

struct kept {
	uint64_t hash; /* of two texts with the same one, the later has the next that is free */
	char *text;    /* the caller's */
};

static inline void kept_open(struct hash_map *k, size_t max)
{
	hash_map_open_of(k, struct kept, hash, max);
}

/* The place of a text: where it is, or NULL for the caller to put it there. NULL: there is no
 * place any more. */
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
