/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.h - reads a BPF ring buffer.
 *
 * libbpf's reader publishes the consumer's position after every record, and the position lies in
 * the cache line that the producing CPU, the traced program's, reads for every record. This one
 * publishes it once per 64 KiB, which is what keeps the target's cost low while records are
 * being read. The layout is that of kernel/bpf/ringbuf.c.
 */
#ifndef CT_RING_H
#define CT_RING_H

#include "../../util/types.h"

struct ring {
	int map_fd;
	uint32_t size, mask, page;
	volatile unsigned long *consumer; /* mapped read-write */
	volatile unsigned long *producer; /* mapped read-only, the data behind it, twice */
	const uint8_t *data;
	unsigned long pos, published; /* taken up to here; what the kernel knows of it */
};

/* Returns 0 or -errno. */
int ring_open(struct ring *, int map_fd, uint32_t size);
/* What a record of `size` bytes takes in memory once it is taken: its size in 8 bytes, then
 * itself, padded to 8. */
#define RING_TAKEN(size) (sizeof(uint64_t) + (((size) + 7) & ~(uint64_t)7))
/* Copies whole records in their order, as many as are there and find room; each once. Returns
 * the bytes. */
size_t ring_take(struct ring *, void *to, size_t room);
/* The end of what has ever been begun, in bytes since the ring was made. */
unsigned long ring_end(const struct ring *);
size_t ring_filled(const struct ring *); /* bytes that have not been taken */
void ring_close(struct ring *);		 /* safe when zeroed */

#endif
