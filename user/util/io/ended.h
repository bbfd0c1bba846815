/* SPDX-License-Identifier: BSD-2-Clause */
/* ended.h - how a program ended, in words. */
#ifndef CT_ENDED_H
#define CT_ENDED_H

#include "../types.h"

/* Writes what a wait(2) status says, in strace's words: "exited with 1", "killed by SIGKILL",
 * "killed by SIGSEGV (core dumped)". Returns buf. */
const char *ended_text(int status, char *buf, size_t size);
/* Writes the name of a signal, "SIGKILL", or "signal 42" if it has none. Returns buf. */
const char *ended_signal(int sig, char *buf, size_t size);

#endif
