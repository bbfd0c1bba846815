/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_seccomp.h - what a thread's seccomp filters would say to a system call, before it is
 * made: some kill for it.
 */
#ifndef CT_INJECT_SECCOMP_H
#define CT_INJECT_SECCOMP_H

#include "../../util/types.h"

/* Of a thread that we have stopped: 0 if all that is needed is allowed; -EACCES, with the name
 * of a system call that is not in *name; -EPERM: there are filters that cannot be read
 * (CAP_SYS_ADMIN). */
int inject_seccomp_check(pid_t tid, const char **name);

#endif
