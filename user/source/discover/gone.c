/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gone.c - see gone.h. The name is looked up only in the kernel's cache (RESOLVE_CACHED): the
 * file was mapped a moment ago, so it is there, and a look-up that would have to ask a file
 * system fails. What is found is judged by what the kernel knows of it, before anything is asked
 * of the file itself.
 */
#include "gone.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif
#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif

/* "36 35 98:0 /root /at rw,noatime master:1 - ext4 /dev/root rw": is that of the mount a file
 * system that others than this kernel serve? */
static bool is_served(unsigned long long mount)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	unsigned long long id;
	char *line = NULL, *type;
	bool served = true;
	size_t cap = 0;

	while (f && getline(&line, &cap, f) > 0) {
		if (sscanf(line, "%llu", &id) != 1 || id != mount)
			continue;
		type = strstr(line, " - ");
		served = !type || !strncmp(type + 3, "fuse", 4) || !strncmp(type + 3, "nfs", 3) ||
			 !strncmp(type + 3, "cifs", 4) || !strncmp(type + 3, "smb", 3) ||
			 !strncmp(type + 3, "9p", 2) || !strncmp(type + 3, "ceph", 4) ||
			 !strncmp(type + 3, "lustre", 6) || !strncmp(type + 3, "autofs", 6);
	}
	free(line);
	if (f)
		fclose(f);
	return served;
}

int gone_open(const char *name, uint64_t dev, uint64_t ino)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS };
	struct statx st;
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how));

	if (fd < 0)
		return -errno;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_MNT_ID,
		  &st) ||
	    !(st.stx_mask & STATX_MNT_ID) || !S_ISREG(st.stx_mode) || st.stx_ino != ino ||
	    ((uint64_t)st.stx_dev_major << 20 | st.stx_dev_minor) != dev ||
	    is_served(st.stx_mnt_id)) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}
