/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fragmentation.c - an allocator inside the program that has much more from CUDA than it ever gave out at
 * a time, or that runs out of memory though as much is free in what it has.
 */
#include <errno.h>
#include <string.h>

#include "../../event/scopes/block_report.h"
#include "../../util/hash.h"
#include "../rule.h"

#define WASTE_LEAST (64ULL << 20)
#define WASTE_SHARE 5 /* one in so many of the bytes that it had from CUDA */
#define PLACE_BYTES 256

struct totals {
	uint32_t device;
	uint64_t allocated, reserved; /* as it said last */
	uint64_t most_allocated, most_reserved;
};

struct fragmentation {
	struct hits hits; /* segments that were taken although as much was free */
	struct totals totals[DEVICES_MAX];
	uint32_t n;
	uint64_t ooms, asked, free; /* out of memory although as much was free; of the first one */
};

static struct totals *totals_of(struct fragmentation *g, uint32_t device)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (g->totals[i].device == device)
			return &g->totals[i];
	if (g->n == DEVICES_MAX)
		return NULL;
	g->totals[g->n].device = device;
	return &g->totals[g->n++];
}

static uint64_t free_of(uint64_t reserved, uint64_t allocated)
{
	return reserved > allocated ? reserved - allocated : 0;
}

/* Of the place in the program: all blocks are reported by the same function. */
static int add_hit(struct fragmentation *g, const struct seen *s, uint64_t bytes)
{
	char place[PLACE_BYTES];
	bool known = stack_place(s->ev->stack, place, sizeof(place));
	struct site one = rule_site(s, known ? hash_bytes(place, strlen(place)) : 0);

	one.bytes = bytes;
	return hits_add(&g->hits, &one, known ? place : NULL);
}

static int fragmentation_event(void *state, const struct seen *s)
{
	struct fragmentation *g = state;
	struct block_report r;
	struct totals *t;
	uint64_t spare;

	if (!block_report(s->call, &r) || r.type != BLOCK_REPORT_CUDA || block_report_odd(&r))
		return 0;
	if (r.no_memory) {
		spare = free_of(r.reserved, r.allocated);
		if ((uint64_t)r.size > spare)
			return 0;
		if (!g->ooms++) {
			g->asked = (uint64_t)r.size;
			g->free = spare;
		}
		return add_hit(g, s, (uint64_t)r.size);
	}
	t = totals_of(g, r.device);
	if (!t)
		return 0;
	spare = free_of(t->reserved, t->allocated);
	if (r.size > 0 && r.reserved > t->reserved && spare >= (uint64_t)r.size &&
	    add_hit(g, s, r.reserved - t->reserved))
		return -ENOMEM;
	t->allocated = r.allocated;
	t->reserved = r.reserved;
	if (r.allocated > t->most_allocated)
		t->most_allocated = r.allocated;
	if (r.reserved > t->most_reserved)
		t->most_reserved = r.reserved;
	return 0;
}

/* Bytes that a device's segments had more than was ever given out at a time; 0: few. */
static uint64_t waste_of(const struct totals *t)
{
	uint64_t waste = free_of(t->most_reserved, t->most_allocated);

	return waste >= WASTE_LEAST && waste >= t->most_reserved / WASTE_SHARE ? waste : 0;
}

static void fragmentation_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct fragmentation *g = state;
	const struct totals *most = NULL;
	struct advise_finding *f;

	for (uint32_t i = 0; i < g->n; i++)
		if (waste_of(&g->totals[i]) > (most ? waste_of(most) : 0))
			most = &g->totals[i];
	if (!g->hits.n || (!most && !g->ooms))
		return;
	f = rule_finding_of(a, &rule_fragmentation, proc, &g->hits);
	if (!f)
		return;
	f->severity = g->ooms ? ADVISE_SERIOUS : ADVISE_WARNING;
	f->one.bytes = most ? waste_of(most) : g->asked;
	if (most)
		rule_say(&f->evidence,
			 "PyTorch's allocator had up to %s from CUDA on device %u, and gave out at "
			 "most %s of it at a time. ",
			 rule_bytes((double)most->most_reserved), most->device,
			 rule_bytes((double)most->most_allocated));
	if (g->ooms)
		rule_say(
			&f->evidence,
			"It was out of memory %llu time%s although enough was free in what it had: "
			"first for %s, with %s free. ",
			(unsigned long long)g->ooms, g->ooms == 1 ? "" : "s",
			rule_bytes((double)g->asked), rule_bytes((double)g->free));
	rule_say(
		&f->evidence,
		"%llu allocation%s found no block that was long enough, although as much was free.",
		(unsigned long long)g->hits.n, g->hits.n == 1 ? "" : "s");
}

/* clang-format off */
const struct rule rule_fragmentation = {
	{ "fragmentation", "Memory of PyTorch's allocator that is free, but in pieces", ADVISE_CALLS,
	  "no time: memory",
	  "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; make sizes that differ from step to step the same by padding; take what stays "
	  "before what comes and goes. 'cudatrace mem --layers allocator --memory-viz FILE' shows what lies where." },
	.kinds = KIND(CT_CALL), .traits = TR_REPORT, .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct fragmentation), .event = fragmentation_event, .end = fragmentation_end, .free = rule_free_hits
};
/* clang-format on */
