/* SPDX-License-Identifier: BSD-2-Clause */
/* gemm_fields.c - the fields of calls for products of matrices. What is not known has no field. */
#include <math.h>
#include <string.h>

#include "../device.h"
#include "../field_add.h"
#include "products/gemms.h"
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
		field_add_str(at, "ret_name", error, strlen(error))->key = "result";
}

bool product_of(const struct event *ev, struct product *p)
{
	const struct ct_hdr *h = ev->rec;
	uint64_t ns = h->end_ns - h->start_ns;

	*p = (struct product){ .rate = -1, .share = -1 };
	if (h->kind == CT_SCOPE_END) {
		p->gemm = scope_gemm((const struct ct_scope *)h);
		p->flop = p->gemm ? p->gemm->flop : 0;
		return p->gemm;
	}
	if (h->kind != CT_KERNEL || !peak_computes(ev))
		return false;
	p->gemm = ev->product->gemm;
	p->flop = ev->product->flop;
	if (h->flags & CT_F_NO_TIME || !ns)
		return p->gemm;
	p->rate = (double)p->flop / (double)ns * 1e9;
	if (ev->peak > 0)
		p->share = p->rate / ev->peak;
	return p->gemm;
}

void product_fields(struct field **at, const struct event *ev)
{
	struct product p;

	if (!product_of(ev, &p))
		return;
	field_add_u(at, "flop", FIELD_UINT, p.flop)->label = "";
	if (p.rate >= 0)
		field_add(at, "tflops", FIELD_FLOAT)->f = round(p.rate / 1e9) / 1e3;
	if (p.share >= 0)
		field_add(at, "peak_share", FIELD_FLOAT)->f = round(p.share * 1e4) / 1e4;
}

size_t scope_inputs(const struct ct_hdr *h, char text[INPUTS_MAX])
{
	const struct ct_scope *s = (const struct ct_scope *)h;
	size_t n;

	if (h->kind != CT_SCOPE_END || s->kind != CT_SCOPE_OPERATOR)
		return 0;
	n = s->fields_len < INPUTS_MAX ? s->fields_len : INPUTS_MAX - 1;
	memcpy(text, s->text + s->text_len + s->domain_len + s->category_len + s->layer_len, n);
	text[n] = '\0';
	return strlen(text);
}
