/* SPDX-License-Identifier: BSD-2-Clause */
/* nsys_seen.c - a set of numbers, each with a value: open addressing. Knows no table. */
#include <stdlib.h>

#include "nsys.h"

static struct nsys_seen_slot *place(struct nsys_seen *s, uint64_t key)
{
	size_t i = (size_t)((key ^ key >> 29) * 0x9e3779b97f4a7c15ULL >> 20) & (s->cap - 1);

	while (s->slots[i].key && s->slots[i].key != key)
		i = (i + 1) & (s->cap - 1);
	return &s->slots[i];
}

static bool grow(struct nsys_seen *s)
{
	struct nsys_seen old = *s;

	s->cap = old.cap ? old.cap * 2 : 1024;
	s->slots = calloc(s->cap, sizeof(*s->slots));
	if (!s->slots) {
		*s = old;
		return false;
	}
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].key)
			*place(s, old.slots[i].key) = old.slots[i];
	free(old.slots);
	return true;
}

int64_t *nsys_seen(struct nsys_seen *s, uint64_t key, bool *is_new)
{
	struct nsys_seen_slot *slot;

	if (s->n + 1 > s->cap / 4 * 3 && !grow(s) && s->n + 1 >= s->cap)
		return NULL;
	slot = place(s, key);
	*is_new = !slot->key;
	if (*is_new) {
		slot->key = key;
		s->n++;
	}
	return &slot->value;
}

void nsys_seen_free(struct nsys_seen *s)
{
	free(s->slots);
	*s = (struct nsys_seen){ 0 };
}
