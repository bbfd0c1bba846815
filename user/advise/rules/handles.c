/* SPDX-License-Identifier: BSD-2-Clause */
/* handles.c - streams, events, graphs, modules and host memory of which there are more and more:
 * they are made throughout the trace, and most of them are never given back. */
#include "../../event/memory/growing.h"
#include "../rule.h"

struct handles {
	struct growing growing;
	struct hits hits[GROWING_END];
};

static int handles_event(void *state, const struct seen *s)
{
	struct handles *h = state;
	enum growing_kind kind;
	bool makes;

	if (!s->call) { /* another program: it has none of them */
		for (int k = 0; k < GROWING_END; k++)
			hits_free(&h->hits[k]);
		*h = (struct handles){ .growing = { .first_ns = 0 } };
		return 0;
	}
	kind = s->failed ? GROWING_END : growing_kind_of(s->call, &makes);
	if (kind == GROWING_END)
		return 0;
	growing_add(&h->growing, s->p->first_ns, s->h->start_ns, kind, makes);
	return makes ? rule_hit(&h->hits[kind], s, 0, 0) : 0;
}

static void handles_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct handles *h = state;

	for (int k = 0; k < GROWING_END; k++) {
		const struct growing_of *of = &h->growing.of[k];
		struct advise_finding *f;

		if (!growing_grows(&h->growing, proc->last_ns, (enum growing_kind)k))
			continue;
		f = rule_finding_of(a, &rule_handles, proc, &h->hits[k]);
		if (!f)
			continue;
		f->one.n = of->made - of->given;
		f->severity = ADVISE_WARNING;
		rule_say(&f->evidence,
			 "%llu %s were made throughout the trace, and %llu were given back: %llu "
			 "are "
			 "left.",
			 (unsigned long long)of->made, growing_word((enum growing_kind)k),
			 (unsigned long long)of->given, (unsigned long long)f->one.n);
	}
}

static void handles_release(void *state)
{
	struct handles *h = state;

	for (int k = 0; k < GROWING_END; k++)
		hits_free(&h->hits[k]);
}

/* clang-format off */
const struct rule rule_handles = {
	{ "growing-handles", "Handles of which there are more and more", ADVISE_CALLS,
	  "no known time: each takes memory of the host and of the driver",
	  "Destroy, unload or free them where they are no longer needed, or make them once and use them again." },
	.kinds = KIND(CT_CALL) | KIND(CT_EXEC),
	.traits = TR_STREAM_CREATE | TR_STREAM_DESTROY | TR_EVENT_CREATE | TR_EVENT_DESTROY | TR_GRAPH_CREATE |
		  TR_GRAPH_DESTROY | TR_LOAD | TR_UNLOAD | TR_MEMORY | TR_ALLOC | TR_FREE,
	.most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct handles), .event = handles_event, .end = handles_end, .free = handles_release,
	.hits_at = offsetof(struct handles, hits), .nhits = GROWING_END
};
/* clang-format on */
