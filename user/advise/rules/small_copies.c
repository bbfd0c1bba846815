/* SPDX-License-Identifier: BSD-2-Clause */
/* small_copies.c - many small copies one after the other. */
#include "../rule.h"

#define RUN_LEAST 4	/* copies one after the other */
#define RUN_BYTES 16384 /* each at most */
#define RUN_COPIES 100	/* in such runs in all */

struct small_copies {
	struct hits hits;
	uint64_t runs;
};

static int small_copies_event(void *state, const struct seen *s)
{
	struct small_copies *m = state;
	struct thread *t = s->t;
	struct site one;

	/* any other call between two copies ends the series */
	if (!(s->traits & TR_COPY) || s->failed || !s->bytes || s->bytes > RUN_BYTES) {
		t->run_n = 0;
		return 0;
	}
	if (t->run_n && (t->run_func != s->call->func || t->run_way != s->way))
		t->run_n = 0;
	t->run_func = s->call->func;
	t->run_way = s->way;
	t->run_n++;
	t->run_ns = t->run_n == 1 ? 0 : t->run_ns + s->ns;
	t->run_bytes = t->run_n == 1 ? s->bytes : t->run_bytes + s->bytes;
	if (t->run_n < RUN_LEAST)
		return 0;
	one = rule_site(s, 0);
	one.ns = s->ns;
	one.bytes = s->bytes;
	if (t->run_n == RUN_LEAST) {
		m->runs++;
		one.n = RUN_LEAST;
		one.ns =
			t->run_ns; /* the time of all copies but the first: a single copy of everything would take that time too */
		one.bytes = t->run_bytes;
	}
	return hits_add(&m->hits, &one, NULL);
}

static void small_copies_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct small_copies *m = state;
	struct advise_finding *f;

	if (m->hits.n < RUN_COPIES)
		return;
	f = rule_finding_of(a, &rule_small_copies, proc, &m->hits);
	if (f)
		rule_say(&f->evidence,
			 "%llu copies, of %s on average, came one after the other in %llu rows of "
			 "%d or more by the same call and in the same direction, with nothing "
			 "launched and nothing waited for in between.",
			 (unsigned long long)m->hits.n,
			 rule_bytes((double)m->hits.bytes / (double)m->hits.n),
			 (unsigned long long)m->runs, RUN_LEAST);
}

/* clang-format off */
const struct rule rule_small_copies = {
	{ "small-copies", "Small copies that could be one", ADVISE_CALLS,
	  "the time in these calls, but for the first of each row",
	  "Gather the data and copy it once, or use cudaMemcpy2D, 3D or cudaMemcpyBatchAsync." },
	.kinds = KIND(CT_CALL), .traits = TR_WORK | TR_SYNC, .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct small_copies), .event = small_copies_event, .end = small_copies_end, .free = rule_free_hits
};
/* clang-format on */
