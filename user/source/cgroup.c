/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroup.c - see cgroup.h. The id is the file handle of the directory (kernfs:
 * kernfs_encode_fh), the number that bpf_get_current_ancestor_cgroup_id() gives.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../util/msg.h"
#include "../util/parse.h"
#include "cgroup.h"

#define PARTS 4 /* records that wait take one of so many parts of the memory */

static int open_cgroup(const char *path)
{
	static const char *const roots[] = { "", "/sys/fs/cgroup/", "/sys/fs/cgroup/unified/" };
	int seen = -ENOENT;

	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		char full[PATH_MAX];
		struct statfs fs;
		int fd;

		if ((size_t)snprintf(full, sizeof(full), "%s%s", roots[i], path) >= sizeof(full))
			return -ENAMETOOLONG;
		fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!fstatfs(fd, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
			return fd;
		seen = -ENOTDIR;
		close(fd);
	}
	return seen;
}

int cgroup_id(const char *path, uint64_t *id)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + sizeof(uint64_t)];
	} h = { .handle.handle_bytes = sizeof(uint64_t) };
	int fd = open_cgroup(path), mount_id;
	struct stat st;

	if (fd < 0) {
		msg_error("--cgroup: '%s' is not a cgroup (v2); give a directory below "
			  "/sys/fs/cgroup, or what /proc/PID/cgroup shows",
			  path);
		return fd;
	}
	if (!name_to_handle_at(fd, "", &h.handle, &mount_id, AT_EMPTY_PATH))
		memcpy(id, h.handle.f_handle, sizeof(*id));
	else if (!fstat(fd, &st))
		*id = st.st_ino; /* the same number on 64-bit kernels */
	close(fd);
	return 0;
}

/* The first line of a file that begins so, without its end; false: there is none. */
static bool read_line(const char *path, const char *begin, char *line, size_t size)
{
	FILE *f = fopen(path, "re");
	bool found = false;

	while (f && !found && fgets(line, (int)size, f))
		found = !strncmp(line, begin, strlen(begin));
	if (f)
		fclose(f);
	if (found)
		line[strcspn(line, "\n")] = '\0';
	return found;
}

/* The least number in these files of a cgroup and of those above it. cgroup: "/pod/container";
 * it is changed. */
static uint64_t least_above(const char *root, char *cgroup, const char *file)
{
	char path[2 * PATH_MAX], text[64];
	uint64_t least = UINT64_MAX, max;

	for (;;) {
		size_t n = (size_t)snprintf(path, sizeof(path), "%s%s/%s", root, cgroup, file);

		/* "max" is no number: no limit; the root has no such file */
		if (n < sizeof(path) && read_line(path, "", text, sizeof(text)) &&
		    !parse_u64(text, 0, UINT64_MAX, &max) && max < least)
			least = max;
		if (!*cgroup)
			return least;
		*strrchr(cgroup, '/') = '\0';
	}
}

/* The cgroup in a line of /proc/PID/cgroup, "4:cpu,memory:/pod", if it is that of version 1's
 * memory; NULL: it is not. */
static char *memory_v1(char *line)
{
	char *list = strchr(line, ':'), *cgroup = list ? strchr(++list, ':') : NULL;

	if (!cgroup || cgroup[1] != '/')
		return NULL;
	*cgroup++ = '\0';
	for (char *word = strtok(list, ","); word; word = strtok(NULL, ","))
		if (!strcmp(word, "memory"))
			return cgroup;
	return NULL;
}

uint64_t cgroup_memory_max(const char *root, const char *self)
{
	char line[PATH_MAX], root_v1[PATH_MAX], *cgroup = NULL;
	uint64_t least = UINT64_MAX, v1;
	FILE *f;

	if (read_line(self, "0::/", line, sizeof(line)))
		least = least_above(root, line + 3, "memory.max");
	/* The controller may be version 1's: then version 2 has no limit. */
	f = fopen(self, "re");
	while (f && !cgroup && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		cgroup = memory_v1(line);
	}
	if (f)
		fclose(f);
	if (!cgroup ||
	    (size_t)snprintf(root_v1, sizeof(root_v1), "%s/memory", root) >= sizeof(root_v1))
		return least;
	v1 = least_above(root_v1, cgroup, "memory.limit_in_bytes");
	return v1 < least ? v1 : least;
}

uint64_t cgroup_memory_here(void)
{
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t limit = cgroup_memory_max("/sys/fs/cgroup", "/proc/self/cgroup");

	return limit < all ? limit : all;
}

uint64_t cgroup_memory_part(uint64_t want)
{
	uint64_t part = cgroup_memory_here() / PARTS;

	return want < part ? want : part;
}

uint32_t cgroup_memory_fit(uint32_t want, size_t each, unsigned int parts)
{
	uint64_t n = cgroup_memory_here() / parts / each;

	return n < want ? (uint32_t)(n ? n : 1) : want;
}
