/* SPDX-License-Identifier: BSD-2-Clause */
/* rules.c - the table of the rules. */
#include "rule.h"

const struct rule *const rules[] = {
#define RULE(name) &rule_##name,
#include "rules.def"
#undef RULE
};
const unsigned int nrules = ARRAY_LEN(rules);
