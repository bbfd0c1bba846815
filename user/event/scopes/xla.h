/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xla.h - what XLA, which JAX and TensorFlow compile with, says of its work in ranges of NVTX:
 *
 *   XlaModule:#hlo_module=jit_step,program_id=7#
 *   Thunk:#name=dot_general,hlo_op=gemm_fusion.2#
 */
#ifndef CT_XLA_H
#define CT_XLA_H

#include "../event.h"

/* Parts of a text; NULL: it does not say it. */
struct xla_range {
	const char *module, *op, *name;
	uint32_t module_len, op_len, name_len;
};
/* False: it is no such text. It may be cut off, or be anything. */
bool xla_range(const char *text, size_t len, struct xla_range *);

#endif
