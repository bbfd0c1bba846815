/* SPDX-License-Identifier: BSD-2-Clause */
/* bpf_maps.c - what the bpf source tells the kernel side, and asks it. See bpf_maps.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../util/types.h"
#include "../../../wire/cudatrace.h"
#include "../../../wire/control.h"
#include "cudatrace.skel.h" /* behind control.h, whose structs it holds */
#include "bpf_maps.h"
#include "../host.h"

pid_t bpf_maps_tgid(pid_t pid)
{
	struct host_task task;

	return host_task(pid, &task) ? -ESRCH : task.tgid;
}

ssize_t bpf_maps_read_iter(int prog_fd, void **rows)
{
	size_t len = 0, cap = 0;
	int link, fd = -1;
	ssize_t err;
	char *buf = NULL, *bigger;
	ssize_t n;

	link = bpf_link_create(prog_fd, 0, BPF_TRACE_ITER, NULL);
	if (link < 0)
		return link;
	fd = bpf_iter_create(link);
	if (fd < 0) {
		err = fd;
		goto out;
	}
	for (;;) {
		if (cap - len < 4096) {
			cap = cap ? cap * 2 : 65536;
			bigger = realloc(buf, cap);
			if (!bigger) {
				err = -ENOMEM;
				goto out;
			}
			buf = bigger;
		}
		n = read(fd, buf + len, cap - len);
		err = -errno;
		if (n == 0)
			break;
		if (n < 0 && (err == -EAGAIN || err == -EINTR))
			continue;
		if (n < 0)
			goto out;
		len += n;
	}
	*rows = buf;
	buf = NULL;
	err = len;
out:
	free(buf);
	if (fd >= 0)
		close(fd);
	close(link);
	return err;
}

/* Adds the living process, and with_children all descendants of what is in the map. Returns the
 * number of processes added, -ESRCH if it has ended, -ENOENT if it is not among the tasks, or
 * another -errno. */
static int add_from(int map, const struct ct_task *tasks, int n, pid_t pid, bool with_children)
{
	__u32 one = CT_PID_TRACED, unused;
	int i, added = 0, before, err = -ENOENT;

	for (i = 0; i < n; i++) {
		if (tasks[i].ns_tgid != (__u32)pid)
			continue;
		if (tasks[i].ended) {
			err = -ESRCH;
			continue;
		}
		err = 0;
		if (bpf_map_lookup_elem(map, &tasks[i].tgid, &unused)) {
			err = bpf_map_update_elem(map, &tasks[i].tgid, &one, BPF_ANY);
			added++;
		}
		break;
	}
	do {
		before = added;
		for (i = 0; with_children && !err && i < n; i++) {
			if (tasks[i].tid != tasks[i].tgid || tasks[i].ended ||
			    bpf_map_lookup_elem(map, &tasks[i].ppid, &unused) ||
			    !bpf_map_lookup_elem(map, &tasks[i].tgid, &unused))
				continue;
			err = bpf_map_update_elem(map, &tasks[i].tgid, &one, BPF_ANY);
			added++;
		}
	} while (added != before && !err);
	return err ? err : added;
}

/* A process that ended meanwhile would stay in the map: nobody tells of it any more. */
static void drop_ended(int map, const struct ct_task *tasks, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (tasks[i].ended)
			bpf_map_delete_elem(map, &tasks[i].tgid);
}

int bpf_maps_beside(struct cudatrace_bpf *skel, pid_t pid)
{
	__u32 tgid = bpf_maps_initial_pid(skel, pid), how = CT_PID_BESIDE;

	return bpf_map_update_elem(bpf_map__fd(skel->maps.pids), &tgid, &how, BPF_EXIST);
}

int bpf_maps_add_pid(struct cudatrace_bpf *skel, pid_t pid, bool with_children)
{
	int map = bpf_map__fd(skel->maps.pids), n, err;
	void *rows;

	/* Until a look at the tasks finds nothing new: a child that was born after the look and
	 * before its parent was in the set has been told of by nobody. */
	do {
		rows = NULL;
		n = bpf_maps_read_iter(bpf_program__fd(skel->progs.ct_tasks), &rows);
		if (n < 0)
			return n;
		n /= sizeof(struct ct_task);
		err = add_from(map, rows, n, pid, with_children);
		drop_ended(map, rows, n);
		free(rows);
	} while (err > 0);
	return err;
}

uint32_t bpf_maps_initial_pid(struct cudatrace_bpf *skel, pid_t pid)
{
	const struct ct_task *tasks;
	uint32_t initial = 0;
	void *rows = NULL;
	ssize_t n;

	if (host_initial_pid_ns())
		return (uint32_t)pid;
	n = bpf_maps_read_iter(bpf_program__fd(skel->progs.ct_tasks), &rows) /
	    (ssize_t)sizeof(*tasks);
	tasks = rows;
	for (ssize_t i = 0; i < n && !initial; i++)
		if (tasks[i].ns_tgid == (__u32)pid)
			initial = tasks[i].tgid;
	free(rows);
	return initial;
}

bool bpf_maps_want_sessions(struct cudatrace_bpf *skel)
{
	int map = bpf_map__fd(skel->maps.pids);
	const struct ct_task *tasks;
	bool found = false;
	void *rows = NULL;
	__u32 unused;
	ssize_t n;

	n = bpf_maps_read_iter(bpf_program__fd(skel->progs.ct_tasks), &rows) /
	    (ssize_t)sizeof(*tasks);
	tasks = rows;
	for (ssize_t i = 0; i < n && !found; i++)
		found = tasks[i].wants_session &&
			!bpf_map_lookup_elem(map, &tasks[i].tgid, &unused);
	free(rows);
	return found;
}

int bpf_maps_add_offsets(int map_fd, const struct probe_file *f)
{
	int i, err = 0;

	for (i = 0; i < f->scan.nprobes && !err; i++) {
		const struct elf_probe *p = &f->scan.probes[i];
		struct ct_where w = { .dev = f->dev, .ino = f->ino, .offset = p->offset };
		__u64 cookie = CT_COOKIE(p->func, p->per_thread);

		err = bpf_map_update_elem(map_fd, &w, &cookie, BPF_ANY);
	}
	return err;
}

void bpf_maps_drop_offsets(int map_fd, const struct probe_file *f)
{
	for (int i = 0; i < f->scan.nprobes; i++) {
		struct ct_where w = { .dev = f->dev,
				      .ino = f->ino,
				      .offset = f->scan.probes[i].offset };

		bpf_map_delete_elem(map_fd, &w);
	}
}

void bpf_maps_counters(int map_fd, struct losses *l)
{
	int ncpus = libbpf_num_possible_cpus(), i, j;
	struct ct_counters *c;
	__u32 zero = 0;

	if (ncpus <= 0)
		return;
	c = calloc(ncpus, sizeof(*c));
	if (!c || bpf_map_lookup_elem(map_fd, &zero, c))
		goto out;
	for (i = 0; i < ncpus; i++) {
		l->folded += c[i].folded;
		l->filtered += c[i].filtered;
		l->unfinished += c[i].unfinished;
		l->unreported += c[i].unreported;
		l->beyond += c[i].beyond;
		l->scopes_dropped += c[i].scopes_dropped;
		l->scopes_unbegun += c[i].scopes_unbegun;
		for (j = 0; j < CT_LOSS_END; j++)
			l->lost[j] += c[i].lost[j];
	}
out:
	free(c);
}

int bpf_maps_open_ld_so(pid_t pid, uint64_t *dev, uint64_t *ino, uint64_t *offset)
{
	unsigned long start, end, inode = 0, seen = 0;
	unsigned major = 0, minor = 0;
	char line[4608], path[96], perms[8];
	int fd = -ENOENT;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s %*x %x:%x %lu", &start, &end, perms, &major, &minor,
			   &inode) != 6)
			continue;
		if (!inode || perms[2] != 'x' || inode == seen)
			continue;
		seen = inode;
		snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", pid, start, end);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			/* Without CAP_CHECKPOINT_RESTORE: by name, through the process's own root. */
			char *name = strchr(line, '/'), rooted[4700];

			if (!name)
				continue;
			name[strcspn(name, "\n")] = 0;
			snprintf(rooted, sizeof(rooted), "/proc/%d/root%s", pid, name);
			fd = open(rooted, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
			if (fd < 0)
				continue;
		}
		*offset = elf_symbol_offset(fd, "_dl_debug_state");
		if (*offset)
			break;
		close(fd);
		fd = -ENOENT;
	}
	fclose(maps);
	*dev = (uint64_t)major << 20 | minor;
	*ino = inode;
	return fd;
}
