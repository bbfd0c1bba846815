/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python_stack.h - keeps the code objects of Python that CT_PY_CODE records describe, and finds a
 * frame's function, file and line.
 *
 * If the code object of a frame is not known (its record was lost, or was dropped because there was
 * no room), python_read_code() (user/proc/python.h) can still make the record while the process
 * lives. Pass that record to python_code() and ask again.
 */
#ifndef CT_RESOLVE_PYTHON_H
#define CT_RESOLVE_PYTHON_H

#include "../../util/types.h"
#include "../../../wire/cudatrace.h"

/* Strings are valid until the next python_code(), python_drop() or python_close(). */
struct python_place {
	/* co_qualname: "Model.forward", "main.<locals>.<lambda>"; NUL-terminated UTF-8,
	 * untrusted */
	const char *function;
	const char *file; /* co_filename, likewise */
	uint32_t line;	  /* 0: the instruction has none */
};

struct python;

struct python *python_open(void);   /* NULL: no memory */
void python_close(struct python *); /* takes NULL */
/* Learns a code object of process h.pid. The record is untrusted. Returns 0, -EBADMSG or
 * -ENOMEM. */
int python_code(struct python *, const struct ct_py_code *);
/* The process ended, or became another program. */
void python_drop(struct python *, uint32_t pid);
/* Finds where a frame of process `pid` is. False: its code object is not known, or it is a shim
 * (CT_PY_SHIM). */
bool python_frame(struct python *, uint32_t pid, const struct ct_py_frame *,
		  struct python_place *out);

#endif
