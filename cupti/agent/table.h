/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.h - a descriptor table of its own for a thread of ours in a process that is not ours. The program
 * may close every descriptor that it finds, as a daemon does, and put a file of its own under the number:
 * no check before a use is early enough. In a table of its own the numbers belong to our thread alone, and
 * the program has no descriptor that it did not open.
 *
 * The new table begins as a copy. It is cut off at the last descriptor that is wanted, and all others are
 * closed at once: while our thread had a copy of a pipe of the program's, its reader would not see the end.
 */
#ifndef CT_TABLE_H
#define CT_TABLE_H

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define TABLE_UNSHARE 2u   /* CLOSE_RANGE_UNSHARE */
#define TABLE_MOST 1048576 /* descriptors of a process: fs.nr_open, as it is by default */

/* Closes descriptors from lo on, below hi. */
static inline void table_close(int lo, int hi)
{
	if (lo >= hi || !syscall(SYS_close_range, lo, hi - 1, 0))
		return;
	for (int fd = lo; fd < hi; fd++)
		syscall(SYS_close, fd);
}

static inline bool table_has(const int *fds, int n, int fd)
{
	for (int i = 0; i < n; i++)
		if (fds[i] == fd)
			return true;
	return false;
}

static inline void table_close_others(const int *fds, int n, int end)
{
	int lo = 0;

	for (int fd = 0; fd < end; fd++)
		if (table_has(fds, n, fd)) {
			table_close(lo, fd);
			lo = fd + 1;
		}
	table_close(lo, end);
	table_close(end, TABLE_MOST);
}

/*
 * Gives the calling thread a table of its own, in which there are only these descriptors (-1: none), with
 * new numbers. What is printed by mistake must not go to one of them: so 0 to 2 are of a kind that takes
 * nothing. Returns false if the kernel does not allow it: then nothing has changed.
 */
static inline bool table_own(int *fds, int n)
{
	int end = 0, fd;

	for (int i = 0; i < n; i++)
		end = fds[i] >= end ? fds[i] + 1 : end;
	/* from Linux 5.9 on, and in sandboxes that forbid unshare(2) */
	if (syscall(SYS_close_range, end, ~0u, TABLE_UNSHARE) && unshare(CLONE_FILES))
		return false;
	table_close_others(fds, n, end);
	for (int i = 0; i < n; i++) {
		if (fds[i] < 0 || fds[i] > 2)
			continue;
		fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			continue; /* the program may open no more than three files */
		close(fds[i]);
		fds[i] = fd;
	}
	while ((fd = epoll_create1(EPOLL_CLOEXEC)) >= 0 && fd < 2)
		;
	if (fd > 2)
		close(fd);
	return true;
}

#endif
