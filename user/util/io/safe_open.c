/* SPDX-License-Identifier: BSD-2-Clause */
/* safe_open.c - see safe_open.h. The path is walked name by name, so that what was looked at is
 * what is opened. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "safe_open.h"

#define LINKS_MAX 40 /* as the kernel has it */

/* Is it somebody else's, in a folder where anybody may put things? */
static bool foreign(const struct stat *dir, const struct stat *st)
{
	if ((dir->st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH))
		return false;
	return (st->st_uid != geteuid() && st->st_uid != dir->st_uid) ||
	       (S_ISREG(st->st_mode) && st->st_nlink > 1);
}

/* Links in /proc lead to what no path names: the kernel follows them. */
static bool in_proc(int dir)
{
	struct statfs fs;

	return !fstatfs(dir, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

static int open_last(int dir, const char *name, int flags, mode_t mode, const struct stat *dir_st)
{
	int fd = openat(dir, name, (flags & ~O_TRUNC) | O_NOFOLLOW, mode),
	    err = fd < 0 ? -errno : 0;
	struct stat st;

	if (err)
		return err;
	/* it may be another one than was looked at */
	if (fstat(fd, &st) < 0)
		err = -errno;
	else if (foreign(dir_st, &st))
		err = -EACCES;
	else if (flags & O_TRUNC && S_ISREG(st.st_mode) && ftruncate(fd, 0) < 0)
		err = -errno;
	if (err)
		close(fd);
	return err ? err : fd;
}

/* One name of the path. Returns the descriptor of what it names; -ELOOP: a link, whose text is
 * in `link`; else -errno. */
static int step(int dir, const char *name, bool last, int flags, mode_t mode, char *link)
{
	int want = last ? flags : O_PATH | O_CLOEXEC, fd;
	struct stat dir_st, st;
	ssize_t n;

	if (fstat(dir, &dir_st) < 0)
		return -errno;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT || !last || !(flags & O_CREAT))
			return -errno;
		return open_last(dir, name, flags, mode, &dir_st);
	}
	if (S_ISLNK(st.st_mode) && in_proc(dir)) {
		fd = openat(dir, name, want, mode);
		return fd < 0 ? -errno : fd;
	}
	if ((last || S_ISLNK(st.st_mode)) && foreign(&dir_st, &st))
		return -EACCES;
	if (!S_ISLNK(st.st_mode) && last)
		return open_last(dir, name, flags, mode, &dir_st);
	if (!S_ISLNK(st.st_mode)) {
		fd = openat(dir, name, want | O_NOFOLLOW | O_DIRECTORY);
		return fd < 0 ? -errno : fd;
	}
	n = readlinkat(dir, name, link, PATH_MAX);
	if (n < 0)
		return -errno;
	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	link[n] = '\0';
	return -ELOOP;
}

int safe_open(const char *path, int flags, mode_t mode)
{
	char rest[PATH_MAX], link[PATH_MAX], more[2 * PATH_MAX], name[NAME_MAX + 1];
	int dir, fd = -ENOENT, links = 0;

	if (!*path)
		return -ENOENT;
	if (strlen(path) >= sizeof(rest))
		return -ENAMETOOLONG;
	strcpy(rest, path);
	dir = open(*rest == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	for (;;) {
		const char *at = rest + strspn(rest, "/");
		size_t n = strcspn(at, "/");
		bool last = !at[n];

		if (n >= sizeof(name)) {
			fd = -ENAMETOOLONG;
			break;
		}
		if (!n) { /* it ends in a slash */
			fd = -EISDIR;
			break;
		}
		memcpy(name, at, n);
		name[n] = '\0';
		fd = step(dir, name, last, flags, mode, link);
		if (fd >= 0 && last)
			break;
		if (fd < 0 && (fd != -ELOOP || ++links > LINKS_MAX))
			break;
		if (fd == -ELOOP) {
			if ((size_t)snprintf(more, sizeof(more), "%s%s", link, at + n) >=
			    sizeof(rest)) {
				fd = -ENAMETOOLONG;
				break;
			}
			strcpy(rest, more);
			fd = *rest == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : dir;
			if (fd < 0) {
				fd = -errno;
				break;
			}
		} else {
			memmove(rest, at + n, strlen(at + n) + 1);
		}
		if (fd != dir)
			close(dir);
		dir = fd;
	}
	close(dir);
	return fd;
}
