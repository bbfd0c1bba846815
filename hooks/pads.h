/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pads.h - code of ours near the program's: pads where hooks' jumps land, at addresses that we
 * cannot choose, and chunks of code within reach of both. Mapped only at free addresses, and kept: a thread may have been preempted in them, unless the code that leads to them has
 * been unmapped. For the agent's own thread.
 */
#ifndef CT_HOOKS_PADS_H
#define CT_HOOKS_PADS_H

#include <linux/types.h>
#include <stdbool.h>

#include "text.h"

/* a jump */
#if defined(__x86_64__)
#define PAD_BYTES 5
#define PADS_HIGHEST 0x7ffffffff000ULL
#define PADS_RESERVE true /* jumps land where nothing may be mapped later */
#else
#define PAD_BYTES 16
#define PADS_HIGHEST 0xfffffffff000ULL
#define PADS_RESERVE false
#endif
#define CHUNK_SLOT 128 /* bytes for each function, and their alignment */

/* Where the main thread's stack may still grow to is not ours: from the mappings. */
void pads_avoid(const struct text_maps *);
/* Are these bytes, at most PAD_BYTES, ours to use? Maps what is needed, and marks them as used. */
bool pads_take_bytes(__u64 address, unsigned int n);
static inline bool pads_take(__u64 address)
{
	return pads_take_bytes(address, PAD_BYTES);
}
/* Makes a pad that was taken n bytes long, where the bytes that follow it in its page are free. */
bool pads_widen(__u64 address, unsigned int n);
/* Gives such bytes back, where no thread can be in them or come to them any more; the page goes with
 * its last ones. */
void pads_give_bytes(__u64 address, unsigned int n);
static inline void pads_give(__u64 address)
{
	pads_give_bytes(address, PAD_BYTES);
}
/* CHUNK_SLOT bytes that 32-bit displacements reach from all of the n addresses; 0: there is no room. */
__u64 pads_slot(const __u64 *near, unsigned int n);
/* As pads_give(); chunks stay mapped. */
void pads_slot_give(__u64 slot);
/* Unmaps what engine_reserve() has mapped, but for the pads that were made in it. */
void pads_release(void);
/* Bytes mapped. */
__u64 pads_bytes(void);
/* Is the code within reach of a displacement that ends at `end`? (On aarch64 a jump has the whole
 * address.) */
static inline bool pads_reach(__u64 end, __u64 to)
{
#if defined(__x86_64__)
	__s64 d = (__s64)(to - end);

	return d == (__s32)d;
#else
	(void)end;
	(void)to;
	return true;
#endif
}

#endif
