/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem_viz.h - from the ledger to the snapshot that PyTorch's viewer of its allocator reads (viz/viz.h).
 * A snapshot is of one process: of those that reported blocks, the one that had the most allocated.
 */
#ifndef CT_MEM_VIZ_H
#define CT_MEM_VIZ_H

#include "ledger.h"
#include "viz/viz.h"

struct mem_viz {
	struct viz_history history;
	struct viz_state state; /* of the process that had the most, of those that have ended */
	uint64_t peak;		/* what that one had */
	uint64_t odd;		/* events that cannot be true */
};

void mem_viz_open(struct mem_viz *);
void mem_viz_close(struct mem_viz *);
/* For ledger_opts: of an allocator, and of a process. */
void mem_viz_changed(struct mem_viz *, const struct block_change *);
void mem_viz_ends(struct mem_viz *, const struct ledger *, uint32_t process);
/* Writes the snapshot, with warnings about what is not in it. Returns 0 or -errno. */
int mem_viz_write(struct mem_viz *, const struct ledger *, struct out *,
		  uint64_t realtime_offset_ns);

#endif
