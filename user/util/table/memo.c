/* SPDX-License-Identifier: BSD-2-Clause */
/* memo.c - see memo.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../hash.h"
#include "memo.h"

#define FIRST_BUCKETS 256 /* a power of two */

struct bucket {
	struct memo_key key; /* a 0: free */
	uint64_t value;
};

struct memo {
	struct bucket *buckets;
	uint32_t nbuckets, used;
};

void memo_add(struct memo_key *k, uint64_t word)
{
	k->a = hash_word(k->a, word) + word;
	k->b = hash_word(k->b + word, hash_key[0]) ^ (word << 32 | word >> 32);
}

struct memo_key memo_begin(uint64_t kind)
{
	struct memo_key k = { hash_key[0], hash_key[1] };

	memo_add(&k, kind);
	return k;
}

void memo_add_bytes(struct memo_key *k, const void *bytes, size_t len)
{
	uint64_t word;

	memo_add(k, len);
	for (size_t i = 0; i < len; i += sizeof(word)) {
		word = 0;
		memcpy(&word, (const char *)bytes + i,
		       len - i < sizeof(word) ? len - i : sizeof(word));
		memo_add(k, word);
	}
}

struct memo *memo_open(void)
{
	return calloc(1, sizeof(struct memo));
}

void memo_close(struct memo *m)
{
	if (!m)
		return;
	free(m->buckets);
	free(m);
}

static struct memo_key memo_taken(struct memo_key k)
{
	k.a += !k.a;
	return k;
}

static struct bucket *memo_bucket_of(struct bucket *buckets, uint32_t nbuckets, struct memo_key k)
{
	uint32_t i = (uint32_t)k.b & (nbuckets - 1);

	while (buckets[i].key.a && (buckets[i].key.a != k.a || buckets[i].key.b != k.b))
		i = (i + 1) & (nbuckets - 1);
	return &buckets[i];
}

bool memo_find(const struct memo *m, struct memo_key k, uint64_t *value)
{
	const struct bucket *s;

	if (!m->nbuckets)
		return false;
	s = memo_bucket_of(m->buckets, m->nbuckets, memo_taken(k));
	*value = s->value;
	return s->key.a;
}

static int resize(struct memo *m, uint32_t nbuckets)
{
	struct bucket *buckets = calloc(nbuckets, sizeof(*buckets));

	if (!buckets)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nbuckets; i++)
		if (m->buckets[i].key.a)
			*memo_bucket_of(buckets, nbuckets, m->buckets[i].key) = m->buckets[i];
	free(m->buckets);
	m->buckets = buckets;
	m->nbuckets = nbuckets;
	return 0;
}

int memo_put(struct memo *m, struct memo_key k, uint64_t value)
{
	struct bucket *s;

	k = memo_taken(k);
	if (m->used >= m->nbuckets / 2 && resize(m, m->nbuckets ? 2 * m->nbuckets : FIRST_BUCKETS))
		return -ENOMEM;
	s = memo_bucket_of(m->buckets, m->nbuckets, k);
	m->used += !s->key.a;
	s->key = k;
	s->value = value;
	return 0;
}

void memo_forget(struct memo *m, bool (*old)(void *ctx, uint64_t value), void *ctx)
{
	struct bucket *from = m->buckets;
	uint32_t n = m->nbuckets;

	if (!n)
		return;
	m->buckets = calloc(n, sizeof(*m->buckets));
	m->used = 0;
	if (!m->buckets)
		m->nbuckets = 0; /* without memory all values are forgotten */
	for (uint32_t i = 0; m->buckets && i < n; i++)
		if (from[i].key.a && !old(ctx, from[i].value)) {
			*memo_bucket_of(m->buckets, n, from[i].key) = from[i];
			m->used++;
		}
	free(from);
}

uint32_t memo_count(const struct memo *m)
{
	return m->used;
}
