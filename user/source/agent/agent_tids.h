/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_tids.h - the thread ids of a process in another pid namespace, as we number them. */
#ifndef CT_AGENT_TIDS_H
#define CT_AGENT_TIDS_H

#include "../../util/types.h"

struct agent_tids;

/* inner: the pid that the process has in its own namespace, from /proc/PID/status. NULL: no
 * memory, or no such process. */
struct agent_tids *agent_tids_open(pid_t pid, pid_t *inner);
void agent_tids_close(struct agent_tids *);
/* Our id of a thread; 0: not known (it may have ended). */
uint32_t agent_tids_find(struct agent_tids *, uint32_t tid);

#endif
