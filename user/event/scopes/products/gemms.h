/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gemms.h - what calls of a library for products of matrices (cuBLAS) say.
 *
 * What the program passes is untrusted. A number that cannot be true is not known: it is never shown.
 */
#ifndef CT_GEMMS_H
#define CT_GEMMS_H

#include "../../event.h"

#define GEMM_FIELDS 192 /* of the arguments of such a call, at most */

/* True if calls of this function are scopes that have a struct ct_gemm. */
bool gemms_has(const struct api_func *);
/* Adds the FLOP of products; false: they are not known, as for lengths that no matrix has. */
bool gemm_add_flop(struct ct_gemm *, uint64_t m, uint64_t n, uint64_t k, uint64_t batch);
/* Fills in what the call says at its entry. */
void gemms_begin(const struct ct_call *, struct ct_gemm *);

#endif
