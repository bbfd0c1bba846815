/* SPDX-License-Identifier: BSD-2-Clause */
/* python_gil.h - where an interpreter has its lock, and whether it collects garbage: what waits are about. */
#ifndef CT_PROC_PYTHON_GIL_H
#define CT_PROC_PYTHON_GIL_H

#include "../../wire/host_wire.h"
#include "target.h"

/* Fills in the rest of *p, whose `py` python_find() has filled in. Members stay 0 for a version of which it is
 * not known. Returns 0, or an error of target_read(); -EAGAIN: the interpreter is not there yet. */
int python_gil(struct target *, struct ct_host_python *p);

#endif
