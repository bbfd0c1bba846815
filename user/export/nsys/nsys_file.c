/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nsys_file.c - the file of a database: a new one beside the requested one, whose place it takes in
 * the end. Knows no table.
 *
 * SQLite opens files by their names, and follows links on the way. So it is given a name that is no
 * path, and what it calls to open a file gives it our descriptor for that name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../util/msg.h"
#include "../../util/whole/unfinished.h"
#include "nsys.h"

#define OURS "/database-of-cudatrace/" /* a descriptor's number follows */

static int (*open_other)(const char *, int, int);

static int open_ours(const char *name, int flags, int mode)
{
	if (strncmp(name, OURS, strlen(OURS)) != 0)
		return open_other(name, flags, mode);
	/* beside it there is nothing: no journal, no other database */
	if (name[strlen(OURS) + strspn(name + strlen(OURS), "0123456789")]) {
		errno = ENOENT;
		return -1;
	}
	return fcntl(atoi(name + strlen(OURS)), F_DUPFD_CLOEXEC, 3);
}

/* Finds the file to replace, through symbolic links. A device or a pipe cannot be replaced.
 * Returns whether there is one, or -errno. */
static int find_old(struct nsys_file *f, const char *path, struct stat *old)
{
	int err = safe_place_find(&f->at, path);

	if (!err)
		err = safe_place_look(&f->at, old);
	if (err == -ENOENT && f->at.dir >= 0)
		return 0;
	if (err == -ENXIO || (!err && !S_ISREG(old->st_mode))) {
		msg_error(
			"nsys-sqlite writes a database, and %s is not a regular file: give -o FILE",
			path);
		return -EINVAL;
	}
	if (err)
		msg_error("cannot write to %s: %s", path, strerror(-err));
	return err ? err : 1;
}

int nsys_file_make(struct nsys_file *f, const char *path)
{
	struct stat old;
	int there;

	*f = (struct nsys_file){ .at.dir = -1, .fd = -1, .path = path };
	there = find_old(f, path, &old);
	if (there < 0)
		return there;
	f->fd = safe_place_new(&f->at, &f->made, false, path, there ? &old : NULL);
	if (f->fd < 0) {
		msg_error("cannot write to %s: %s", path, strerror(-f->fd));
		return f->fd;
	}
	unfinished_begun(f->fd, f->made.name);
	return 0;
}

int nsys_file_open(const struct nsys_file *f, sqlite3 **db)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	char name[sizeof(OURS) + 16];
	int rc;

	if (!open_other) {
		open_other = (int (*)(const char *, int, int))vfs->xGetSystemCall(vfs, "open");
		rc = vfs->xSetSystemCall(vfs, "open", (sqlite3_syscall_ptr)open_ours);
		if (rc)
			return rc;
	}
	snprintf(name, sizeof(name), OURS "%d", f->fd);
	return sqlite3_open_v2(name, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
}

int nsys_file_done(struct nsys_file *f)
{
	int err = fdatasync(f->fd) ? -errno : safe_place_rename(&f->made, f->at.name);

	if (err)
		msg_error("cannot write to %s: %s", f->path, strerror(-err));
	f->done = !err;
	return err;
}

void nsys_file_close(struct nsys_file *f)
{
	if (f->fd >= 0) {
		if (!f->done)
			unlinkat(f->made.dir, f->made.name, 0);
		close(f->fd);
	}
	safe_place_close(&f->at);
	f->fd = -1;
}
