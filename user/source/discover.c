/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discover.c - where to look for files to probe, and when.
 *
 * First at all processes of the plan (files.c), and, for the whole machine, at the places where CUDA is installed.
 * After that the kernel tells of each new executable mapping (watch.c); the processes named are scanned once each,
 * however many records they caused, and a file that a scan has met is not looked for again.
 *
 * Must not know how probes are made: found() is told, and the rest is its business.
 */
#include "discover.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../util/msg.h"
#include "files.h"
#include "places.h"
#include "watch.h"

#define SCAN_ALL_ABOVE 32      /* processes in one batch: then one pass over all is cheaper */
#define STRAYS 256
#define PENDING_MATCHED 256 /* with more at once they are not remembered as dealt with: matching would take too long */
#define HANDLED (1 << 13)
#define RECENT 256

/* A file that was mapped a moment ago, and may not be any more. */
struct recent {
	uint64_t ino;
	char *name; /* as the process sees it */
};

/* A mapping that the kernel told of and that waits for its process's scan. */
struct pending {
	pid_t pid;
	uint64_t addr, key;
	bool seen;
};

struct discover {
	const struct capture_plan *plan;
	struct files files;
	bool whole; /* the whole machine: neither pids nor a command were given */

	pid_t *pids; /* sorted; the processes to watch unless `whole` */
	int npids, pids_cap;
	pid_t strays[STRAYS]; /* processes that mapped something and were not ours then: discover_add_pid() may follow */
	unsigned nstrays;

	struct recent recent[RECENT]; /* a ring */
	unsigned nrecent;
	struct watch *watch;
	int timer_fd; /* instead of watch */
	struct pending *pending;
	size_t npending, pending_cap;
	uint64_t handled[HANDLED]; /* keys of files that a scan has met: a cache, not a set */
	bool places_done;
	discover_mapped_fn mapped; /* NULL: nobody wants to know */
};

/* ---- what is on disk ---------------------------------------------------------------------------------- */

static void add_place(void *ctx, const char *path)
{
	files_own_add(ctx, path);
}

static int scan_places(struct discover *d)
{
	struct files_own o = { .n = 0 };

	d->places_done = true;
	places_list(add_place, &o);
	return files_own_scan(&d->files, &o);
}

static int scan_library(struct discover *d)
{
	struct files_own o = { .n = 0 };
	const char *path = d->plan->library;
	int err;

	if (d->files.n)
		return d->files.n;
	files_own_add(&o, path);
	if (!o.n) {
		err = access(path, R_OK) ? -errno : -EINVAL;
		msg_error("%s cannot be probed: %s", path, err == -EINVAL ? "it is no regular file" : strerror(-err));
		return err;
	}
	err = files_own_scan(&d->files, &o);
	if (!err && !d->files.n) {
		msg_error("%s defines none of the chosen CUDA functions: name a libcudart, a libcuda or a program with static "
			  "libcudart", path);
		err = -ENODATA;
	}
	return err ? err : d->files.n;
}

/* ---- what the kernel tells -------------------------------------------------------------------------- */

static bool is_watched(const struct discover *d, pid_t pid)
{
	int lo = 0, hi = d->npids;

	while (lo < hi) {
		int mid = (lo + hi) / 2;

		if (d->pids[mid] == pid)
			return true;
		if (d->pids[mid] < pid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

/* A file's name in the kernel's records; 0: none that can be trusted to stay this file's. */
static uint64_t key_of(const struct watch_map *m)
{
	uint64_t h = m->ino * 0x9e3779b97f4a7c15ULL;

	if (!m->ino || !m->generation)
		return 0;
	h = (h ^ m->generation ^ (uint64_t)m->major << 52 ^ (uint64_t)m->minor << 32) * 0xff51afd7ed558ccdULL;
	return (h ^ h >> 29) | 1;
}

static bool may_be_elf(const char *name)
{
	/* "//anon", "[vdso]", "anon_inode:...", devices; /dev/shm holds files. */
	return name[0] == '/' && name[1] != '/' && (strncmp(name, "/dev/", 5) || !strncmp(name, "/dev/shm/", 9));
}

static void on_map(void *ctx, const struct watch_map *m);
static int scan_watched(struct discover *d);

static void remember(struct discover *d, const struct watch_map *m)
{
	struct recent *r = &d->recent[d->nrecent % RECENT];
	const struct recent *last = &d->recent[(d->nrecent + RECENT - 1) % RECENT];

	if (last->name && last->ino == m->ino && !strcmp(last->name, m->name))
		return;
	free(r->name);
	r->ino = m->ino;
	r->name = strdup(m->name);
	d->nrecent++;
}

bool discover_recent(struct discover *d, uint64_t ino, char *name, size_t size)
{
	/* what the kernel has told by now */
	if (d->watch && watch_drain(d->watch, on_map, d))
		scan_watched(d);
	for (unsigned i = 1; i <= RECENT; i++) {
		const struct recent *r = &d->recent[(d->nrecent - i) % RECENT];

		if (r->name && r->ino == ino && strlen(r->name) < size) {
			strcpy(name, r->name);
			return true;
		}
	}
	return false;
}

static void on_map(void *ctx, const struct watch_map *m)
{
	struct discover *d = ctx;
	uint64_t key = key_of(m);

	if (m->pid <= 0 || m->pid == getpid() || !may_be_elf(m->name))
		return;
	remember(d, m);
	if (key && d->handled[key >> 8 & (HANDLED - 1)] == key)
		return;
	if (!d->whole && !is_watched(d, m->pid)) {
		d->strays[d->nstrays++ % STRAYS] = m->pid;
		return;
	}
	if (files_grow(&d->pending, d->npending, &d->pending_cap, sizeof(*d->pending)))
		return;
	d->pending[d->npending++] = (struct pending){ .pid = m->pid, .addr = m->addr, .key = key };
}

/* A scan has met a mapping: the file that the kernel told of has been dealt with. */
static void on_met(void *ctx, const struct ct_vma *vma)
{
	struct discover *d = ctx;

	for (size_t i = 0; i < d->npending && d->npending <= PENDING_MATCHED; i++)
		if (d->pending[i].addr == vma->start && d->pending[i].pid == (pid_t)vma->pid)
			d->pending[i].seen = true;
}

static int by_pid(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int scan_pending(struct discover *d)
{
	int err = 0, processes = 0;

	qsort(d->pending, d->npending, sizeof(*d->pending), by_pid);
	for (size_t i = 0; i < d->npending; i++)
		processes += !i || d->pending[i].pid != d->pending[i - 1].pid;
	if (d->whole && processes > SCAN_ALL_ABOVE)
		err = files_scan(&d->files, 0);
	else
		for (size_t i = 0; i < d->npending && !err; i++)
			if (!i || d->pending[i].pid != d->pending[i - 1].pid)
				err = files_scan(&d->files, d->pending[i].pid);
	for (size_t i = 0; i < d->npending && d->mapped; i++)
		if (!i || d->pending[i].pid != d->pending[i - 1].pid)
			d->mapped(d->files.ctx, d->pending[i].pid);
	for (size_t i = 0; i < d->npending; i++)
		if (d->pending[i].seen && d->pending[i].key)
			d->handled[d->pending[i].key >> 8 & (HANDLED - 1)] = d->pending[i].key;
	d->npending = 0;
	return err;
}

void discover_on_mapped(struct discover *d, discover_mapped_fn fn)
{
	d->mapped = fn;
}

static int scan_watched(struct discover *d)
{
	int err = 0;

	if (d->whole)
		return files_scan(&d->files, 0);
	for (int i = 0; i < d->npids && !err; i++)
		err = files_scan(&d->files, d->pids[i]);
	return err;
}

/* ---- the room's door ---------------------------------------------------------------------------------- */

/* Those of a tree that forks all day are mostly gone. */
static void forget_dead(struct discover *d)
{
	int n = 0;

	for (int i = 0; i < d->npids; i++)
		if (!kill(d->pids[i], 0) || errno != ESRCH)
			d->pids[n++] = d->pids[i];
	d->npids = n;
}

static int insert_pid(struct discover *d, pid_t pid)
{
	size_t cap = d->pids_cap;
	int i;

	if (is_watched(d, pid))
		return 0;
	if (d->npids == d->pids_cap)
		forget_dead(d);
	i = d->npids;
	if (files_grow(&d->pids, d->npids, &cap, sizeof(*d->pids)))
		return -ENOMEM;
	d->pids_cap = cap;
	for (; i > 0 && d->pids[i - 1] > pid; i--)
		d->pids[i] = d->pids[i - 1];
	d->pids[i] = pid;
	d->npids++;
	return 1;
}

static int open_timer(struct discover *d)
{
	struct itimerspec each = { .it_interval.tv_sec = 1, .it_value.tv_sec = 1 };

	d->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (d->timer_fd < 0 || timerfd_settime(d->timer_fd, 0, &each, NULL))
		return -errno;
	return 0;
}

int discover_open(struct discover **out, const struct capture_plan *plan, int maps_prog_fd,
		  discover_found_fn found, void *ctx)
{
	struct discover *d = calloc(1, sizeof(*d));
	int err = 0;

	*out = NULL;
	if (!d) {
		msg_error("out of memory");
		return -ENOMEM;
	}
	d->plan = plan;
	d->files.prog_fd = maps_prog_fd;
	d->files.found = found;
	d->files.ctx = ctx;
	d->files.met = on_met;
	d->files.met_ctx = d;
	d->files.capture = plan->capture;
	d->whole = !plan->npids && !plan->cmd;
	d->timer_fd = -1;
	for (int i = 0; i < plan->npids && err >= 0; i++)
		err = insert_pid(d, plan->pids[i]);
	if (err >= 0 && !plan->library) {
		err = watch_open(&d->watch);
		if (err) {
			msg_verb("the kernel does not report new mappings to us (perf_event_open: %s): later libraries are "
				 "looked for once a second", strerror(-err));
			err = open_timer(d);
		}
	}
	if (err < 0) {
		msg_error("the processes cannot be watched: %s", strerror(-err));
		discover_close(d);
		return err;
	}
	*out = d;
	return 0;
}

int discover_scan(struct discover *d)
{
	int err;

	if (d->plan->library)
		return scan_library(d);
	err = scan_watched(d);
	if (!err && d->whole && !d->places_done)
		err = scan_places(d);
	return err ? err : d->files.n;
}

int discover_scan_pid(struct discover *d, pid_t pid)
{
	int err = d->plan->library ? 0 : files_scan(&d->files, pid);

	return err ? err : d->files.n;
}

int discover_fds(struct discover *d, int *fd, int max)
{
	if (max < 1 || (!d->watch && d->timer_fd < 0))
		return 0;
	fd[0] = d->watch ? watch_fd(d->watch) : d->timer_fd;
	return 1;
}

int discover_drain(struct discover *d)
{
	uint64_t ticks;
	int err = 0;

	if (d->watch) {
		bool lost = watch_drain(d->watch, on_map, d);

		/* What was lost may have been anybody's: the strays do not tell any more either. */
		if (lost)
			err = scan_watched(d);
		if (!err && d->npending)
			err = scan_pending(d);
	} else if (d->timer_fd >= 0 && read(d->timer_fd, &ticks, sizeof(ticks)) == sizeof(ticks)) {
		err = scan_watched(d);
	}
	return err ? err : d->files.n;
}

int discover_add_pid(struct discover *d, pid_t pid)
{
	int err = insert_pid(d, pid);

	if (err <= 0 || d->plan->library)
		return err;
	/* A forked child has its parent's mappings; only what it mapped before we heard of it is news. */
	if (!d->watch)
		return files_scan(&d->files, pid);
	for (unsigned i = 0; i < STRAYS && i < d->nstrays; i++)
		if (d->strays[i] == pid)
			return files_scan(&d->files, pid);
	return 0;
}

int discover_files(struct discover *d, struct probe_file ***files)
{
	*files = d->files.list;
	return d->files.n;
}

void discover_close(struct discover *d)
{
	if (!d)
		return;
	watch_close(d->watch);
	if (d->timer_fd >= 0)
		close(d->timer_fd);
	files_close(&d->files);
	for (int i = 0; i < RECENT; i++)
		free(d->recent[i].name);
	free(d->pids);
	free(d->pending);
	free(d);
}
