/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backlog.h - the way from the ring buffer to whoever handles its records, and the memory in
 * which they wait when that takes long: a sink whose disk or reader stalls, the resolving of a
 * stack that was not seen before. A thread moves what waits in the ring to a bounded queue; when
 * that is full too the ring fills, and what is lost is counted as ever.
 */
#ifndef CT_BACKLOG_H
#define CT_BACKLOG_H

#include "ring.h"

#define BACKLOG_RECORD_MAX (64u << 10) /* bytes of a record */

struct backlog;

/* When the thread takes records off the ring. */
enum backlog_when {
	/* when the ring is a quarter full: whoever reads it is late. Records that come in time
	 * are copied once */
	BACKLOG_LATE,
	/* always: records so large that a ring is full before anybody knows that they come */
	BACKLOG_EARLY,
};

/* The ring stays the caller's and is read by nobody else until backlog_close(). max_bytes: of
 * the queue. NULL: no memory, or no thread. */
struct backlog *backlog_open(struct ring *, enum backlog_when, uint64_t max_bytes);
/* Hands out at most `max` records in their order, each once, until there is none in the queue
 * and the ring. A record that fn() answers with a non-zero value still counts as read, and is
 * the last one. Returns the number of records, or fn's value when that is negative. Not from
 * inside fn(). */
long backlog_read(struct backlog *, long max, int (*fn)(void *ctx, const void *rec, size_t size),
		  void *ctx);
void backlog_close(struct backlog *); /* takes NULL; what is in the queue is dropped */

#endif
