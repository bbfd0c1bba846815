/* SPDX-License-Identifier: BSD-2-Clause */
/* alloc_loop.c - memory that is allocated and freed in a loop. */
#include "../rule.h"
#include "patterns.h"

struct alloc_loop {
	struct loop_turns loop;
};

/* cudaFree(NULL) gives nothing back: programs call it so that CUDA starts, and it is no turn of a loop. */
static bool is_null(const struct seen *s)
{
	return s->call->nwords && !s->call->words[0];
}

static int alloc_loop_event(void *state, const struct seen *s)
{
	struct alloc_loop *l = state;

	if (s->traits & TR_FREE && is_null(s))
		return 0;
	return turns_add(&l->loop, s, s->traits & TR_ALLOC, true);
}

static void alloc_loop_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct alloc_loop *l = state;

	if (l->loop.turns >= TURNS_LEAST)
		turns_say(rule_finding_of(a, &rule_alloc_loop, proc, &l->loop.hits), &l->loop,
			  "an allocation was made again after one had been given back, with work "
			  "given to the device in between");
}

static void alloc_loop_release(void *state)
{
	hits_free(&((struct alloc_loop *)state)->loop.hits);
}

/* clang-format off */
const struct rule rule_alloc_loop = {
	{ "alloc-in-loop", "Memory allocated and freed in a loop", ADVISE_CALLS,
	  "the time in the calls that allocate and free, from the first repetition on",
	  "Allocate once before the loop, or use cudaMallocAsync and cudaFreeAsync, which take from a pool. "
	  "cudaFree also waits for the device." },
	.kinds = KIND(CT_CALL), .traits = TR_ALLOC | TR_FREE, .most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct alloc_loop), .event = alloc_loop_event, .end = alloc_loop_end, .free = alloc_loop_release
};
/* clang-format on */
