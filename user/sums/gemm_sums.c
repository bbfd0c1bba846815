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

void gemm_sums_kernel(struct gemm_sums *s, const struct scope_line *line, const struct peaks *peaks,
		      const struct event *ev, bool first)
{
	const struct ct_work *w = (const struct ct_work *)ev->rec;
	uint64_t ns = w->h.end_ns - w->h.start_ns;
	double peak = peaks_of(peaks, w->h.pid, w->device,
			       peak_type(line->gemm, ev->kernel ? ev->kernel->mangled : NULL));

	if (first)
		s->flop += (double)line->flop;
	s->ns += ns;
	s->possible += peak * (double)ns / 1e9;
	s->unknown |= !peak;
}

static double rate(const struct gemm_sums *s)
{
	return s->ns ? s->flop / (double)s->ns / 1e3 : 0;
}

void gemm_sums_heads(struct out *o)
{
	out_fmt(o, " %10s %9s %7s", "GFLOP", "TFLOP/s", "Peak%");
}

void gemm_sums_columns(const struct gemm_sums *s, struct out *o)
{
	double flop = s->ns ? s->flop : s->called;

	if (flop > 0)
		out_fmt(o, " %10.4g", flop / 1e9);
	else
		out_fmt(o, " %10s", "-");
	if (s->ns && s->flop > 0)
		out_fmt(o, " %9.2f", rate(s));
	else
		out_fmt(o, " %9s", "-");
	if (s->ns && s->flop > 0 && !s->unknown)
		out_fmt(o, " %7.1f", 100 * s->flop / s->possible);
	else
		out_fmt(o, " %7s", "-");
}

void gemm_sums_json(const struct gemm_sums *s, struct json *j)
{
	const struct ct_gemm *g = &s->like;

	if (g->flags & CT_GEMM_SHAPE) {
		json_put_u64(j, "m", g->m);
		json_put_u64(j, "n", g->n);
		json_put_u64(j, "k", g->k);
		json_put_u64(j, "batch", g->batch);
	}
	if (s->called > 0 && gemm_type(g->a_type) && gemm_type(g->d_type)) {
		json_put_str(j, "a_type", gemm_type(g->a_type));
		json_put_str(j, "d_type", gemm_type(g->d_type));
	}
	if (s->called > 0)
		json_put_real(j, "called_flop", 0, s->called);
	if (!s->ns)
		return;
	json_put_real(j, "flop", 0, s->flop);
	json_put_u64(j, "flop_ns", s->ns);
	json_put_real(j, "tflops", 3, rate(s));
	if (!s->unknown && s->possible > 0)
		json_put_real(j, "peak_share", 4, s->flop / s->possible);
}
