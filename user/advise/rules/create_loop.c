/* SPDX-License-Identifier: BSD-2-Clause */
/* create_loop.c - events or streams that are made and destroyed in a loop. */
#include "../rule.h"
#include "patterns.h"

struct create_loop {
	struct loop_turns events, streams;
};

static int create_loop_event(void *state, const struct seen *s)
{
	struct create_loop *l = state;

	if (s->traits & (TR_EVENT_CREATE | TR_EVENT_DESTROY))
		return turns_add(&l->events, s, s->traits & TR_EVENT_CREATE, false);
	return turns_add(&l->streams, s, s->traits & TR_STREAM_CREATE, false);
}

/* Most were given back: of the others there are more and more, which rule growing-handles says. */
static bool is_loop(const struct loop_turns *l)
{
	return l->turns >= TURNS_LEAST && l->given * 2 > l->made;
}

static void create_loop_end(void *state, struct advice *a, struct advise_process *proc)
{
	struct create_loop *l = state;

	if (is_loop(&l->events))
		turns_say(rule_finding_of(a, &rule_create_loop, proc, &l->events.hits), &l->events,
			  "an event was made again after one had been destroyed");
	if (is_loop(&l->streams))
		turns_say(rule_finding_of(a, &rule_create_loop, proc, &l->streams.hits),
			  &l->streams, "a stream was made again after one had been destroyed");
}

static void create_loop_release(void *state)
{
	struct create_loop *l = state;

	hits_free(&l->events.hits);
	hits_free(&l->streams.hits);
}

/* clang-format off */
const struct rule rule_create_loop = {
	{ "create-in-loop", "Events or streams made and destroyed in a loop", ADVISE_CALLS,
	  "the time in the calls that create and destroy, from the first repetition on",
	  "Create them once and use them again." },
	.kinds = KIND(CT_CALL), .traits = TR_EVENT_CREATE | TR_EVENT_DESTROY | TR_STREAM_CREATE | TR_STREAM_DESTROY,
	.most = ADVISE_SERIOUS,
	.state_bytes = sizeof(struct create_loop), .event = create_loop_event, .end = create_loop_end, .free = create_loop_release
};
/* clang-format on */
