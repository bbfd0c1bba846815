/* SPDX-License-Identifier: BSD-2-Clause */
/* known_files.c - see known_files.h. A file that has changed is another file: its size and time of
 * change are part of its identity. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "known_files.h"

#define MAX_FILES 8192	   /* files that are remembered */
#define MAX_CODE_FILES 128 /* files kept open */

struct file_table {
	struct file *files[MAX_FILES];
	int nfiles, ncode;
	uint64_t clock; /* counts uses, to find the least recently used one */
};

struct file_table *file_table_open(void)
{
	return calloc(1, sizeof(struct file_table));
}

static void file_drop(struct file_table *t, int i)
{
	struct file *f = t->files[i];

	t->ncode -= f->elf != NULL;
	known_elf_close(f->elf);
	free(f);
	t->files[i] = t->files[--t->nfiles];
}

/* Makes room: drops the file that no process has mapped any more and that was used least recently. */
static bool file_evict(struct file_table *t, bool code)
{
	int oldest = -1;

	for (int i = 0; i < t->nfiles; i++)
		if (!t->files[i]->refs && (!code || t->files[i]->elf) &&
		    (oldest < 0 || t->files[i]->used < t->files[oldest]->used))
			oldest = i;
	if (oldest >= 0)
		file_drop(t, oldest);
	return oldest >= 0;
}

/* Reads a file that was not seen before. Takes over the descriptor. */
static struct file *file_add(struct file_table *t, const struct stat *st, int fd)
{
	struct file *f = calloc(1, sizeof(*f));

	if (!f) {
		close(fd);
		return NULL;
	}
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->size = (uint64_t)st->st_size;
	f->mtime_ns = st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec;
	if (!known_elf_open(&f->elf, fd) &&
	    ((!known_elf_has_device_code(f->elf) && !known_elf_is_fixed(f->elf)) ||
	     (t->ncode == MAX_CODE_FILES && !file_evict(t, true)))) {
		known_elf_close(f->elf);
		f->elf = NULL;
	}
	t->ncode += f->elf != NULL;
	t->files[t->nfiles++] = f;
	return f;
}

struct file *file_table_find(struct file_table *t, struct target *target,
			     const struct target_map *m)
{
	struct file *f = NULL;
	struct stat st;
	int fd = target_open_map(target, m);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st)) {
		close(fd);
		return NULL;
	}
	for (int i = 0; i < t->nfiles && !f; i++)
		if (t->files[i]->ino == st.st_ino && t->files[i]->dev == st.st_dev &&
		    t->files[i]->size == (uint64_t)st.st_size &&
		    t->files[i]->mtime_ns == st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec)
			f = t->files[i];
	if (f)
		close(fd);
	else if (t->nfiles < MAX_FILES || file_evict(t, false))
		f = file_add(t, &st, fd);
	else
		close(fd);
	if (f)
		f->used = ++t->clock;
	return f;
}

void file_table_close(struct file_table *t)
{
	while (t && t->nfiles)
		file_drop(t, t->nfiles - 1);
	free(t);
}
