/* SPDX-License-Identifier: BSD-2-Clause */
/* gemm_sums.c - see gemm_sums.h. */
#include "gemm_sums.h"

void gemm_sums_call(struct gemm_sums *s, const struct ct_gemm *g)
{
	if (!(g->flags & CT_GEMM_RETURNED) || g->ret)
		return;
	s->called += (double)g->flop;
	s->like = *g;
}

void gemm_sums_kernel(struct gemm_sums *s, const struct scope_line *line, const struct event *ev,
		      bool first)
{
	const struct ct_work *w = (const struct ct_work *)ev->rec;
	uint64_t ns = w->h.end_ns - w->h.start_ns;

	if (first)
		s->flop += (double)line->flop;
	s->ns += ns;
	s->possible += ev->peak * (double)ns / 1e9;
	s->unknown |= !ev->peak;
}
