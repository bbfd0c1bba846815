/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack.h - copies the stack of a call: its memory from the caller's frame on, with the registers
 * from which an unwinder begins. The user side unwinds it.
 */
#ifndef CT_HOOKS_STACK_H
#define CT_HOOKS_STACK_H

#include <stdbool.h>

#include "../../wire/hooks_wire.h"

/*
 * Writes the CT_USER_STACK of the call in t->calls[d] into the ring of so many bytes, before the
 * call's own record. pid: of this process. The memory is read by system calls, which find out what
 * is not mapped; the calling thread runs on that stack. Returns false if there was no room, or if
 * nothing could be read.
 */
bool stack_send(struct hooks_thread *t, __u32 d, __u64 ring_bytes, int pid);

#endif
