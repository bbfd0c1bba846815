/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nvtx_find.h - where header-only NVTX 3 keeps its tables (nvtxGlobals_v3) in a process that runs.
 *
 * They have no symbol in a stripped file, so writable mappings of files are searched for what such a
 * table begins with. What is found is a guess about untrusted memory: the object in the process
 * (target/nvtx/nvtx.c) looks again before it writes.
 */
#ifndef CT_NVTX_FIND_H
#define CT_NVTX_FIND_H

#include "../../proc/target.h"

struct nvtx_seen {
	uint64_t start, end, dev, ino; /* of a mapping that was searched */
	uint32_t round;
};

struct nvtx_find {
	struct nvtx_seen *seen;
	size_t nseen;
	uint32_t round;
	uint64_t *at; /* tables that were found by the last nvtx_find_new() */
	size_t n;
	bool cut; /* not all could be searched: too much memory, or it could not be read */
};

/* Searches what the process has mapped since the last time; find is zeroed before the first.
 * Returns 1 (find->at, find->n; n may be 0), 0 if nothing is new, or -errno: the process is gone, or
 * cannot be read. */
int nvtx_find_new(struct nvtx_find *, struct target *);
void nvtx_find_free(struct nvtx_find *);

#endif
