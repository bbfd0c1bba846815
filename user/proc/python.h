/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python.h - finds the Python interpreter of a running process from outside, and walks its frames.
 *
 * Supports CPython 3.10 to 3.14, from the first release candidate on. What is read from the process
 * is untrusted: every offset and length is checked, and the walk of every list is bounded. The only
 * record that it knows is that of a code object (struct ct_py_code).
 */
#ifndef CT_PROC_PYTHON_H
#define CT_PROC_PYTHON_H

#include "../../wire/cudatrace.h"
#include "target.h"
#include "../../wire/cudatrace.h"

struct ct_python; /* wire/control.h */

/* Looks for an interpreter in the process. Returns 0 and fills *out (generation 0); -ENOENT: there
 * is none; -ENOTSUP: there is one that cannot be walked, and *why says the reason, a clause such as
 * "Python 3.9 is older than 3.10" that is valid until the next call; or an error of target_read().
 * It uses the mappings of the last target_refresh(). `why` may be NULL. For a process without
 * Python it reads only the mappings' names and the symbols that the program exports. */
int python_find(struct target *, struct ct_python *out, const char **why);

/* Reads the frames of a thread that is blocked, innermost first. tid: its number in our pid
 * namespace. Returns their number, 0 if the thread runs no Python, or an error of target_read().
 * The number is at most max, which is not 0. If cut is not NULL, *cut is set when there were more
 * frames or one could not be read. The frames of a running thread change while they are read: some
 * may be wrong. */
int python_walk(struct target *, const struct ct_python *, pid_t tid, struct ct_py_frame *out,
		int max, bool *cut);

/* Reads a code object into buf, as a record: h.kind, h.size and h.pid (target_pid()) are set.
 * Returns its size; -ENOBUFS (PYTHON_CODE_BYTES are always enough), -EINVAL (not a code object), or
 * an error of target_read(). If its check equals the frame's, it is the code object of that
 * frame. */
#define PYTHON_CODE_BYTES (sizeof(struct ct_py_code) + CT_PY_NAME + CT_PY_FILE + CT_PY_TABLE)
int python_read_code(struct target *, const struct ct_python *, uint64_t code, void *buf,
		     size_t len);

#endif
