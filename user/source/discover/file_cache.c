/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file_cache.c - what is known of each file, by real inode. On a machine that compiles all day the
 * files without CUDA in them go by the hundred thousand: they are forgotten together, which costs
 * looking at the living ones again.
 */
#include "file_cache.h"

#define TRIM_AT 65536

struct cached_file *file_cache_get(struct file_cache *t, uint64_t dev, uint64_t ino)
{
	bool made;

	if (!t->all.size)
		hash_map_open_of(&t->all, struct cached_file, ino, SIZE_MAX);
	return hash_map_get(&t->all, (uint64_t[]){ dev, ino }, &made);
}

struct cached_file *file_cache_find(const struct file_cache *t, uint64_t dev, uint64_t ino)
{
	return hash_map_find(&t->all, (uint64_t[]){ dev, ino });
}

void file_cache_trim(struct file_cache *t)
{
	struct cached_file *v;

	if (t->all.n <= TRIM_AT)
		return;
	hash_map_each(&t->all, v) if (!v->file && !v->scanning) hash_map_remove(&t->all, v);
}

void file_cache_free(struct file_cache *t)
{
	hash_map_close(&t->all);
}
