/* SPDX-License-Identifier: BSD-2-Clause */
/* ring.c - reads a BPF ring buffer. See ring.h. */
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring.h"

#define PUBLISH_BYTES (64 * 1024)

int ring_open(struct ring *r, int map_fd, uint32_t size)
{
	void *p;
	int err;

	memset(r, 0, sizeof(*r));
	r->map_fd = map_fd;
	r->size = size;
	r->mask = size - 1;
	r->page = sysconf(_SC_PAGESIZE);
	p = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (p == MAP_FAILED) {
		err = -errno;
		return err;
	}
	r->consumer = p;
	p = mmap(NULL, r->page + 2 * (size_t)size, PROT_READ, MAP_SHARED, map_fd, r->page);
	if (p == MAP_FAILED) {
		err = -errno;
		ring_close(r);
		return err;
	}
	r->producer = p;
	r->data = (const uint8_t *)p + r->page;
	r->pos = r->published = *r->consumer;
	return 0;
}

static unsigned long load_acquire(const volatile unsigned long *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void publish(struct ring *r)
{
	r->published = r->pos;
	__atomic_store_n(r->consumer, r->pos, __ATOMIC_RELEASE);
}

unsigned long ring_end(const struct ring *r)
{
	return load_acquire(r->producer);
}

size_t ring_filled(const struct ring *r)
{
	return load_acquire(r->producer) - r->pos;
}

size_t ring_take(struct ring *r, void *to, size_t room)
{
	unsigned long end = load_acquire(r->producer);
	uint32_t batch = r->size / 4 < PUBLISH_BYTES ? r->size / 4 : PUBLISH_BYTES;
	size_t at = 0;

	while (r->pos != end) {
		const uint32_t *head = (const uint32_t *)(r->data + (r->pos & r->mask));
		uint32_t len = __atomic_load_n(head, __ATOMIC_ACQUIRE);
		uint64_t size = len & ~BPF_RINGBUF_DISCARD_BIT;

		if (len & BPF_RINGBUF_BUSY_BIT)
			break;
		if (!(len & BPF_RINGBUF_DISCARD_BIT)) {
			if (room - at < RING_TAKEN(size))
				break;
			memcpy((char *)to + at, &size, sizeof(size));
			memcpy((char *)to + at + sizeof(size),
			       (const uint8_t *)head + BPF_RINGBUF_HDR_SZ, size);
			at += RING_TAKEN(size);
		}
		r->pos += (size + BPF_RINGBUF_HDR_SZ + 7) & ~7UL;
		if (r->pos - r->published >= batch)
			publish(r);
		if (r->pos == end)
			end = load_acquire(r->producer);
	}
	/* no more often than it has to be, though the room that is taken is small */
	if (r->pos == end && r->pos != r->published)
		publish(r);
	return at;
}

void ring_close(struct ring *r)
{
	if (r->consumer)
		munmap((void *)r->consumer, r->page);
	if (r->producer)
		munmap((void *)r->producer, r->page + 2 * (size_t)r->size);
	memset(r, 0, sizeof(*r));
}
