/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * patterns.h - what several rules look for in the calls of a thread.
 *
 * A wait for the device by itself costs nothing: the device is busy meanwhile. What it costs is the
 * time after it, until the thread has given the device work again.
 *
 * A turn of a loop: something is made after something of the kind was given back. Much that is made
 * at the begin and given back at the end is no loop: it turns once at most. Calls are counted from
 * the first turn on.
 */
#ifndef CT_ADVISE_PATTERNS_H
#define CT_ADVISE_PATTERNS_H

#include "../rule.h"

enum wait_what { WAIT_NONE, WAIT_EACH, WAIT_READBACK };

/* Notes a wait. Its cost is known when the thread gives the device work again, so the last wait of a trace is
 * never counted. */
void waits_note(const struct seen *, enum wait_what, uint64_t bytes);
/* The work that follows. */
int waits_settle(struct hits *, const struct seen *, enum wait_what);

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
