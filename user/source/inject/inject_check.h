/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_check.h - whether a process may be injected into at all: asked before anything of it is
 * touched. Each refusal is one message.
 */
#ifndef CT_INJECT_CHECK_H
#define CT_INJECT_CHECK_H

#include "../../proc/target.h"

/* Returns 0, or -errno after one message (as inject_run()). */
int inject_check(pid_t pid);
/* Does the program in this file load shared objects? 1, 0, or -errno if it is no program of this architecture. */
int inject_check_loader(int fd);
/* It is gone by now, a zombie, or about to be one. */
bool inject_check_ended(pid_t pid);
/* PTRACE_SEIZE was refused: says why. */
void inject_check_refused(pid_t pid);

/* For inject_what.ready: the process has the driver mapped and a device open, as it is from
 * cuInit on. Where the process sees no device that it could open, its driver is one that needs
 * none, as the stand-in's, or one that cannot be started anyhow. */
bool inject_check_cuda(void *ctx, struct target *);

#endif
