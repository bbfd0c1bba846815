/* SPDX-License-Identifier: BSD-2-Clause */
/* hang_proc.h - what a process is at, from /proc and its memory: for hang.h. */
#ifndef CT_HANG_PROC_H
#define CT_HANG_PROC_H

#include "hang.h"

/* Fills in the process; state 0: it is gone. python: who holds Python's lock is looked for, too. */
void hang_proc_read(struct hang_proc *, pid_t pid, bool python);

#endif
