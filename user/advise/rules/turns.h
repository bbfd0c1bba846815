/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turns.h - what rules about loops share. A turn: something is made after something of the kind
 * was given back. Much that is made at the begin and given back at the end is no loop: it turns
 * once at most. Calls are counted from the first turn on.
 */
#ifndef CT_ADVISE_TURNS_H
#define CT_ADVISE_TURNS_H

#include "../rule.h"

#define TURNS_LEAST 20

struct loop_turns {
	uint64_t turns, serial;
	uint64_t made, given; /* in all */
	bool destroyed;
	struct hits hits;
};

/* makes: not gives back. busy: it is a turn only if the device was given work in between. */
int turns_add(struct loop_turns *, const struct seen *, bool makes, bool busy);
void turns_say(struct advise_finding *, const struct loop_turns *, const char *what);

#endif
