/* SPDX-License-Identifier: BSD-2-Clause */
/* host.c - see host.h. Asks the kernel what it can do; never its version. */
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "host.h"

#define DESCRIPTORS_MAX 4096 /* of a process that are looked at */

int host_file(pid_t tid, const char *name, char *buf, size_t size)
{
	char path[64];
	FILE *f;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	else
		snprintf(path, sizeof(path), "/proc/self/%s", name);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	buf[fread(buf, 1, size - 1, f)] = '\0';
	fclose(f);
	return 0;
}

int host_machine(const char *name, char *buf, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "../%s", name);
	return host_file(0, path, buf, size);
}

int host_status(pid_t tid, char *buf, size_t size)
{
	return host_file(tid, "status", buf, size);
}

const char *host_stat(pid_t pid, char *buf, size_t size)
{
	const char *name_end = host_file(pid, "stat", buf, size) ? NULL : strrchr(buf, ')');

	return name_end && name_end[1] == ' ' ? name_end + 2 : NULL;
}

const char *host_stat_field(const char *state, int field)
{
	for (int i = 3; state && i < field; i++) {
		state = strchr(state, ' ');
		if (state)
			state++;
	}
	return state;
}

/* of the fields of /proc/PID/stat; behind it are the end of the code and the begin of the stack */
#define STAT_START_CODE 26

void host_layout(pid_t pid, uint64_t layout[HOST_LAYOUT])
{
	char text[1024];
	const char *state = host_stat(pid, text, sizeof(text));

	for (int i = 0; i < HOST_LAYOUT; i++) {
		const char *at = state ? host_stat_field(state, STAT_START_CODE + i) : NULL;

		layout[i] = at ? strtoull(at, NULL, 10) : 0;
	}
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

bool host_shadow_stack(const char *status)
{
	const char *line = host_status_line(status, "x86_Thread_features");

	return line && memmem(line, strcspn(line, "\n"), "shstk", 5);
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

bool host_uses_gpu(pid_t pid)
{
	char path[64], link[PATH_MAX];
	const struct dirent *e;
	struct stat st;
	bool uses = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	for (int n = 0; d && !uses && n < DESCRIPTORS_MAX && (e = readdir(d)); n++) {
		ssize_t len = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
		const char *base;

		if (len <= 0)
			continue;
		link[len] = '\0';
		base = strrchr(link, '/');
		uses = base && !strcmp(base, "/nvidia-uvm") &&
		       !fstatat(dirfd(d), e->d_name, &st, 0) && S_ISCHR(st.st_mode);
	}
	if (d)
		closedir(d);
	return uses;
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

const char *host_name(char *buf, size_t size)
{
	if (gethostname(buf, size) < 0)
		snprintf(buf, size, "unknown");
	buf[size - 1] = '\0';
	return buf;
}

/* The first line of a file, without its end. */
static bool first_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	bool got = f && fgets(buf, (int)size, f);

	if (f)
		fclose(f);
	if (!got)
		*buf = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return got;
}

const char *host_boot_id(char *buf, size_t size)
{
	first_line("/proc/sys/kernel/random/boot_id", buf, size);
	return buf;
}

int host_ptrace_scope(void)
{
	char text[8];

	if (!first_line("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)))
		return 0;
	return *text >= '0' && *text <= '3' ? *text - '0' : 0;
}

bool host_driver(char *buf, size_t size)
{
	return first_line("/sys/module/nvidia/version", buf, size);
}

/* "Model: \t\t NVIDIA H200" */
static void gpu_value(const char *text, const char *key, char *buf, size_t size)
{
	const char *v = host_status_line(text, key);

	snprintf(buf, size, "%.*s", v ? (int)strcspn(v, "\n") : 1, v ? v : "?");
}

void host_gpus(void (*each)(void *ctx, const char *text), void *ctx)
{
	DIR *dir = opendir("/proc/driver/nvidia/gpus");
	const struct dirent *d;

	while (dir && (d = readdir(dir))) {
		char path[512], text[4096], model[128], uuid[128], all[600];
		size_t n;
		FILE *f;

		if (*d->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", d->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
		text[n] = '\0';
		gpu_value(text, "Model", model, sizeof(model));
		gpu_value(text, "GPU UUID", uuid, sizeof(uuid));
		snprintf(all, sizeof(all), "%s %s %s", d->d_name, model, uuid);
		each(ctx, all);
	}
	if (dir)
		closedir(dir);
}

bool host_has_btf(void)
{
	return !access("/sys/kernel/btf/vmlinux", R_OK);
}

bool host_is_confidential(void)
{
	char modes[128] = "";
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");

	if (!f)
		return false;
	if (!fgets(modes, sizeof(modes), f))
		modes[0] = '\0';
	fclose(f);
	return strstr(modes, "[confidentiality]");
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

bool host_has_bpf_loop(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, NULL) != 0;
}
