/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verdicts.c - what is known of each file, by real inode. On a machine that compiles all day the
 * files without CUDA in them go by the hundred thousand: they are forgotten together, which costs
 * looking at the living ones again.
 */
#include "verdicts.h"

#define TRIM_AT 65536

struct verdict *verdicts_get(struct verdicts *t, uint64_t dev, uint64_t ino)
{
	bool made;

	if (!t->all.size)
		keyed_open_of(&t->all, struct verdict, ino, SIZE_MAX);
	return keyed_get(&t->all, (uint64_t[]){ dev, ino }, &made);
}

struct verdict *verdicts_find(const struct verdicts *t, uint64_t dev, uint64_t ino)
{
	return keyed_find(&t->all, (uint64_t[]){ dev, ino });
}

void verdicts_trim(struct verdicts *t)
{
	struct verdict *v;

	if (t->all.n <= TRIM_AT)
		return;
	keyed_each(&t->all, v) if (!v->file && !v->scanning) keyed_remove(&t->all, v);
}

void verdicts_free(struct verdicts *t)
{
	keyed_close(&t->all);
}
