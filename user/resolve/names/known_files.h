/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known_files.h - keeps the files that were searched for kernels, by their identity. All processes
 * that map a file share it. known_elf.h has what is in a file.
 */
#ifndef CT_KNOWN_FILES_H
#define CT_KNOWN_FILES_H

#include "known_elf.h"

struct file_table;

/* A file. It has `elf` only if that is needed: if the file has device code, or is a program with
 * fixed addresses. The table owns the file, and keeps it as long as `refs` is not 0. */
struct file {
	uint64_t dev, ino, size;
	int64_t mtime_ns;
	struct known_elf *elf;
	uint64_t used;
	int refs;
};

struct file_table *file_table_open(void); /* NULL: no memory */
void file_table_close(struct file_table *);
/* Returns the file behind a mapping. NULL: it cannot be opened, or there are too many. */
struct file *file_table_find(struct file_table *, struct target *, const struct target_map *);

#endif
