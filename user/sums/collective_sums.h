/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collective_sums.h - what the collectives of one row of `stat --by collective` moved, and how fast.
 *
 * Bandwidths are those of NVIDIA's nccl-tests: the algorithm's is the bytes of a collective divided
 * by the time of its kernels, the bus bandwidth corrects it by what each rank must send.
 */
#ifndef CT_COLLECTIVE_SUMS_H
#define CT_COLLECTIVE_SUMS_H

#include "../event/scopes/lineage.h"

#define COLLECTIVE_SIZES 65 /* powers of two: [i] of 2^(i-1) to 2^i - 1 bytes; [0] is not used */

/* Of collectives that had kernels. All 0: none. */
struct collective_sums {
	uint64_t bytes, moved_ns; /* moved_ns: time of their kernels */
	double bus_bytes;	  /* bytes * what the bus bandwidth corrects them by */
	uint64_t smallest, largest;
	uint64_t kernels_ns; /* of all their kernels, those of unknown bytes too */
	uint64_t exposed_ns; /* of that, while no other kernel of the process ran on the device */
	uint32_t *sizes;     /* COLLECTIVE_SIZES: how many had a size; NULL: none; owned */
};

/* Adds the time of a kernel of a collective whose bytes are known, and with `first` the bytes.
 * Returns 0 or -ENOMEM. */
int collective_sums_add(struct collective_sums *, const struct scope_line *, uint64_t ns,
			bool first);
void collective_sums_free(struct collective_sums *);

#endif
