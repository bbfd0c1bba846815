/* SPDX-License-Identifier: BSD-2-Clause */
/* ended.h - how a program ended, in words. */
#ifndef CT_ENDED_H
#define CT_ENDED_H

#include "../types.h"

/* "exited with 1", "killed by SIGKILL", "killed by SIGSEGV (core dumped)", as strace has it; of
 * a wait(2) status. Returns buf. */
const char *ended_text(int status, char *buf, size_t size);
/* "SIGKILL"; of a signal without a name "signal 42". Returns buf. */
const char *ended_signal(int sig, char *buf, size_t size);

#endif
