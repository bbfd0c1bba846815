/* SPDX-License-Identifier: BSD-2-Clause */
/* pids.h - whether a number that the user gave is that of a process that can call CUDA. */
#ifndef CT_PIDS_H
#define CT_PIDS_H

#include "../util/types.h"

/*
 * 0, or -ESRCH after one message: there is none, it has ended, it is a kernel thread, or it is a
 * thread of a process. threads: a thread can be asked for by -L.
 */
int pids_check(pid_t pid, bool threads);

#endif
