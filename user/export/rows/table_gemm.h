/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table_gemm.h - how the table prints a call for products of matrices.
 */
#ifndef CT_TABLE_GEMM_H
#define CT_TABLE_GEMM_H

#include "../../event/event.h"
#include "../../flow/row.h"

/* "4096 x 4096 x 512, float16, TN, 17.180 GFLOP, returned=0 (success), 31us"; without `duration` the
 * last is what it returned. */
void table_gemm(struct row *, const struct ct_scope *, const struct ct_gemm *, bool duration);

#endif
