/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * writer.h - one recording being written: blocks at the end of a file, never changed again.
 * Makes no records and knows no sink; format.h says what goes where.
 */
#ifndef CT_TRACE_WRITER_H
#define CT_TRACE_WRITER_H

#include "numbers.h"

struct writer;

/*
 * Opens `path` and writes the head, lines "key value". A file that is there is renamed to
 * PATH.old first (of a symbolic link, what it leads to); what is no regular file (a pipe,
 * /dev/null) is written to. Returns 0 or -errno; *w is NULL then. -EBUSY: another recorder
 * writes to it; -ENXIO: it is a pipe that nobody reads.
 */
int writer_open(struct writer **w, const char *path, const char *head);
/* what such an error means, for a message: "cannot write to FILE: ..." */
const char *writer_error(int err);
/* As encode_numbers(). */
void writer_numbers(struct writer *, struct numbers *);
/* From here on a pipe's reader that takes nothing does not keep the writer, as out_wait() has
 * it. Kept by pointer; NULL: it does. */
void writer_stop(struct writer *, const volatile int *stop);
/* Adds a checked record to the block; writes the block when it is full. Returns 0 or -errno,
 * which stays; a record that no file has is left out. */
int writer_record(struct writer *, const struct ct_hdr *);
/* Writes the block begun. */
int writer_flush(struct writer *);
/* Writes a block made elsewhere: a body of TRACE_DATA and its sums in *b. */
int writer_block(struct writer *, const struct trace_block *b, const void *body);
/* The last block, lines "key value", and the index. */
int writer_end(struct writer *, const char *text);
/* Closes the file. Returns the error that stays, or close's. NULL: 0. */
int writer_close(struct writer *);

uint64_t writer_bytes(const struct writer *); /* in the file */
/* That the file has at the most once one record more, of this size, and its end are in it; the
 * end's text is WRITER_END_MAX long. */
#define WRITER_END_MAX 4096
uint64_t writer_most(const struct writer *, size_t record_bytes);
/* records that were taken and could not be written */
uint64_t writer_missing(const struct writer *);

#endif
