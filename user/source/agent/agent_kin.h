/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_kin.h - may the process that connects to the agents' socket have an agent of ours in it?
 * Anybody may connect; only processes that descend from the program can have been given the
 * agent and its key. Knows no message.
 */
#ifndef CT_AGENT_KIN_H
#define CT_AGENT_KIN_H

#include "../../util/types.h"

enum agent_kin {
	AGENT_STRANGER, /* no: another user's process that has not got the key */
	/* perhaps: not known as a child of ours, but of our user, or with the key in its
	 * environment */
	AGENT_NEIGHBOUR,
	AGENT_CHILD, /* it is ourselves, or descends from us */
};

struct agent_kins; /* what was found lately */

/* key: MEET_KEY digits, the caller's, who keeps them. NULL: no memory. */
struct agent_kins *agent_kins_open(const char *key);
void agent_kins_close(struct agent_kins *); /* takes NULL */
/* pid and uid as SO_PEERCRED tells them. Reads /proc; takes less than a second, even if the
 * process is held up by a page or a file that nobody serves, and next to nothing for a process
 * that was found to be a stranger a moment ago. */
enum agent_kin agent_kins_find(struct agent_kins *, pid_t pid, uid_t uid);

#endif
