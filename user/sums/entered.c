/* SPDX-License-Identifier: BSD-2-Clause */
/* entered.c - see entered.h. */
#include "entered.h"

#include <stdlib.h>

#define ENTERED_MAX 4096
#define LONG_NS 500000ULL /* an agent cannot have come in during a shorter call */
#define LONG_MAX 4096	  /* the newest of them */

struct entered {
	struct ct_hdr list[ENTERED_MAX]; /* size 0: the call is known */
	size_t n;
	struct long_call {
		uint64_t start_ns, end_ns;
		uint32_t pid, tid;
		size_t at;
		uint16_t func;
	} calls[LONG_MAX];
	uint64_t ncalls;
	struct entered_sum sum;
};

struct entered *entered_open(void)
{
	struct entered *e = calloc(1, sizeof(*e));

	if (e)
		e->sum.func = CT_NO_FUNC;
	return e;
}

void entered_close(struct entered *e)
{
	free(e);
}

static void entered_add(struct entered *e, uint64_t ns, uint16_t func)
{
	e->sum.func = !e->sum.n || e->sum.func == func ? func : CT_NO_FUNC;
	e->sum.n++;
	e->sum.ns += ns;
}

/* Did the time pass inside this call? */
static bool holds(uint64_t start_ns, uint64_t end_ns, uint32_t pid, uint32_t tid,
		  const struct ct_hdr *h)
{
	return h->size && h->pid == pid && h->tid == tid && start_ns <= h->start_ns &&
	       h->end_ns <= end_ns;
}

uint64_t entered_call(struct entered *e, const struct ct_call *c, size_t at)
{
	const struct ct_hdr *h = &c->h;
	uint64_t ns = 0;

	if (h->end_ns < h->start_ns || h->end_ns - h->start_ns < LONG_NS)
		return 0;
	for (size_t i = 0; i < e->n; i++) {
		if (!holds(h->start_ns, h->end_ns, h->pid, h->tid, &e->list[i]))
			continue;
		ns += e->list[i].end_ns - e->list[i].start_ns;
		entered_found(e, &e->list[i], c->func);
	}
	e->calls[e->ncalls++ % LONG_MAX] = (struct long_call){ .start_ns = h->start_ns,
							       .end_ns = h->end_ns,
							       .pid = h->pid,
							       .tid = h->tid,
							       .at = at,
							       .func = c->func };
	return ns < h->end_ns - h->start_ns ? ns : h->end_ns - h->start_ns;
}

bool entered_record(struct entered *e, const struct ct_hdr *h, struct entered_in *in)
{
	uint64_t kept = e->ncalls < LONG_MAX ? e->ncalls : LONG_MAX;

	if (h->end_ns <= h->start_ns)
		return false;
	for (uint64_t i = 0; i < kept; i++) {
		const struct long_call *c = &e->calls[i];

		if (!holds(c->start_ns, c->end_ns, c->pid, c->tid, h))
			continue;
		*in = (struct entered_in){ .at = c->at,
					   .took_ns = c->end_ns - c->start_ns,
					   .ns = h->end_ns - h->start_ns,
					   .func = c->func };
		entered_add(e, in->ns, c->func);
		return true;
	}
	if (e->n < ENTERED_MAX)
		e->list[e->n++] = *h;
	return false;
}

struct ct_hdr *entered_next(struct entered *e, size_t *i)
{
	while (*i < e->n)
		if (e->list[(*i)++].size)
			return &e->list[*i - 1];
	return NULL;
}

void entered_found(struct entered *e, struct ct_hdr *h, uint16_t func)
{
	entered_add(e, h->end_ns - h->start_ns, func);
	h->size = 0;
}

void entered_sum(const struct entered *e, struct entered_sum *out)
{
	*out = e->sum;
	for (size_t i = 0; i < e->n; i++)
		if (e->list[i].size)
			out->in_sums_ns += e->list[i].end_ns - e->list[i].start_ns;
}
