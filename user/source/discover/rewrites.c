/* SPDX-License-Identifier: BSD-2-Clause */
/* rewrites.c - see rewrites.h. A mark is on the inode and needs no descriptor of its own. Knows
 * no probes. */
#include "rewrites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#define WANTED (IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)

struct rewrites {
	int fd;
};

int rewrites_open(struct rewrites **out)
{
	struct rewrites *r = malloc(sizeof(*r));
	int err;

	*out = NULL;
	if (!r)
		return -ENOMEM;
	r->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (r->fd < 0) {
		err = -errno;
		free(r);
		return err;
	}
	*out = r;
	return 0;
}

int rewrites_fd(const struct rewrites *r)
{
	return r->fd;
}

int rewrites_add(struct rewrites *r, int fd)
{
	char path[64];
	int mark;

	if (!r)
		return -ENOSYS;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	mark = inotify_add_watch(r->fd, path, WANTED);
	return mark < 0 ? -errno : mark;
}

void rewrites_remove(struct rewrites *r, int mark)
{
	if (r && mark >= 0)
		inotify_rm_watch(r->fd, mark);
}

int rewrites_drain(struct rewrites *r, rewrites_fn fn, void *ctx)
{
	char buf[4096] __attribute__((aligned(8)));
	const struct inotify_event *e;
	int lost = 0;
	ssize_t n;

	while ((n = read(r->fd, buf, sizeof(buf))) > 0) {
		for (const char *at = buf; at < buf + n; at += sizeof(*e) + e->len) {
			e = (const void *)at;
			if (e->mask & IN_Q_OVERFLOW)
				lost = 1;
			if (e->wd < 0)
				continue;
			if (e->mask & IN_MODIFY)
				fn(ctx, e->wd, REWRITE_WRITTEN);
			if (e->mask & IN_CLOSE_WRITE)
				fn(ctx, e->wd, REWRITE_CLOSED);
			if (e->mask &
			    (IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED))
				fn(ctx, e->wd, REWRITE_RENAMED);
		}
	}
	return lost;
}

void rewrites_close(struct rewrites *r)
{
	if (!r)
		return;
	close(r->fd);
	free(r);
}
