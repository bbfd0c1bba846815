/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_cmd.h - a program that is started without being traced by the kernel: for who has no rights to. */
#ifndef CT_AGENT_CMD_H
#define CT_AGENT_CMD_H

#include "launch_child.h"
#include "plan.h"

struct agent_cmd {
	struct launch_child child;
	bool started, ended;
	int status; /* wait(2)'s; -1: it never ran, and why was told */
};

int agent_cmd_open(struct agent_cmd *, const struct capture_plan *); /* 0 or -errno after one message */
int agent_cmd_start(struct agent_cmd *);
bool agent_cmd_ended(struct agent_cmd *); /* looks, and reaps it */
void agent_cmd_signal(const struct agent_cmd *, int sig);
void agent_cmd_close(struct agent_cmd *); /* lets it run on */

#endif
