/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.h - reads a recording back: block after block, and from the next whole one on where
 * bytes are damaged. What it hands out has passed record_check(); what it could not read it
 * counts and tells as CT_LOST records. Bounded memory, whatever the file says. Knows no source
 * and no sink.
 */
#ifndef CT_TRACE_READER_H
#define CT_TRACE_READER_H

#include "funcs.h"

struct reader;

/* Opens `path` and reads its head. Returns 0; -errno; -ENODATA: it is empty or cut off within
 * the head; -EBADMSG: it is no recording, or its head is damaged; -EPROTONOSUPPORT: of a format
 * that is newer than this program. */
int reader_open(struct reader **, const char *path);
/* The same of an open file, whose position is not used; the descriptor stays the caller's. Once
 * privileges are given up a path may not be opened again. */
int reader_open_fd(struct reader **, int fd);
int reader_fd(const struct reader *);
void reader_close(struct reader *);
/* what such an error means, for a message: "cannot read FILE: ..." */
const char *reader_error(int err);

/* The head's lines, NUL-terminated, and the end's; NULL: the end was not met (yet), or is not
 * there. */
const char *reader_head(const struct reader *);
const char *reader_end(const struct reader *);
/* The value of the line "key value" in such a text, copied to buf as UTF-8 that can be shown
 * (utf8_plain). NULL: no such line. */
const char *reader_value(const char *text, const char *key, char *buf, size_t size);
/* the same as a number; 0: no such line */
uint64_t reader_number(const char *text, const char *key);

/* From now on, blocks that lie outside of this time and hold no definitions are passed over.
 * Their records are not. */
void reader_range(struct reader *, uint64_t from_ns, uint64_t to_ns);

/* The next record, valid until the next call. Returns 1, 0 at the end, or -errno (the file
 * cannot be read, no memory). */
int reader_next(struct reader *, const struct ct_hdr **rec);

/* From the first record again. */
void reader_rewind(struct reader *);

struct reader_stats {
	uint64_t bytes;			      /* of the file */
	uint64_t blocks;		      /* of records, read or passed over */
	uint64_t records;		      /* handed out */
	uint64_t damaged;		      /* stretches that could not be read */
	uint64_t damaged_bytes, lost_records; /* in these; records as far as that is known */
	/* records that were no such thing, though the block's sum was right */
	uint64_t malformed;
	uint64_t cut_bytes; /* at the end, after the last whole block */
	bool ended;	    /* it has its end: whoever wrote it was not killed */
	bool indexed;
};
void reader_stats(const struct reader *, struct reader_stats *);
struct funcs *reader_funcs(struct reader *); /* as far as they have been met */

#endif
