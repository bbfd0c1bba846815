/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flight.h - keeps the last seconds of a trace in memory, as blocks that are ready to be written.
 * The definitions of the dropped blocks are kept too, and are written before the oldest block.
 * Knows no file and no sink.
 */
#ifndef CT_TRACE_RING_H
#define CT_TRACE_RING_H

#include "format.h"

struct ring_buf;
struct writer;

/* Keeps the records of the last last_ns, in at most max_bytes of memory. NULL: no memory. */
struct ring_buf *ring_buf_open(uint64_t last_ns, uint64_t max_bytes);
void ring_buf_close(struct ring_buf *);
/* Adds a checked record. Returns 0 or -ENOMEM. */
int ring_buf_record(struct ring_buf *, const struct ct_hdr *);
/* Completes the current block, and drops what is too old at now_ns. Returns 0 or -errno. */
int ring_buf_flush(struct ring_buf *, uint64_t now_ns);
/* Writes everything that is kept, and still keeps it. Returns 0 or -errno. */
int ring_buf_write(struct ring_buf *, struct writer *);
/* Number of records that were dropped because there was no room, although they were young
 * enough. */
uint64_t ring_buf_crowded(const struct ring_buf *);
/* Number of names, stacks and frames for which there was no room. */
uint64_t ring_buf_unnamed(const struct ring_buf *);
uint64_t ring_buf_bytes(const struct ring_buf *);

#endif
