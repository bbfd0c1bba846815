/* SPDX-License-Identifier: BSD-2-Clause */
/* hole_words.c - see hole_words.h. */
#include "hole_words.h"

#define H(id, its_word, its_per, its_flags, its_one, its_many) \
	[CT_HOLE_##id] = { .word = its_word,                   \
			   .one = its_one,                     \
			   .many = its_many,                   \
			   .per = its_per,                     \
			   .flags = its_flags },
static const struct hole_why rows[CT_HOLE_REASON_END] = {
#include "holes.def"
};
#undef H
#define H(...) +1
_Static_assert(0
#include "holes.def"
		       == CT_HOLE_REASON_END - 1,
	       "a reason without a row in holes.def");

static const struct hole_why unknown = {
	.word = "unknown",
	.one = "something of %p is missing, for a reason that a newer version knows",
	.many = "something of %p is missing, for a reason that a newer version knows",
	.per = HOLES_PROCESSES,
	.flags = HOLES_FAILS | HOLES_ALL,
};

const struct hole_why *hole_why(uint16_t reason)
{
	return reason && reason < CT_HOLE_REASON_END ? &rows[reason] : &unknown;
}

const char *hole_reason(uint16_t reason)
{
	return hole_why(reason)->word;
}

const char *hole_layer(uint8_t layer)
{
	static const char *const words[CT_HOLE_LAYER_END] = {
		[CT_HOLE_CALLS] = "calls",
		[CT_HOLE_DEVICE] = "device work",
		[CT_HOLE_SCOPES] = "scopes",
		[CT_HOLE_STACKS] = "stacks",
		[CT_HOLE_PROCESSES] = "processes",
		[CT_HOLE_COUNTERS] = "counters",
		[CT_HOLE_HOST] = "states of threads",
	};

	return layer && layer < CT_HOLE_LAYER_END ? words[layer] : "records";
}

const char *hole_state(uint8_t state)
{
	static const char *const words[CT_HOLE_STATE_END] = {
		[CT_HOLE_LOST] = "lost",       [CT_HOLE_UNSEEN] = "unseen",
		[CT_HOLE_REFUSED] = "refused", [CT_HOLE_MUTED] = "muted",
		[CT_HOLE_TAKEN] = "taken",
	};

	return state && state < CT_HOLE_STATE_END ? words[state] : "unknown";
}
