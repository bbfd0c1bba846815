/* SPDX-License-Identifier: BSD-2-Clause */
/* exposed_collectives.c - collectives during which nothing computes. */
#include <errno.h>

#include "../../../event/scopes/lineage.h"
#include "../../../sums/overlap.h"
#include "../../rule.h"

#define PIECES_MAX 65536
#define SLACK_NS 10000000000ULL /* device records come so late */
#define EXPOSED_KERNELS 20

struct exposed_collectives {
	struct overlap *overlap;
	uint64_t kernels, ns, exposed_ns;
};

static void settled(void *ctx, uint64_t tag, const uint64_t ns[OVERLAP_END])
{
	struct exposed_collectives *x = ctx;

	(void)tag;
	x->exposed_ns += ns[OVERLAP_COLLECTIVE];
}

static int event(void *state, const struct seen *s)
{
	struct exposed_collectives *x = state;
	const uint32_t kinds = 1u << CT_SCOPE_COLLECTIVE;
	const struct scope_line *line;
	bool known;
	int err;

	/* where no collectives are recorded, no scope is known */
	if (!s->ns)
		return 0;
	line = lineage_of_kind(s->ev->lineage, s->h->pid, lineage_from(s->ev, kinds), kinds,
			       &known);
	if (!known)
		return 0;
	if (!x->overlap)
		x->overlap = overlap_open(PIECES_MAX, SLACK_NS, settled, x);
	if (!x->overlap)
		return -ENOMEM;
	err = overlap_work(x->overlap, s->work->device, line ? OVERLAP_COLLECTIVE : OVERLAP_COMPUTE,
			   s->h->start_ns, s->h->end_ns);
	if (err || !line)
		return err;
	x->kernels++;
	x->ns += s->ns;
	return overlap_window(x->overlap, s->work->device, 0, s->h->start_ns, s->h->end_ns);
}

static void end(void *state, struct advice *a, struct advise_process *proc)
{
	struct exposed_collectives *x = state;
	struct advise_finding *f;

	if (x->kernels < EXPOSED_KERNELS || overlap_settle(x->overlap) || x->exposed_ns < x->ns / 2)
		return;
	f = rule_finding(a, &rule_exposed_collectives, proc);
	if (!f)
		return;
	f->n = x->kernels;
	f->cost_ns = x->exposed_ns;
	rule_say(&f->evidence,
		 "%llu kernels of collectives ran for %s, %s of it (%.0f %%) while no other kernel "
		 "of "
		 "the process ran on their device.",
		 (unsigned long long)x->kernels, rule_time((double)x->ns),
		 rule_time((double)x->exposed_ns), 100 * (double)x->exposed_ns / (double)x->ns);
}

static void release(void *state)
{
	overlap_close(((struct exposed_collectives *)state)->overlap);
}

/* clang-format off */
const struct rule rule_exposed_collectives = {
	{ "exposed-collectives", "Collectives during which nothing computes", ADVISE_DEVICE,
	  "the time of collectives' kernels in which no other kernel of the process ran on the device",
	  "Begin collectives while there is still something to compute: gradients in buckets during the backward pass, "
	  "parameters of the next layer ahead (FSDP's prefetch), on a stream of their own." },
	.kinds = KIND(CT_KERNEL), .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct exposed_collectives), .event = event, .end = end, .free = release
};
/* clang-format on */
