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
/* A time of such a clock as one of ours. A process may claim any time: one that is out of our clock's range
 * is at its end. */
static inline uint64_t agent_process_ours(uint64_t ns, int64_t ahead_ns)
{
	uint64_t by = ahead_ns < 0 ? 0 - (uint64_t)ahead_ns : (uint64_t)ahead_ns;

	if (ahead_ns >= 0)
		return ns > by ? ns - by : 0;
	return ns < UINT64_MAX - by ? ns + by : UINT64_MAX;
}

#endif
