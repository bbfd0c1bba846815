/* SPDX-License-Identifier: BSD-2-Clause */
/* rule.c - see rule.h: what rules say their findings with. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../util/units.h"
#include "rule.h"

uint64_t rule_own_ns(const struct advise_process *p, uint32_t tid, uint64_t start_ns,
		     uint64_t end_ns)
{
	uint64_t ns = end_ns > start_ns ? end_ns - start_ns : 0;

	for (unsigned int i = 0; i < p->nentered; i++) {
		const struct entered_one *e = &p->entered[i];

		if ((!tid || e->tid == tid) && start_ns <= e->start_ns && e->end_ns <= end_ns)
			ns -= e->end_ns - e->start_ns < ns ? e->end_ns - e->start_ns : ns;
	}
	return ns;
}

uint64_t rule_cause_ns(const struct seen *s)
{
	const struct cause *c = s->ev->cause;

	return c ? rule_own_ns(s->p, 0, c->start_ns, c->end_ns) : 0;
}

struct site rule_site(const struct seen *s, uint64_t handle)
{
	struct site one = { .handle = handle,
			    .func = CT_NO_FUNC,
			    .n = 1,
			    .at_ns = s->h->start_ns,
			    .tid = s->call ? s->h->tid : 0,
			    .took_ns = s->ns };

	if (s->call)
		one.func = s->call->func;
	else if (s->ev->cause && s->ev->cause->func < api_nfuncs)
		one.func = s->ev->cause->func;
	one.stack = sites_stack_of(advise_stacks(s->a), s->ev->stack);
	return one;
}

int rule_hit(struct hits *h, const struct seen *s, uint64_t cost_ns, uint64_t bytes)
{
	struct site one = rule_site(s, 0);

	one.ns = cost_ns;
	one.bytes = bytes;
	return hits_add(h, &one, NULL);
}

/* ---- findings ---- */

void rule_say(struct text *t, const char *fmt, ...)
{
	char buf[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	text_mem(t, buf, n < 0 ? 0 : (size_t)n < sizeof(buf) ? (size_t)n : sizeof(buf) - 1);
}

static char *turn(void)
{
	static char bufs[12][32];
	static unsigned int next;

	return bufs[next++ % ARRAY_LEN(bufs)];
}

const char *rule_time(double ns)
{
	return print_duration(turn(), 32, ns);
}

const char *rule_bytes(double bytes)
{
	return print_bytes(turn(), 32, bytes);
}

struct advise_finding *rule_finding(struct advice *a, const struct rule *r,
				    struct advise_process *p)
{
	struct advise_finding *f = advise_finding_new(a);

	if (!f)
		return NULL;
	f->rule = &r->words;
	f->one.process = p->index;
	f->one.pid = p->shown;
	f->one.rank = p->rank;
	text_plain(&f->comm, p->comm, strnlen(p->comm, sizeof(p->comm)));
	/* the span, until all is weighed */
	f->one.share = (double)rule_own_ns(p, 0, p->first_ns, p->last_ns);
	return f;
}

static int by_cost(const void *pa, const void *pb)
{
	const struct site *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	if (a->n != b->n)
		return a->n < b->n ? 1 : -1;
	return a->at_ns < b->at_ns ? -1 : a->at_ns > b->at_ns;
}

struct advise_finding *rule_finding_of(struct advice *a, const struct rule *r,
				       struct advise_process *p, const struct hits *h)
{
	struct advise_finding *f = rule_finding(a, r, p);
	struct site *sorted;

	if (!f)
		return NULL;
	f->one.n = h->n;
	f->one.cost_ns = h->ns;
	f->one.bytes = h->bytes;
	sorted = malloc((h->nsites + 1) * sizeof(*sorted));
	if (!sorted)
		return f;
	if (h->nsites)
		memcpy(sorted, h->sites, h->nsites * sizeof(*sorted));
	qsort(sorted, h->nsites, sizeof(*sorted), by_cost);
	for (uint32_t i = 0; i < h->nsites && i < ADVISE_PLACES; i++) {
		struct advise_place *to = &f->places[f->nplaces++];
		const struct text *stack = sites_stack_text(advise_stacks(a), sorted[i].stack);

		if (sorted[i].name)
			text_plain(&to->name, sorted[i].name, 256);
		else
			text_str(&to->name, sorted[i].func < api_nfuncs
						    ? api_funcs[sorted[i].func].name
						    : "no known call");
		if (stack)
			text_mem(&to->stack, stack->s, stack->len);
		to->n = sorted[i].n;
		to->cost_ns = sorted[i].ns;
		to->bytes = sorted[i].bytes;
		to->at_ns = sorted[i].at_ns;
		to->took_ns = sorted[i].took_ns;
	}
	free(sorted);
	return f;
}

void rule_free_hits(void *state)
{
	hits_free(state);
}
