/* SPDX-License-Identifier: BSD-2-Clause */
/* host_bound_steps.c - steps in which the GPU waits for a host that is busy with operators. */
#include <errno.h>

#include "../../sums/steps.h"
#include "../rule.h"
#include "steps_rule.h"

static void end(void *state, struct advice *a, struct advise_process *proc)
{
	const struct steps *steps;
	const struct steps_of *p = steps_rule_finish(proc, &steps);
	uint64_t ns = 0, idle_ns = 0;
	struct steps_ops ops;
	struct advise_finding *f;

	(void)state;
	for (size_t i = 0; p && i < p->n; i++) {
		ns += p->list[i].end_ns - p->list[i].start_ns;
		idle_ns += p->list[i].ns[OVERLAP_IDLE];
	}
	if (!p || !p->device || idle_ns * 2 < ns || steps_operators(steps, p, &ops) ||
	    ops.all_ns * 2 < ns)
		return;
	f = rule_finding(a, &rule_host_bound_steps, proc);
	if (!f)
		return;
	f->n = p->n;
	f->cost_ns = idle_ns;
	rule_say(&f->evidence,
		 "In %zu steps the GPU was idle for %.0f %% of the time, and the host was in "
		 "operators "
		 "for %.0f %%: %s and %s a step on average. Most of it: ",
		 p->n, 100 * (double)idle_ns / (double)ns, 100 * (double)ops.all_ns / (double)ns,
		 rule_time((double)idle_ns / (double)p->n),
		 rule_time((double)ops.all_ns / (double)p->n));
	for (int i = 0; i < STEPS_OPS && ops.name[i]; i++) {
		text_str(&f->evidence, i ? ", " : "");
		text_plain(&f->evidence, ops.name[i], 256);
		rule_say(&f->evidence, " %s", rule_time((double)ops.ns[i] / (double)p->n));
	}
	text_str(&f->evidence, " a step.");
	steps_rule_say_no_room(f, steps);
}

/* clang-format off */
const struct rule rule_host_bound_steps = {
	{ "host-bound-steps", "Steps that wait for the host's operators", ADVISE_DEVICE,
	  "the time of all steps in which the GPU did nothing; tracing operators makes it longer, so at most",
	  "Let torch.compile fuse the operators, or capture the step in a CUDA graph; use the fused and foreach forms of "
	  "optimizers; give each operator more to do." },
	.kinds = STEPS_RULE_KINDS, .traits = TR_LAUNCH | TR_GRAPH, .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct steps_rule), .event = steps_rule_event, .end = end
};
/* clang-format on */
