/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * links_perf.c - uprobes by perf_event_open(2), one perf event and one link for each function and
 * direction.
 *
 * The last resort, for kernels before 6.6 where tracefs cannot be had either. It attaches as fast
 * as the others but each link takes about 0.1 s to close, because the kernel waits for grace
 * periods for every one, and does so under event_mutex (perf_uprobe_destroy() in
 * kernel/trace/trace_event_perf.c): to close them in parallel does not help (254 links: 23 s on
 * 6.18, all threads but one waiting for that mutex). So the caller leaves out what it can. In
 * return the programs get cookies.
 *
 * A link holds its perf event, so one descriptor is kept for each. Knows nothing of functions or
 * of the capture plan. Per-process probing is not offered, for the reason given in
 * links_tracefs.c.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "links.h"
#include "links_util.h"

#define PMU "/sys/bus/event_source/devices/uprobe/"

/* The number that `fmt` finds in a one-line file of sysfs, or -errno. */
static int read_number(const char *path, const char *fmt)
{
	FILE *f = fopen(path, "re");
	int n, found;

	if (!f)
		return -errno;
	found = fscanf(f, fmt, &n);
	fclose(f);
	return found == 1 && n >= 0 ? n : -EINVAL;
}

int links_perf_event(struct perf_event_attr *attr)
{
	int cpu = read_number("/sys/devices/system/cpu/online", "%d");
	int fd =
		syscall(SYS_perf_event_open, attr, -1, cpu < 0 ? 0 : cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* One probe. Returns the link's descriptor or -errno. */
static int link_one(struct perf_event_attr *attr, const struct elf_probe *p, int prog_fd)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .perf_event.bpf_cookie = CT_COOKIE(p->func, p->per_thread));
	int perf_fd, fd;

	attr->config2 = p->offset;
	perf_fd = links_perf_event(attr);
	if (perf_fd < 0)
		return perf_fd;
	fd = bpf_link_create(prog_fd, perf_fd, BPF_PERF_EVENT, &opts);
	close(perf_fd);
	return fd;
}

int links_perf(const struct attach_progs *progs, const struct link_target *t, struct link_set *set,
	       int *bad)
{
	const int prog_fd[] = { progs->return_fd, progs->entry_fd };
	struct perf_event_attr attr = { .size = sizeof(attr) };
	int type, retprobe, err;
	char path[32];

	*bad = -1;
	*set = (struct link_set){ 0 };
	type = read_number(PMU "type", "%d");
	if (type < 0)
		return type;
	retprobe = read_number(PMU "format/retprobe", "config:%d");
	if (retprobe < 0)
		return retprobe;
	set->fds = calloc(2 * (size_t)t->nprobes + 1, sizeof(*set->fds));
	if (!set->fds)
		return -ENOMEM;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", t->file_fd);
	attr.type = type;
	attr.config1 = (uintptr_t)path;
	/* Returns first, see links_tracefs.c. */
	for (int i = t->entry_only; i < 2; i++) {
		attr.config = i ? 0 : 1ULL << retprobe;
		for (int k = 0; k < t->nprobes; k++) {
			err = link_one(&attr, &t->probes[k], prog_fd[i]);
			if (err < 0) {
				*bad = k;
				goto out;
			}
			set->fds[set->nfds++] = err;
		}
	}
	return 0;
out:
	for (int i = 0; i < set->nfds; i++)
		close(set->fds[i]);
	links_removed(set);
	return err;
}
