/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_said.h - passes on what cudatrace's code inside a process says. It is shown as said of that
 * process: a program that imitates an agent cannot speak for cudatrace, or for another process.
 */
#ifndef CT_AGENT_SAID_H
#define CT_AGENT_SAID_H

#include <sys/types.h>

#include "../../util/types.h"

/* The levels of AGENT_SAY and HOOKS_SAY; others are errors. `text` need not end with NUL. */
void agent_said(pid_t pid, unsigned int level, const char *text, size_t len);

#endif
