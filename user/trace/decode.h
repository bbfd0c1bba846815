/* SPDX-License-Identifier: BSD-2-Clause */
/* decode.h - the body of a block becomes records again. Trusts nothing in it. Knows nothing of
 * files. */
#ifndef CT_TRACE_DECODE_H
#define CT_TRACE_DECODE_H

#include "funcs.h"

struct decoder;
struct decoder *decode_open(struct funcs *); /* NULL: no memory; the functions stay the caller's */
void decode_close(struct decoder *);

/* Takes the body of a TRACE_DATA block; it need not stay. Returns 0, -ENOMEM, or -EBADMSG. */
int decode_block(struct decoder *, const void *body, size_t len);

/*
 * The next record, valid until the next call. For calls *func is the function; where this
 * version does not know it (row -1) only the head of the record, its result and words mean
 * anything. Other records: *func is NULL, and they are as they were stored: whoever uses them
 * checks them (record_check()). Returns 1, 0 at the end of the block, or -EBADMSG.
 */
int decode_next(struct decoder *, struct ct_hdr **rec, struct trace_func **func);

#endif
