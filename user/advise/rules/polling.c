/* SPDX-License-Identifier: BSD-2-Clause */
/* polling.c - waiting by asking again and again. */
#include "../rule.h"

#define POLL_RUN 10	/* queries one after the other */
#define POLL_LEAST 1000 /* in such runs */
#define IDLE_LEAST 100

struct polling {
	struct hits hits, idle;
};

#define NOT_READY 600

/* The thread waited for the same before, or for all of the device, and nobody has given any work
 * since. */
static bool is_idle(const struct seen *s)
{
	const struct thread *t = s->t;
	const struct api_func *f = &api_funcs[s->call->func];
	uint64_t word = s->call->nwords && f->nargs ? s->call->words[0] : 0;

	if (!(s->traits & TR_SYNC) || s->failed || !t->waited || t->wait_serial != s->p->serial ||
	    t->wait_device != s->ev->device)
		return false;
	return !api_funcs[t->wait_func].nargs ||
	       (t->wait_func == s->call->func && t->wait_word == word);
}

static int polling_event(void *state, const struct seen *s)
{
	struct polling *p = state;
	struct thread *t = s->t;
	struct site one;

	if (is_idle(s)) {
		int err = rule_hit(&p->idle, s, s->ns, 0);

		if (err)
			return err;
	}
	if (!(s->traits & TR_POLL) || (int32_t)s->call->ret != NOT_READY) {
		t->poll_n = 0;
		return 0;
	}
	t->poll_ns = t->poll_n++ ? t->poll_ns + s->ns : s->ns;
	if (t->poll_n < POLL_RUN)
		return 0;
	one = rule_site(s, 0);
	one.n = t->poll_n == POLL_RUN ? POLL_RUN : 1;
	one.ns = t->poll_n == POLL_RUN ? t->poll_ns : s->ns;
	return hits_add(&p->hits, &one, NULL);
}

static void polling_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct polling *p = state;
	struct advise_finding *f;

	f = p->hits.n >= POLL_LEAST ? rule_finding_of(a, &rule_polling, proc, &p->hits) : NULL;
	if (f)
		rule_say(&f->evidence,
			 "%llu queries of events and streams were answered \"not ready\", %d or "
			 "more of them one after the other with no other work of the thread in "
			 "between.",
			 (unsigned long long)p->hits.n, POLL_RUN);
	f = p->idle.n >= IDLE_LEAST ? rule_finding_of(a, &rule_polling, proc, &p->idle) : NULL;
	if (f)
		rule_say(&f->evidence,
			 "%llu waits had nothing to wait for: the thread had waited for the same "
			 "before, or for the whole device, and since then no thread of the process "
			 "had given a device any work.",
			 (unsigned long long)p->idle.n);
}

static void polling_release(void *state)
{
	struct polling *p = state;

	hits_free(&p->hits);
	hits_free(&p->idle);
}

/* clang-format off */
const struct rule rule_polling = {
	{ "polling", "Waiting by asking again and again", ADVISE_CALLS,
	  "the time in these calls",
	  "Wait once: cudaEventSynchronize on an event with cudaEventBlockingSync leaves the core to others; "
	  "leave out waits that have nothing to wait for." },
	.kinds = KIND(CT_CALL), .traits = TR_POLL | TR_SYNC | TR_WORK, .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct polling), .event = polling_event, .end = polling_end, .free = polling_release,
	.hits_at = offsetof(struct polling, hits), .nhits = 2
};
/* clang-format on */
