/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flight.h - the last seconds of a trace in memory, as blocks that only need to be written.
 * Before the oldest of them stand the definitions of all that was dropped. Knows no file and no
 * sink.
 */
#ifndef CT_TRACE_RING_H
#define CT_TRACE_RING_H

#include "format.h"

struct ring_buf;
struct writer;

/* Keeps what is younger than last_ns, and at most max_bytes of it. NULL: no memory. */
struct ring_buf *ring_buf_open(uint64_t last_ns, uint64_t max_bytes);
void ring_buf_close(struct ring_buf *);
/* Adds a checked record. Returns 0 or -ENOMEM. */
int ring_buf_record(struct ring_buf *, const struct ct_hdr *);
/* The block begun is complete; drops what is too old at now_ns. Returns 0 or -errno. */
int ring_buf_flush(struct ring_buf *, uint64_t now_ns);
/* Writes all that is kept. Nothing of it is forgotten. Returns 0 or -errno. */
int ring_buf_write(struct ring_buf *, struct writer *);
/* Records that were dropped for want of room although they were young enough. */
uint64_t ring_buf_crowded(const struct ring_buf *);
/* Names, stacks and frames for which there was no room. */
uint64_t ring_buf_unnamed(const struct ring_buf *);
uint64_t ring_buf_bytes(const struct ring_buf *);

#endif
