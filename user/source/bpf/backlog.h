/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backlog.h - passes records from the ring buffer to the code that handles them, and stores them
 * while that code is slow: when a sink's disk or reader stalls, or a new stack must be resolved. A
 * thread moves what waits in the ring to a bounded queue; when that is full too the ring fills, and
 * what is lost is counted as ever.
 */
#ifndef CT_BACKLOG_H
#define CT_BACKLOG_H

#include "ring.h"

#define BACKLOG_RECORD_MAX (64u << 10) /* bytes of a record */

struct backlog;

/* When the thread takes records off the ring. */
enum backlog_when {
	/* when the ring is a quarter full, because its reader is late. Records that are read in
	 * time are copied only once */
	BACKLOG_LATE,
	/* always, for records so large that the ring could be full before the reader notices */
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
/* Up to here something has been begun in the ring. */
unsigned long backlog_mark(const struct backlog *);
/* The new value of what source_ops.complete() says, which was `before`: asked_ns, if all has been handed out that
 * had been begun when `mark` was taken, just after that moment. Else it is what the end of the last record, last_ns,
 * tells: a record that a program of the kernel has begun, and could not complete for want of a processor, holds up
 * all behind it, so that an empty read says nothing. */
uint64_t backlog_complete(struct backlog *, unsigned long mark, uint64_t asked_ns, uint64_t last_ns,
			  uint64_t before);
void backlog_close(struct backlog *); /* takes NULL; what is in the queue is dropped */

#endif
