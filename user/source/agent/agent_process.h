/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_process.h - the record of a process that no kernel side tells of. */
#ifndef CT_AGENT_PROCESS_H
#define CT_AGENT_PROCESS_H

#include "../../event/event.h"

/* Hands out a CT_PROCESS of what /proc says of it. Returns emit's value; 0 when the process is
 * gone. */
int agent_process_tell(pid_t pid, emit_fn, void *ctx);
/* When the process began (CLOCK_BOOTTIME), as that record has it. 0: it has ended. */
uint64_t agent_process_started_ns(pid_t pid);
/* How far its CLOCK_MONOTONIC is ahead of ours, if it is in another time namespace; else 0. */
int64_t agent_process_ahead_ns(pid_t pid);

#endif
