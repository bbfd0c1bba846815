/* SPDX-License-Identifier: BSD-2-Clause */
/* agent_child.c - see agent_child.h. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "../../util/msg.h"
#include "agent_child.h"

int agent_child_open(struct agent_child *c, const struct capture_plan *plan)
{
	c->status = -1;
	c->child.fd = -1;
	return launch_child_fork(&c->child, plan->cmd, plan->user, plan->env);
}

int agent_child_start(struct agent_child *c)
{
	int err = launch_child_go(&c->child);

	c->started = !err;
	return err;
}

bool agent_child_ended(struct agent_child *c)
{
	int status, err;

	if (c->ended || c->child.pid <= 0)
		return true;
	if (waitpid(c->child.pid, &status, WNOHANG) != c->child.pid)
		return false;
	c->ended = true;
	c->status = status;
	err = launch_child_exec_error(&c->child);
	if (err)
		msg_error("the program cannot be run: %s", strerror(err));
	return true;
}

void agent_child_signal(const struct agent_child *c, int sig)
{
	if (c->started && !c->ended)
		kill(c->child.pid, sig);
}

void agent_child_close(struct agent_child *c)
{
	launch_child_close(&c->child);
	if (!c->started && !c->ended && c->child.pid > 0)
		waitpid(c->child.pid, NULL, 0); /* it ends when its socket closes */
}
