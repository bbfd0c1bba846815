/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps.c - steps that took much longer than the others of their program, and steps in which the
 * GPU waits for a host that is busy with operators.
 */
#include <errno.h>

#include "../../sums/steps.h"
#include "../proc_steps.h"
#include "../rule.h"

#define STEPS_RULE_LEAST 5 /* steps */
#define STEPS_RULE_KINDS                                                                       \
	(KIND(CT_CALL) | KIND(CT_SCOPE_END) | KIND(CT_KERNEL) | KIND(CT_COPY) | KIND(CT_SET) | \
	 KIND(CT_ENTERED))

/* The state of such a rule: nothing of its own. */
struct steps_rule {
	char none;
};

static int steps_rule_event(void *state, const struct seen *s)
{
	return proc_steps_event(s, state);
}

/* The steps of the process, of *steps; NULL: there are too few, or none. A loop that only launches may be anything, and is not
 * judged. */
static const struct steps_of *steps_rule_finish(struct advise_process *proc,
						const struct steps **steps)
{
	const struct steps_of *p;
	size_t n = 0;

	*steps = proc_steps_finish(proc);
	if (!*steps)
		return NULL;
	p = steps_list(*steps, &n);
	return n == 1 && p->n >= STEPS_RULE_LEAST && p->how != STEPS_LAUNCHES ? p : NULL;
}

/* Adds to the evidence that later steps were not looked at, if that is so. */
static void steps_rule_say_no_room(struct advise_finding *f, const struct steps *steps)
{
	if (steps_no_room(steps))
		text_str(&f->evidence,
			 " Later steps were not looked at, because there was no room for them.");
}

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

static void slow_steps_end(void *state, struct advice *a, struct advise_process *proc)
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
	f->one.n = slow;
	f->one.cost_ns = cost_ns;
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
	.state_bytes = sizeof(struct steps_rule), .event = steps_rule_event, .end = slow_steps_end
};
/* clang-format on */

static void host_bound_steps_end(void *state, struct advice *a, struct advise_process *proc)
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
	f->one.n = p->n;
	f->one.cost_ns = idle_ns;
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
	.state_bytes = sizeof(struct steps_rule), .event = steps_rule_event, .end = host_bound_steps_end
};
/* clang-format on */
