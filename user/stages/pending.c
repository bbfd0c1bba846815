/* SPDX-License-Identifier: BSD-2-Clause */
/* pending.c - which calls under way were shown already. See pending.h. What an asking does not
 * tell of has returned. */
#include <stdlib.h>

#include "pending.h"

void pending_begin(struct pending *p)
{
	struct pending old = *p;

	p->before = old.now;
	p->nbefore = old.nnow;
	p->cap_before = old.cap_now;
	p->now = old.before;
	p->cap_now = old.cap_before;
	p->nnow = 0;
}

bool pending_is_new(struct pending *p, const struct ct_call *c)
{
	struct pending_call call = { .tid = c->h.tid, .func = c->func, .start_ns = c->h.start_ns };

	if (p->nnow == p->cap_now) {
		int cap = p->cap_now ? 2 * p->cap_now : 64;
		struct pending_call *now = realloc(p->now, (size_t)cap * sizeof(*now));

		if (!now)
			return false;
		p->now = now;
		p->cap_now = cap;
	}
	p->now[p->nnow++] = call;
	for (int i = 0; i < p->nbefore; i++)
		if (p->before[i].tid == call.tid && p->before[i].func == call.func &&
		    p->before[i].start_ns == call.start_ns)
			return false;
	return true;
}

void pending_close(struct pending *p)
{
	free(p->now);
	free(p->before);
	*p = (struct pending){ 0 };
}
