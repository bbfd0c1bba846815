/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known_files.h - the files that were looked at for kernels, by their identity, shared by all
 * processes that map them. What is in them is known_elf.h's.
 */
#ifndef CT_KNOWN_FILES_H
#define CT_KNOWN_FILES_H

#include "known_elf.h"

struct file_table;

/* A file. `elf` is there only where it matters: with device code, or a program with fixed
 * addresses. Owned by the table; as long as `refs` is not 0 it stays. */
struct file {
	uint64_t dev, ino, size;
	int64_t mtime_ns;
	struct known_elf *elf;
	uint64_t used;
	int refs;
};

struct file_table *file_table_open(void); /* NULL: no memory */
void file_table_close(struct file_table *);
/* The file behind a mapping; NULL: it cannot be opened, or there are too many. */
struct file *file_table_find(struct file_table *, struct target *, const struct target_map *);

#endif
