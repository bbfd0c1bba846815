/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gemms.c - products of matrices that use the device badly: float32 products that no tensor core
 * computes, on a device that has some for them, and dimensions that do not suit tensor cores.
 */
#include "../../event/scopes/lineage.h"
#include "../../event/scopes/peak.h"
#include "../rule.h"

/* One in so many of the time of all kernels, or of the kernels of all products: with less a rule says nothing. */
#define SHARE_LEAST 10

#define FLOAT32_KERNELS 20
#define TF32_SINCE 8 /* the compute capability from which on tensor cores take float32 */

struct gemm_float32 {
	uint64_t kernels, ns;
	uint64_t all_ns; /* of all kernels */
};

static int gemm_float32_event(void *state, const struct seen *s)
{
	const uint32_t kinds = 1u << CT_SCOPE_GEMM;
	struct gemm_float32 *g = state;
	const struct ct_device *d = advise_device(s->a, s->h->pid, s->work->device);
	const struct scope_line *line = lineage_of_kind(
		s->ev->lineage, s->h->pid, lineage_from(s->ev, kinds), kinds, &(bool){ false });

	g->all_ns += s->ns;
	if (!line || !line->gemm || line->gemm->flags & CT_GEMM_NETWORK || !s->ev->kernel || !d ||
	    d->major < TF32_SINCE || peak_type(line->gemm, s->ev->kernel->mangled) != PEAK_FLOAT32)
		return 0;
	g->kernels++;
	g->ns += s->ns;
	return 0;
}

static void gemm_float32_end(void *state, struct advice *a, struct advise_process *proc)
{
	const struct gemm_float32 *g = state;
	struct advise_finding *f;

	if (g->kernels < FLOAT32_KERNELS || g->ns < g->all_ns / SHARE_LEAST)
		return;
	f = rule_finding(a, &rule_gemm_float32, proc);
	if (!f)
		return;
	f->one.n = g->kernels;
	f->one.cost_ns = g->ns;
	rule_say(&f->evidence,
		 "%llu kernels of float32 products, whose names say that they use no tensor cores, "
		 "ran for %s of the %s of all kernels (%.0f %%).",
		 (unsigned long long)g->kernels, rule_time((double)g->ns),
		 rule_time((double)g->all_ns), 100 * (double)g->ns / (double)g->all_ns);
}

/* clang-format off */
const struct rule rule_gemm_float32 = {
	{ "gemm-float32", "Float32 products without tensor cores", ADVISE_DEVICE,
	  "the time of these kernels: an upper bound",
	  "Where less precision is enough: torch.set_float32_matmul_precision(\"high\") for TF32, autocast to bfloat16, or "
	  "CUBLAS_COMPUTE_32F_FAST_TF32." },
	.kinds = KIND(CT_KERNEL), .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct gemm_float32), .event = gemm_float32_event, .end = gemm_float32_end
};
/* clang-format on */

#define SHAPE_KERNELS 20
#define SHAPES_MAX 64

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

static int gemm_shape_event(void *state, const struct seen *s)
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

static void gemm_shape_end(void *state, struct advice *a, struct advise_process *proc)
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
	f->one.n = g->kernels;
	f->one.cost_ns = g->ns;
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
	.state_bytes = sizeof(struct gemm_shape), .event = gemm_shape_event, .end = gemm_shape_end
};
/* clang-format on */
