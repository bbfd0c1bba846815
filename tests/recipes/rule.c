/* SPDX-License-Identifier: BSD-2-Clause */
/* rule.c - a rule of advise that tests/recipes.sh adds: the program allocates at all. */
#include "../rule.h"

static int event(void *state, const struct seen *s)
{
	return rule_hit(state, s, s->ns, 0);
}

static void end(void *state, struct advice *a, struct advise_process *proc)
{
	struct hits *h = state;
	struct advise_finding *f;

	if (!h->n)
		return;
	f = rule_finding_of(a, &rule_recipe, proc, h);
	if (f)
		rule_say(&f->evidence, "the recipe allocates %llu time(s).",
			 (unsigned long long)h->n);
}

/* clang-format off */
const struct rule rule_recipe = {
	{ "recipe", "What the recipe allocates", ADVISE_CALLS, "the time in these calls", "Mend the recipe." },
	.kinds = KIND(CT_CALL), .traits = TR_ALLOC, .least = ADVISE_WARNING, .most = ADVISE_WARNING,
	.state_bytes = sizeof(struct hits), .event = event, .end = end, .free = rule_free_hits
};
/* clang-format on */
