/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * links_tracefs.c - uprobes through tracefs, for kernels before 6.6, which have no uprobe_multi.
 *
 * A set becomes two uprobe events, cudatrace/e_<pid>_<ns>_<n> for the entries and
 * cudatrace/r_<pid>_<ns>_<n> for the returns. Each event holds all offsets of the set: a definition
 * that is written again under the same name with another offset is appended (kernel 5.5 on). One
 * perf event on one CPU then turns all of them on, and a program set on it runs for every process
 * on every CPU, because the kernel hangs it on the trace event and not on the perf event
 * (uprobe_perf_func). So a set costs two descriptors however many functions it has, and closing
 * them takes the probes off in one go; a link for each function costs 86 ms apiece to close on 6.1.
 *
 * An event must never be removed while it is on. The kernel (unregister_trace_uprobe) looks whether
 * an event is busy only when it comes to the last of its offsets; the others it has freed by then,
 * though their breakpoints are in place, and the next uprobe on that file is a crash of the kernel:
 * seen on 6.1 and on 6.18. So links_removed() wants all descriptors closed, and an event that a
 * killed tracer left behind cannot be told by trying. It is told by the pid in its name: a process
 * that is gone has no descriptor open. A pid means something only in its pid namespace, the <ns> of
 * the name, and events of others are not touched. They cost nothing: what has no perf event has no
 * breakpoint.
 *
 * Knows nothing of functions, files found, or the capture plan. Per-process probing is not
 * offered: the kernel would take the probes off when the process's first thread ends.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../util/msg.h"
#include "../tracefs.h"
#include "links.h"
#include "links_util.h"

#define GROUP "cudatrace"

/*
 * Opened once, for good, by links_tracefs_hold(): CAP_DAC_OVERRIDE, which they take where this
 * is not root, and CAP_SYS_ADMIN, which a mount of our own takes, are given up behind that. -1:
 * not held.
 */
static int held_tracefs = -1, held_events = -1;

static int tracefs_open(void)
{
	int fd;

	if (held_tracefs < 0)
		return tracefs_root();
	fd = fcntl(held_tracefs, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* Never with O_TRUNC: that removes everybody's events. */
static int events_open(int tracefs)
{
	int fd = held_events >= 0
			 ? fcntl(held_events, F_DUPFD_CLOEXEC, 0)
			 : openat(tracefs, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int links_tracefs_hold(void)
{
	int tracefs = tracefs_open(), events = tracefs < 0 ? tracefs : events_open(tracefs);

	if (events < 0) {
		if (tracefs >= 0)
			close(tracefs);
		return events;
	}
	held_tracefs = tracefs;
	held_events = events;
	return 0;
}

/* Writes one command. One at a time: of several in one write(2) the kernel does not say which
 * one it refused. */
__attribute__((format(printf, 2, 3))) static int events_write(int events, const char *fmt, ...)
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

/* Removes an event that is off. It need not be there. */
static void events_remove(int events, const char *name)
{
	int err = events_write(events, "-:" GROUP "/%s\n", name);

	if (err && err != -ENOENT)
		msg_verb("the trace event %s/%s could not be removed: %s", GROUP, name,
			 strerror(-err));
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

/* Defines the event with all offsets of the target. On failure what was defined is left to the
 * caller to remove. */
static int event_define(int events, char type, const char *name, const struct link_target *t,
			int *bad)
{
	int err;

	for (int i = 0; i < t->nprobes; i++) {
		/* The kernel resolves the path as we would, so our own descriptor names the file
		 * even when no path in our mount namespace does. */
		err = events_write(events, "%c:" GROUP "/%s /proc/self/fd/%d:0x%llx\n", type, name,
				   t->file_fd, (unsigned long long)t->probes[i].offset);
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

/* The inode number that tells pid namespaces apart; 0 if it cannot be had. */
static unsigned int pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

/* The name of a set's entry event; the return event's begins with an r. */
static void event_name(char *name, size_t size)
{
	static unsigned int next;

	snprintf(name, size, "e_%d_%x_%u", (int)getpid(), pid_namespace(), next++);
}

int links_tracefs(const struct attach_progs *progs, const struct link_target *t,
		  struct link_set *set, int *bad)
{
	const int prog_fd[] = { progs->return_fd, progs->entry_fd };
	int tracefs, events = -1, err;

	*bad = -1;
	*set = (struct link_set){ 0 };
	tracefs = tracefs_open();
	if (tracefs < 0)
		return tracefs;
	events = events_open(tracefs);
	if (events < 0) {
		err = events;
		goto out;
	}
	set->fds = malloc(2 * sizeof(*set->fds));
	if (!set->fds) {
		err = -ENOMEM;
		goto out;
	}
	event_name(set->event, sizeof(set->event));

	/* Returns first: a call that is entered in between then is an orphan return, which is
	 * counted, and not an entry that seems never to end. */
	for (int i = t->entry_only; i < 2; i++) {
		set->event[0] = "re"[i];
		err = event_define(events, "rp"[i], set -> event, t, bad);
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
	events = tracefs < 0 ? -1 : events_open(tracefs);
	if (events >= 0) {
		for (const char *c = "er"; *c; c++) {
			set->event[0] = *c;
			events_remove(events, set->event);
		}
		close(events);
	}
	if (tracefs >= 0)
		close(tracefs);
	set->event[0] = '\0';
}

/* Is this an event of ours whose process is gone? A zombie is not gone: its other threads may
 * hold descriptors. */
static bool event_is_stale(const char *name)
{
	unsigned int ns, n;
	int pid, end = 0;

	if (name[0] != 'e' && name[0] != 'r')
		return false;
	if (sscanf(name + 1, "_%d_%x_%u%n", &pid, &ns, &n, &end) != 3 || name[1 + end] || pid <= 0)
		return false;
	return ns && ns == pid_namespace() && kill(pid, 0) && errno == ESRCH;
}

void attach_sweep_stale(void)
{
	int tracefs, events, fd;
	struct dirent *e;
	DIR *dir;

	tracefs = tracefs_open();
	if (tracefs < 0)
		return;
	/* There is no directory when there are no events. */
	fd = openat(tracefs, "events/" GROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	events = dir ? events_open(tracefs) : -1;
	while (events >= 0 && (e = readdir(dir)))
		if (event_is_stale(e->d_name))
			events_remove(events, e->d_name);
	if (events >= 0)
		close(events);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	close(tracefs);
}
