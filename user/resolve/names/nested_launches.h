/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nested_launches.h - inside the resolve room: the driver's launches that are nested in runtime launches.
 * They can name a host stub that nothing else names: the handle of the driver's launch means the
 * same kernel, and its name can be read.
 *
 * They are captured only while they are needed, because they make each launch more expensive.
 */
#ifndef CT_NESTED_LAUNCHES_H
#define CT_NESTED_LAUNCHES_H

#include "../../event/event.h"

struct nested_launches;
struct nested_launches *nested_launches_open(void);   /* NULL: no memory */
void nested_launches_close(struct nested_launches *); /* takes NULL */

/* Takes a driver's launch that is nested in another call. */
void nested_launches_saw(struct nested_launches *, const struct ct_call *, uint64_t handle);
/*
 * Finds the handle of the only launch that is nested in the outer call, whose kernel has no name.
 * False: no nested launch was seen, or several were. Then nested launches are wanted for a while.
 * *tries counts the attempts without success: after a few, no more are wanted for this kernel.
 */
bool nested_launches_of(struct nested_launches *, const struct ct_call *outer, uint64_t *handle,
			uint8_t *tries);
/* The kernel that `tries` belongs to has a name now. When no other kernel needs a name, nested
 * launches are no longer wanted. */
void nested_launches_settled(struct nested_launches *, uint8_t *tries);
/* Call this when a thread's outermost call is over. */
void nested_launches_done(struct nested_launches *, const struct ct_call *outer);
bool nested_launches_wanted(const struct nested_launches *, uint64_t now_ns);

#endif
