/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_rule.c - see steps_rule.h. */
#include <errno.h>

#include "steps_rule.h"

int steps_rule_event(void *state, const struct seen *s)
{
	struct steps_rule *r = state;

	if (!r->steps)
		r->steps = steps_open(NULL, STEPS_RULE_MAX);
	return !r->steps || steps_event(r->steps, s->ev) < 0 ? -ENOMEM : 0;
}

const struct steps_of *steps_rule_finish(void *state)
{
	struct steps_rule *r = state;
	const struct steps_of *p;
	size_t n = 0;

	if (!r->steps || steps_finish(r->steps))
		return NULL;
	p = steps_list(r->steps, &n);
	return n == 1 && p->n >= STEPS_RULE_LEAST && p->how != STEPS_LAUNCHES ? p : NULL;
}

void steps_rule_free(void *state)
{
	steps_close(((struct steps_rule *)state)->steps);
}
