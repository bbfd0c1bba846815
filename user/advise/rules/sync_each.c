/* SPDX-License-Identifier: BSD-2-Clause */
/* sync_each.c - a wait after each launch. */
#include "../rule.h"
#include "patterns.h"

#define EACH_LEAST 10

struct sync_each {
	struct hits hits;
	uint64_t waits;
};

static int sync_each_event(void *state, const struct seen *s)
{
	struct sync_each *e = state;
	int err = waits_settle(&e->hits, s, WAIT_EACH);

	if (!(s->traits & TR_SYNC) || s->failed)
		return err;
	e->waits++;
	if (s->t->work == 1 && !s->t->small)
		waits_note(s, WAIT_EACH, 0);
	return err;
}

static void sync_each_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct sync_each *e = state;
	struct advise_finding *f;

	if (e->hits.n < EACH_LEAST || e->hits.n * 2 < e->waits)
		return;
	f = rule_finding_of(a, &rule_sync_each, proc, &e->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu of %llu waits came after a single launch, copy or memset of their "
			 "thread. From their ends until the thread had given the device its next "
			 "work, %s went by, %s each time.",
			 (unsigned long long)e->hits.n, (unsigned long long)e->waits,
			 rule_time((double)e->hits.ns),
			 rule_time((double)e->hits.ns / (double)e->hits.n));
}

/* clang-format off */
const struct rule rule_sync_each = {
	{ "sync-after-launch", "A wait after each launch", ADVISE_CALLS,
	  "from the end of each such wait until the thread had given the device work again",
	  "Leave the wait out: work of one stream is done in order. Wait once, where a result is needed; "
	  "between streams use events and cudaStreamWaitEvent." },
	.kinds = KIND(CT_CALL), .traits = TR_WORK | TR_SYNC, .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct sync_each), .event = sync_each_event, .end = sync_each_end, .free = rule_free_hits
};
/* clang-format on */
