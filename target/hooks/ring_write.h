/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_write.h - how a thread writes entries into its ring (hooks_wire.h). Room is taken with one instruction,
 * so a signal may come between any two instructions, and its handler may write entries too. The tag
 * is written last. No libc, no vector registers.
 */
#ifndef CT_HOOKS_RING_H
#define CT_HOOKS_RING_H

#include <stdbool.h>

#include "../../wire/hooks_wire.h"

/* One instruction without a lock prefix: only a signal handler of this thread may also change the
 * word. */
static inline int ring_swap(__u64 *word, __u64 *was, __u64 to)
{
#if defined(__x86_64__)
	unsigned char done;

	__asm__ volatile("cmpxchgq %3, %0\n\tsete %1"
			 : "+m"(*word), "=q"(done), "+a"(*was)
			 : "r"(to)
			 : "memory", "cc");
	return done;
#else
	return __atomic_compare_exchange_n(word, was, to, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}

static inline void ring_add(__u64 *word, __u64 n)
{
#if defined(__x86_64__)
	__asm__ volatile("addq %1, %0" : "+m"(*word) : "er"(n) : "memory", "cc");
#else
	__atomic_fetch_add(word, n, __ATOMIC_RELAXED);
#endif
}

static inline void ring_add32(__u32 *word, __u32 n)
{
#if defined(__x86_64__)
	__asm__ volatile("addl %1, %0" : "+m"(*word) : "er"(n) : "memory", "cc");
#else
	__atomic_fetch_add(word, n, __ATOMIC_RELAXED);
#endif
}

static inline __u64 ring_fetch_add(__u64 *word, __u64 n)
{
#if defined(__x86_64__)
	__asm__ volatile("xaddq %0, %1" : "+r"(n), "+m"(*word) : : "memory", "cc");
	return n;
#else
	return __atomic_fetch_add(word, n, __ATOMIC_RELAXED);
#endif
}

/* Word by word: `rep movsq` takes longer to begin than most records take. (volatile: it must not become a
 * call of memcpy().) */
static inline void ring_copy(void *to, const void *from, __u64 bytes)
{
	for (__u64 i = 0; i < bytes / 8; i++)
		((volatile __u64 *)to)[i] = ((const __u64 *)from)[i];
}

/* A record of about so many bytes will be written soon: its lines come from memory meanwhile. */
static inline void ring_expect(struct hooks_thread *t, __u64 ring_bytes, __u64 bytes)
{
#if defined(__x86_64__)
	char *ring = hooks_ring(t);

	for (__u64 at = 0; at < bytes + 64; at += 64)
		__asm__ volatile("prefetchw %0" : : "m"(ring[(t->head + at) & (ring_bytes - 1)]));
#else
	(void)t;
	(void)ring_bytes;
	(void)bytes;
#endif
}

/* The place of a record of so many bytes (a multiple of 8), or NULL: the ring is full. */
static inline void *ring_take(struct hooks_thread *t, __u64 ring_bytes, __u64 bytes, __u64 *tag_at)
{
	__u64 need = hooks_entry_bytes(bytes), head = t->head, at, pad;
	char *ring = hooks_ring(t);

	do {
		at = head & (ring_bytes - 1);
		pad = at + need > ring_bytes ? ring_bytes - at : 0;
		if (head + pad + need - __atomic_load_n(&t->tail, __ATOMIC_ACQUIRE) > ring_bytes)
			return NULL;
	} while (!ring_swap(&t->head, &head, head + pad + need));
	if (pad)
		__atomic_store_n((__u64 *)(ring + at), hooks_skip(head), __ATOMIC_RELEASE);
	*tag_at = head + pad;
	return ring + ((head + pad) & (ring_bytes - 1)) + 8;
}

static inline void ring_commit(struct hooks_thread *t, __u64 ring_bytes, __u64 tag_at)
{
	__atomic_store_n((__u64 *)(hooks_ring(t) + (tag_at & (ring_bytes - 1))), hooks_tag(tag_at),
			 __ATOMIC_RELEASE);
}

/* Copies a record of so many bytes into the ring; its size is rounded up to a multiple of 8, and
 * that many bytes are read. False: there is no room. */
static inline bool ring_put(struct hooks_thread *t, __u64 ring_bytes, const struct ct_hdr *h,
			    __u64 size)
{
	__u64 tag_at;
	struct ct_hdr *to;

	size = (size + 7) & ~7ULL;
	to = ring_take(t, ring_bytes, size, &tag_at);
	if (!to)
		return false;
	ring_copy(to, h, size);
	to->size = (__u16)size;
	ring_commit(t, ring_bytes, tag_at);
	return true;
}

#endif
