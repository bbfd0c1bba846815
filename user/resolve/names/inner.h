/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inner.h - inside the resolve room: the driver's launches that are nested in runtime launches.
 * They can name a host stub that nothing else names: the handle of the driver's launch means the
 * same kernel, and its name can be read.
 *
 * They are captured only while they are needed, because they make each launch more expensive.
 */
#ifndef CT_INNER_H
#define CT_INNER_H

#include "../../event/event.h"

struct inner;
struct inner *inner_open(void);	  /* NULL: no memory */
void inner_close(struct inner *); /* takes NULL */

/* Takes a driver's launch that is nested in another call. */
void inner_saw(struct inner *, const struct ct_call *, uint64_t handle);
/*
 * Finds the handle of the only launch that is nested in the outer call, whose kernel has no name.
 * False: no nested launch was seen, or several were. Then nested launches are wanted for a while.
 * *tries counts the attempts without success: after a few, no more are wanted for this kernel.
 */
bool inner_of(struct inner *, const struct ct_call *outer, uint64_t *handle, uint8_t *tries);
/* The kernel that `tries` belongs to has a name now. When no other kernel needs a name, nested
 * launches are no longer wanted. */
void inner_settled(struct inner *, uint8_t *tries);
/* Call this when a thread's outermost call is over. */
void inner_done(struct inner *, const struct ct_call *outer);
bool inner_wanted(const struct inner *, uint64_t now_ns);

#endif
