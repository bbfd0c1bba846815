/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alone.h - finds out whether the program has ended, except for threads of ours. A program whose
 * main thread has called pthread_exit() ends when its last thread ends. A thread of ours would keep
 * the program running for ever, so our thread then ends itself, and libc ends the program.
 */
#ifndef CT_ALONE_H
#define CT_ALONE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALONE_NAME "cudatrace-" /* what the names of our threads begin with */

/* The first `size` - 1 bytes of a file. False: it cannot be read. */
static inline bool alone_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Returns whether it is a zombie or one of our threads. `path` is the folder of a task. */
static inline bool alone_counts_not(const char *task)
{
	char path[400], text[256], *state;

	snprintf(path, sizeof(path), "%s/stat", task);
	if (!alone_read(path, text, sizeof(text)))
		return true; /* it has ended meanwhile */
	/* "PID (NAME) STATE": a name may have brackets */
	state = strrchr(text, ')');
	if (state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X'))
		return true;
	state = strchr(text, '(');
	return state && !strncmp(state + 1, ALONE_NAME, sizeof(ALONE_NAME) - 1);
}

/* While the main thread lives, which is nearly always, one file is read. In a sandbox, where a
 * system call may end the program, no file is read. */
static inline bool alone(void)
{
	char path[300];
	struct dirent *e;
	bool yes = true;
	DIR *tasks;

	if (prctl(PR_GET_SECCOMP))
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d", (int)getpid());
	if (!alone_counts_not(path))
		return false;
	tasks = opendir("/proc/self/task");
	while (tasks && yes && (e = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s", e->d_name);
		yes = e->d_name[0] == '.' || alone_counts_not(path);
	}
	if (!tasks)
		return false;
	closedir(tasks);
	return yes;
}

#endif
