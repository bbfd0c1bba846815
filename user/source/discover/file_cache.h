/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file_cache.h - inside discover: what is known of each file that was ever looked at, by real
 * inode. An inode number is given to another file once its own is gone, so an entry holds for a
 * generation: size and time of last change.
 */
#ifndef CT_FILE_CACHE_H
#define CT_FILE_CACHE_H

#include "../../util/table/hash_map.h"

struct probe_file;

struct cached_file {
	uint64_t dev, ino;
	uint64_t generation;
	/* when the generation was last compared; 0: the file has not been looked at */
	uint64_t checked_ns;
	uint32_t round; /* of the scan that met it last */
	/* one worth probing, as long as it is held; NULL: nothing in it, or refused */
	struct probe_file *file;
	bool refused;	/* worth probing, but those who map it have too many files already */
	bool counted;	/* among the refused */
	bool installed; /* where CUDA's libraries are looked for */
	/* its new content is not complete: it is looked at when that is closed */
	bool writing;
	bool scanning;	     /* it takes long, and a worker does it */
	uint32_t uid, freed; /* refused: for whom, and when (struct files has the number) */
	unsigned cost;	     /* refused: descriptors that it takes */
};

struct file_cache {
	struct hash_map all;
};

/* The entry of a file, made if need be (checked_ns is 0 then). Valid until the next call. NULL:
 * no memory. */
struct cached_file *file_cache_get(struct file_cache *, uint64_t dev, uint64_t ino);
/* The same; NULL if there is none. */
struct cached_file *file_cache_find(const struct file_cache *, uint64_t dev, uint64_t ino);
/* Forgets the files with nothing in them once there are very many; call between scans. */
void file_cache_trim(struct file_cache *);
void file_cache_free(struct file_cache *);

#endif
