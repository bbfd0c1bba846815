/* SPDX-License-Identifier: BSD-2-Clause */
/* ended.c - see ended.h. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "ended.h"

const char *ended_signal(int sig, char *buf, size_t size)
{
	const char *name = sigabbrev_np(sig);

	if (name)
		snprintf(buf, size, "SIG%s", name);
	else
		snprintf(buf, size, "signal %d", sig);
	return buf;
}

const char *ended_text(int status, char *buf, size_t size)
{
	char name[32];

	if (WIFSIGNALED(status))
		snprintf(buf, size, "killed by %s%s",
			 ended_signal(WTERMSIG(status), name, sizeof(name)),
			 WCOREDUMP(status) ? " (core dumped)" : "");
	else
		snprintf(buf, size, "exited with %d", WEXITSTATUS(status));
	return buf;
}
