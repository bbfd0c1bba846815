/* SPDX-License-Identifier: BSD-2-Clause */
/* child.c - see child.h. Knows nothing of what the children do. */
#include <errno.h>
#include <sys/wait.h>

#include "child.h"

#define EXPECTED_MAX 8 /* the counters' helper, and a command for each output at most */

static struct expected {
	pid_t pid; /* 0: free */
	bool ended;
	int status;
} expected[EXPECTED_MAX];

static struct expected *child_find(pid_t pid)
{
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		if (expected[i].pid == pid)
			return &expected[i];
	return NULL;
}

void child_expect(pid_t pid)
{
	struct expected *e = child_find(0);

	if (e)
		*e = (struct expected){ .pid = pid };
}

void child_took(pid_t pid, int status)
{
	struct expected *e = child_find(pid);

	if (!e)
		return;
	e->ended = true;
	e->status = status;
}

bool child_ended(pid_t pid, int *status)
{
	struct expected *e = child_find(pid);
	pid_t got;

	if (e && e->ended) {
		*status = e->status;
		e->pid = 0;
		return true;
	}
	do {
		got = waitpid(pid, status, WNOHANG);
	} while (got < 0 && errno == EINTR);
	if (!got)
		return false;
	if (got < 0)
		*status = -1;
	if (e)
		e->pid = 0;
	return true;
}
