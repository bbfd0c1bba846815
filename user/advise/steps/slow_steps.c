/* SPDX-License-Identifier: BSD-2-Clause */
/* slow_steps.c - steps that took much longer than the others of their program. */
#include <errno.h>

#include "../../sums/steps.h"
#include "../rule.h"
#include "steps_rule.h"

#define SLOW 1.5 /* times the median */

static void difference(struct text *t, const struct steps_more *more)
{
	static const char *const classes[] = {
		[OVERLAP_COMPUTE] = "in kernels that compute",
		[OVERLAP_COLLECTIVE] = "in communication beside which nothing computes",
		[OVERLAP_COPY] = "in copies",
		[OVERLAP_IDLE] = "idle"
	};

	if (more->class_ns)
		rule_say(t, " The GPU was %s for %s longer than in the other steps on average.",
			 classes[more->class], rule_time((double)more->class_ns));
	if (more->op) {
		rule_say(t, " On the host it spent %s more in the operator ",
			 rule_time((double)more->op_ns));
		text_plain(t, more->op, 256);
		text_str(t, ".");
	}
	if (more->work) {
		rule_say(t, " On the GPU it spent %s more in ", rule_time((double)more->work_ns));
		text_plain(t, more->work, 256);
		text_str(t, ".");
	}
}

static void end(void *state, struct advice *a, struct advise_process *proc)
{
	const struct steps *steps;
	const struct steps_of *p = steps_rule_finish(proc, &steps);
	uint64_t slow = 0, cost_ns = 0, longest = 0;
	struct advise_finding *f;
	struct steps_more more;
	size_t at = 0;

	(void)state;
	if (!p)
		return;
	/* the first step prepares what the others find ready */
	for (size_t i = 1; i < p->n; i++) {
		uint64_t ns = p->list[i].end_ns - p->list[i].start_ns;

		if ((double)ns < SLOW * (double)p->median_ns)
			continue;
		slow++;
		cost_ns += ns - p->median_ns;
		at = ns > longest ? i : at;
		longest = ns > longest ? ns : longest;
	}
	if (!slow || steps_compare(steps, p, at, &more))
		return;
	f = rule_finding(a, &rule_slow_steps, proc);
	if (!f)
		return;
	f->n = slow;
	f->cost_ns = cost_ns;
	rule_say(&f->evidence,
		 "%llu of %zu steps took at least %.1f times as long as the median, %s. The "
		 "slowest is "
		 "step %llu with %s.",
		 (unsigned long long)slow, p->n, SLOW, rule_time((double)p->median_ns),
		 (unsigned long long)p->list[at].number, rule_time((double)longest));
	difference(&f->evidence, &more);
	steps_rule_say_no_room(f, steps);
}

/* clang-format off */
const struct rule rule_slow_steps = {
	{ "slow-steps", "Steps that are slower than the others", ADVISE_CALLS,
	  "by how much each of them took longer than the median",
	  "Look at what the slowest one had more of: 'cudatrace stat --by step' shows each step. Write checkpoints and logs from another "
	  "thread, load data ahead, and keep shapes the same." },
	.kinds = STEPS_RULE_KINDS, .traits = TR_LAUNCH | TR_GRAPH, .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct steps_rule), .event = steps_rule_event, .end = end
};
/* clang-format on */
