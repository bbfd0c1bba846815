/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_rule.h - what the rules about steps share. */
#ifndef CT_STEPS_RULE_H
#define CT_STEPS_RULE_H

#include "../proc_steps.h"

#define STEPS_RULE_LEAST 5 /* steps */
#define STEPS_RULE_KINDS                                                                       \
	(KIND(CT_CALL) | KIND(CT_SCOPE_END) | KIND(CT_KERNEL) | KIND(CT_COPY) | KIND(CT_SET) | \
	 KIND(CT_ENTERED))

/* The state of such a rule: nothing of its own. */
struct steps_rule {
	char none;
};

int steps_rule_event(void *state, const struct seen *);
/* The steps of the process, of *steps; NULL: there are too few, or none. A loop that only launches may be anything, and is not judged. */
const struct steps_of *steps_rule_finish(struct advise_process *, const struct steps **steps);
/* Adds to the evidence that later steps were not looked at, if that is so. */
void steps_rule_say_no_room(struct advise_finding *, const struct steps *);

#endif
