/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inner.h - inside the resolve room: the driver's launches inside runtime launches. A host stub
 * that nothing names can be named by them: the driver's handle, whose name can be read, is the same
 * kernel.
 *
 * They are captured only while that is wanted, since they make each launch dearer.
 */
#ifndef CT_INNER_H
#define CT_INNER_H

#include "../../event/event.h"

struct inner;
struct inner *inner_open(void);	  /* NULL: no memory */
void inner_close(struct inner *); /* takes NULL */

/* A driver's launch inside another call. */
void inner_saw(struct inner *, const struct ct_call *, uint64_t handle);
/*
 * The handle of the one launch that was made inside the outer call, whose kernel has no name.
 * False: none was seen, or several. Inner launches are wanted for a while then; *tries counts
 * those that did not help: after a few no more are wanted for this kernel.
 */
bool inner_of(struct inner *, const struct ct_call *outer, uint64_t *handle, uint8_t *tries);
/* The kernel whose tries these are has a name now: when no other is left no more inner launches
 * are wanted. */
void inner_settled(struct inner *, uint8_t *tries);
/* A thread's outermost call is over. */
void inner_done(struct inner *, const struct ct_call *outer);
bool inner_wanted(const struct inner *, uint64_t now_ns);

#endif
