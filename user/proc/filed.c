/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * filed.c - see filed.h. Files are read in blocks. The blocks are kept, each with the version of
 * its file: the names of a library's 20 000 kernels are within about 2 MiB. A file stays open for
 * some seconds, because a process that registers kernels may end at any moment.
 */
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../util/io/bounded.h"
#include "../util/hash.h"
#include "../util/now.h"
#include "filed.h"

#define LIMIT_MS 1000
#define FILES 16
#define IDLE_NS 10000000000ULL /* how long a file stays open after it was last read */
#define BLOCK (64u << 10)
#define BLOCKS 64 /* a power of two */
#define ZFS_MAGIC 0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e
#ifndef UDF_SUPER_MAGIC
#define UDF_SUPER_MAGIC 0x15013346
#endif

/* Identifies a file and its contents: while these fields are equal, the contents are the same. The
 * struct has no padding. */
struct version {
	uint64_t dev, ino, size, ctime_sec;
	uint32_t ctime_nsec, magic;
};

struct file {
	struct version version;
	int fd; /* -1: this place is free */
	uint64_t used_ns;
};

struct block_key {
	struct version version;
	uint64_t offset;
};

struct block {
	struct block_key key;
	char *bytes; /* NULL: this place is free */
	size_t len;
};

struct filed {
	filed_recent_fn recent;
	void *ctx;
	struct file files[FILES];
	struct block blocks[BLOCKS];
};

struct filed *filed_open(filed_recent_fn recent, void *ctx)
{
	struct filed *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->recent = recent;
	f->ctx = ctx;
	for (int i = 0; i < FILES; i++)
		f->files[i].fd = -1;
	return f;
}

static void file_close(struct file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

void filed_idle(struct filed *f)
{
	uint64_t now = now_ns();

	for (int i = 0; i < FILES; i++)
		if (f->files[i].fd >= 0 && now - f->files[i].used_ns > IDLE_NS)
			file_close(&f->files[i]);
}

void filed_close(struct filed *f)
{
	for (int i = 0; f && i < BLOCKS; i++)
		free(f->blocks[i].bytes);
	for (int i = 0; f && i < FILES; i++)
		file_close(&f->files[i]);
	free(f);
}

/* Whether the kernel itself serves the files of this file system, from a disk or from memory. */
static bool is_local(uint32_t magic)
{
	static const uint32_t local[] = {
		EXT4_SUPER_MAGIC,  XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
		TMPFS_MAGIC,	   RAMFS_MAGIC,	    SQUASHFS_MAGIC,    EROFS_SUPER_MAGIC_V1,
		ISOFS_SUPER_MAGIC, UDF_SUPER_MAGIC, ZFS_MAGIC,	       BCACHEFS_MAGIC,
	};

	for (size_t i = 0; i < ARRAY_LEN(local); i++)
		if (local[i] == magic)
			return true;
	return false;
}

/* ---- a file ---- */

/* A read that a worker does. If the worker is abandoned, it owns the descriptor. */
struct reading {
	struct bounded_job job;
	struct version version;
	int fd;
	uint64_t offset;
	ssize_t result;
	char bytes[BLOCK];
};

static bool is_version(int fd, const struct version *v)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || (uint64_t)st.st_ctim.tv_sec != v->ctime_sec ||
	    (uint64_t)st.st_ctim.tv_nsec != v->ctime_nsec || (uint64_t)st.st_size != v->size ||
	    fstatfs(fd, &fs))
		return false;
	/* overlayfs has its own inode numbers; the times and the size are those of the file
	 * below */
	return (uint32_t)fs.f_type == OVERLAYFS_SUPER_MAGIC ||
	       ((uint32_t)fs.f_type == v->magic && st.st_ino == v->ino);
}

static void reading_run(struct bounded_job *job)
{
	struct reading *r = (struct reading *)job;

	r->result = -ESTALE;
	if (!is_version(r->fd, &r->version))
		return;
	r->result = pread(r->fd, r->bytes, BLOCK, (off_t)r->offset);
	if (r->result < 0)
		r->result = -errno;
	/* what was read belongs to that version if the file has not changed since */
	else if (!is_version(r->fd, &r->version))
		r->result = -ESTALE;
}

static void reading_drop(struct bounded_job *job)
{
	struct reading *r = (struct reading *)job;

	close(r->fd);
	free(r);
}

/* Reads one block. After -ETIMEDOUT the caller no longer owns the descriptor. */
static ssize_t read_fd(int fd, const struct version *v, uint32_t owner, uint64_t offset,
		       char *bytes)
{
	struct reading *r = malloc(sizeof(*r));
	ssize_t n;
	int err;

	if (!r)
		return -ENOMEM;
	r->job = (struct bounded_job){ .run = reading_run, .drop = reading_drop };
	r->version = *v;
	r->fd = fd;
	r->offset = offset;
	err = bounded_run(&r->job, owner, LIMIT_MS);
	if (err == -ETIMEDOUT)
		return err;
	n = err ? err : r->result;
	if (n > 0)
		memcpy(bytes, r->bytes, (size_t)n);
	free(r);
	return n;
}

static struct file *find_file(struct filed *f, const struct version *v)
{
	for (int i = 0; i < FILES; i++)
		if (f->files[i].fd >= 0 && !memcmp(&f->files[i].version, v, sizeof(*v)))
			return &f->files[i];
	return NULL;
}

/* Returns a place for one more file. If all are used, the file that has not been used for the
 * longest time is closed. */
static struct file *free_file(struct filed *f)
{
	struct file *oldest = &f->files[0];

	for (int i = 0; i < FILES; i++) {
		if (f->files[i].fd < 0)
			return &f->files[i];
		if (f->files[i].used_ns < oldest->used_ns)
			oldest = &f->files[i];
	}
	file_close(oldest);
	return oldest;
}

/* ---- blocks of files ---- */

/* Finds the mapping that the record refers to, if it still exists. Another mapping of the same file
 * is also accepted. */
static const struct target_map *find_map(struct target *t, const struct ct_absent *a)
{
	const struct target_map *m = target_map_at(t, a->address), *maps;
	int n;

	if (m && m->ino && m->offset + (a->address - m->start) == a->offset)
		return m;
	n = target_maps(t, &maps);
	for (int i = 0; i < n; i++)
		if (maps[i].ino == a->ino)
			return &maps[i];
	return NULL;
}

/* Reads from a file that was just opened. The file stays open if it is the right one. */
static ssize_t read_opened(struct filed *f, int fd, uint32_t owner, const struct block_key *k,
			   char *bytes)
{
	ssize_t n;

	if (fd < 0)
		return fd == -ENOENT ? -ESTALE : fd;
	n = read_fd(fd, &k->version, owner, k->offset, bytes);
	if (n >= 0)
		*free_file(f) =
			(struct file){ .version = k->version, .fd = fd, .used_ns = now_ns() };
	else if (n != -ETIMEDOUT)
		close(fd);
	return n;
}

static ssize_t read_mapped(struct filed *f, struct target *t, const struct ct_absent *a,
			   const struct block_key *k, char *bytes)
{
	const struct target_map *m = find_map(t, a);

	return m ? read_opened(f, target_open_map(t, m), target_uid(t), k, bytes) : -ESTALE;
}

/* Reads from the file by its name: after the process has unmapped it or ended, the file may still
 * have its name. */
static ssize_t read_named(struct filed *f, struct target *t, const struct block_key *k, char *bytes)
{
	char name[PATH_MAX];

	if (!f->recent || !f->recent(f->ctx, k->version.ino, name, sizeof(name)))
		return -ESTALE;
	return read_opened(f, target_open_path(t, name), t ? target_uid(t) : BOUNDED_NOBODY, k,
			   bytes);
}

static ssize_t read_block(struct filed *f, struct target *t, const struct ct_absent *a,
			  const struct block_key *k, char *bytes)
{
	struct file *file = find_file(f, &k->version);
	ssize_t n;

	if (file) {
		n = read_fd(file->fd, &k->version, t ? target_uid(t) : BOUNDED_NOBODY, k->offset,
			    bytes);
		file->used_ns = now_ns();
		if (n == -ETIMEDOUT)
			file->fd = -1;
		else if (n == -ESTALE)
			file_close(file);
		return n;
	}
	n = t ? read_mapped(f, t, a, k, bytes) : -ESTALE;
	/* the mappings that were read last may be older than the record */
	if (n == -ESTALE && t)
		n = target_refresh(t) < 0 ? -ESTALE : read_mapped(f, t, a, k, bytes);
	return n == -ESTALE ? read_named(f, t, k, bytes) : n;
}

/* Finds or reads the block of the file that holds the byte at `offset`. */
static int block_at(struct filed *f, struct target *t, const struct ct_absent *a, uint64_t offset,
		    struct block **out)
{
	struct block_key k = { { .dev = a->dev,
				 .ino = a->ino,
				 .size = a->size,
				 .ctime_sec = (uint64_t)a->ctime_sec,
				 .ctime_nsec = a->ctime_nsec,
				 .magic = a->magic },
			       .offset = offset & ~(uint64_t)(BLOCK - 1) };
	struct block *b = &f->blocks[hash_bytes(&k, sizeof(k)) & (BLOCKS - 1)];
	ssize_t n;

	*out = b;
	if (b->bytes && !memcmp(&b->key, &k, sizeof(k)))
		return 0;
	if (!b->bytes)
		b->bytes = malloc(BLOCK);
	if (!b->bytes)
		return -ENOMEM;
	memset(&b->key, 0xff, sizeof(b->key)); /* the block belongs to no file */
	n = read_block(f, t, a, &k, b->bytes);
	if (n < 0)
		return (int)n;
	b->key = k;
	b->len = (size_t)n;
	return 0;
}

ssize_t filed_read(struct filed *f, struct target *t, const struct ct_absent *a, uint64_t skip,
		   void *buf, size_t len)
{
	size_t have = 0;
	int as;

	if (!(a->flags & CT_ABSENT_FILE))
		return -ENOENT;
	if (!is_local(a->magic))
		return -EREMOTE;
	if (skip >= a->left)
		return 0;
	if (len > a->left - skip)
		len = a->left - skip;
	if (a->flags & CT_ABSENT_WRITTEN && len) {
		as = t ? target_is_as_in_file(t, a->address + skip, len) : -ESRCH;
		if (as <= 0)
			return as ? as : -ESTALE;
	}
	while (have < len) {
		uint64_t at = a->offset + skip + have, in = at & (BLOCK - 1);
		struct block *b;
		int err = block_at(f, t, a, at, &b);
		size_t n;

		if (err)
			return have ? (ssize_t)have : err;
		if (in >= b->len)
			break;
		n = b->len - in < len - have ? b->len - in : len - have;
		memcpy((char *)buf + have, b->bytes + in, n);
		have += n;
	}
	return (ssize_t)have;
}
