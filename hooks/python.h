/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python.h - the Python frames of a call's thread, as the kernel side walks them
 * (bpf/python_walk.h). The text is the same; here the memory is read by a system call.
 */
#ifndef CT_HOOKS_PYTHON_H
#define CT_HOOKS_PYTHON_H

#include <stdbool.h>

#include "wire.h"

/* Where the process's interpreter keeps its frames. For the agent's thread; from here on
 * python_send() walks. pid: of this process. */
void python_set(const struct ct_python *, int pid);
/* No frames are walked any more. */
void python_forget(void);
bool python_is_set(void);

/*
 * Writes the CT_PY_STACK of the call into the ring of so many bytes, before the call's own record, and
 * before that the CT_PY_CODE of each code object that this thread has not yet sent. block: the number
 * of the thread's block. Nothing, and *any is false, if the thread runs no Python. False: something is missing.
 */
bool python_send(struct hooks_thread *, __u32 block, const struct hooks_call *, __u64 ring_bytes,
		 bool *any);

#endif
