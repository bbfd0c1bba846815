/* SPDX-License-Identifier: BSD-2-Clause */
/* gemm_fields.c - the fields of calls for products of matrices. What is not known has no field. */
#include <math.h>

#include "../device.h"
#include "../field_add.h"
#include "gemms.h"
#include "peak.h"

/* The names of cublasComputeType_t, without CUBLAS_COMPUTE_. */
static const char *compute_word(uint32_t v)
{
	static const char *const words[] = { [0] = "16F",
					     [1] = "16F_PEDANTIC",
					     [4] = "32F",
					     [5] = "32F_PEDANTIC",
					     [6] = "64F",
					     [7] = "64F_PEDANTIC",
					     [8] = "32I",
					     [9] = "32I_PEDANTIC",
					     [10] = "32F_FAST_16F",
					     [11] = "32F_FAST_16BF",
					     [13] = "32F_FAST_TF32",
					     [14] = "32F_EMULATED_16BFX9",
					     [15] = "64F_EMULATED_FIXEDPOINT" };

	return v - 64 < ARRAY_LEN(words) ? words[v - 64] : NULL;
}

static const char *trans_word(uint32_t v)
{
	static const char *const words[] = { "N", "T", "C" };

	return v < ARRAY_LEN(words) ? words[v] : NULL;
}

void gemm_fields(struct field **at, const struct ct_scope *s)
{
	const struct ct_gemm *g = scope_gemm(s);
	const char *error;

	if (!g)
		return;
	if (g->flags & CT_GEMM_SHAPE) {
		field_add_u(at, "m", FIELD_UINT, g->m);
		field_add_u(at, "n", FIELD_UINT, g->n);
		field_add_u(at, "k", FIELD_UINT, g->k);
	}
	if (g->batch)
		field_add_u(at, "batch", FIELD_UINT, g->batch);
	if (g->groups)
		field_add_u(at, "groups", FIELD_UINT, g->groups);
	field_add_word(at, "a_type", g->a_type, gemm_type(g->a_type));
	field_add_word(at, "b_type", g->b_type, gemm_type(g->b_type));
	field_add_word(at, "d_type", g->d_type, gemm_type(g->d_type));
	field_add_word(at, "compute", g->compute, compute_word(g->compute));
	field_add_word(at, "trans_a", g->trans_a, trans_word(g->trans_a));
	field_add_word(at, "trans_b", g->trans_b, trans_word(g->trans_b));
	if (g->flop)
		field_add_u(at, "flop", FIELD_UINT, g->flop);
	if (!(g->flags & CT_GEMM_RETURNED))
		return;
	field_add(at, "ret", FIELD_INT)->i = g->ret;
	error = scope_error(s, g->ret);
	if (error)
		field_add_str(at, "ret_name", error, strlen(error));
}

void product_fields(struct field **at, const struct event *ev)
{
	uint64_t ns = ev->rec->end_ns - ev->rec->start_ns;
	double rate;

	if (!peak_computes(ev))
		return;
	field_add_u(at, "flop", FIELD_UINT, ev->product->flop)->label = "";
	if (ev->rec->flags & CT_F_NO_TIME || !ns)
		return;
	rate = (double)ev->product->flop / (double)ns * 1e9;
	field_add(at, "tflops", FIELD_FLOAT)->f = round(rate / 1e9) / 1e3;
	if (ev->peak > 0)
		field_add(at, "peak_share", FIELD_FLOAT)->f = round(rate / ev->peak * 1e4) / 1e4;
}
