/* SPDX-License-Identifier: BSD-2-Clause */
/* steps_rule.h - what the rules about steps share: the process's steps. */
#ifndef CT_STEPS_RULE_H
#define CT_STEPS_RULE_H

#include "../../stat/steps/steps.h"
#include "../rule.h"

#define STEPS_RULE_LEAST 5 /* steps */
#define STEPS_RULE_MAX 262144
#define STEPS_RULE_KINDS \
	(KIND(CT_CALL) | KIND(CT_SCOPE_END) | KIND(CT_KERNEL) | KIND(CT_COPY) | KIND(CT_SET))

struct steps_rule {
	struct steps *steps;
};

int steps_rule_event(void *state, const struct seen *);
/* The steps of the process; NULL: there are too few, or none. A loop that only launches may be anything, and is not judged. */
const struct steps_of *steps_rule_finish(void *state);
void steps_rule_free(void *state);

#endif
