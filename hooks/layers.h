/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layers.h - calls of functions of layers (NVTX, NCCL, PyTorch's operators): the stack of a thread's open
 * scopes, and the records of their begins and ends, as the kernel side makes them (bpf/open_scopes.h).
 * For use under the rules of engine.h for entry() and leave().
 */
#ifndef CT_HOOKS_LAYERS_H
#define CT_HOOKS_LAYERS_H

#include <stdbool.h>

#include "engine.h"
#include "wire.h"

/* The block has been taken by a thread. */
void layers_begin(struct hooks_thread *);

/* What is read of the arguments of the operator with this cookie: CT_TENSORS_*(). */
void layers_tensors(__u64 cookie, __u32 plan);

/* The number of the innermost scope around a call that is entered at sp, as struct ct_call has it. */
__u32 layers_around(struct hooks_thread *, __u64 sp);

/* At the entry of a layer's function, whose spec this is. Returns whether the return is wanted. */
bool layers_enter(struct hooks_thread *, const struct hook_frame *, const struct hook_regs *,
		  __u64 cookie, const struct ct_spec *);
/* At its return. Returns whether the thread shall wait until the record has been read. */
bool layers_leave(struct hooks_thread *, const struct hook_frame *, __u64 cookie,
		  const struct ct_spec *, __u64 result);

#endif
