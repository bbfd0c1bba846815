/* SPDX-License-Identifier: BSD-2-Clause */
/* readback.c - single values that are read back. */
#include "../rule.h"
#include "patterns.h"

#define READBACK_LEAST 10

struct readback {
	struct hits hits;
};

static int readback_event(void *state, const struct seen *s)
{
	struct readback *r = state;
	int err = waits_settle(&r->hits, s, WAIT_READBACK);

	if (s->failed)
		return err;
	if (s->traits & TR_COPY && !(s->traits & TR_ASYNC) && s->way == REPORT_DTOH &&
	    s->bytes <= READBACK_BYTES)
		waits_note(s, WAIT_READBACK, s->bytes);
	else if (s->traits & TR_SYNC && s->t->small && s->t->small_bytes <= READBACK_BYTES)
		waits_note(s, WAIT_READBACK, s->t->small_bytes);
	return err;
}

static void readback_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct readback *r = state;
	struct advise_finding *f;

	if (r->hits.n < READBACK_LEAST)
		return;
	f = rule_finding_of(a, &rule_readback, proc, &r->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu times a thread copied at most %d bytes to the host, waited for them "
			 "and then gave the device work again. From the ends of the waits until "
			 "that work was given, %s went by, %s each time.",
			 (unsigned long long)r->hits.n, READBACK_BYTES,
			 rule_time((double)r->hits.ns),
			 rule_time((double)r->hits.ns / (double)r->hits.n));
}

/* clang-format off */
const struct rule rule_readback = {
	{ "small-readback", "Single values read back", ADVISE_CALLS,
	  "from the end of each such wait until the thread had given the device work again",
	  "Keep the value on the device and decide there, or read it every so many steps, or copy it to "
	  "pinned memory and look at it a step later. In PyTorch: .item(), .cpu(), float(tensor), "
	  "print(tensor) and tensor in an if do this." },
	.kinds = KIND(CT_CALL), .traits = TR_WORK | TR_SYNC, .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct readback), .event = readback_event, .end = readback_end, .free = rule_free_hits
};
/* clang-format on */
