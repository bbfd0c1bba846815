/* SPDX-License-Identifier: BSD-2-Clause */
/* strings.c - see strings.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "strings.h"

#define FIRST 256 /* a power of two */

static uint64_t hash(const char *s, size_t n)
{
	uint64_t h = n * 0x9e3779b97f4a7c15, word;

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

const char *strings_get(const struct strings *s, uint32_t i)
{
	return s->bytes + s->at[i];
}

static int grow(struct strings *s)
{
	uint32_t cap = s->cap_n ? s->cap_n * 2 : FIRST, *table;
	size_t *at = realloc(s->at, cap * sizeof(*at));

	if (!at)
		return -ENOMEM;
	s->at = at;
	table = calloc((size_t)cap * 2, sizeof(*table));
	if (!table)
		return -ENOMEM;
	free(s->table);
	s->table = table;
	s->cap_n = cap;
	for (uint32_t i = 0; i < s->n; i++) {
		const char *text = strings_get(s, i);
		uint32_t k = (uint32_t)hash(text, strlen(text)) & (cap * 2 - 1);

		while (table[k])
			k = (k + 1) & (cap * 2 - 1);
		table[k] = i + 1;
	}
	return 0;
}

int strings_init(struct strings *s, size_t most)
{
	*s = (struct strings){ .most = most };
	return grow(s);
}

void strings_free(struct strings *s)
{
	free(s->bytes);
	free(s->at);
	free(s->table);
	*s = (struct strings){ 0 };
}

uint32_t strings_add(struct strings *s, const char *text, size_t n)
{
	uint32_t mask, k;

	if (!n)
		text = "";
	if (s->n == s->cap_n && (s->n > UINT32_MAX / 4 || grow(s)))
		return STRINGS_NONE;
	mask = s->cap_n * 2 - 1;
	for (k = (uint32_t)hash(text, n) & mask; s->table[k]; k = (k + 1) & mask) {
		const char *have = strings_get(s, s->table[k] - 1);

		if (!strncmp(have, text, n) && !have[n])
			return s->table[k] - 1;
	}
	if (s->len + n + 1 > s->most)
		return STRINGS_NONE;
	if (s->len + n + 1 > s->cap) {
		size_t cap = (s->len + n + 1) * 3 / 2 + 4096;
		char *bytes = realloc(s->bytes, cap);

		if (!bytes)
			return STRINGS_NONE;
		s->bytes = bytes;
		s->cap = cap;
	}
	memcpy(s->bytes + s->len, text, n);
	s->bytes[s->len + n] = '\0';
	s->at[s->n] = s->len;
	s->len += n + 1;
	s->table[k] = ++s->n;
	return s->n - 1;
}
