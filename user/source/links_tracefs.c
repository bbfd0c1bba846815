/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * links_tracefs.c - uprobes through tracefs, for kernels before 6.6, which have no uprobe_multi.
 *
 * A set becomes two uprobe events, cudatrace/e_<pid>_<n> for the entries and cudatrace/r_<pid>_<n> for the returns. Each
 * event holds all offsets of the set: a definition that is written again under the same name with another offset is
 * appended (kernel 5.5 on). One perf event on one CPU then turns all of them on, and a program set on it runs for every
 * process on every CPU, because the kernel hangs it on the trace event and not on the perf event (uprobe_perf_func). So a
 * set costs two descriptors however many functions it has, and closing them takes the probes off in one go; a link for
 * each function costs 86 ms apiece to close on 6.1.
 *
 * The events outlive a tracer that is killed. The lock on uprobe_events (flock) is held by a tracer from an event's first
 * line until its perf event is open, and from then on the kernel refuses to remove the event (EBUSY). Under that lock, an
 * event of ours that can be removed is one that nobody uses: that is how attach_sweep_stale() tells, and why it need
 * not know who is alive in which pid namespace.
 *
 * Knows nothing of functions, files found, or the capture plan. Per-process probing is not offered: the kernel would
 * take the probes off when the process's first thread ends.
 */
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "links.h"
#include "links_util.h"

#define GROUP "cudatrace"

/* A descriptor of tracefs's root: where it is mounted, or of a mount of our own that has no place in the file system
 * and goes with its descriptor. Returns it or -errno. */
static int tracefs_open(void)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
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
		fd = syscall(SYS_fsmount, ctx, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	err = fd < 0 ? -errno : fd;
	close(ctx);
	return err;
}

/* Opens uprobe_events and waits for the lock. Never with O_TRUNC: that removes everybody's events. */
static int events_lock(int tracefs)
{
	int fd = openat(tracefs, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX)) {
		err = -errno;
		if (err == -EINTR)
			continue;
		close(fd);
		return err;
	}
	return fd;
}

/* Writes one command. One at a time: of several in one write(2) the kernel does not say which one it refused. */
__attribute__((format(printf, 2, 3)))
static int events_write(int events, const char *fmt, ...)
{
	char line[160];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n < 0 || n >= (int)sizeof(line))
		return -ENAMETOOLONG;
	return write(events, line, n) < 0 ? -errno : 0;
}

/* Removes an event. One that is gone already is fine. Just after its descriptors were closed it can be busy for a
 * moment; `patient` waits for that, up to a second. */
static int events_remove(int events, const char *name, bool patient)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	int err;

	for (int i = 0; ; i++) {
		err = events_write(events, "-:" GROUP "/%s\n", name);
		if (err != -EBUSY || !patient || i == 100)
			return err == -ENOENT ? 0 : err;
		nanosleep(&pause, NULL);
	}
}

static bool event_exists(int tracefs, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "events/" GROUP "/%s", name);
	return !faccessat(tracefs, path, F_OK, 0);
}

/* The number by which perf_event_open(2) knows the event, or -errno. */
static int event_id(int tracefs, const char *name)
{
	char path[128], text[32];
	int fd, n, id;

	snprintf(path, sizeof(path), "events/" GROUP "/%s/id", name);
	fd = openat(tracefs, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return n;
	text[n] = '\0';
	id = atoi(text);
	return id > 0 ? id : -EIO;
}

/* Defines the event with all offsets of the target. On failure what was defined is left to the caller to remove. */
static int event_define(int events, char type, const char *name, const struct link_target *t, int *bad)
{
	int err;

	for (int i = 0; i < t->nprobes; i++) {
		/* The kernel resolves the path as we would, so our own descriptor names the file even when no path
		 * in our mount namespace does. */
		err = events_write(events, "%c:" GROUP "/%s /proc/self/fd/%d:0x%llx\n", type, name, t->file_fd,
				   (unsigned long long)t->probes[i].offset);
		if (err) {
			*bad = i;
			return err;
		}
	}
	return 0;
}

/* Turns the event on with the program. Returns the perf event's descriptor or -errno. */
static int event_enable(int tracefs, const char *name, int prog_fd)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr) };
	int id = event_id(tracefs, name);
	int fd, err;

	if (id < 0)
		return id;
	attr.config = id;
	fd = links_perf_event(&attr);
	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog_fd)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* A name that no event has. The pid is there for people; a tracer in another pid namespace may have the same one. */
static void event_name(int tracefs, char *name, size_t size)
{
	static unsigned int next;

	do
		snprintf(name, size, "e_%d_%u", (int)getpid(), next++);
	while (event_exists(tracefs, name));
}

int links_tracefs(const struct attach_progs *progs, const struct link_target *t, struct link_set *set, int *bad)
{
	const int prog_fd[] = { progs->return_fd, progs->entry_fd };
	int tracefs, events = -1, err;

	*bad = -1;
	*set = (struct link_set){ 0 };
	tracefs = tracefs_open();
	if (tracefs < 0)
		return tracefs;
	events = events_lock(tracefs);
	if (events < 0) {
		err = events;
		goto out;
	}
	set->fds = malloc(2 * sizeof(*set->fds));
	if (!set->fds) {
		err = -ENOMEM;
		goto out;
	}
	event_name(tracefs, set->event, sizeof(set->event));

	/* Returns first: a call that is entered in between then is an orphan return, which is counted, and not
	 * an entry that seems never to end. */
	for (int i = t->entry_only; i < 2; i++) {
		set->event[0] = "re"[i];
		err = event_define(events, "rp"[i], set->event, t, bad);
		if (err)
			goto out;
		err = event_enable(tracefs, set->event, prog_fd[i]);
		if (err < 0)
			goto out;
		set->fds[set->nfds++] = err;
	}
	err = 0;
out:
	if (events >= 0)
		close(events);
	close(tracefs);
	if (err) {
		for (int i = 0; i < set->nfds; i++)
			close(set->fds[i]);
		links_removed(set);
	}
	return err;
}

void links_removed(struct link_set *set)
{
	int tracefs, events;

	free(set->fds);
	set->fds = NULL;
	set->nfds = 0;
	if (!set->event[0])
		return;
	tracefs = tracefs_open();
	events = tracefs < 0 ? -1 : events_lock(tracefs);
	if (events >= 0) {
		set->event[0] = 'e';
		events_remove(events, set->event, true);
		set->event[0] = 'r';
		events_remove(events, set->event, true);
		close(events);
	}
	if (tracefs >= 0)
		close(tracefs);
	set->event[0] = '\0';
}

/* Is this one of our names: e_<pid>_<n> or r_<pid>_<n>? */
static bool event_is_ours(const char *name)
{
	unsigned int n;
	int pid, end = 0;

	return (name[0] == 'e' || name[0] == 'r') && sscanf(name + 1, "_%d_%u%n", &pid, &n, &end) == 2 && !name[1 + end];
}

void attach_sweep_stale(void)
{
	int tracefs, events = -1, fd;
	struct dirent *e;
	DIR *dir = NULL;

	tracefs = tracefs_open();
	if (tracefs < 0)
		return;
	/* No directory, no event: the common case, which takes no lock. */
	fd = openat(tracefs, "events/" GROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		goto out;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		goto out;
	}
	events = events_lock(tracefs);
	if (events < 0)
		goto out;
	while ((e = readdir(dir)))
		if (event_is_ours(e->d_name))
			events_remove(events, e->d_name, false);
out:
	if (dir)
		closedir(dir);
	if (events >= 0)
		close(events);
	close(tracefs);
}
