/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nest.h - puts parents before their children. A call's record comes when the call returns, so the
 * records of nested calls come before it. They are held, for each thread, until the record of the
 * outermost call has arrived. Then all of them are passed on in the order in which the calls were
 * entered. Nothing is held longer than NEST_HOLD_NS.
 */
#ifndef CT_NEST_H
#define CT_NEST_H

#include "../event/event.h"

#define NEST_HOLD_NS 1000000000ULL

struct nest;
struct nest *nest_open(event_fn next, void *ctx); /* NULL: no memory */
void nest_close(struct nest *);			  /* drops what is still held: flush first */

/* Takes an event with a checked record, and passes on what is due. An event that is held keeps its
 * record, its number and its place, which is all that calls have. Returns 0 or next()'s error. */
int nest_record(struct nest *, struct event *);
/* Passes on what has been held for more than NEST_HOLD_NS at now_ns (CLOCK_MONOTONIC; UINT64_MAX:
 * everything). */
int nest_flush(struct nest *, uint64_t now_ns);

#endif
