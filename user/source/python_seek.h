/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python_seek.h - for sources: finds the Python interpreter of a traced process, and says why the
 * frames of one cannot be walked.
 */
#ifndef CT_PYTHON_SEEK_H
#define CT_PYTHON_SEEK_H

#include "../util/types.h"
#include "../../wire/cudatrace.h"

struct ct_python;
struct python_seek;

struct python_seek *python_seek_open(void);   /* NULL: no memory */
void python_seek_close(struct python_seek *); /* takes NULL */

/* Looks at a process, by its number in our pid namespace. Returns 1 and fills *out, with a
 * generation of its own, when it runs Python; 0 when it does not, or runs a Python whose frames
 * cannot be walked (which is said once for each reason); -ESRCH or -errno. */
int python_seek_look(struct python_seek *, pid_t pid, struct ct_python *out);

#endif
