/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * writer.c - see writer.h.
 *
 * A block is written by one writev. So a tracer that is killed leaves whole blocks, and at most a
 * part of the last one. When the disk is full, that part is cut off again, so that the file ends
 * with a whole block.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>

#include "../util/msg.h"
#include "../util/io/out.h"
#include "../util/io/safe_open.h"
#include "../util/whole/unfinished.h"
#include "encode.h"
#include "writer.h"
#include "../util/table/array.h"

/* a file with more blocks is read without an index */
#define INDEX_MAX (TRACE_BODY_MAX / sizeof(struct trace_index_entry) - 1)

struct writer {
	struct encoder *encoder;
	struct trace_index_entry *index;
	size_t nindex;
	uint64_t offset, seq;
	int fd;
	int error;		  /* -errno of the first failure */
	uint64_t missing;	  /* records of the block that could not be written */
	const volatile int *stop; /* writer_stop() */
	bool regular, no_index;
};

static int fail(struct writer *w, int err)
{
	if (!w->error)
		w->error = err;
	return w->error;
}

/* Writes some of the bytes. Returns their number, or -1 and errno. */
static ssize_t write_some(struct writer *w, const struct iovec *iov, int n)
{
	int err;

	if (w->regular || !w->stop || !*w->stop)
		return writev(w->fd, iov, n);
	err = out_wait(w->fd, w->stop);
	if (!err)
		return write(w->fd, iov->iov_base,
			     iov->iov_len < PIPE_BUF ? iov->iov_len : PIPE_BUF);
	errno = -err;
	return -1;
}

/* Writes all of the bytes. On an error, the part that was written is removed again. */
static int writer_write_all(struct writer *w, struct iovec *iov, int n)
{
	uint64_t done = 0;

	while (n) {
		ssize_t put = write_some(w, iov, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0) {
			int err = put ? -errno : -EIO;

			if (w->regular && done && ftruncate(w->fd, (off_t)w->offset) < 0)
				err = err ? err : -errno;
			return fail(w, err);
		}
		done += (uint64_t)put;
		while (n && (size_t)put >= iov->iov_len) {
			put -= (ssize_t)iov->iov_len;
			iov++;
			n--;
		}
		if (n) {
			iov->iov_base = (char *)iov->iov_base + put;
			iov->iov_len -= (size_t)put;
		}
	}
	w->offset += done;
	return 0;
}

static void writer_remember(struct writer *w, const struct trace_block *b)
{
	if (w->no_index)
		return;
	if (w->nindex >= INDEX_MAX || !array_room(w->index, w->nindex)) {
		w->no_index = true;
		return;
	}
	w->index[w->nindex++] = (struct trace_index_entry){
		.offset = w->offset,
		.first_ns = b->first_ns,
		.last_ns = b->last_ns,
		.len = b->len,
		.records = b->records,
		.calls = b->calls,
		.type = b->type,
		.flags = b->flags,
	};
}

/* Writes a block. The caller has set the counts and times of *b; this function fills in the
 * rest. */
static int put_block(struct writer *w, struct trace_block *b, const void *body, uint32_t len)
{
	struct iovec iov[2] = { { b, sizeof(*b) }, { (void *)body, len } };

	if (w->error)
		return w->error;
	b->magic = TRACE_BLOCK_MAGIC;
	b->len = len;
	b->body_crc = (uint32_t)crc32(0, body, len);
	b->seq = w->seq;
	b->head_crc = (uint32_t)crc32(0, (const void *)b, offsetof(struct trace_block, head_crc));
	writer_remember(w, b);
	if (writer_write_all(w, iov, 2)) {
		w->missing = b->records;
		return w->error;
	}
	msg_debug(MSG_TRACE, "block %llu written: type %u, %u records, %u bytes",
		  (unsigned long long)w->seq, (unsigned int)b->type, (unsigned int)b->records, len);
	w->seq++;
	return 0;
}

static int writer_put_text(struct writer *w, enum trace_block_type type, const char *text)
{
	struct trace_block b = { .type = (uint8_t)type, .first_ns = UINT64_MAX };
	size_t n = strlen(text);

	return put_block(w, &b, text, (uint32_t)(n < TRACE_BODY_MAX ? n : TRACE_BODY_MAX));
}

/* Whether another recorder writes to the existing file. If we renamed it, that recorder would go on
 * writing under a name that nobody expects. */
static bool is_written(const struct safe_place *p)
{
	int fd = openat(p->dir, p->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	bool busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return busy;
}

/* Renames the existing file. Returns whether it did, with what the file was, or -errno. */
static int keep_old(const struct safe_place *p, struct stat *st)
{
	char old[NAME_MAX + 8];
	int err = safe_place_look(p, st);

	if (err)
		return err == -ENOENT ? 0 : err;
	if (!S_ISREG(st->st_mode))
		return 0;
	if (is_written(p))
		return -EBUSY;
	if (!st->st_size)
		return 0;
	snprintf(old, sizeof(old), "%s.old", p->name);
	err = safe_place_rename(p, old);
	return err ? err : 1;
}

/* Opens the file; what was there is kept under another name. Returns its descriptor or -errno. */
static int begin_file(const char *path)
{
	/* does not wait for a reader of a pipe. The file is for its owner only, as perf.data is,
	 * because it has the data that programs pass to CUDA. */
	const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	struct safe_place place;
	struct stat old;
	int fd = safe_place_find(&place, path);

	if (fd == -ENXIO) /* there is nothing to keep */
		return safe_open(path, flags, 0600);
	if (!fd)
		fd = keep_old(&place, &old);
	if (fd >= 0)
		fd = safe_place_open(&place, path, fd ? &old : NULL, flags, 0600);
	safe_place_close(&place);
	return fd;
}

static int writer_open_file(struct writer *w, const char *path)
{
	struct stat st;

	w->fd = begin_file(path);
	if (w->fd < 0)
		return w->fd;
	if (fstat(w->fd, &st) < 0 || fcntl(w->fd, F_SETFL, 0) < 0)
		return -errno;
	w->regular = S_ISREG(st.st_mode);
	if (!w->regular)
		return 0;
	/* not all file systems have locks */
	if (flock(w->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return -EBUSY;
	if (ftruncate(w->fd, 0) < 0)
		return -errno;
	unfinished_begun(w->fd, NULL);
	return 0;
}

const char *writer_error(int err)
{
	switch (err) {
	case -EBUSY: return "another recorder writes to it";
	case -ENXIO: return "it is a pipe that nobody reads";
	case -EPIPE: return "nobody reads it any more";
	default: return strerror(-err);
	}
}

int writer_open(struct writer **out, const char *path, const char *head)
{
	struct iovec magic = { (void *)TRACE_MAGIC, TRACE_MAGIC_LEN };
	struct writer *w = calloc(1, sizeof(*w));
	int err;

	*out = NULL;
	if (!w)
		return -ENOMEM;
	w->fd = -1;
	w->encoder = encode_open();
	err = w->encoder ? writer_open_file(w, path) : -ENOMEM;
	if (!err)
		err = writer_write_all(w, &magic, 1);
	if (!err)
		err = writer_put_text(w, TRACE_HEAD, head);
	if (err) {
		writer_close(w);
		return err;
	}
	*out = w;
	return 0;
}

void writer_numbers(struct writer *w, struct numbers *n)
{
	encode_numbers(w->encoder, n);
}

void writer_stop(struct writer *w, const volatile int *stop)
{
	w->stop = stop;
}

int writer_record(struct writer *w, const struct ct_hdr *h)
{
	int n;

	if (w->error)
		return w->error;
	n = encode_record(w->encoder, h);
	if (n < 0)
		return 0;
	return n ? writer_flush(w) : 0;
}

int writer_flush(struct writer *w)
{
	struct trace_block b = { .type = TRACE_DATA };
	const void *body;
	uint32_t len;
	int err;

	if (w->error || !encode_sums(w->encoder, &b))
		return w->error;
	err = encode_finish(w->encoder, &body, &len);
	return err ? fail(w, err) : put_block(w, &b, body, len);
}

int writer_block(struct writer *w, const struct trace_block *from, const void *body)
{
	struct trace_block b = *from;
	int err = writer_flush(w);

	return err ? err : put_block(w, &b, body, from->len);
}

int writer_end(struct writer *w, const char *text)
{
	struct trace_tail tail = { .magic = TRACE_TAIL_MAGIC };
	struct trace_block b = { .type = TRACE_INDEX, .first_ns = UINT64_MAX };
	size_t bytes;
	char *body;
	int err;

	err = writer_flush(w);
	if (!err)
		err = writer_put_text(w, TRACE_END, text);
	if (err || w->no_index)
		return err;
	bytes = w->nindex * sizeof(*w->index);
	body = malloc(bytes + sizeof(tail));
	if (!body)
		return 0; /* the file is read without an index */
	tail.offset = w->offset;
	memcpy(body, w->index, bytes);
	memcpy(body + bytes, &tail, sizeof(tail));
	err = put_block(w, &b, body, (uint32_t)(bytes + sizeof(tail)));
	free(body);
	return err;
}

int writer_close(struct writer *w)
{
	int err;

	if (!w)
		return 0;
	err = w->error;
	if (w->fd >= 0 && close(w->fd) < 0 && !err)
		err = -errno;
	encode_close(w->encoder);
	free(w->index);
	free(w);
	return err;
}

bool writer_is_regular(const struct writer *w)
{
	return w->regular;
}

uint64_t writer_bytes(const struct writer *w)
{
	return w->offset;
}

uint64_t writer_most(const struct writer *w, size_t record_bytes)
{
	/* this block, the end and the index */
	return w->offset + 3 * sizeof(struct trace_block) + encode_most(w->encoder, record_bytes) +
	       WRITER_END_MAX + (w->nindex + 2) * sizeof(struct trace_index_entry) +
	       sizeof(struct trace_tail);
}

uint64_t writer_missing(const struct writer *w)
{
	return w->missing;
}
