/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gemm_sums.h - what the products of one row of `stat --by gemm` computed, and how fast.
 */
#ifndef CT_GEMM_SUMS_H
#define CT_GEMM_SUMS_H

#include "../event/scopes/lineage.h"

/* All 0: none. */
struct gemm_sums {
	double called;	     /* FLOP of the calls that did not fail */
	double flop;	     /* of products that had kernels */
	uint64_t ns;	     /* time of these kernels */
	double possible;     /* FLOP that the devices could have computed in this time */
	bool unknown;	     /* of some of the kernels that is not known */
	struct ct_gemm like; /* one of them, with CT_GEMM_SHAPE if they have a shape */
};

/* Adds a call that has ended. */
void gemm_sums_call(struct gemm_sums *, const struct ct_gemm *);
/* Adds a kernel of a product whose FLOP are known, and with `first` these. */
void gemm_sums_kernel(struct gemm_sums *, const struct scope_line *, const struct event *,
		      bool first);

#endif
