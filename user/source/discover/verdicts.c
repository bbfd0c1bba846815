/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verdicts.c - what is known of each file, by real inode: a hash table with open addressing.
 *
 * Nothing is ever deleted one by one. On a machine that compiles all day the files without CUDA
 * in them go by the hundred thousand: they are forgotten together, which costs looking at the
 * living ones again.
 */
#include "verdicts.h"

#include <stdlib.h>

#define TRIM_AT 65536

static struct verdict *find(struct verdict *slots, uint32_t size, uint64_t dev, uint64_t ino)
{
	uint64_t h = (ino ^ dev << 40 ^ dev >> 24) * 0x9e3779b97f4a7c15ULL;
	uint32_t i = h >> 32;

	for (;; i++) {
		struct verdict *v = &slots[i & (size - 1)];

		if (!v->ino || (v->ino == ino && v->dev == dev))
			return v;
	}
}

static int rebuild(struct verdicts *t, uint32_t size, bool held_only)
{
	struct verdict *slots = calloc(size, sizeof(*slots));
	uint32_t used = 0;

	if (!slots)
		return -1;
	for (uint32_t i = 0; i < t->size; i++) {
		const struct verdict *v = &t->slots[i];

		if (!v->ino || (held_only && !v->file))
			continue;
		*find(slots, size, v->dev, v->ino) = *v;
		used++;
	}
	free(t->slots);
	*t = (struct verdicts){ .slots = slots, .size = size, .used = used };
	return 0;
}

struct verdict *verdicts_get(struct verdicts *t, uint64_t dev, uint64_t ino)
{
	struct verdict *v;

	if (t->used * 2 >= t->size && rebuild(t, t->size ? t->size * 2 : 1024, false))
		return NULL;
	v = find(t->slots, t->size, dev, ino);
	if (!v->ino) {
		*v = (struct verdict){ .dev = dev, .ino = ino };
		t->used++;
	}
	return v;
}

struct verdict *verdicts_find(const struct verdicts *t, uint64_t dev, uint64_t ino)
{
	struct verdict *v = t->size ? find(t->slots, t->size, dev, ino) : NULL;

	return v && v->ino ? v : NULL;
}

void verdicts_trim(struct verdicts *t)
{
	if (t->used > TRIM_AT)
		rebuild(t, t->size, true);
}

void verdicts_free(struct verdicts *t)
{
	free(t->slots);
	*t = (struct verdicts){ 0 };
}
