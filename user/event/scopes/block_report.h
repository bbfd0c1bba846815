/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block_report.h - what an allocator inside a program reports of a block, or of one that it could not give
 * (the layer allocator). Untrusted numbers. Knows rows and calls; nothing of who adds them up.
 */
#ifndef CT_BLOCK_REPORT_H
#define CT_BLOCK_REPORT_H

#include "../event.h"

#define BLOCK_REPORT_CUDA 1 /* c10::DeviceType */

struct block_report {
	uint64_t address, allocated, reserved; /* the latter: its totals, this block included */
	int64_t size;			       /* below 0: the block was given back */
	uint32_t type, device; /* type: BLOCK_REPORT_CUDA, or another sort of device */
	bool no_memory;	       /* `size` is what there was no block for */
};

/* False: the call is no such report. */
bool block_report(const struct ct_call *, struct block_report *);
/* It cannot be true. */
bool block_report_odd(const struct block_report *);

#endif
