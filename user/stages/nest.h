/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nest.h - puts parents before their children. A call's record comes when it returns, so those
 * of the calls made inside it come first; they are held, thread by thread, until the outermost
 * call's record is there, then all go on in the order in which they were entered. Nothing is
 * held longer than NEST_HOLD_NS.
 */
#ifndef CT_NEST_H
#define CT_NEST_H

#include "../event/event.h"

#define NEST_HOLD_NS 1000000000ULL

struct nest;
struct nest *nest_open(event_fn next, void *ctx); /* NULL: no memory */
void nest_close(struct nest *);			  /* what is still held is dropped: flush first */

/* Takes an event with a checked record; hands on what is due. Of an event that is held the
 * record, the number and the place are kept, which is all that calls have. Returns 0 or next()'s
 * error. */
int nest_record(struct nest *, struct event *);
/* Hands on what has been held since before now_ns - NEST_HOLD_NS (CLOCK_MONOTONIC; UINT64_MAX:
 * everything). */
int nest_flush(struct nest *, uint64_t now_ns);

#endif
