/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chains.h - a hash table of structs that never move: each begins with a link, and the code that
 * makes them compares and frees them. For structs that may move, a hash map is better (hash_map.h).
 * Knows no domain.
 */
#ifndef CT_CHAINS_H
#define CT_CHAINS_H

#include "../types.h"

struct chain_link {
	struct chain_link *next; /* the next one in its chain */
	uint64_t hash;
};

/* A zeroed table is empty. */
struct chains {
	size_t n;
	/* the rest is its own */
	size_t nchains; /* a power of two, or 0 */
	struct chain_link **chains;
};

/* Frees the table, but not the structs in it. */
void chains_close(struct chains *);
/* Adds a struct at the end of its chain. Returns 0, or -ENOMEM, which is possible only for the
 * first one: later, if there is no memory, the chains just get longer. */
int chains_add(struct chains *, struct chain_link *, uint64_t hash);
/* Removes a struct, which must be in the table. The caller frees it. */
void chains_remove(struct chains *, struct chain_link *);

static inline struct chain_link *chain_same(struct chain_link *at, uint64_t hash)
{
	while (at && at->hash != hash)
		at = at->next;
	return at;
}

/* Returns the first struct with this hash; NULL if there is none. */
static inline struct chain_link *chains_find(const struct chains *c, uint64_t hash)
{
	return c->nchains ? chain_same(c->chains[hash & (c->nchains - 1)], hash) : NULL;
}

/* Returns the next struct with the same hash; NULL if there is none. */
static inline struct chain_link *chains_again(const struct chain_link *at)
{
	return chain_same(at->next, at->hash);
}

/* Returns the first struct in or after chain number `from`, which becomes the number of its
 * chain. */
static inline struct chain_link *chains_from(const struct chains *c, size_t *from)
{
	while (*from < c->nchains && !c->chains[*from])
		++*from;
	return *from < c->nchains ? c->chains[*from] : NULL;
}

/* Returns the next struct of a walk through all. */
static inline struct chain_link *chains_next(const struct chains *c, struct chain_link *next,
					     size_t *at)
{
	if (next)
		return next;
	++*at;
	return chains_from(c, at);
}

/* Visits each struct, as a link. The body may remove and free the one that it looks at, but no
 * other, and may add none. */
#define chains_each(c, link)                                                 \
	for (struct {                                                        \
		     size_t at;                                              \
		     struct chain_link *next;                                \
	     } chains_i = { 0, NULL };                                       \
	     chains_i.at < (c)->nchains; chains_i.at = (c)->nchains)         \
		for (struct chain_link *link = chains_from(c, &chains_i.at); \
		     link && (chains_i.next = link->next, true);             \
		     link = chains_next(c, chains_i.next, &chains_i.at))

#endif
