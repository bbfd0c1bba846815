/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_reader.h - passes records from the processes' areas to the code that handles them, and stores
 * them while that code is slow. A thread moves what is in the rings to one bounded queue, a small piece
 * of each ring in turn; when that is full too the rings fill, and what is lost is counted by who writes
 * them. Whoever owns the reader takes the records from the queue, in that order. Knows no socket.
 */
#ifndef CT_HOOKS_READER_H
#define CT_HOOKS_READER_H

#include "hooks_ring.h"

struct hooks_reader;

/* max_bytes: of the queue. thread: false: rings are looked at only in the functions below. NULL: no
 * memory, or no thread. */
struct hooks_reader *hooks_reader_open(uint64_t max_bytes, bool thread);
/* Takes NULL. Its rings stay the caller's; what is in the queue is dropped. */
void hooks_reader_close(struct hooks_reader *);

/* From here on the ring is read. One that is read already stays. 0 or -ENOMEM. */
int hooks_reader_add(struct hooks_reader *, struct hooks_ring *);
/* It is not touched any more, and may be closed. What is in the queue of it is dropped. */
void hooks_reader_remove(struct hooks_reader *, struct hooks_ring *);

/* All that was written before this moment (CLOCK_MONOTONIC, ns) was taken. */
uint64_t hooks_reader_complete(struct hooks_reader *);
/* Takes what was written before the call, of all rings, at most until the batch is full. 0; 1: there may
 * be more; -ENOMEM. A ring that makes no sense is left (hooks_ring_turned_bad()). */
int hooks_reader_read(struct hooks_reader *, struct hooks_batch *);
/* The same until all of one ring is in the batch, into which nobody writes any more. What others wrote
 * before goes before it. */
int hooks_reader_last(struct hooks_reader *, struct hooks_ring *, struct hooks_batch *);
/* hooks_ring_sweep() of a ring that is read. */
int hooks_reader_sweep(struct hooks_reader *, struct hooks_ring *, struct hooks_batch *under_way);

#endif
