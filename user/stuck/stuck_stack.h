/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stuck_stack.h - from a thread's registers and stack to the call of CUDA's that it is inside
 * of, and to what the stack of that call can be resolved from.
 */
#ifndef CT_STUCK_STACK_H
#define CT_STUCK_STACK_H

#include "stuck_call.h"

struct stuck_stacks;

struct objects;

/* objects: the files of all processes, the caller's. NULL: no memory. */
struct stuck_stacks *stuck_stacks_open(struct objects *);
void stuck_stacks_close(struct stuck_stacks *); /* takes NULL */

/* Fills in *call, and *stack, the caller's frame without times and ids, as a record of how
 * CT_STACK_LIVE; its h.size is 0 where that is not known. Returns 1, 0 (it is in none), or
 * -EAGAIN (it cannot be told now). */
int stuck_stacks_call(struct stuck_stacks *, const struct snapshot_thread *,
		      struct stuck_call *call, struct ct_user_stack *stack);

/* Remembers the process and what it has mapped, so that stacks of it can be told later, when it is gone. Reads its
 * mappings again when that was done every_ns ago. 64 processes are remembered. */
void stuck_stacks_know(struct stuck_stacks *, const struct snapshot_process *about, uint64_t now_ns,
		       uint64_t every_ns);

struct space_place;
/* Hands out the frames of a thread, innermost first: the address in the process, and where that is. Returns
 * whether these are all. */
bool stuck_stacks_frames(struct stuck_stacks *, const struct snapshot_thread *,
			 void (*each)(void *ctx, const struct space_place *, uint64_t ip,
				      bool exact),
			 void *ctx);

#endif
