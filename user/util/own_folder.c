/* SPDX-License-Identifier: BSD-2-Clause */
/* own_folder.c - see own_folder.h. */
#include "own_folder.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

int own_folder(const char *path)
{
	struct stat st;

	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	if (lstat(path, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
		return -EPERM;
	/* the umask may have removed rights that a program of another user needs */
	if ((st.st_mode & 0755) != 0755 && chmod(path, 0755))
		return -errno;
	return 0;
}
