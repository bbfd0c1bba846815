/* SPDX-License-Identifier: BSD-2-Clause */
/* pending.c - see pending.h. A call that the source does not report any more has returned. */
#include <stdlib.h>

#include "pending.h"
#include "../util/table/array.h"

void pending_begin(struct pending *p)
{
	struct pending old = *p;

	p->before = old.now;
	p->nbefore = old.nnow;
	p->now = old.before;
	p->nnow = 0;
}

bool pending_is_new(struct pending *p, const struct ct_call *c)
{
	struct pending_call call = { .tid = c->h.tid, .func = c->func, .start_ns = c->h.start_ns };

	if (!array_room(p->now, p->nnow))
		return false;
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
