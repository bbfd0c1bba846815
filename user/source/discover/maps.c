/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * maps.c - which files processes have mapped for execution.
 *
 * The BPF iterator program ct_maps sees the vma itself and so the real inode; /proc/PID/maps shows
 * overlayfs's own numbers and, on btrfs, a device that stat(2) does not know. The file is opened
 * through /proc/PID/map_files, which leads to what is mapped whatever has become of the name; where
 * that is not allowed (it wants CAP_CHECKPOINT_RESTORE) by name through the process's root, if the
 * inode there is still the same.
 *
 * A process whose main thread has ended keeps its memory but shows none of it under its own
 * number: any other thread's number is as good.
 */
#include "maps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

uint64_t maps_dev(dev_t dev)
{
	return (uint64_t)major(dev) << 20 | minor(dev);
}

/* ---- by iterator ---- */

static int iter_open(int prog_fd, pid_t pid)
{
	union bpf_iter_link_info info = { .task.pid = pid };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &info, .iter_info_len = sizeof(info));
	int link, fd, err;

	link = bpf_link_create(prog_fd, 0, BPF_TRACE_ITER, pid ? &opts : NULL);
	/* before 6.1 there is no choice: the caller sorts out */
	if (link < 0 && pid && errno != ESRCH)
		link = bpf_link_create(prog_fd, 0, BPF_TRACE_ITER, NULL);
	if (link < 0)
		return -errno;
	fd = bpf_iter_create(link);
	err = -errno;
	close(link); /* the iterator holds it */
	return fd < 0 ? err : fd;
}

static int read_iter(int prog_fd, pid_t pid, maps_fn fn, void *ctx)
{
	struct ct_vma *buf = malloc(512 * sizeof(*buf));
	size_t have = 0;
	int fd = -1, count = 0, err;
	ssize_t n;

	if (!buf)
		return -ENOMEM;
	fd = iter_open(prog_fd, pid);
	err = fd < 0 ? fd : 0;
	while (!err) {
		size_t i, whole;

		n = read(fd, (char *)buf + have, 512 * sizeof(*buf) - have);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			err = -errno;
		if (n <= 0)
			break;
		have += n;
		whole = have / sizeof(*buf);
		for (i = 0; i < whole && !err; i++) {
			if (buf[i].ns_pid)
				buf[i].pid = buf[i].ns_pid;
			if ((pid && buf[i].pid != (uint32_t)pid) || !buf[i].ino)
				continue;
			count++;
			err = fn(ctx, &buf[i]);
			err = err < 0 ? err : 0;
		}
		have -= whole * sizeof(*buf);
		memmove(buf, buf + whole, have);
	}
	if (fd >= 0)
		close(fd);
	free(buf);
	return err == -ESRCH ? 0 : err ? err : count;
}

/* ---- by /proc ---- */

struct line {
	struct ct_vma vma;
	const char *name; /* up to the end of the line; NULL: none */
};

/* "7f00-7f01 r-xp 00001000 08:02 1234    /lib/x.so". False: not executable or no file. */
static bool parse(char *s, struct line *l)
{
	unsigned long maj, min;
	char *end;

	l->vma.start = strtoul(s, &end, 16);
	if (*end != '-')
		return false;
	l->vma.end = strtoul(end + 1, &end, 16);
	if (end[0] != ' ' || !end[1] || !end[2] || end[3] != 'x' || !end[4])
		return false;
	l->vma.pgoff = strtoul(end + 6, &end, 16) / sysconf(_SC_PAGESIZE);
	maj = strtoul(end, &end, 16);
	if (*end != ':')
		return false;
	min = strtoul(end + 1, &end, 16);
	l->vma.dev = (uint64_t)maj << 20 | min;
	l->vma.ino = strtoul(end, &end, 10);
	while (*end == ' ')
		end++;
	l->name = *end ? end : NULL;
	return l->vma.ino != 0;
}

typedef int (*line_fn)(void *ctx, struct line *);

static int read_lines(const char *path, pid_t pid, line_fn fn, void *ctx)
{
	struct line l = { .vma.pid = pid };
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t cap = 0;
	ssize_t len;
	int err = 0, count = 0;

	if (!f)
		return 0;
	while (err >= 0 && (len = getline(&text, &cap, f)) > 0) {
		if (text[len - 1] == '\n')
			text[len - 1] = 0;
		if (!parse(text, &l))
			continue;
		count++;
		err = fn(ctx, &l);
	}
	free(text);
	fclose(f);
	return err < 0 ? err : count;
}

/* The lines of a process; of another of its threads when the main one has ended. */
static int read_process(pid_t pid, line_fn fn, void *ctx)
{
	char path[64];
	struct dirent *e;
	DIR *dir;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	n = read_lines(path, pid, fn, ctx);
	if (n)
		return n;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !n && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]) || atoi(e->d_name) == pid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/maps", atoi(e->d_name));
		n = read_lines(path, pid, fn, ctx);
	}
	if (dir)
		closedir(dir);
	return n;
}

struct outlet {
	maps_fn fn;
	void *ctx;
};

static int to_outlet(void *ctx, struct line *l)
{
	struct outlet *o = ctx;

	return o->fn(o->ctx, &l->vma);
}

static int read_proc(pid_t pid, maps_fn fn, void *ctx)
{
	struct outlet o = { fn, ctx };
	struct dirent *e;
	int n = 0, one;
	DIR *dir;

	if (pid)
		return read_process(pid, to_outlet, &o);
	dir = opendir("/proc");
	if (!dir)
		return -errno;
	while (n >= 0 && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		one = read_process(atoi(e->d_name), to_outlet, &o);
		n = one < 0 ? one : n + one;
	}
	closedir(dir);
	return n;
}

int maps_read(int prog_fd, pid_t pid, maps_fn fn, void *ctx)
{
	int n = prog_fd >= 0 ? read_iter(prog_fd, pid, fn, ctx) : read_proc(pid, fn, ctx);

	/* The iterator may walk main threads only: look again at a process that seems to have
	 * nothing mapped. */
	return !n && pid && prog_fd >= 0 ? read_proc(pid, fn, ctx) : n;
}

/* ---- the file behind a mapping ---- */

/* The number under which /proc shows the mapping: the process's, or another thread's when the
 * main one has ended. */
static void link_path(const struct ct_vma *v, char *path, size_t len)
{
	char task[64], other[128];
	struct dirent *e;
	struct stat st;
	DIR *dir;

	snprintf(path, len, "/proc/%u/map_files/%llx-%llx", v->pid, (unsigned long long)v->start,
		 (unsigned long long)v->end);
	if (!lstat(path, &st) || errno == EPERM || errno == EACCES)
		return;
	snprintf(task, sizeof(task), "/proc/%u/task", v->pid);
	dir = opendir(task);
	while (dir && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(other, sizeof(other), "/proc/%d/map_files/%llx-%llx", atoi(e->d_name),
			 (unsigned long long)v->start, (unsigned long long)v->end);
		if (!lstat(other, &st)) {
			snprintf(path, len, "%s", other);
			break;
		}
	}
	if (dir)
		closedir(dir);
}

struct named {
	uint64_t start;
	char *path;
	size_t len;
	struct ct_vma vma;
};

static int find_name(void *ctx, struct line *l)
{
	struct named *n = ctx;

	if (l->vma.start != n->start)
		return 0;
	if (l->name && *l->name == '/')
		snprintf(n->path, n->len, "%s", l->name);
	n->vma = l->vma;
	return -ECANCELED; /* found */
}

/* The path to the file by name, through the process's root; -ENOENT if another file has that
 * name now. */
static int path_by_name(const struct ct_vma *v, char *path, size_t len, struct stat *st)
{
	char name[PATH_MAX] = "";
	struct named n = { .start = v->start, .path = name, .len = sizeof(name) };

	read_process(v->pid, find_name, &n);
	if (!*name)
		return -ENOENT;
	if ((size_t)snprintf(path, len, "/proc/%u/root%s", v->pid, name) >= len)
		return -ENAMETOOLONG;
	if (!stat(path, st))
		return st->st_ino == n.vma.ino ? 0 : -ENOENT;
	/* The root is closed to us, or went with the main thread: perhaps it is our own. */
	if (stat(strcpy(path, name), st))
		return -errno;
	return st->st_ino == n.vma.ino && maps_dev(st->st_dev) == n.vma.dev ? 0 : -ENOENT;
}

int maps_stat(const struct ct_vma *v, struct stat *st)
{
	char path[PATH_MAX + 64];

	link_path(v, path, sizeof(path));
	if (!stat(path, st))
		return 0;
	if (errno != EPERM && errno != EACCES)
		return -errno;
	return path_by_name(v, path, sizeof(path), st);
}

bool maps_there(const struct ct_vma *v)
{
	char path[160];
	struct stat st;

	link_path(v, path, sizeof(path));
	return !lstat(path, &st) || (errno != ENOENT && errno != ESRCH);
}

int maps_open(const struct ct_vma *v)
{
	char path[PATH_MAX + 64];
	struct stat st;
	int fd, err;

	link_path(v, path, sizeof(path));
	if (stat(path, &st)) {
		err = -errno;
		if (err == -EPERM || err == -EACCES)
			err = path_by_name(v, path, sizeof(path), &st);
		if (err)
			return err;
	}
	/* Asked before: opening a device may do something. */
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

void maps_name(const struct ct_vma *v, char *buf, size_t len)
{
	char path[160];
	ssize_t n;

	link_path(v, path, sizeof(path));
	n = readlink(path, buf, len - 1);
	buf[n < 0 ? 0 : n] = 0;
	if (n < 0) {
		struct named named = { .start = v->start, .path = buf, .len = len };

		read_process(v->pid, find_name, &named);
	}
}
