/* SPDX-License-Identifier: BSD-2-Clause */
/* memo.c - see memo.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../hash.h"
#include "memo.h"

#define FIRST_SLOTS 256 /* a power of two */

struct slot {
	struct memo_key key; /* a 0: free */
	uint64_t value;
};

struct memo {
	struct slot *slots;
	uint32_t nslots, used;
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
	free(m->slots);
	free(m);
}

static struct memo_key taken(struct memo_key k)
{
	k.a += !k.a;
	return k;
}

static struct slot *slot_of(struct slot *slots, uint32_t nslots, struct memo_key k)
{
	uint32_t i = (uint32_t)k.b & (nslots - 1);

	while (slots[i].key.a && (slots[i].key.a != k.a || slots[i].key.b != k.b))
		i = (i + 1) & (nslots - 1);
	return &slots[i];
}

bool memo_find(const struct memo *m, struct memo_key k, uint64_t *value)
{
	const struct slot *s;

	if (!m->nslots)
		return false;
	s = slot_of(m->slots, m->nslots, taken(k));
	*value = s->value;
	return s->key.a;
}

static int resize(struct memo *m, uint32_t nslots)
{
	struct slot *slots = calloc(nslots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nslots; i++)
		if (m->slots[i].key.a)
			*slot_of(slots, nslots, m->slots[i].key) = m->slots[i];
	free(m->slots);
	m->slots = slots;
	m->nslots = nslots;
	return 0;
}

int memo_put(struct memo *m, struct memo_key k, uint64_t value)
{
	struct slot *s;

	k = taken(k);
	if (m->used >= m->nslots / 2 && resize(m, m->nslots ? 2 * m->nslots : FIRST_SLOTS))
		return -ENOMEM;
	s = slot_of(m->slots, m->nslots, k);
	m->used += !s->key.a;
	s->key = k;
	s->value = value;
	return 0;
}

void memo_forget(struct memo *m, bool (*old)(void *ctx, uint64_t value), void *ctx)
{
	struct slot *from = m->slots;
	uint32_t n = m->nslots;

	if (!n)
		return;
	m->slots = calloc(n, sizeof(*m->slots));
	m->used = 0;
	if (!m->slots)
		m->nslots = 0; /* everything, then */
	for (uint32_t i = 0; m->slots && i < n; i++)
		if (from[i].key.a && !old(ctx, from[i].value)) {
			*slot_of(m->slots, n, from[i].key) = from[i];
			m->used++;
		}
	free(from);
}

uint32_t memo_count(const struct memo *m)
{
	return m->used;
}
