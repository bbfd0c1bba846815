/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python_frames.h - reads the Python frames of a call's thread, in the same way as the kernel side: both
 * compile capture/python_walk.h. Here the memory is read by a system call.
 */
#ifndef CT_HOOKS_PYTHON_H
#define CT_HOOKS_PYTHON_H

#include <stdbool.h>

#include "../../wire/hooks_wire.h"

/* Sets where the process's interpreter keeps its frames. The thread of the hooks calls it; from then on
 * python_send() reads frames. pid: that of this process. */
void python_set(const struct ct_python *, int pid);
/* From here on no frames are read. */
void python_forget(void);
bool python_is_set(void);

/*
 * Writes the CT_PY_STACK of the call into the ring of so many bytes, before the call's own record,
 * and before that the CT_PY_CODE of each code object that this thread has not yet sent. block: the
 * number of the thread's block. If the thread runs no Python, nothing is written and *any is false.
 * Returns false if something is missing.
 */
bool python_send(struct hooks_thread *, __u32 block, const struct hooks_call *, __u64 ring_bytes,
		 bool *any);

#endif
