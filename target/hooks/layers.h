/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layers.h - calls of functions of layers (NVTX, NCCL, PyTorch's operators): keeps the stack of a
 * thread's open scopes, and makes the records of their begins and ends, in the same way as the
 * kernel side (capture/open_scopes.h). The rules of engine.h for entry() and leave() apply.
 */
#ifndef CT_HOOKS_LAYERS_H
#define CT_HOOKS_LAYERS_H

#include <stdbool.h>

#include "../engine/engine.h"
#include "../../wire/hooks_wire.h"

/* A thread has begun to use the block. */
void layers_begin(struct hooks_thread *);

/* Sets what is read of the arguments of the operator with this cookie: CT_TENSORS_*(). */
void layers_tensors(__u64 cookie, __u32 plan);

/* Returns the number of the innermost scope around a call that is entered at sp, as in struct
 * ct_call. */
__u32 layers_around(struct hooks_thread *, __u64 sp);

/* To be called at the entry of a layer's function; spec is the function's. Returns whether the
 * return must be seen. */
bool layers_enter(struct hooks_thread *, const struct hook_frame *, const struct hook_regs *,
		  __u64 cookie, const struct ct_spec *);
/* To be called at its return. Returns whether the thread must wait until the record has been read. */
bool layers_leave(struct hooks_thread *, const struct hook_frame *, __u64 cookie,
		  const struct ct_spec *, __u64 result);

#endif
