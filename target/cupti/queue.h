/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue.h - records on their way from any thread to the agent's. A producer never waits and takes
 * no lock: it reserves a place, writes, commits. If there is no room, the record is counted as
 * lost. The queue has a fixed size, is allocated once, and is kept for the next attach. It knows
 * nothing of CUPTI.
 */
#ifndef CT_QUEUE_H
#define CT_QUEUE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../wire/cudatrace.h"

#define QUEUE_BYTES (16u << 20)

int queue_open(void);  /* 0 or -ENOMEM; empties the queue if it already exists */
void queue_rest(void); /* gives its memory back until it is used again */
/* Returns a place for a record of n bytes (rounded up to 8), all zero; NULL if there is no room,
 * which is counted. queue_commit() must follow. */
void *queue_reserve(size_t n);
void queue_commit(void *place);
/* Copies whole records to out, up to size bytes. Only for the agent's thread. Returns the number of
 * bytes. */
size_t queue_take(char *out, size_t size);
size_t queue_used(void);
uint64_t queue_lost(void); /* since the queue was opened */

#endif
