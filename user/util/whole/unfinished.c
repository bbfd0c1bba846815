/* SPDX-License-Identifier: BSD-2-Clause */
/* unfinished.c - see unfinished.h. */
#include "unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Is it the file that was there, as it was? */
static bool unchanged(const struct stat *was, const struct stat *is)
{
	return was->st_dev == is->st_dev && was->st_ino == is->st_ino &&
	       was->st_size == is->st_size && was->st_mtim.tv_sec == is->st_mtim.tv_sec &&
	       was->st_mtim.tv_nsec == is->st_mtim.tv_nsec;
}

/* The watcher's whole life. */
static void watch(int fd, const char *path, const struct stat *was, bool existed)
{
	static const int deaf[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };
	struct stat is;
	ssize_t n;
	char byte;

	for (size_t i = 0; i < ARRAY_LEN(deaf); i++)
		signal(deaf[i], SIG_IGN);
	/* nobody waits for the end of what we have inherited */
	dup2(fd, 0);
	close_range(1, ~0U, 0);
	while ((n = read(0, &byte, 1)) < 0 && errno == EINTR)
		;
	if (n != 1 && !lstat(path, &is) && S_ISREG(is.st_mode) && !(existed && unchanged(was, &is)))
		unlink(path);
	_exit(0);
}

void unfinished_open(struct unfinished *u, const char *path)
{
	struct stat was = { 0 };
	bool existed = !lstat(path, &was);
	int fds[2];

	*u = (struct unfinished){ .fd = -1, .watcher = -1 };
	if ((existed && !S_ISREG(was.st_mode)) || pipe2(fds, O_CLOEXEC))
		return;
	u->watcher = fork();
	if (!u->watcher) {
		close(fds[1]);
		watch(fds[0], path, &was, existed);
	}
	close(fds[0]);
	u->fd = fds[1];
	if (u->watcher < 0) {
		close(u->fd);
		u->fd = -1;
	}
}

void unfinished_close(struct unfinished *u, bool whole)
{
	if (u->fd < 0)
		return;
	if (whole && write(u->fd, "", 1) < 0)
		whole = false;
	close(u->fd);
	u->fd = -1;
	while (waitpid(u->watcher, NULL, 0) < 0 && errno == EINTR)
		;
}
