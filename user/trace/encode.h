/* SPDX-License-Identifier: BSD-2-Clause */
/* encode.h - records become the body of a block. Knows nothing of files. */
#ifndef CT_TRACE_ENCODE_H
#define CT_TRACE_ENCODE_H

#include "numbers.h"

#define ENCODE_FULL (256u << 10) /* bytes before compression, about: the block is to be written */

struct encoder;
struct encoder *encode_open(void); /* NULL: no memory */
void encode_close(struct encoder *);

/* From now on each block says the numbers of its calls, which are counted here; what a CT_NUMBER
 * says is counted too, and it is not stored as it is. The caller keeps them. */
void encode_numbers(struct encoder *, struct numbers *);

/* Adds a checked record. Returns 1 when the block is full, 0 when it is not, or -EINVAL for a
 * record that no file has (the raw ones that the resolve stage takes, what is too large to be a
 * call, and a size that is none: a reader could not tell where the next record begins). */
int encode_record(struct encoder *, const struct ct_hdr *);

/* Bytes that encode_finish() makes at the most when one record more, of this size, is in the block. */
size_t encode_most(const struct encoder *, size_t record_bytes);

/* The block so far: fills in flags, times and counts of *b. Returns the number of records. */
uint32_t encode_sums(const struct encoder *, struct trace_block *b);

/* Compresses it; the next record begins another. *body is the encoder's, until the next call.
 * Returns 0 or -errno. */
int encode_finish(struct encoder *, const void **body, uint32_t *len);

#endif
