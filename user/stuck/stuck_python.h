/* SPDX-License-Identifier: BSD-2-Clause */
/* stuck_python.h - the Python frames of a thread that is inside a call, as records for the
 * resolve stage. */
#ifndef CT_STUCK_PYTHON_H
#define CT_STUCK_PYTHON_H

#include "../event/event.h"
#include "stuck_look.h"

/* Emits CT_PY_CODE and CT_PY_STACK records for the row's thread, whose frames stay as they are
 * while it is inside the call; nothing where it runs no Python that can be walked. Returns 0, or
 * -errno of emit and for want of memory. */
int stuck_python(const struct stuck_row *, emit_fn, void *ctx);

#endif
