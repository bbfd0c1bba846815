/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python.h - the Python interpreter of a running process, from outside: where it keeps its frames,
 * and a walk of them.
 *
 * CPython 3.11 to 3.13, of releases from the first candidate on. What is read of the process is
 * untrusted: every offset and length is checked, every list has an end. Knows no record but the
 * code object's, whose layout is the wire's.
 */
#ifndef CT_PROC_PYTHON_H
#define CT_PROC_PYTHON_H

#include "target.h"

/* Looks for an interpreter in the process. Returns 0 and fills *out (generation 0); -ENOENT:
 * there is none; -ENOTSUP: there is one that cannot be walked, and *why says the reason, a
 * clause such as "Python 3.9 is older than 3.11" that is valid until the next call; or as
 * target_read(). The mappings are those of the last target_refresh(). `why` may be NULL. For a
 * process without Python it costs a look at the mappings' names and at the symbols that its
 * program exports. */
int python_find(struct target *, struct ct_python *out, const char **why);

/* The frames of a thread that is blocked, innermost first. tid: its number in our pid namespace.
 * Returns their number (at most max, which is not 0; *cut, where cut is not NULL, says that
 * there were more or that one could not be read), 0 when the thread runs no Python, or as
 * target_read(). The frames of a running thread change underfoot: some may be wrong. */
int python_walk(struct target *, const struct ct_python *, pid_t tid, struct ct_py_frame *out,
		int max, bool *cut);

/* Reads a code object into buf, as a record: h.kind, h.size and h.pid (target_pid()) are set.
 * Returns its size; -ENOBUFS (PYTHON_CODE_BYTES are always enough), -EINVAL (no code object), or
 * as target_read(). It is the one that a frame meant when its check is the frame's. */
#define PYTHON_CODE_BYTES (sizeof(struct ct_py_code) + CT_PY_NAME + CT_PY_FILE + CT_PY_TABLE)
int python_read_code(struct target *, const struct ct_python *, uint64_t code, void *buf,
		     size_t len);

#endif
