/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fd_table.h - a descriptor table of its own for a thread of ours in a process that is not ours. The program
 * may close every descriptor that it finds, as a daemon does, and put a file of its own under the number:
 * no check before a use is early enough. In a table of its own the numbers belong to our thread alone, and
 * the program has no descriptor that it did not open.
 *
 * A copy of the program's table would not do, even if it were closed at once: a file system may do more at
 * each close() than at none (FUSE writes back, and some such file systems upload the file), and meanwhile the
 * other end of a pipe does not see that the program has closed it. From Linux 5.9 on the new table can begin
 * empty. Our thread then gets its descriptors over a socket.
 */
#ifndef CT_TABLE_H
#define CT_TABLE_H

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define TABLE_UNSHARE 2u   /* CLOSE_RANGE_UNSHARE */
#define TABLE_MOST 1048576 /* descriptors of a process: fs.nr_open, as it is by default */

static inline bool table_has(const int *fds, int n, int fd)
{
	for (int i = 0; i < n; i++)
		if (fds[i] == fd)
			return true;
	return false;
}

static inline void table_close_others(const int *fds, int n)
{
	DIR *all = opendir("/proc/thread-self/fd");
	const struct dirent *e;

	while (all && (e = readdir(all)))
		if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(all) &&
		    !table_has(fds, n, atoi(e->d_name)))
			syscall(SYS_close, atoi(e->d_name));
	for (int fd = 0; !all && fd < TABLE_MOST; fd++)
		if (!table_has(fds, n, fd))
			syscall(SYS_close, fd);
	if (all)
		closedir(all);
}

/* What is printed by mistake must not go to one of our descriptors: 0 to 2 are the end of a pipe that can only
 * be read. */
static inline void table_fill(void)
{
	int ends[2], fd;

	if (pipe2(ends, O_CLOEXEC))
		return;
	close(ends[1]);
	for (fd = ends[0]; fd >= 0 && fd < 2;)
		fd = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
	if (fd > 2)
		close(fd);
}

/* Gives the calling thread an empty table of its own. Returns false if the kernel does not do so: then
 * nothing has changed. */
static inline bool table_empty(void)
{
	if (syscall(SYS_close_range, 0, ~0u, TABLE_UNSHARE))
		return false;
	table_fill();
	return true;
}

/* Before Linux 5.9: gives the calling thread a copy of the table in which there are only these descriptors
 * (-1: none), with new numbers. Returns false if this is forbidden: then nothing has changed. */
static inline bool table_copy(int *fds, int n)
{
	int fd;

	if (unshare(CLONE_FILES))
		return false;
	table_close_others(fds, n);
	for (int i = 0; i < n; i++) {
		if (fds[i] < 0 || fds[i] > 2)
			continue;
		fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			continue; /* the program may open no more than three files */
		close(fds[i]);
		fds[i] = fd;
	}
	table_fill();
	return true;
}

#endif
