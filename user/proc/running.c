/* SPDX-License-Identifier: BSD-2-Clause */
/* running.c - see running.h. */
#include "running.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../util/table/array.h"

/* The numbers that a folder of /proc contains. */
static int numbers(const char *path, pid_t **list)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	int n = 0;

	*list = NULL;
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (!array_room(*list, n)) {
			closedir(dir);
			free(*list);
			*list = NULL;
			return -ENOMEM;
		}
		(*list)[n++] = atoi(e->d_name);
	}
	closedir(dir);
	return n;
}

int running_pids(pid_t **list)
{
	return numbers("/proc", list);
}

static ssize_t read_file(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

/* Of "1234 (name) S ...": the name may contain anything. */
static bool running_describe(pid_t pid, pid_t tid, struct running_thread *t)
{
	char buf[512], *name, *end;

	*t = (struct running_thread){ .tid = tid };
	if (read_file(pid, tid, "stat", buf, sizeof(buf)) <= 0)
		return false;
	name = strchr(buf, '(');
	end = strrchr(buf, ')');
	if (!name || !end || end < name || end[1] != ' ')
		return false;
	*end = '\0';
	snprintf(t->name, sizeof(t->name), "%s", name + 1);
	t->state = end[2];
	if (read_file(pid, tid, "wchan", buf, sizeof(buf)) > 0 && strcmp(buf, "0") != 0)
		snprintf(t->wait, sizeof(t->wait), "%.31s", buf);
	return true;
}

int running_named(const char *name, pid_t **list)
{
	int n = running_pids(list), kept = 0;

	for (int i = 0; i < n; i++) {
		struct running_thread t;
		pid_t pid = (*list)[i];

		if (pid != getpid() && running_describe(pid, pid, &t) && t.state != 'Z' &&
		    !strncmp(t.name, name, sizeof(t.name) - 1))
			(*list)[kept++] = pid;
	}
	return n < 0 ? n : kept;
}

int running_threads(pid_t pid, struct running_thread *threads, int max)
{
	char path[32];
	pid_t *list;
	int n, have = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	n = numbers(path, &list);
	for (int i = 0; i < n && have < max; i++)
		have += running_describe(pid, list[i], &threads[have]);
	free(list);
	return n < 0 ? n : have;
}
