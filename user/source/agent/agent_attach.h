/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_attach.h - brings the agent into a process that runs already. Knows injection and the
 * agent's file; nothing of records. */
#ifndef CT_AGENT_ATTACH_H
#define CT_AGENT_ATTACH_H

#include "../plan.h"

/* Puts the agent into process pid (ours) and starts it there: how is agent_how()'s text with
 * "fd=N". Returns our end of its socket, or -errno after one message. Blocks for some
 * milliseconds, at most some seconds. */
int agent_attach(pid_t pid, const char *how, const struct capture_plan *);

#endif
