/* SPDX-License-Identifier: BSD-2-Clause */
/* tiny_collectives.c - many collectives that move little. */
#include "../../../event/device.h"
#include "../../../event/scopes/lineage.h"
#include "../../rule.h"

#define TINY_BYTES 65536
#define TINY_COLLECTIVES 100

struct tiny_collectives {
	uint64_t n, tiny, bytes; /* collectives; those that are tiny, and their bytes */
	uint64_t host_ns, kernels_ns;
	uint64_t kernels;
};

/* Alone, or as the end of a group, which launches what is in it. */
static int event(void *state, const struct seen *s)
{
	struct tiny_collectives *t = state;
	const struct ct_collective *c;

	if (s->work) {
		const struct scope_line *line = s->ev->scope;

		if (line && line->kind == CT_SCOPE_COLLECTIVE && line->bytes &&
		    line->bytes <= TINY_BYTES) {
			t->kernels_ns += s->ns;
			t->kernels++;
		}
		return 0;
	}
	c = scope_collective(s->scope);
	if (!c || s->scope->kind != CT_SCOPE_COLLECTIVE || !c->bytes || scope_failed(s->scope) ||
	    c->flags & (CT_COLLECTIVE_INNER | CT_COLLECTIVE_GROUPED))
		return 0;
	t->n++;
	if (c->bytes > TINY_BYTES)
		return 0;
	t->tiny++;
	t->bytes += c->bytes;
	t->host_ns += s->ns;
	return 0;
}

static void end(void *state, struct advice *a, struct advise_process *proc)
{
	const struct tiny_collectives *t = state;
	struct advise_finding *f;

	if (t->tiny < TINY_COLLECTIVES || t->tiny < t->n / 2)
		return;
	f = rule_finding(a, &rule_tiny_collectives, proc);
	if (!f)
		return;
	f->n = t->tiny;
	f->bytes = t->bytes;
	f->cost_ns = t->kernels ? t->kernels_ns : t->host_ns;
	rule_say(&f->evidence,
		 "%llu of %llu collectives, or groups of them, moved at most %s each, %s on "
		 "average: "
		 "that takes about as long as one which moves a few times as much.",
		 (unsigned long long)t->tiny, (unsigned long long)t->n, rule_bytes(TINY_BYTES),
		 rule_bytes((double)t->bytes / (double)t->tiny));
}

/* clang-format off */
const struct rule rule_tiny_collectives = {
	{ "tiny-collectives", "Collectives that move little", ADVISE_CALLS,
	  "the time of their kernels; without device records, the time in the calls",
	  "Put several tensors into one collective (larger buckets: bucket_cap_mb of DistributedDataParallel), or "
	  "call them between ncclGroupStart and ncclGroupEnd." },
	.kinds = KIND(CT_SCOPE_END) | KIND(CT_KERNEL), .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct tiny_collectives), .event = event, .end = end
};
/* clang-format on */
