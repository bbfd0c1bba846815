/* SPDX-License-Identifier: BSD-2-Clause */
/* collectives.c - collectives during which nothing computes, and many collectives that move little. */
#include <errno.h>

#include "../../event/device.h"
#include "../../event/scopes/lineage.h"
#include "../../sums/overlap.h"
#include "../rule.h"

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

static int exposed_collectives_event(void *state, const struct seen *s)
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

static void exposed_collectives_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct exposed_collectives *x = state;
	struct advise_finding *f;

	if (x->kernels < EXPOSED_KERNELS || overlap_settle(x->overlap) || x->exposed_ns < x->ns / 2)
		return;
	f = rule_finding(a, &rule_exposed_collectives, proc);
	if (!f)
		return;
	f->one.n = x->kernels;
	f->one.cost_ns = x->exposed_ns;
	rule_say(&f->evidence,
		 "%llu kernels of collectives ran for %s, %s of it (%.0f %%) while no other kernel "
		 "of "
		 "the process ran on their device.",
		 (unsigned long long)x->kernels, rule_time((double)x->ns),
		 rule_time((double)x->exposed_ns), 100 * (double)x->exposed_ns / (double)x->ns);
}

static void exposed_collectives_release(void *state)
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
	.state_bytes = sizeof(struct exposed_collectives), .event = exposed_collectives_event, .end = exposed_collectives_end, .free = exposed_collectives_release
};
/* clang-format on */

#define TINY_BYTES 65536
#define TINY_COLLECTIVES 100

struct tiny_collectives {
	uint64_t n, tiny, bytes; /* collectives; those that are tiny, and their bytes */
	uint64_t host_ns, kernels_ns;
	uint64_t kernels;
};

/* Alone, or as the end of a group, which launches what is in it. */
static int tiny_collectives_event(void *state, const struct seen *s)
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

static void tiny_collectives_end(void *state, struct advice *a, struct advise_process *proc)
{
	const struct tiny_collectives *t = state;
	struct advise_finding *f;

	if (t->tiny < TINY_COLLECTIVES || t->tiny < t->n / 2)
		return;
	f = rule_finding(a, &rule_tiny_collectives, proc);
	if (!f)
		return;
	f->one.n = t->tiny;
	f->one.bytes = t->bytes;
	f->one.cost_ns = t->kernels ? t->kernels_ns : t->host_ns;
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
	.state_bytes = sizeof(struct tiny_collectives), .event = tiny_collectives_event, .end = tiny_collectives_end
};
/* clang-format on */
