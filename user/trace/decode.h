/* SPDX-License-Identifier: BSD-2-Clause */
/* decode.h - turns the body of a block back into records. Trusts nothing in the body. Knows nothing
 * of files. */
#ifndef CT_TRACE_DECODE_H
#define CT_TRACE_DECODE_H

#include "funcs.h"

struct decoder;
struct decoder *decode_open(struct funcs *); /* NULL: no memory; the functions stay the caller's */
void decode_close(struct decoder *);

/* Takes the body of a TRACE_DATA block. The caller may free the body afterwards. Returns 0,
 * -ENOMEM, or -EBADMSG. */
int decode_block(struct decoder *, const void *body, size_t len);

/*
 * Returns the next record, valid until the next call. For calls, *func is the function. If this
 * version does not know the function (row -1), only the record's head, its result and its words are
 * valid. For other records *func is NULL, and the record is as it was stored: the caller must check
 * it (record_check()). Returns 1, 0 at the end of the block, or -EBADMSG.
 */
int decode_next(struct decoder *, struct ct_hdr **rec, struct trace_func **func);

#endif
