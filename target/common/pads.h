/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pads.h - code of ours near the program's code: pads, where the jumps of hooks land, at addresses
 * that we cannot choose, and chunks of code within reach of both. They are mapped only at free
 * addresses. They are kept, because a thread may have been preempted in them, until the code that
 * leads to them is unmapped. All functions are for our own thread.
 */
#ifndef CT_HOOKS_PADS_H
#define CT_HOOKS_PADS_H

#include <linux/types.h>
#include <stdbool.h>

#include "code_text.h"

/* a jump */
#if defined(__x86_64__)
#define PAD_BYTES 5
#define PADS_HIGHEST 0x7ffffffff000ULL
#define PADS_RESERVE true /* pads need address space that stays free */
#else
#define PAD_BYTES 16
#define PADS_HIGHEST 0xfffffffff000ULL
#define PADS_RESERVE false
#endif
#define CHUNK_SLOT 128 /* bytes for each function, and the alignment of these bytes */

/* Finds out, from the mappings, how far the main thread's stack may still grow: these addresses are
 * not used. */
void pads_avoid(const struct text_maps *);
/* Takes these bytes, at most PAD_BYTES. Maps their pages if necessary, and marks the bytes as used.
 * Returns false if they cannot be used. */
bool pads_take_bytes(__u64 address, unsigned int n);
static inline bool pads_take(__u64 address)
{
	return pads_take_bytes(address, PAD_BYTES);
}
/* Makes a pad that was taken n bytes long, if the bytes that follow it in its page are free. */
bool pads_widen(__u64 address, unsigned int n);
/* Gives bytes back, if no thread can be in them or get to them any more. The page is unmapped
 * together with its last used bytes. */
void pads_give_bytes(__u64 address, unsigned int n);
static inline void pads_give(__u64 address)
{
	pads_give_bytes(address, PAD_BYTES);
}
/* Returns the address of CHUNK_SLOT bytes that 32-bit displacements reach from all of the n
 * addresses; 0: there is no room. */
__u64 pads_slot(const __u64 *near, unsigned int n);
/* Gives a slot back, as pads_give() does for pads; chunks stay mapped. */
void pads_slot_give(__u64 slot);
/* Unmaps what engine_reserve() has mapped, except the pads that were made in it. */
void pads_release(void);
/* Returns the number of bytes mapped. */
__u64 pads_bytes(void);
/* Returns whether a displacement that ends at `end` reaches the code. (On aarch64 a jump has the
 * whole address.) */
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
