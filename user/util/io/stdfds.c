/* SPDX-License-Identifier: BSD-2-Clause */
/* stdfds.c - see stdfds.h. */
#include <fcntl.h>
#include <unistd.h>

#include "stdfds.h"

void stdfds_fill(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* it gets the lowest free number, which is this one */
		if (open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0)
			return;
	}
}
