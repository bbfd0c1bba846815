/* SPDX-License-Identifier: BSD-2-Clause */
/* inject_check.c - see inject_check.h. Knows /proc. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../proc/elf_read.h"
#include "../../util/msg.h"
#include "../host.h"
#include "inject_check.h"

static long number(const char *text, const char *key, int word)
{
	const char *at = host_status_line(text, key);
	char *end;
	long v = -1;

	for (; at && word >= 0; word--) {
		v = strtol(at, &end, 10);
		at = end;
	}
	return v;
}

static int check_state(pid_t pid, const char *text)
{
	const char *state = host_status_line(text, "State");
	struct host_task tracer;
	long by = number(text, "TracerPid", 0);

	if (number(text, "Tgid", 0) != pid) {
		msg_error("%d is not a process but a thread of process %ld: give that one",
			  (int)pid, number(text, "Tgid", 0));
		return -ESRCH;
	}
	if (by > 0) {
		if (host_task((pid_t)by, &tracer))
			snprintf(tracer.comm, sizeof(tracer.comm), "?");
		msg_error("process %d is traced by process %ld (%s), and a process has only one "
			  "tracer at a time: end that one first",
			  (int)pid, by, tracer.comm);
		return -EBUSY;
	}
	if (state && (*state == 'Z' || *state == 'X') && number(text, "Threads", 0) <= 1) {
		msg_error("process %d has ended", (int)pid);
		return -ESRCH;
	}
	if (state && *state == 'Z') {
		msg_error("the main thread of process %d has ended, and its files cannot be "
			  "reached without it: start it under cudatrace",
			  (int)pid);
		return -ESRCH;
	}
	if (state && (*state == 'T' || *state == 't')) {
		msg_error("process %d is stopped: let it go on first (kill -CONT %d)", (int)pid,
			  (int)pid);
		return -EAGAIN;
	}
	return 0;
}

int inject_check_loader(int fd)
{
	struct elf_file elf = {};
	bool loader = false;
	int err = elf_file_open(&elf, fd);

	for (int i = 0; !err && i < elf.nphdr; i++)
		loader = loader || elf.phdr[i].p_type == PT_INTERP;
	elf_file_close(&elf);
	return err ? err : loader;
}

/* As it was loaded: another architecture, 32 bits, or without a loader. */
static int check_program(pid_t pid)
{
	int fd = host_open_exe(pid), has;

	if (fd == -EACCES || fd == -EPERM) {
		inject_check_refused(pid);
		return -EPERM;
	}
	if (fd < 0) {
		msg_error("process %d has ended", (int)pid);
		return -ESRCH;
	}
	has = inject_check_loader(fd);
	close(fd);
	if (has < 0) {
		msg_error("process %d is a program of another architecture, or a 32-bit one: "
			  "cudatrace adds its agent only to those "
			  "of its own",
			  (int)pid);
		return -ENOEXEC;
	}
	if (!has) {
		msg_error("process %d is a static program, which loads no shared objects: only "
			  "probes see its calls",
			  (int)pid);
		return -ENOEXEC;
	}
	return 0;
}

/* The kernel gives /proc/PID of a process that may not be dumped to root: it then cannot open
 * its own descriptors. */
static int check_dumpable(pid_t pid, const char *text)
{
	long euid = number(text, "Uid", 1);
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	if (stat(path, &st) || (long)st.st_uid == euid)
		return 0;
	msg_error("process %d protects its memory (it is not dumpable: see prctl(2), "
		  "PR_SET_DUMPABLE): start it under cudatrace instead",
		  (int)pid);
	return -EPERM;
}

/* A child between vfork(2) and exec runs in its parent's memory. */
static int check_memory(pid_t pid, const char *text)
{
	long parent = number(text, "PPid", 0);

	if (parent <= 0 || syscall(SYS_kcmp, pid, (pid_t)parent, KCMP_VM, 0, 0) != 0)
		return 0;
	msg_error("process %d runs in the memory of its parent %ld (vfork): give that one, or try "
		  "again",
		  (int)pid, parent);
	return -EAGAIN;
}

/* Version 2 of cgroups shows it in cgroup.events, version 1 in freezer.state. */
static int check_frozen(pid_t pid)
{
	char path[64], line[4096], file[4400];
	bool frozen = false;
	FILE *f, *events;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "0::", 3))
			snprintf(file, sizeof(file), "/sys/fs/cgroup%s/cgroup.events", line + 3);
		else if (strstr(line, ":freezer:"))
			snprintf(file, sizeof(file), "/sys/fs/cgroup/freezer%s/freezer.state",
				 strstr(line, ":freezer:") + 9);
		else
			continue;
		events = fopen(file, "re");
		while (events && fgets(line, sizeof(line), events))
			frozen = frozen || !strcmp(line, "frozen 1\n") || !strcmp(line, "FROZEN\n");
		if (events)
			fclose(events);
	}
	if (f)
		fclose(f);
	if (!frozen)
		return 0;
	msg_error("process %d is in a frozen cgroup: thaw it first", (int)pid);
	return -EAGAIN;
}

int inject_check(pid_t pid)
{
	char text[8192];
	int err = host_status(pid, text, sizeof(text));

	if (err) {
		msg_error("there is no process %d", (int)pid);
		return -ESRCH;
	}
	err = check_state(pid, text);
	if (!err)
		err = check_program(pid);
	if (!err)
		err = check_dumpable(pid, text);
	if (!err)
		err = check_memory(pid, text);
	return err ? err : check_frozen(pid);
}

bool inject_check_ended(pid_t pid)
{
	char text[8192], path[64];
	const char *state;
	ssize_t n = -1;
	int fd;

	state = host_status(pid, text, sizeof(text)) ? NULL : host_status_line(text, "State");
	if (!state)
		return true;
	if (number(text, "Threads", 0) > 1)
		return false;
	if (*state == 'Z' || *state == 'X')
		return true;
	/* its memory goes before it is a zombie */
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, 1);
		close(fd);
	}
	return n == 0 || (fd < 0 && errno == ENOENT);
}

void inject_check_refused(pid_t pid)
{
	char text[8192];
	int scope = host_ptrace_scope();

	if (!host_status(pid, text, sizeof(text)) && number(text, "Uid", 1) != (long)geteuid() &&
	    geteuid())
		msg_error(
			"process %d belongs to another user: run cudatrace as that user or as root",
			(int)pid);
	else if (scope == 3)
		msg_error(
			"this system allows no process to trace another (kernel.yama.ptrace_scope "
			"is 3 until it is rebooted): start the program under cudatrace");
	else if (scope && geteuid())
		msg_error("process %d may not be traced by you (kernel.yama.ptrace_scope is %d): "
			  "run as root, or set it to 0",
			  (int)pid, scope);
	else
		msg_error("process %d may not be traced: it is not dumpable, or a security module "
			  "(SELinux, AppArmor), a container "
			  "or its capabilities forbid it: start it under cudatrace",
			  (int)pid);
}

/* The files of a GPU that a driver of CUDA opens: of the usual kernel driver, of WSL's, of
 * Jetson's. */
static bool is_device(const char *name)
{
	static const char *const begins[] = { "nvidia", "dxg", "nvhost", "nvmap", "nvgpu" };

	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static bool has_open_device(pid_t pid)
{
	char path[64], link[64];
	bool device = false;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d && !device && (e = readdir(d))) {
		ssize_t len = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		link[len > 0 ? len : 0] = '\0';
		device = !strncmp(link, "/dev/", 5) && is_device(link + 5);
	}
	if (d)
		closedir(d);
	return device;
}

/* Is there any that the process could open? */
static bool has_device(pid_t pid)
{
	bool device = false;
	struct dirent *e;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/root/dev", (int)pid);
	d = opendir(path);
	while (d && !device && (e = readdir(d)))
		device = is_device(e->d_name);
	if (d)
		closedir(d);
	return device;
}

bool inject_check_cuda(void *ctx, struct target *t)
{
	const struct target_map *maps;
	bool driver = false;
	int n = target_maps(t, &maps);

	(void)ctx;
	for (int i = 0; i < n && !driver; i++)
		driver = maps[i].exec && strstr(maps[i].path, "/libcuda.so");
	return driver && (has_open_device(target_pid(t)) || !has_device(target_pid(t)));
}
