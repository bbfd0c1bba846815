/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.h - reads a BPF ring buffer.
 *
 * libbpf's reader publishes the consumer's position after every record, and the position lies in the cache line that the
 * producing CPU, the traced program's, reads for every record. This one publishes it once per 64 KiB, which is what keeps
 * the target's cost low while records are being read. The layout is that of kernel/bpf/ringbuf.c.
 */
#ifndef CT_RING_H
#define CT_RING_H

#include "../util/types.h"

struct ring {
	int map_fd;
	uint32_t size, mask, page;
	volatile unsigned long *consumer; /* mapped read-write */
	volatile unsigned long *producer; /* mapped read-only, the data behind it, twice */
	const uint8_t *data;
	unsigned long pos;
};

/* Returns 0 or -errno. */
int ring_open(struct ring *, int map_fd, uint32_t size);
/* Hands out at most `max` records, each once. A record that fn() answers with a non-zero value still counts as read.
 * Returns the number of records handed out, or fn's non-zero value when it is negative. */
long ring_read(struct ring *, long max, int (*fn)(void *ctx, const void *rec, size_t size), void *ctx);
void ring_close(struct ring *); /* safe when zeroed */

#endif
