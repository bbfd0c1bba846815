/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack.h - the stack of a call: a copy of its memory from the caller's frame on, with the registers that
 * an unwinder begins from. It is unwound by the user side.
 */
#ifndef CT_HOOKS_STACK_H
#define CT_HOOKS_STACK_H

#include <stdbool.h>

#include "wire.h"

/*
 * Writes the CT_USER_STACK of the call in t->calls[d] into the ring of so many bytes, before the call's
 * own record. pid: of this process. The memory is read by system calls, so that what is not mapped is
 * found out; the calling thread runs on that stack. False: there was no room, or nothing could be read.
 */
bool stack_send(struct hooks_thread *t, __u32 d, __u64 ring_bytes, int pid);

#endif
