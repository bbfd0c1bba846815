/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.h - records on their way from any thread to the agent's. A producer never waits and takes no lock: it reserves a
 * place, writes, commits; when there is no room the record is counted as lost. Bounded, allocated once, kept for the next
 * attach. Knows nothing of CUPTI.
 */
#ifndef CT_RING_H
#define CT_RING_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../bpf/cudatrace.h"

#define RING_BYTES (8u << 20)

int ring_open(void);   /* 0 or -ENOMEM; empties it when it is there already */
void ring_rest(void);  /* gives its memory back until it is used again */
/* A place for a record of n bytes (rounded up to 8), all zero; NULL: no room, counted. ring_commit() must follow. */
void *ring_reserve(size_t n);
void ring_commit(void *place);
/* Copies whole records to out, up to size bytes. The agent's thread alone. Returns the number of bytes. */
size_t ring_take(char *out, size_t size);
size_t ring_used(void);
uint64_t ring_lost(void); /* since the ring was opened */

#endif
