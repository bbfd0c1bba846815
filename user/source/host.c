/* SPDX-License-Identifier: BSD-2-Clause */
/* host.c - see host.h. Asks the kernel what it can do; never its version. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "host.h"

int host_status(pid_t tid, char *buf, size_t size)
{
	char path[64];
	size_t n;
	FILE *f;
	int err;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	else
		snprintf(path, sizeof(path), "/proc/self/status");
	f = fopen(path, "re");
	if (!f) {
		err = -errno;
		return err;
	}
	n = fread(buf, 1, size - 1, f);
	buf[n] = '\0';
	fclose(f);
	return 0;
}

const char *host_status_line(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, n) && line[n] == ':')
			return line + n + 1 + strspn(line + n + 1, " \t");
	}
	return NULL;
}

int host_task(pid_t tid, struct host_task *out)
{
	const char *val;
	char text[4096];

	memset(out, 0, sizeof(*out));
	if (host_status(tid, text, sizeof(text)))
		return -ESRCH;
	val = host_status_line(text, "Tgid");
	out->tgid = val ? (pid_t)strtol(val, NULL, 10) : 0;
	val = host_status_line(text, "Seccomp");
	out->seccomp = val ? (int)strtol(val, NULL, 10) : 0;
	val = host_status_line(text, "Name");
	if (val)
		snprintf(out->comm, sizeof(out->comm), "%.*s", (int)strcspn(val, "\n"), val);
	return out->tgid > 0 ? 0 : -ESRCH;
}

int host_open_exe(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool host_initial_pid_ns(void)
{
	/* PROC_PID_INIT_INO of include/linux/proc_ns.h */
	static const char initial[] = "pid:[4026531836]";
	char link[64];
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);

	if (n < 0)
		return true;
	link[n] = '\0';
	return !strcmp(link, initial);
}

const char *host_kernel(char *buf, size_t size)
{
	struct utsname u;

	if (uname(&u) < 0)
		snprintf(buf, size, "unknown");
	else
		snprintf(buf, size, "%s %s", u.release, u.machine);
	return buf;
}

bool host_has_btf(void)
{
	return !access("/sys/kernel/btf/vmlinux", R_OK);
}

int host_has_ringbuf(void)
{
	union bpf_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_RINGBUF;
	attr.max_entries = (uint32_t)sysconf(_SC_PAGESIZE);
	fd = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		return errno == EPERM ? -EPERM : 0;
	close((int)fd);
	return 1;
}
