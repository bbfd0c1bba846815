/* SPDX-License-Identifier: BSD-2-Clause */
/* intern.c - see intern.h. The bytes lie one after the other in one buffer, a hash of twice the room leads to them. */
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "text.h"

#define FIRST 1024 /* entries to begin with, a power of two */
#define ENTRIES_MAX (128u << 10)
#define BYTES_MAX (8u << 20)

struct entry {
	uint64_t hash;
	size_t at;
	uint32_t len, id;
};

struct intern {
	struct entry *entries;
	uint32_t *slots; /* index + 1; 0: free */
	uint32_t n, cap, next;
	struct text bytes;
};

static uint64_t hash_bytes(const char *s, size_t n)
{
	uint64_t h = n * 0x9e3779b97f4a7c15 + 1, word;

	for (; n >= 8; s += 8, n -= 8) {
		memcpy(&word, s, 8);
		h = (h ^ word) * 0x9e3779b97f4a7c15;
		h ^= h >> 29;
	}
	word = 0;
	memcpy(&word, s, n);
	h = (h ^ word) * 0x9e3779b97f4a7c15;
	return h ^ h >> 32;
}

static bool grow(struct intern *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : FIRST, mask = cap * 2 - 1, *slots;
	struct entry *entries = realloc(t->entries, cap * sizeof(*entries));

	if (!entries)
		return false;
	t->entries = entries;
	slots = calloc((size_t)cap * 2, sizeof(*slots));
	if (!slots)
		return false;
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t at = (uint32_t)entries[i].hash & mask;

		while (slots[at])
			at = (at + 1) & mask;
		slots[at] = i + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->cap = cap;
	return true;
}

struct intern *intern_open(void)
{
	struct intern *t = calloc(1, sizeof(*t));

	if (t && !grow(t)) {
		intern_close(t);
		return NULL;
	}
	return t;
}

void intern_close(struct intern *t)
{
	if (!t)
		return;
	free(t->entries);
	free(t->slots);
	text_free(&t->bytes);
	free(t);
}

uint32_t intern_bytes(struct intern *t, const void *s, size_t n, bool *is_new)
{
	uint64_t hash = hash_bytes(s, n);
	uint32_t mask = t->cap * 2 - 1, at = (uint32_t)hash & mask;
	struct entry *e;

	*is_new = false;
	for (; t->slots[at]; at = (at + 1) & mask) {
		e = &t->entries[t->slots[at] - 1];
		if (e->hash == hash && e->len == n && !memcmp(t->bytes.s + e->at, s, n))
			return e->id;
	}
	if (t->n == t->cap) {
		if (!grow(t))
			return 0;
		return intern_bytes(t, s, n, is_new);
	}
	e = &t->entries[t->n];
	*e = (struct entry){ .hash = hash, .at = t->bytes.len, .len = (uint32_t)n, .id = t->next + 1 };
	/* one byte at least, so that there is a buffer to compare with */
	text_mem(&t->bytes, s, n);
	text_mem(&t->bytes, "", 1);
	if (t->bytes.bad) {
		t->bytes.bad = false;
		t->bytes.len = e->at;
		return 0;
	}
	t->slots[at] = ++t->n;
	*is_new = true;
	return ++t->next;
}

uint32_t intern_str(struct intern *t, const char *s, bool *is_new)
{
	return intern_bytes(t, s, strlen(s), is_new);
}

bool intern_is_full(const struct intern *t)
{
	return t->n >= ENTRIES_MAX || t->bytes.len >= BYTES_MAX;
}

void intern_forget(struct intern *t)
{
	memset(t->slots, 0, (size_t)t->cap * 2 * sizeof(*t->slots));
	t->n = 0;
	t->bytes.len = 0;
}
