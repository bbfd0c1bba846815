/* SPDX-License-Identifier: BSD-2-Clause */
/* late_load.c - device code that is loaded or compiled late. */
#include "../rule.h"

#define LOAD_LEAST_NS 1000000ULL

struct late_load {
	struct hits hits;
	uint64_t n, ns, at_ns, took_ns;
};

#define OVERHEAD_COMPILER 1
#define OVERHEAD_MODULE (4u << 16)
#define OVERHEAD_LAZY (5u << 16)

static int late_load_event(void *state, const struct seen *s)
{
	struct late_load *l = state;
	uint32_t type;

	if (!s->p->first_ns || s->h->start_ns < s->p->first_ns + STEADY_NS)
		return 0;
	if (s->call)
		return s->failed ? 0 : rule_hit(&l->hits, s, s->ns, 0);
	type = ((const struct ct_overhead *)s->h)->type;
	if (type != OVERHEAD_COMPILER && type != OVERHEAD_MODULE && type != OVERHEAD_LAZY)
		return 0;
	if (!l->n++ || s->ns > l->took_ns) {
		l->at_ns = s->h->start_ns;
		l->took_ns = s->ns;
	}
	l->ns += s->ns;
	return 0;
}

static void late_load_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct late_load *l = state;
	struct advise_finding *f;

	if (l->hits.ns + l->ns < LOAD_LEAST_NS)
		return;
	f = rule_finding_of(a, &rule_late_load, proc, &l->hits);
	if (!f)
		return;
	/* a call that loads and what the driver says of it are the same time */
	f->one.cost_ns = l->ns > l->hits.ns ? l->ns : l->hits.ns;
	f->one.n = l->n > l->hits.n ? l->n : l->hits.n;
	rule_say(&f->evidence,
		 "Later than %s after the process's first call, %llu calls loaded device code, for "
		 "%s, "
		 "and the driver was "
		 "compiling or loading %llu times, for %s.",
		 rule_time((double)STEADY_NS), (unsigned long long)l->hits.n,
		 rule_time((double)l->hits.ns), (unsigned long long)l->n, rule_time((double)l->ns));
	if (l->n && f->nplaces < ADVISE_PLACES) {
		struct advise_place *at = &f->places[f->nplaces++];

		text_str(&at->name, "the driver's loading and compiling");
		at->n = l->n;
		at->cost_ns = l->ns;
		at->at_ns = l->at_ns;
		at->took_ns = l->took_ns;
	}
}

/* clang-format off */
const struct rule rule_late_load = {
	{ "late-loading", "Device code loaded or compiled late", ADVISE_CALLS,
	  "the time in the calls that load or in what the driver says of loading and compiling, whichever is "
	  "longer",
	  "Load before the work begins: CUDA_MODULE_LOADING=EAGER, or a warm-up that runs each kernel once. "
	  "Compiling at run time (JIT): build for this GPU's architecture, or keep the cache "
	  "(CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE)." },
	.kinds = KIND(CT_CALL) | KIND(CT_OVERHEAD), .traits = TR_LOAD, .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct late_load), .event = late_load_event, .end = late_load_end, .free = rule_free_hits
};
/* clang-format on */
