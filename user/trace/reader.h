/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.h - reads a recording, block after block. Where bytes are damaged, it continues with the
 * next whole block. The records that it returns have passed record_check(). What it could not read
 * is counted, and reported as CT_LOST records. Its memory is bounded, whatever the file contains.
 * Knows no source and no sink.
 */
#ifndef CT_TRACE_READER_H
#define CT_TRACE_READER_H

#include "funcs.h"

struct reader;

/* Opens `path` and reads its head. Returns 0 or -errno. -ENODATA: the file is empty or cut off
 * within the head; -EBADMSG: it is not a recording, or its head is damaged; -EPROTONOSUPPORT: its
 * format is newer than this program. */
int reader_open(struct reader **, const char *path);
/* The same for an open file, whose position is not used. The caller still owns the descriptor. This
 * is needed because after privileges are dropped, the path may not be opened again. */
int reader_open_fd(struct reader **, int fd);
int reader_fd(const struct reader *);
void reader_close(struct reader *);
/* Returns what such an error means, for a message: "cannot read FILE: ..." */
const char *reader_error(int err);

/* Return the lines of the head, NUL-terminated, and those of the end block. NULL: the end block was
 * not read yet, or there is none. */
const char *reader_head(const struct reader *);
const char *reader_end(const struct reader *);
/* Finds the line "key value" in such a text, and copies the value to buf as UTF-8 that can be shown
 * (utf8_plain). NULL: there is no such line. */
const char *reader_value(const char *text, const char *key, char *buf, size_t size);
/* The same, as a number; 0: there is no such line. */
uint64_t reader_number(const char *text, const char *key);

/* From now on, blocks that are outside this time and have no definitions are skipped. Single
 * records outside this time are not skipped. */
void reader_range(struct reader *, uint64_t from_ns, uint64_t to_ns);

/* Reads the next record, valid until the next call. Returns 1, or 0 at the end, or -errno (the file
 * cannot be read, or no memory). */
int reader_next(struct reader *, const struct ct_hdr **rec);

/*
 * Instead of reader_next(): moves over the next block of records without reading them. They began at
 * *first_ns at the earliest and ended at *last_ns at the latest; UINT64_MAX, 0: they have no times.
 * Returns 1, 0 or -errno as reader_next() does.
 */
int reader_next_span(struct reader *, uint64_t *first_ns, uint64_t *last_ns);
/* Reads the next record of the block that reader_next_span() moved over. Returns 1, or 0 behind its last
 * one, or -errno. */
int reader_span_record(struct reader *, const struct ct_hdr **rec);

/* How many bytes of the file have been read. */
uint64_t reader_at(const struct reader *);

/* Starts again at the first record. */
void reader_rewind(struct reader *);

struct reader_stats {
	uint64_t bytes;	  /* of the file */
	uint64_t blocks;  /* blocks of records, read or skipped */
	uint64_t records; /* returned by reader_next() */
	uint64_t damaged; /* number of places that could not be read */
	/* bytes and records in these places; the records as far as they are known */
	uint64_t damaged_bytes, lost_records;
	/* records that were not valid, although the block's checksum was right */
	uint64_t malformed;
	uint64_t cut_bytes; /* bytes at the end of the file, after the last whole block */
	bool ended;	    /* the file has its end block: the recorder was not killed */
	bool indexed;
};
void reader_stats(const struct reader *, struct reader_stats *);
struct funcs *reader_funcs(struct reader *); /* the functions read so far */

#endif
