/* SPDX-License-Identifier: BSD-2-Clause */
/* encode.h - turns records into the body of a block. Knows nothing of files. */
#ifndef CT_TRACE_ENCODE_H
#define CT_TRACE_ENCODE_H

#include "numbers.h"

/* approximate bytes before compression; then the block must be written */
#define ENCODE_FULL (256u << 10)

struct encoder;
struct encoder *encode_open(void); /* NULL: no memory */
void encode_close(struct encoder *);

/* From now on each block contains the numbers of its calls. The encoder counts the calls; it also
 * takes the counts from CT_NUMBER records, and does not store these records themselves. The caller
 * owns `numbers`. */
void encode_numbers(struct encoder *, struct numbers *);

/* Adds a checked record. Returns 1 when the block is full, 0 when it is not, or -EINVAL for a
 * record that no file may have: a raw record for the resolve stage, a record that is larger than a
 * call can be, or a record whose size is not valid (a reader would not know where the next record
 * begins). */
int encode_record(struct encoder *, const struct ct_hdr *);

/* Returns the maximum number of bytes that encode_finish() makes if one more record of this size is
 * added to the block. */
size_t encode_most(const struct encoder *, size_t record_bytes);

/* Fills in the flags, times and counts of *b for the block so far. Returns the number of
 * records. */
uint32_t encode_sums(const struct encoder *, struct trace_block *b);

/* Compresses the block; the next record begins a new one. The encoder owns *body, which is valid
 * until the next call. Returns 0 or -errno. */
int encode_finish(struct encoder *, const void **body, uint32_t *len);

#endif
