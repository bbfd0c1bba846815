/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * writer.h - writes one recording. It appends blocks to a file and never changes them again. It
 * makes no records and knows no sink; format.h has the layout.
 */
#ifndef CT_TRACE_WRITER_H
#define CT_TRACE_WRITER_H

#include "numbers.h"

struct writer;

/*
 * Opens `path` and writes the head, lines "key value". An existing file is first renamed to
 * PATH.old; if it is a symbolic link, the file that the link leads to is renamed. If it is not a
 * regular file (a pipe, /dev/null), it is written to. Returns 0, or -errno and *w is NULL. -EBUSY:
 * another recorder writes to the file; -ENXIO: it is a pipe that nobody reads.
 */
int writer_open(struct writer **w, const char *path, const char *head);
/* Returns what such an error means, for a message: "cannot write to FILE: ..." */
const char *writer_error(int err);
/* As encode_numbers(). */
void writer_numbers(struct writer *, struct numbers *);
/* From now on, the writer stops waiting for a pipe's reader that reads nothing once *stop is set,
 * as out_wait() does. The pointer is kept. NULL: the writer waits. */
void writer_stop(struct writer *, const volatile int *stop);
/* Adds a checked record to the block, and writes the block when it is full. Returns 0 or -errno;
 * after an error every later call returns it too. A record that no file may have is left out. */
int writer_record(struct writer *, const struct ct_hdr *);
/* Writes the current block. */
int writer_flush(struct writer *);
/* Writes a block that was made elsewhere: a body of TRACE_DATA, with its counts and times in *b. */
int writer_block(struct writer *, const struct trace_block *b, const void *body);
/* Writes the end block (lines "key value") and the index. */
int writer_end(struct writer *, const char *text);
/* Closes the file. Returns the first error of the writer, or the error of close. Returns 0 for
 * NULL. */
int writer_close(struct writer *);

/* Whether it is a file that may get another name: no pipe, no device. */
bool writer_is_regular(const struct writer *);
uint64_t writer_bytes(const struct writer *); /* in the file */
/* Returns the maximum size of the file after one more record of this size and the end are written.
 * The end's text has at most WRITER_END_MAX bytes. */
#define WRITER_END_MAX 4096
uint64_t writer_most(const struct writer *, size_t record_bytes);
/* records that were taken and could not be written */
uint64_t writer_missing(const struct writer *);

#endif
