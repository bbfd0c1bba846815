/* SPDX-License-Identifier: BSD-2-Clause */
/* inject_so.c - what test_inject adds to a process: answers over the socket that it is given, and closes it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int cudatrace_agent_start(const char *how);

static int starts;

int cudatrace_agent_start(const char *how)
{
	const char *at = strstr(how, "fd=");
	int fd = at ? atoi(at + 3) : -1, say[2] = { getpid(), ++starts };

	errno = 99; /* to be put back */
	if (strstr(how, "crash"))
		*(volatile int *)16 = 1;
	if (strstr(how, "refuse")) {
		close(fd);
		return -7;
	}
	if (send(fd, say, sizeof(say), MSG_NOSIGNAL) != sizeof(say))
		return 1;
	close(fd);
	return 0;
}
