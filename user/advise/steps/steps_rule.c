/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_rule.c - see steps_rule.h. */
#include "steps_rule.h"

int steps_rule_event(void *state, const struct seen *s)
{
	return proc_steps_event(s, state);
}

const struct steps_of *steps_rule_finish(struct advise_process *proc, const struct steps **steps)
{
	const struct steps_of *p;
	size_t n = 0;

	*steps = proc_steps_finish(proc);
	if (!*steps)
		return NULL;
	p = steps_list(*steps, &n);
	return n == 1 && p->n >= STEPS_RULE_LEAST && p->how != STEPS_LAUNCHES ? p : NULL;
}

void steps_rule_say_no_room(struct advise_finding *f, const struct steps *steps)
{
	if (steps_no_room(steps))
		text_str(&f->evidence,
			 " Later steps were not looked at, because there was no room for them.");
}
