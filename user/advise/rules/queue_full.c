/* SPDX-License-Identifier: BSD-2-Clause */
/* queue_full.c - launches that wait for room in the queue. */
#include "../rule.h"

#define QUEUE_LEAST 3
#define LONG_LAUNCH_NS 500000ULL
#define LONG_LEAST 10
#define LONG_RUN 4 /* one after the other: a thread that lost its core was in only one */

struct queue_full {
	struct hits hits, calls;
	uint64_t overheads;
	uint64_t known[64];
};

#define OVERHEAD_FULL (6u << 16)

/* The first launches of a kernel load it. */
static bool is_new(struct queue_full *q, uint64_t handle)
{
	uint64_t bit = handle * 0x9e3779b97f4a7c15ULL >> 52, mask = 1ULL << bit % 64;
	bool new = !(q->known[bit / 64] & mask);

	q->known[bit / 64] |= mask;
	return new;
}

static int queue_full_event(void *state, const struct seen *s)
{
	struct queue_full *q = state;
	uint64_t handle = 0;
	struct site one;

	if (s->h->kind == CT_OVERHEAD) {
		if (((const struct ct_overhead *)s->h)->type != OVERHEAD_FULL)
			return 0;
		return rule_hit(&q->hits, s, s->ns, 0);
	}
	if (s->failed)
		return 0;
	api_kernel(s->call, API_ARCH_HERE, &handle);
	if (is_new(q, handle) || s->ns < LONG_LAUNCH_NS) {
		s->t->long_n = 0;
		return 0;
	}
	s->t->long_ns = s->t->long_n++ ? s->t->long_ns + s->ns : s->ns;
	if (s->t->long_n < LONG_RUN)
		return 0;
	one = rule_site(s, 0);
	one.n = s->t->long_n == LONG_RUN ? LONG_RUN : 1;
	one.ns = s->t->long_n == LONG_RUN ? s->t->long_ns : s->ns;
	return hits_add(&q->calls, &one, NULL);
}

static void queue_full_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct queue_full *q = state;
	struct advise_finding *f;

	if (q->hits.n >= QUEUE_LEAST) {
		/* where it was met is told by the calls that took long meanwhile */
		f = rule_finding_of(a, &rule_queue_full, proc, q->calls.n ? &q->calls : &q->hits);
		if (!f)
			return;
		f->one.n = q->hits.n;
		f->one.cost_ns = q->hits.ns;
		rule_say(&f->evidence,
			 "%llu times the driver found the queue of commands to the device full and "
			 "waited for room, for %s.",
			 (unsigned long long)q->hits.n, rule_time((double)q->hits.ns));
		return;
	}
	if (q->calls.n < LONG_LEAST)
		return;
	f = rule_finding_of(a, &rule_queue_full, proc, &q->calls);
	if (f)
		rule_say(&f->evidence,
			 "%llu launches, %d or more of a thread one after the other and none of "
			 "them a kernel's first, took "
			 "%s or more, %s in all. A launch takes so long when about a thousand "
			 "are waiting before it; that it was so here is not recorded.",
			 (unsigned long long)q->calls.n, LONG_RUN,
			 rule_time((double)LONG_LAUNCH_NS), rule_time((double)q->calls.ns));
}

static void queue_full_release(void *state)
{
	struct queue_full *q = state;

	hits_free(&q->hits);
	hits_free(&q->calls);
}

/* clang-format off */
const struct rule rule_queue_full = {
	{ "launch-queue-full", "The launch queue is full", ADVISE_CALLS,
	  "the time that launches waited for room; the device was busy then",
	  "The host is far ahead, which by itself is no harm. If the thread has other work, give it to "
	  "another thread; launch less at once (graphs, larger kernels)." },
	.kinds = KIND(CT_CALL) | KIND(CT_OVERHEAD), .traits = TR_LAUNCH, .most = ADVISE_WARNING,
	.state_bytes = sizeof(struct queue_full), .event = queue_full_event, .end = queue_full_end, .free = queue_full_release,
	.hits_at = offsetof(struct queue_full, hits), .nhits = 2
};
/* clang-format on */
