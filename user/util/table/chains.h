/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chains.h - a hash of things that stay where they are: each begins with a link, and the code that makes the things compares and frees them. What may move lies better in a hash map (hash_map.h). Knows no
 * domain.
 */
#ifndef CT_CHAINS_H
#define CT_CHAINS_H

#include "../types.h"

struct chain_link {
	struct chain_link *next; /* in its chain */
	uint64_t hash;
};

/* All zero: empty. */
struct chains {
	size_t n;
	/* the rest is its own */
	size_t nchains; /* a power of two, or 0 */
	struct chain_link **chains;
};

/* Frees the table, not what is in it. */
void chains_close(struct chains *);
/* Adds a thing at the end of its chain. Returns 0 or -ENOMEM, the latter only when it is the first
 * one: later the chains only get longer where there is no memory. */
int chains_add(struct chains *, struct chain_link *, uint64_t hash);
/* Takes a thing out, which must be in. The caller frees it. */
void chains_remove(struct chains *, struct chain_link *);

static inline struct chain_link *chain_same(struct chain_link *at, uint64_t hash)
{
	while (at && at->hash != hash)
		at = at->next;
	return at;
}

/* The first thing with this hash; NULL: there is none. */
static inline struct chain_link *chains_find(const struct chains *c, uint64_t hash)
{
	return c->nchains ? chain_same(c->chains[hash & (c->nchains - 1)], hash) : NULL;
}

/* The next thing with the same hash. */
static inline struct chain_link *chains_again(const struct chain_link *at)
{
	return chain_same(at->next, at->hash);
}

/* The first thing in or after chain number `from`, which becomes the number of its chain. */
static inline struct chain_link *chains_from(const struct chains *c, size_t *from)
{
	while (*from < c->nchains && !c->chains[*from])
		++*from;
	return *from < c->nchains ? c->chains[*from] : NULL;
}

/* The next thing of a walk through all. */
static inline struct chain_link *chains_next(const struct chains *c, struct chain_link *next,
					     size_t *at)
{
	if (next)
		return next;
	++*at;
	return chains_from(c, at);
}

/* Each thing, as a link: the one that is looked at may be taken out and freed, no other one, and
 * none may be added. */
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
