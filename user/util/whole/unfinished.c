/* SPDX-License-Identifier: BSD-2-Clause */
/* unfinished.c - see unfinished.h. */
#include "unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../io/safe_open.h"

#define FILES_MAX 2 /* the file that is written, and the one that it replaces */

/* What the watcher gets of a file that is being written. */
struct watched_file {
	bool whole; /* nothing is to be removed */
	dev_t dev;
	ino_t ino;
	char name[NAME_MAX + 1]; /* "": that of the path */
};

static int teller = -1; /* of the watcher that there is */

/* All that the watcher does. */
static void watch(int fd, struct safe_place *place)
{
	static const int deaf[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };
	struct watched_file files[FILES_MAX], t;
	int nfiles = 0;
	struct stat is;
	ssize_t n;

	for (size_t i = 0; i < ARRAY_LEN(deaf); i++)
		signal(deaf[i], SIG_IGN);
	/* nobody waits for the end of what we have inherited */
	dup2(fd, 0);
	dup2(place->dir, 1);
	close_range(2, ~0U, 0);
	while ((n = read(0, &t, sizeof(t))) == sizeof(t) || (n < 0 && errno == EINTR)) {
		if (n < 0)
			continue;
		if (t.whole)
			_exit(0);
		files[nfiles == FILES_MAX ? FILES_MAX - 1 : nfiles++] = t;
	}
	for (int i = 0; i < nfiles; i++) {
		const char *name = *files[i].name ? files[i].name : place->name;

		if (!fstatat(1, name, &is, AT_SYMLINK_NOFOLLOW) && S_ISREG(is.st_mode) &&
		    is.st_dev == files[i].dev && is.st_ino == files[i].ino)
			unlinkat(1, name, 0);
	}
	_exit(0);
}

void unfinished_open(struct unfinished *u, const char *path)
{
	struct safe_place place;
	int fds[2];

	*u = (struct unfinished){ .fd = -1, .watcher = -1 };
	/* the code that opens it will say what is wrong with it */
	if (safe_place_find(&place, path))
		return;
	if (pipe2(fds, O_CLOEXEC)) {
		safe_place_close(&place);
		return;
	}
	u->watcher = fork();
	if (!u->watcher) {
		close(fds[1]);
		watch(fds[0], &place);
	}
	safe_place_close(&place);
	close(fds[0]);
	if (u->watcher < 0)
		close(fds[1]);
	else
		teller = u->fd = fds[1];
}

void unfinished_begun(int fd, const char *name)
{
	struct watched_file t = { .whole = false };
	struct stat st;

	if (teller < 0 || fstat(fd, &st) || (name && strlen(name) > NAME_MAX))
		return;
	t.dev = st.st_dev;
	t.ino = st.st_ino;
	strcpy(t.name, name ? name : "");
	if (write(teller, &t, sizeof(t)) < 0)
		return; /* there is no watcher any more */
}

void unfinished_close(struct unfinished *u, bool whole)
{
	if (u->fd < 0)
		return;
	if (whole &&
	    write(u->fd, &(struct watched_file){ .whole = true }, sizeof(struct watched_file)) < 0)
		whole = false;
	close(u->fd);
	teller = u->fd = -1;
	while (waitpid(u->watcher, NULL, 0) < 0 && errno == EINTR)
		;
}
