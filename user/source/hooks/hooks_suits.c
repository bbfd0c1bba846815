/* SPDX-License-Identifier: BSD-2-Clause */
/* hooks_suits.c - see hooks_suits.h. What lies in its functions is found out when the hooks come in. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../../util/msg.h"
#include "../host.h"
#include "../inject/inject_check.h"
#include "hooks_suits.h"

int hooks_suits(pid_t pid)
{
	char text[8192];
	int err = inject_check(pid);
	long page = sysconf(_SC_PAGESIZE);

	if (err)
		return err == -ENOEXEC ? -ENOTSUP : err;
	if (page != 4096) {
		msg_error("process %d: hooks are for pages of 4 KiB, and this kernel's have %ld",
			  (int)pid, page / 1024);
		return -ENOTSUP;
	}
	if (host_status(pid, text, sizeof(text)) || !host_shadow_stack(text))
		return 0;
	msg_error("process %d uses shadow stacks (CET), beside which calls cannot be recorded "
		  "inside it",
		  (int)pid);
	return -ENOTSUP;
}

static int open_program(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* The first one on PATH, as execvp(3) finds it. */
static int find_program(const char *name)
{
	const char *at = getenv("PATH"), *end;
	char path[4096];
	int fd = -1;

	if (strchr(name, '/'))
		return open_program(name);
	for (; at && *at && fd < 0; at = *end ? end + 1 : end) {
		end = strchrnul(at, ':');
		snprintf(path, sizeof(path), "%.*s/%s", (int)(end - at), at, name);
		fd = access(path, X_OK) ? -1 : open_program(path);
	}
	return fd;
}

/* The kernel gives it more rights than its user has, and then the loader takes nothing from the environment. */
static bool has_more_rights(int fd, bool user)
{
	bool root = !user && !geteuid();
	struct stat s;

	if (fstat(fd, &s))
		return false;
	return (s.st_mode & S_ISUID && (user || s.st_uid != geteuid())) ||
	       (s.st_mode & S_ISGID && (user || s.st_gid != getegid())) ||
	       (!root && fgetxattr(fd, "security.capability", NULL, 0) > 0);
}

const char *hooks_suits_program(const char *name, bool user)
{
	const char *why = NULL;
	int fd = find_program(name);

	if (fd < 0)
		return NULL; /* why it cannot be run is said when it is run */
	if (has_more_rights(fd, user))
		why = "it gets more rights than its user has (setuid)";
	else if (!inject_check_loader(fd))
		why = "it is linked statically";
	close(fd);
	return why;
}
