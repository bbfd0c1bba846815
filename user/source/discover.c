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
#include "../util/now.h"
#include "files.h"
#include "gone.h"
#include "maps.h"
#include "places.h"
#include "unprobed.h"
#include "watch.h"

#define SCAN_ALL_ABOVE 32      /* processes in one batch: then one pass over all is cheaper */
#define STRAYS 256
#define PENDING_MATCHED 256 /* with more at once they are not remembered as dealt with: matching would take too long */
#define HANDLED (1 << 13)
#define RECENT 256
#define GONE_MAX 16 /* files of processes that have ended, in one batch */

/* A file that was mapped a moment ago, and may not be any more. */
struct recent {
	uint64_t ino;
	char *name; /* as the process sees it */
};

/* A mapping that the kernel told of and that waits for its process's scan. */
struct pending {
	pid_t pid;
	uint64_t addr, key, dev, ino;
	uint64_t number; /* unprobed.h */
	char *name;	 /* as the process saw it; NULL: it was seen */
	bool seen, opened;
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
	struct pending *pending; /* what the kernel has told since... */
	size_t npending, pending_cap;
	struct pending *batch; /* ...these were taken, whose processes are being scanned */
	size_t nbatch;
	bool lost; /* some mappings it did not tell */
	uint64_t handled[HANDLED]; /* keys of files that a scan has met: a cache, not a set */
	bool places_done;
	discover_mapped_fn mapped; /* NULL: nobody wants to know */
	discover_found_fn found; /* the owner's */
	void *ctx;
	struct unprobed *unprobed;
	discover_unprobed_fn late; /* NULL: nobody wants to know */
	uint64_t begin_ns;   /* 0: has not begun */
	uint64_t drained_ns; /* what was mapped before has been told by then... */
	uint64_t blind_ns;   /* ...but not what was mapped from this moment on; 0: all is told */
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
	uint64_t key = key_of(m), number = 0;
	bool known, ours = d->whole || is_watched(d, m->pid);

	if (m->pid <= 0 || m->pid == getpid() || !may_be_elf(m->name))
		return;
	remember(d, m);
	known = key && d->handled[key >> 8 & (HANDLED - 1)] == key;
	/* a child may map something before its birth is told */
	if (ours || d->plan->follow)
		number = unprobed_mapped(d->unprobed, m, known);
	if (known)
		return;
	if (!ours) {
		d->strays[d->nstrays++ % STRAYS] = m->pid;
		return;
	}
	if (files_grow(&d->pending, d->npending, &d->pending_cap, sizeof(*d->pending)))
		return;
	d->pending[d->npending++] = (struct pending){ .pid = m->pid, .addr = m->addr, .key = key, .ino = m->ino, .number = number,
						      .dev = (uint64_t)m->major << 20 | m->minor, .name = strdup(m->name) };
}

/* A scan has met a mapping: the file that the kernel told of has been dealt with. */
static void on_met(void *ctx, const struct ct_vma *vma)
{
	struct discover *d = ctx;

	for (size_t i = 0; i < d->nbatch && d->nbatch <= PENDING_MATCHED; i++)
		if (d->batch[i].addr == vma->start && d->batch[i].pid == (pid_t)vma->pid) {
			d->batch[i].seen = true;
			unprobed_same(d->unprobed, d->batch[i].dev, d->batch[i].ino, vma->dev, vma->ino);
		}
}

struct mapper {
	struct discover *d;
	const struct probe_file *f;
	uint64_t from_ns, to_ns;
};

static int on_mapper(void *ctx, const struct ct_vma *vma)
{
	const struct mapper *m = ctx;

	if (vma->ino == m->f->ino && vma->dev == m->f->dev && (pid_t)vma->pid != getpid())
		m->d->late(m->d->ctx, (pid_t)vma->pid, m->from_ns, m->to_ns);
	return 0;
}

/* The kernel has not told who mapped it: those that map it now, and whoever did and has ended. */
static void tell_mappers(struct discover *d, const struct probe_file *f, uint64_t to_ns)
{
	uint64_t blind_ns = d->blind_ns ? d->blind_ns : d->drained_ns;
	struct mapper m = { d, f, blind_ns > d->begin_ns ? blind_ns : d->begin_ns, to_ns };

	if (!d->late || !d->begin_ns || m.from_ns >= to_ns)
		return;
	d->late(d->ctx, 0, m.from_ns, to_ns);
	if (d->whole)
		maps_read(d->files.prog_fd, 0, on_mapper, &m);
	for (int i = 0; !d->whole && i < d->npids; i++)
		maps_read(d->files.prog_fd, d->pids[i], on_mapper, &m);
}

static int on_found(void *ctx, struct probe_file *f, pid_t pid)
{
	struct discover *d = ctx;
	int err = d->found(d->ctx, f, pid);
	uint64_t now = now_ns();

	/* putting probes on takes long; and who mapped the file meanwhile is to be known */
	if (d->watch && watch_drain(d->watch, on_map, d))
		d->lost = true;
	unprobed_probed(d->unprobed, f->dev, f->ino, now);
	if (d->blind_ns || d->lost)
		tell_mappers(d, f, now);
	return err;
}

static void on_unprobed(void *ctx, pid_t pid, uint64_t from_ns, uint64_t to_ns)
{
	struct discover *d = ctx;

	if (d->late)
		d->late(d->ctx, pid, from_ns, to_ns);
}

static int by_pid(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Processes that ended before they could be looked at: their files, by name, so that at least the next process finds probes. */
static int scan_gone(struct discover *d)
{
	struct files_own o = { .n = 0 };
	int fds[GONE_MAX], n = 0, err;

	for (size_t i = 0; i < d->nbatch && n < GONE_MAX; i++) {
		struct pending *p = &d->batch[i];
		bool again = p->seen || !p->name || !unprobed_waits(d->unprobed, p->number);

		for (size_t k = 0; k < i && !again; k++)
			again = !d->batch[k].seen && d->batch[k].ino == p->ino && d->batch[k].dev == p->dev;
		if (again)
			continue;
		fds[n] = gone_open(p->name, p->dev, p->ino);
		if (fds[n] < 0)
			continue;
		files_own_add_open(&o, fds[n++], p->name);
		p->opened = true;
	}
	err = n ? files_own_scan(&d->files, &o) : 0;
	while (n > 0)
		close(fds[--n]);
	return err;
}

static int scan_pending(struct discover *d)
{
	int err = 0, processes = 0;

	d->batch = d->pending;
	d->nbatch = d->npending;
	d->pending = NULL;
	d->npending = d->pending_cap = 0;
	qsort(d->batch, d->nbatch, sizeof(*d->batch), by_pid);
	for (size_t i = 0; i < d->nbatch; i++)
		processes += !i || d->batch[i].pid != d->batch[i - 1].pid;
	if (d->whole && processes > SCAN_ALL_ABOVE)
		err = files_scan(&d->files, 0);
	else
		for (size_t i = 0; i < d->nbatch && !err; i++)
			if (!i || d->batch[i].pid != d->batch[i - 1].pid)
				err = files_scan(&d->files, d->batch[i].pid);
	for (size_t i = 0; i < d->nbatch && d->mapped; i++)
		if (!i || d->batch[i].pid != d->batch[i - 1].pid)
			d->mapped(d->ctx, d->batch[i].pid);
	if (!err)
		err = scan_gone(d);
	/* not before what is found has its probes: unprobed.h hears of those that map it meanwhile */
	for (size_t i = 0; i < d->nbatch; i++)
		if ((d->batch[i].seen || d->batch[i].opened) && d->batch[i].key)
			d->handled[d->batch[i].key >> 8 & (HANDLED - 1)] = d->batch[i].key;
	for (size_t i = 0; i < d->nbatch; i++) {
		if (d->batch[i].seen || files_judged(&d->files, d->batch[i].dev, d->batch[i].ino))
			unprobed_forget(d->unprobed, d->batch[i].number);
		free(d->batch[i].name);
	}
	free(d->batch);
	d->batch = NULL;
	d->nbatch = 0;
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
	d->found = found;
	d->ctx = ctx;
	d->files.found = on_found;
	d->files.ctx = d;
	d->files.met = on_met;
	d->files.met_ctx = d;
	d->files.capture = plan->capture;
	d->whole = !plan->npids && !plan->cmd;
	d->timer_fd = -1;
	d->unprobed = unprobed_open(on_unprobed, d);
	if (!d->unprobed)
		err = -ENOMEM;
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
	uint64_t ticks, now = now_ns();
	int err = 0;

	if (d->watch) {
		bool lost = watch_drain(d->watch, on_map, d) || d->lost;

		/* What was lost may have been anybody's: the strays do not tell any more either. */
		d->lost = false;
		/* it says so only with the next record: a file may have got its probes since */
		if (lost && d->late && d->begin_ns && unprobed_last(d->unprobed) > d->drained_ns)
			d->late(d->ctx, 0, d->drained_ns, now);
		d->blind_ns = lost ? d->drained_ns : 0;
		if (lost)
			err = scan_watched(d);
		if (!err && d->npending)
			err = scan_pending(d);
		d->blind_ns = 0;
		d->drained_ns = now;
	} else if (d->timer_fd >= 0 && read(d->timer_fd, &ticks, sizeof(ticks)) == sizeof(ticks)) {
		d->blind_ns = d->drained_ns;
		err = scan_watched(d);
		d->drained_ns = now;
	}
	return err ? err : d->files.n;
}

void discover_on_unprobed(struct discover *d, discover_unprobed_fn fn)
{
	d->late = fn;
}

void discover_begin(struct discover *d, uint64_t at_ns)
{
	d->begin_ns = d->drained_ns = at_ns;
	unprobed_begin(d->unprobed, at_ns);
}

void discover_end(struct discover *d, uint64_t at_ns)
{
	if (d->watch)
		watch_drain(d->watch, on_map, d);
	unprobed_end(d->unprobed, at_ns);
	d->late = NULL;
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
	for (size_t i = 0; i < d->npending; i++)
		free(d->pending[i].name);
	unprobed_close(d->unprobed);
	free(d->pids);
	free(d->pending);
	free(d);
}
