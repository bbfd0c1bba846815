/* SPDX-License-Identifier: BSD-2-Clause */
/* strings.c - see strings.h. The bytes lie one after the other in one buffer; a hash leads to
 * where each begins. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "strings.h"

#define FIRST 256 /* a power of two */

static int strings_grow(struct strings *s)
{
	uint32_t cap = s->cap_n ? s->cap_n * 2 : FIRST, mask = cap * 2 - 1, *table;
	struct strings_entry *entries = realloc(s->entries, ((size_t)cap + 1) * sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	s->entries = entries;
	table = calloc((size_t)cap * 2, sizeof(*table));
	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t k = entries[i].hash & mask;

		while (table[k])
			k = (k + 1) & mask;
		table[k] = i + 1;
	}
	free(s->table);
	s->table = table;
	s->cap_n = cap;
	return 0;
}

int strings_init(struct strings *s, uint32_t most_bytes, uint32_t most)
{
	*s = (struct strings){ .most_bytes = most_bytes,
			       .most = most < UINT32_MAX / 4 ? most : UINT32_MAX / 4 };
	if (strings_grow(s))
		return -ENOMEM;
	s->entries[0].at = 0;
	return 0;
}

void strings_free(struct strings *s)
{
	free(s->bytes);
	free(s->entries);
	free(s->table);
	*s = (struct strings){ 0 };
}

static bool reserve(struct strings *s, size_t n)
{
	size_t cap = (s->len + n) * 3 / 2 + 4096;
	char *bytes;

	if (s->len + n <= s->cap)
		return true;
	bytes = realloc(s->bytes, cap);
	if (!bytes)
		return false;
	s->bytes = bytes;
	s->cap = cap;
	return true;
}

uint32_t strings_add(struct strings *s, const void *bytes, size_t n)
{
	uint32_t hash = (uint32_t)hash_bytes(n ? bytes : "", n), mask = s->cap_n * 2 - 1, k;

	for (k = hash & mask; s->table[k]; k = (k + 1) & mask) {
		const struct strings_entry *e = &s->entries[s->table[k] - 1];

		if (e->hash == hash && e[1].at - e->at == n + 1 &&
		    (!n || !memcmp(s->bytes + e->at, bytes, n)))
			return s->first + s->table[k] - 1;
	}
	if (s->n == s->most || s->len >= s->most_bytes || n >= s->most_bytes - s->len ||
	    !reserve(s, n + 1))
		return STRINGS_NONE;
	if (s->n == s->cap_n) {
		if (strings_grow(s))
			return STRINGS_NONE;
		mask = s->cap_n * 2 - 1;
		for (k = hash & mask; s->table[k]; k = (k + 1) & mask)
			;
	}
	if (n)
		memcpy(s->bytes + s->len, bytes, n);
	s->bytes[s->len + n] = '\0';
	s->len += n + 1;
	s->entries[s->n].hash = hash;
	s->entries[++s->n].at = (uint32_t)s->len;
	s->table[k] = s->n;
	return s->first + s->n - 1;
}

void strings_forget(struct strings *s)
{
	if (!s->table)
		return;
	memset(s->table, 0, (size_t)s->cap_n * 2 * sizeof(*s->table));
	s->first += s->n;
	s->n = 0;
	s->len = 0;
}
