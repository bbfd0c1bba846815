/* SPDX-License-Identifier: BSD-2-Clause */
/* gemm_float32.c - float32 products that no tensor core computes, on a device that has some for them. */
#include "../../../event/scopes/lineage.h"
#include "../../../event/scopes/peak.h"
#include "../../rule.h"

#define FLOAT32_KERNELS 20
#define TF32_SINCE 8   /* the compute capability from which on tensor cores take float32 */
#define SHARE_LEAST 10 /* one in so many of the time of all kernels */

struct gemm_float32 {
	uint64_t kernels, ns;
	uint64_t all_ns; /* of all kernels */
};

static int event(void *state, const struct seen *s)
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

static void end(void *state, struct advice *a, struct advise_process *proc)
{
	const struct gemm_float32 *g = state;
	struct advise_finding *f;

	if (g->kernels < FLOAT32_KERNELS || g->ns < g->all_ns / SHARE_LEAST)
		return;
	f = rule_finding(a, &rule_gemm_float32, proc);
	if (!f)
		return;
	f->n = g->kernels;
	f->cost_ns = g->ns;
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
	.state_bytes = sizeof(struct gemm_float32), .event = event, .end = end
};
/* clang-format on */
