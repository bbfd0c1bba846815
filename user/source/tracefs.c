/* SPDX-License-Identifier: BSD-2-Clause */
/* tracefs.c - see tracefs.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tracefs.h"

static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

int tracefs_root(void)
{
	struct statfs fs;
	int fd, ctx, err;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!fstatfs(fd, &fs) && fs.f_type == TRACEFS_MAGIC)
			return fd;
		close(fd);
	}

	ctx = syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	if (ctx < 0)
		return -errno;
	fd = syscall(SYS_fsconfig, ctx, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (!fd)
		fd = syscall(SYS_fsmount, ctx, FSMOUNT_CLOEXEC,
			     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	err = fd < 0 ? -errno : fd;
	close(ctx);
	return err;
}

bool tracefs_mounted(void)
{
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (!statfs(places[i], &fs) && fs.f_type == TRACEFS_MAGIC)
			return true;
	return false;
}
