/* SPDX-License-Identifier: BSD-2-Clause */
/* sync_set.c - memsets that block the host: of device memory the call does not wait, of host and
 * managed memory it does. */
#include "../rule.h"

static int sync_set_event(void *state, const struct seen *s)
{
	const struct ct_set *c = (const struct ct_set *)s->h;

	if (c->flags & CT_W_ASYNC || (c->memory != CT_MEM_PINNED && c->memory != CT_MEM_MANAGED &&
				      c->memory != CT_MEM_MANAGED_STATIC))
		return 0;
	return rule_hit(state, s, rule_cause_ns(s), c->bytes);
}

static void sync_set_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct hits *h = state;
	struct advise_finding *f;

	if (h->n < 3)
		return;
	f = rule_finding_of(a, &rule_sync_set, proc, h);
	if (f)
		rule_say(&f->evidence,
			 "%llu memsets of %s in all of pinned or managed memory were made by calls "
			 "that wait for them, for %s.",
			 (unsigned long long)h->n, rule_bytes((double)h->bytes),
			 rule_time((double)h->ns));
}

/* clang-format off */
const struct rule rule_sync_set = {
	{ "sync-memset", "Memsets that block the host", ADVISE_DEVICE,
	  "the time that the host was inside these calls",
	  "Use cudaMemsetAsync on a stream; or memset() on the host where it is host memory." },
	.kinds = KIND(CT_SET), .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct hits), .event = sync_set_event, .end = sync_set_end, .free = rule_free_hits
};
/* clang-format on */
