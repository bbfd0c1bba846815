/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue.c - see queue.h.
 *
 * `head` counts the bytes ever reserved, `tail` those taken. A record is preceded by 16 bytes: a
 * word that says that it is committed, which is its position mixed with a key, so that no old bytes
 * from an earlier round can look like it, and its length. A record that does not fit before the end
 * of the memory is preceded by a piece that only fills.
 */
#include "../common/compat.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "queue.h"

struct piece {
	_Atomic uint64_t ready;
	uint32_t len;  /* of the record; 0: only fills */
	uint32_t size; /* with this */
};

#define READY(pos) (((pos) + 1) * 0x9e3779b97f4a7c15ULL)

static char *data;
static _Atomic uint64_t head, tail, lost;

int queue_open(void)
{
	if (!data) {
		void *p = mmap(NULL, QUEUE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return -ENOMEM;
		data = p;
	}
	atomic_store(&tail, atomic_load(&head));
	atomic_store(&lost, 0);
	return 0;
}

void queue_rest(void)
{
	if (data)
		madvise(data, QUEUE_BYTES, MADV_DONTNEED);
}

static struct piece *piece_at(uint64_t pos)
{
	return (struct piece *)(data + (pos & (QUEUE_BYTES - 1)));
}

void *queue_reserve(size_t n)
{
	uint64_t pos, room, fill, size = (n + 7 + sizeof(struct piece)) & ~7ULL;
	struct piece *p;

	if (!data)
		return NULL;
	pos = atomic_load_explicit(&head, memory_order_relaxed);
	do {
		room = QUEUE_BYTES - (pos & (QUEUE_BYTES - 1));
		/* the rest at the end must have room for the head of a piece */
		fill = room < size || (room - size && room - size < sizeof(*p)) ? room : 0;
		if (pos + fill + size - atomic_load_explicit(&tail, memory_order_acquire) >
		    QUEUE_BYTES) {
			atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
			return NULL;
		}
	} while (!atomic_compare_exchange_weak(&head, &pos, pos + fill + size));
	if (fill) {
		p = piece_at(pos);
		p->len = 0;
		p->size = (uint32_t)fill;
		atomic_store_explicit(&p->ready, READY(pos), memory_order_release);
		pos += fill;
	}
	p = piece_at(pos);
	p->len = (uint32_t)((n + 7) & ~(size_t)7);
	p->size = (uint32_t)size;
	memset(p + 1, 0, p->len);
	/* stores the position for the commit; the record is not marked as ready yet */
	atomic_store_explicit(&p->ready, pos, memory_order_relaxed);
	return p + 1;
}

void queue_commit(void *place)
{
	struct piece *p = (struct piece *)place - 1;
	uint64_t pos = atomic_load_explicit(&p->ready, memory_order_relaxed);

	atomic_store_explicit(&p->ready, READY(pos), memory_order_release);
}

size_t queue_take(char *out, size_t size)
{
	uint64_t pos = atomic_load_explicit(&tail, memory_order_relaxed);
	size_t n = 0;

	while (data && pos != atomic_load_explicit(&head, memory_order_acquire)) {
		struct piece *p = piece_at(pos);

		if (atomic_load_explicit(&p->ready, memory_order_acquire) != READY(pos) ||
		    p->len > size - n)
			break;
		memcpy(out + n, p + 1, p->len);
		n += p->len;
		pos += p->size;
		atomic_store_explicit(&tail, pos, memory_order_release);
	}
	return n;
}

size_t queue_used(void)
{
	return (size_t)(atomic_load(&head) - atomic_load(&tail));
}

uint64_t queue_lost(void)
{
	return atomic_load_explicit(&lost, memory_order_relaxed);
}
