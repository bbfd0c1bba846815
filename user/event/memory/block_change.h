/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block_change.h - one thing that an allocator inside a program did: with a block that it gives out, or
 * with a segment that it has from CUDA. mem's book makes them, and a snapshot for PyTorch's viewer
 * keeps them.
 */
#ifndef CT_BLOCK_CHANGE_H
#define CT_BLOCK_CHANGE_H

#include "../../util/types.h"

enum block_what {
	BLOCK_TAKEN,
	BLOCK_GIVEN_BACK,
	BLOCK_SEGMENT_TAKEN,
	BLOCK_SEGMENT_GIVEN_BACK,
	/* the segment, or a part of it, is a mapping */
	BLOCK_SEGMENT_MAPPED,
	BLOCK_SEGMENT_UNMAPPED,
	BLOCK_NO_MEMORY,
};

struct block_change {
	uint64_t at_ns, address, bytes;
	uint32_t process, site; /* site: where it was done; 0: not known */
	uint16_t device;	/* of segments: LIVE_NO_DEVICE: not known */
	uint8_t what;		/* enum block_what */
};

#endif
