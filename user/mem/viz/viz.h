/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * viz.h - what an allocator inside a program did, and what it holds, as a snapshot of PyTorch's
 * allocator: the file that torch/cuda/_memory_viz.py and pytorch.org/memory_viz read. Knows addresses,
 * sizes and call sites by number; no ledger and no record.
 */
#ifndef CT_VIZ_H
#define CT_VIZ_H

#include "../../event/memory/block_change.h"
#include "../../util/io/out.h"

#define VIZ_ENTRIES (1u << 20) /* the newest ones are kept: 40 MiB */
#define VIZ_DEVICES 256

/* What was done, the oldest first, of all processes. */
struct viz_history {
	struct block_change *at;
	size_t n, room, first; /* first: place of the oldest one */
	size_t max;
	uint64_t left_out; /* older ones that are not there any more, or had no room */
};

/* max: entries at most; 0: VIZ_ENTRIES. */
void viz_history_open(struct viz_history *, size_t max);
void viz_history_close(struct viz_history *);
void viz_history_add(struct viz_history *, const struct block_change *);
static inline const struct block_change *viz_history_at(const struct viz_history *h, size_t i)
{
	return &h->at[(h->first + i) % h->n];
}

struct viz_block {
	uint64_t address, bytes;
	uint32_t site;
	uint16_t device;
};

struct viz_segment {
	uint64_t address, end;
	uint32_t site;
	uint16_t device;
	bool mapped; /* made up of mappings, which may grow */
	/* its allocation was not seen: as long as the blocks in it that were */
	bool unseen;
	size_t first, n; /* of the blocks; by viz_state_arrange() */
};

/* What a process held. */
struct viz_state {
	uint32_t process;
	struct viz_segment *segments;
	size_t nsegments;
	struct viz_block *blocks;
	size_t nblocks;
	bool incomplete; /* there was no memory for all of it */
};

void viz_state_free(struct viz_state *);
/* Adds segments for what the history and the blocks say of memory outside of all segments, and sorts
 * both by address. */
void viz_state_arrange(struct viz_state *, const struct viz_history *);

struct viz_frame {
	const char *function, *file; /* untrusted bytes; never NULL */
	uint32_t line;
};

struct viz {
	const struct viz_history *history;
	const struct viz_state *state; /* arranged */
	uint64_t realtime_offset_ns;   /* CLOCK_REALTIME - the times of the history */
	uint32_t nsites;
	/* The i-th frame of a call site, innermost first; false: there is none. */
	bool (*frame)(void *ctx, uint32_t site, uint32_t i, struct viz_frame *);
	void *ctx;
};

/* Writes the snapshot. Returns 0 or -errno. */
int viz_write(struct out *, const struct viz *);

#endif
