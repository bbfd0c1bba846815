/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * period.c - see period.h.
 *
 * Candidates are the distances at which a few beats in a row (a gram) come again. Each different
 * gram votes once for its first and once for its last distance: a model of many equal layers has
 * more grams of layers than of its optimizer, but few different ones. Then each candidate is tried
 * on the whole sequence.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../util/table/hash_map.h"
#include "period.h"

#define GRAM 4
#define CANDIDATES 64
#define GRAMS_MAX (1u << 20)
#define NEARLY 0.9 /* a shorter period is preferred if it reaches this share of the best one */

/* Both structs begin with their keys. */
struct gram {
	uint64_t hash;
	size_t first, last, n; /* places, and how many */
	size_t apart;	       /* between the first two */
	size_t apart_last;     /* between the last two */
	size_t regular;	       /* distances that are the period */
	uint64_t gap_ns;       /* before it, added up */
};

struct vote {
	uint64_t distance;
	size_t n;
};

struct symbol {
	uint64_t symbol;
	size_t n; /* in the whole sequence */
	size_t tried, matched;
};

static uint64_t gram_at(const struct beat *b, size_t i, size_t length)
{
	uint64_t h = hash_key[0];

	for (size_t k = 0; k < length; k++)
		h = hash_word(h, b[i + k].symbol);
	return hash_word(h, hash_key[0]);
}

static uint64_t gap_before(const struct beat *b, size_t i)
{
	return i && b[i].start_ns > b[i - 1].end_ns ? b[i].start_ns - b[i - 1].end_ns : 0;
}

/* All grams of a length; regular: those that come again after `period`. */
static int grams_make(struct hash_map *grams, const struct beat *b, size_t n, size_t length,
		      size_t period)
{
	hash_map_open_of(grams, struct gram, hash, GRAMS_MAX);
	for (size_t i = 0; i + length <= n; i++) {
		uint64_t hash = gram_at(b, i, length);
		bool made;
		struct gram *g = hash_map_get(grams, &hash, &made);

		if (!g && grams->n < GRAMS_MAX)
			return -ENOMEM;
		if (!g)
			continue;
		if (made)
			g->first = i;
		else {
			g->apart_last = i - g->last;
			g->apart = g->apart ? g->apart : g->apart_last;
			g->regular += g->apart_last == period;
		}
		g->gap_ns += gap_before(b, i);
		g->last = i;
		g->n++;
	}
	return 0;
}

static int most_first(const void *pa, const void *pb)
{
	const struct vote *a = pa, *b = pb;

	if (a->n != b->n)
		return a->n > b->n ? -1 : 1;
	return a->distance < b->distance ? -1 : a->distance > b->distance;
}

static int nearest_first(const void *pa, const void *pb)
{
	const struct vote *a = pa, *b = pb;

	return a->distance < b->distance ? -1 : a->distance > b->distance;
}

static int vote(struct hash_map *votes, uint64_t distance, size_t n)
{
	struct vote *v;
	bool made;

	if (!distance || distance > n / PERIOD_LEAST)
		return 0;
	v = hash_map_get(votes, &distance, &made);
	if (!v)
		return -ENOMEM;
	v->n++;
	return 0;
}

/* How often a beat is followed by the same one `distance` later, by symbol: the mean, and the share
 * of the symbols that mostly are. What is in few steps moves the beats behind it: the mean suffers
 * by that, the share does not. */
struct score {
	double mean, share;
};

static struct score score_of(struct hash_map *symbols, struct symbol **of, size_t n,
			     size_t distance)
{
	struct symbol *s;
	double sum = 0;
	size_t all = 0, mostly = 0;

	hash_map_each(symbols, s) s->tried = s->matched = 0;
	for (size_t i = 0; i + distance < n; i++) {
		of[i]->tried++;
		of[i]->matched += of[i] == of[i + distance];
	}
	hash_map_each(symbols, s)
	{
		/* what happened only at the beginning says nothing about the rest */
		if (s->n < PERIOD_LEAST || !s->tried)
			continue;
		sum += (double)s->matched / (double)s->tried;
		mostly += s->matched * 3 > s->tried * 2;
		all++;
	}
	return all ? (struct score){ sum / (double)all, (double)mostly / (double)all }
		   : (struct score){ 0, 0 };
}

/* The symbol of each beat. NULL: no memory. */
static struct symbol **symbols_make(struct hash_map *symbols, const struct beat *b, size_t n)
{
	struct symbol **of = calloc(n + 1, sizeof(struct symbol *)), *s;
	bool made;

	hash_map_open_of(symbols, struct symbol, symbol, n + 1);
	for (size_t i = 0; i < n && of; i++) {
		s = hash_map_get(symbols, &b[i].symbol, &made);
		if (!s) {
			free(of);
			return NULL;
		}
		s->n++;
	}
	/* the items move while others are added */
	for (size_t i = 0; i < n && of; i++)
		of[i] = hash_map_find(symbols, &b[i].symbol);
	return of;
}

/* Tries the distances of most votes, the shortest first. */
static int period_choose(const struct beat *b, size_t n, struct hash_map *votes, struct period *p)
{
	struct score scores[CANDIDATES];
	double best = 0;
	struct vote *list = (struct vote *)votes->items;
	size_t nlist = votes->n < CANDIDATES ? votes->n : CANDIDATES;
	struct hash_map symbols;
	struct symbol **of;

	if (!nlist)
		return 0;
	of = symbols_make(&symbols, b, n);
	if (!of) {
		hash_map_close(&symbols);
		return -ENOMEM;
	}
	qsort(list, votes->n, sizeof(*list), most_first);
	qsort(list, nlist, sizeof(*list), nearest_first);
	for (size_t i = 0; i < nlist; i++) {
		scores[i] = score_of(&symbols, of, n, list[i].distance);
		best = scores[i].share > best ? scores[i].share : best;
	}
	/* a sequence of one thing alone has no steps */
	for (size_t i = 0; i < nlist && symbols.n > 1 && !p->length; i++) {
		if (scores[i].share < best * NEARLY)
			continue;
		p->confidence = scores[i].mean > p->confidence ? scores[i].mean : p->confidence;
		if (scores[i].mean >= PERIOD_CONFIDENT)
			p->length = list[i].distance;
	}
	free(of);
	hash_map_close(&symbols);
	return 0;
}

/* The gram with which periods begin: one that comes once in each. The earliest, unless there is a
 * pause before another one that is more than twice as long. NULL: none. */
static const struct gram *anchor(struct hash_map *grams, size_t n, size_t length)
{
	const struct gram *first = NULL, *paused = NULL, *g;

	hash_map_each(grams, g)
	{
		if (g->n < n / length * 3 / 4 || g->n > n / length + 1 + n / length / 4 ||
		    g->regular * 2 < g->n - 1)
			continue;
		if (!first || g->first < first->first)
			first = g;
		if (!paused || g->gap_ns > paused->gap_ns ||
		    (g->gap_ns == paused->gap_ns && g->first < paused->first))
			paused = g;
	}
	return first && paused->gap_ns / 2 > first->gap_ns ? paused : first;
}

/* Where the periods begin. */
static int divide(const struct beat *b, size_t n, struct period *p)
{
	size_t length = p->length < GRAM ? p->length : GRAM;
	const struct gram *a;
	struct hash_map grams;
	int err = grams_make(&grams, b, n, length, p->length);

	p->starts = err ? NULL : calloc(n + 1, sizeof(*p->starts));
	err = p->starts ? 0 : -ENOMEM;
	a = err ? NULL : anchor(&grams, n, p->length);
	for (size_t i = 0; a && i + length <= n; i++)
		if (gram_at(b, i, length) == a->hash)
			p->starts[p->n++] = i;
	for (size_t i = 0; !a && !err && i + p->length <= n; i += p->length)
		p->starts[p->n++] = i;
	p->last_whole = p->n && n - p->starts[p->n - 1] >= p->length;
	hash_map_close(&grams);
	return err;
}

int period_find(const struct beat *b, size_t n, struct period *p)
{
	struct hash_map grams, votes;
	struct gram *g;
	int err;

	*p = (struct period){ 0 };
	hash_map_open_of(&votes, struct vote, distance, n + 1);
	err = grams_make(&grams, b, n, GRAM, 0);
	hash_map_each(&grams, g)
	{
		if (!err)
			err = vote(&votes, g->apart, n);
		if (!err)
			err = vote(&votes, g->apart_last, n);
	}
	hash_map_close(&grams);
	if (!err)
		err = period_choose(b, n, &votes, p);
	hash_map_close(&votes);
	return err || !p->length ? err : divide(b, n, p);
}

void period_free(struct period *p)
{
	free(p->starts);
	*p = (struct period){ 0 };
}
