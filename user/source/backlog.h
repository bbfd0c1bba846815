/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backlog.h - keeps the ring buffer empty while records wait in memory: stacks are large, and to resolve one that was not
 * seen before takes longer than the ring has room for. A thread moves records from the ring to a bounded queue; when that
 * is full too the ring fills, and what is lost is counted as ever.
 */
#ifndef CT_BACKLOG_H
#define CT_BACKLOG_H

#include "ring.h"

struct backlog;

/* The ring stays the caller's and is read by nobody else until backlog_close(). NULL: no memory, or no thread. */
struct backlog *backlog_open(struct ring *, uint64_t max_bytes);
/* As ring_read(), with all that is in the ring at the time of the call. */
long backlog_read(struct backlog *, long max, int (*fn)(void *ctx, const void *rec, size_t size), void *ctx);
void backlog_close(struct backlog *); /* takes NULL; what is in the queue is dropped */

#endif
