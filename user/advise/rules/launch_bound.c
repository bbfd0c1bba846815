/* SPDX-License-Identifier: BSD-2-Clause */
/* launch_bound.c - kernels that are shorter than their launches. */
#include "../rule.h"

#define SMALL_NS 10000ULL /* of a kernel on the device */
#define SMALL_LEAST 100

struct launch_bound {
	struct hits hits;
	uint64_t kernels, small, small_ns, launch_ns;
};

static int launch_bound_event(void *state, const struct seen *s)
{
	const struct ct_kernel *k = (const struct ct_kernel *)s->h;
	const struct cause *cause = s->ev->cause;
	struct launch_bound *l = state;
	uint64_t launch_ns;
	struct site one;

	if (s->h->flags & CT_F_NO_TIME || k->w.graph_node || k->launch == CT_LAUNCH_CDP)
		return 0;
	l->kernels++;
	if (s->ns >= SMALL_NS || !cause || cause->end_ns <= cause->start_ns)
		return 0;
	launch_ns = rule_cause_ns(s);
	l->small++;
	l->small_ns += s->ns;
	l->launch_ns += launch_ns;
	one = rule_site(s, k->name);
	one.stack = 0;
	one.ns = launch_ns > s->ns ? launch_ns - s->ns : 0;
	return hits_add(&l->hits, &one, s->ev->kernel ? s->ev->kernel->brief : NULL);
}

/* Bound by launches: they take longer than what is launched. */
static void launch_bound_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct launch_bound *l = state;
	struct advise_finding *f;

	if (l->small < SMALL_LEAST || l->small * 2 < l->kernels || l->launch_ns <= l->small_ns)
		return;
	f = rule_finding_of(a, &rule_launch_bound, proc, &l->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu of %llu kernels ran for less than %s each, %s on average, and their "
			 "launches took longer, %s on average: launching is what limits them.",
			 (unsigned long long)l->small, (unsigned long long)l->kernels,
			 rule_time((double)SMALL_NS),
			 rule_time((double)l->small_ns / (double)l->small),
			 rule_time((double)l->launch_ns / (double)l->small));
}

/* clang-format off */
const struct rule rule_launch_bound = {
	{ "launch-bound", "Kernels shorter than their launches", ADVISE_CALLS | ADVISE_DEVICE,
	  "by how much each launch took longer than its kernel; tracing makes launches longer, so at most",
	  "Put the launches into a CUDA graph (in PyTorch torch.cuda.graph, or torch.compile with "
	  "mode=\"reduce-overhead\"), fuse kernels, or give each more to do." },
	.kinds = KIND(CT_KERNEL), .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct launch_bound), .event = launch_bound_event, .end = launch_bound_end, .free = rule_free_hits
};
/* clang-format on */
