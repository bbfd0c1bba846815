/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_child.h - a program that is started without being traced by the kernel: for users who may not trace. */
#ifndef CT_AGENT_CHILD_H
#define CT_AGENT_CHILD_H

#include "../launch/launch_child.h"
#include "../../flow/plan.h"

struct agent_child {
	struct launch_child child;
	bool started, ended;
	int status; /* wait(2)'s; -1: it never ran, and why was told */
};

/* 0 or -errno after one message */
int agent_child_open(struct agent_child *, const struct capture_plan *);
int agent_child_start(struct agent_child *);
bool agent_child_ended(struct agent_child *); /* looks, and reaps it */
void agent_child_signal(const struct agent_child *, int sig);
void agent_child_close(struct agent_child *); /* lets it run on */

#endif
