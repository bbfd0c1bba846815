/* SPDX-License-Identifier: BSD-2-Clause */
/* pageable.c - copies that are asynchronous in name only. */
#include "../rule.h"

struct pageable {
	struct hits hits;
	uint64_t device_ns, last_call_ns;
};

static int pageable_event(void *state, const struct seen *s)
{
	const struct ct_copy *c = (const struct ct_copy *)s->h;
	struct pageable *p = state;
	uint64_t cost = 0;

	if (!(c->flags & CT_W_ASYNC) || (c->src != CT_MEM_PAGEABLE && c->dst != CT_MEM_PAGEABLE))
		return 0;
	/* rule small-readback reports these */
	if (c->kind == CT_COPY_DTOH && c->bytes <= READBACK_BYTES)
		return 0;
	/* a call that makes several copies took its time once */
	if (s->ev->cause && s->ev->cause->end_ns > s->ev->cause->start_ns &&
	    s->ev->cause->start_ns != p->last_call_ns)
		cost = rule_cause_ns(s);
	p->last_call_ns = s->ev->cause ? s->ev->cause->start_ns : p->last_call_ns;
	p->device_ns += s->ns;
	return rule_hit(&p->hits, s, cost, c->bytes);
}

static void pageable_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct pageable *p = state;
	struct advise_finding *f;

	if (p->hits.n < 3)
		return;
	f = rule_finding_of(a, &rule_pageable, proc, &p->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu copies of %s in all were asked for by asynchronous calls, but their "
			 "host memory is pageable: the call copies through the driver's own buffer "
			 "and does not return before that is done. The host was %s in these calls; "
			 "the device took %s for the copies.",
			 (unsigned long long)p->hits.n, rule_bytes((double)p->hits.bytes),
			 rule_time((double)p->hits.ns), rule_time((double)p->device_ns));
}

/* clang-format off */
const struct rule rule_pageable = {
	{ "pageable-async-copy", "Asynchronous copies of pageable memory", ADVISE_DEVICE,
	  "the time that the host was inside these calls",
	  "Take the host memory from cudaMallocHost or cudaHostAlloc, or pin it with cudaHostRegister; in "
	  "PyTorch pin_memory=True or tensor.pin_memory(), without which non_blocking=True has no effect." },
	.kinds = KIND(CT_COPY), .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct pageable), .event = pageable_event, .end = pageable_end, .free = rule_free_hits
};
/* clang-format on */
