/* SPDX-License-Identifier: BSD-2-Clause */
/* gemm_shape.c - products of matrices whose dimensions do not suit tensor cores. */
#include "../../../event/scopes/lineage.h"
#include "../../../event/scopes/peak.h"
#include "../../rule.h"

#define SHAPE_KERNELS 20
#define SHAPES_MAX 64
#define SHARE_LEAST 10 /* one in so many of the time of all products' kernels */

struct shape {
	uint64_t m, n, k, ns;
};

struct gemm_shape {
	uint64_t kernels, ns; /* of products that do not suit */
	uint64_t all_ns;      /* of all products whose shape is known */
	struct shape shapes[SHAPES_MAX];
	uint32_t nshapes;
};

/* What NVIDIA's guide to matrix multiplication asks dimensions to be a multiple of: 16 bytes. */
static uint64_t multiple_of(enum peak_type type)
{
	switch (type) {
	case PEAK_FLOAT16:
	case PEAK_BFLOAT16: return 8;
	case PEAK_FLOAT8:
	case PEAK_INT8: return 16;
	case PEAK_TF32: return 4;
	default: return 0;
	}
}

static void add_shape(struct gemm_shape *g, const struct ct_gemm *is, uint64_t ns)
{
	struct shape *s = NULL;

	for (uint32_t i = 0; i < g->nshapes && !s; i++)
		if (g->shapes[i].m == is->m && g->shapes[i].n == is->n && g->shapes[i].k == is->k)
			s = &g->shapes[i];
	if (!s && g->nshapes == SHAPES_MAX)
		return;
	if (!s) {
		s = &g->shapes[g->nshapes++];
		*s = (struct shape){ .m = is->m, .n = is->n, .k = is->k };
	}
	s->ns += ns;
}

static int event(void *state, const struct seen *s)
{
	const uint32_t kinds = 1u << CT_SCOPE_GEMM;
	struct gemm_shape *g = state;
	const struct scope_line *line = lineage_of_kind(
		s->ev->lineage, s->h->pid, lineage_from(s->ev, kinds), kinds, &(bool){ false });
	const struct ct_gemm *is = line ? line->gemm : NULL;
	uint64_t of;

	/* how a convolution becomes products is cuDNN's */
	if (!is || !(is->flags & CT_GEMM_SHAPE) || is->flags & CT_GEMM_NETWORK)
		return 0;
	g->all_ns += s->ns;
	of = multiple_of(peak_type(is, s->ev->kernel ? s->ev->kernel->mangled : NULL));
	if (!of || !(is->m % of || is->n % of || is->k % of))
		return 0;
	g->kernels++;
	g->ns += s->ns;
	add_shape(g, is, s->ns);
	return 0;
}

static void end(void *state, struct advice *a, struct advise_process *proc)
{
	const struct gemm_shape *g = state;
	const struct shape *most = &g->shapes[0];
	struct advise_finding *f;

	if (g->kernels < SHAPE_KERNELS || g->ns < g->all_ns / SHARE_LEAST)
		return;
	f = rule_finding(a, &rule_gemm_shape, proc);
	if (!f)
		return;
	for (uint32_t i = 1; i < g->nshapes; i++)
		if (g->shapes[i].ns > most->ns)
			most = &g->shapes[i];
	f->n = g->kernels;
	f->cost_ns = g->ns;
	rule_say(&f->evidence,
		 "%llu kernels of products ran for %s of the %s of all products, with a dimension "
		 "that is no multiple of 16 bytes; most of it for m, n, k = %llu, %llu, %llu (%s).",
		 (unsigned long long)g->kernels, rule_time((double)g->ns),
		 rule_time((double)g->all_ns), (unsigned long long)most->m,
		 (unsigned long long)most->n, (unsigned long long)most->k,
		 rule_time((double)most->ns));
}

/* clang-format off */
const struct rule rule_gemm_shape = {
	{ "gemm-shape", "Products of matrices that do not suit tensor cores", ADVISE_DEVICE,
	  "the time of these kernels: an upper bound",
	  "Make sizes (vocabulary, heads, hidden layers, batches) multiples of 8 for 16-bit types, of 16 for 8-bit types, of 4 for TF32, "
	  "by padding if need be: 64 is better still." },
	.kinds = KIND(CT_KERNEL), .most = ADVISE_WARNING,
	.state_bytes = sizeof(struct gemm_shape), .event = event, .end = end
};
/* clang-format on */
