/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * muted_funcs.h - functions that the program calls so often that each call is only counted, by a few
 * instructions at its hook (HOOK_COUNT). If the user side requests it, their calls are recorded in
 * short windows, which begin at random instants, so that their durations are known. Only the thread
 * of the hooks uses this.
 */
#ifndef CT_HOOKS_MUTED_H
#define CT_HOOKS_MUTED_H

#include "../../wire/hooks_wire.h"

/* A connection begins: no function is muted. */
void muted_begin(void);
void muted_take(const struct hooks_mute *);
/* The flags that a hook on a function with this cookie must have in addition (HOOK_COUNT_IN()). */
__u32 muted_flags(__u32 cookie);

/* Returns how long to wait until muted_step() has something to do; at most most_ms. */
int muted_wait_ms(int most_ms);
/* Opens or closes a window if it is time for that. */
void muted_step(void);

#endif
