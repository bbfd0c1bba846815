/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * container.c - see container.h. The id of a cgroup is its directory's file handle (kernfs), so the kernel opens it by that; the
 * runtimes put the container's id, 64 hexadecimal digits, into the directory's name: docker-<id>.scope, cri-containerd-<id>.scope,
 * libpod-<id>.scope, kubepods/.../<id>.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "container.h"

#define ID_DIGITS 64
#define HANDLE_KERNFS 0xfe /* enum fid_type of the kernel: FILEID_KERNFS */

bool container_id_of_path(const char *path, char *buf, size_t size)
{
	const char *found = NULL;
	size_t run = 0;

	if (size <= ID_DIGITS)
		return false;
	/* the innermost: containers run in containers */
	for (const char *c = path;; c++) {
		bool digit = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'f');

		if (!digit && run == ID_DIGITS)
			found = c - run;
		run = digit ? run + 1 : 0;
		if (!*c)
			break;
	}
	if (!found)
		return false;
	memcpy(buf, found, ID_DIGITS);
	buf[ID_DIGITS] = '\0';
	return true;
}

bool container_id(uint64_t cgroup_id, char *buf, size_t size)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + sizeof(uint64_t)];
	} h = { .handle = { .handle_bytes = sizeof(uint64_t), .handle_type = HANDLE_KERNFS } };
	char link[64], path[PATH_MAX];
	int root, fd;
	ssize_t n;

	if (!cgroup_id)
		return false;
	root = open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return false;
	memcpy(h.handle.f_handle, &cgroup_id, sizeof(cgroup_id));
	fd = open_by_handle_at(root, &h.handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(root);
	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	close(fd);
	if (n <= 0)
		return false;
	path[n] = '\0';
	return container_id_of_path(path, buf, size);
}
