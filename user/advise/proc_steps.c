/* SPDX-License-Identifier: BSD-2-Clause */
/* proc_steps.c - see proc_steps.h. */
#include <errno.h>
#include <stdlib.h>

#include "proc_steps.h"

struct proc_steps {
	struct steps *steps;
	const void *feeder; /* the rule that handed on the first event: only its events are taken */
	unsigned int may;   /* pieces that fit; 0: there was no room at all */
	bool finished, bad;
};

static struct proc_steps *open_of(const struct seen *s, const void *rule)
{
	struct proc_steps *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->feeder = rule;
	p->may = advise_may_keep_steps(s->a, PROC_STEPS_FIRST) ? PROC_STEPS_FIRST : 0;
	p->steps = steps_open(NULL, p->may);
	if (p->steps)
		return p;
	free(p);
	return NULL;
}

int proc_steps_event(const struct seen *s, const void *rule)
{
	struct proc_steps *p = s->p->steps;

	if (!p)
		p = s->p->steps = open_of(s, rule);
	if (!p)
		return -ENOMEM;
	if (p->feeder != rule)
		return 0;
	if (p->may && p->may < PROC_STEPS_MAX && steps_full(p->steps) &&
	    advise_may_keep_steps(s->a, p->may)) {
		p->may *= 2;
		steps_widen(p->steps, p->may);
	}
	return steps_event(p->steps, s->ev) < 0 ? -ENOMEM : 0;
}

const struct steps *proc_steps_finish(struct advise_process *proc)
{
	struct proc_steps *p = proc->steps;

	if (!p)
		return NULL;
	if (!p->finished)
		p->bad = steps_finish(p->steps) != 0;
	p->finished = true;
	return p->bad ? NULL : p->steps;
}

void proc_steps_holes(const struct advise_process *proc, const struct holes *holes)
{
	if (proc->steps)
		steps_holes(proc->steps->steps, holes);
}

uint64_t proc_steps_no_room(const struct advise_process *proc)
{
	return proc->steps ? steps_no_room(proc->steps->steps) : 0;
}

void proc_steps_close(struct proc_steps *p)
{
	if (!p)
		return;
	steps_close(p->steps);
	free(p);
}
