/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discover.c - where to look for files to probe, and when.
 *
 * First at all processes of the plan (files.c), and, for the whole machine, at the paths where
 * CUDA is installed. After that the kernel tells of each new executable mapping (watch.c); the
 * processes named are scanned once each, however many records they caused, and a file that a scan
 * has met is not looked for again.
 *
 * Must not know how probes are made: found() is told, and the rest is its business.
 */
#include "discover.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../../util/table/array.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "files.h"
#include "gone.h"
#include "maps.h"
#include "library_paths.h"
#include "rewrites.h"
#include "scans.h"
#include "unprobed.h"
#include "watch.h"

#define SCAN_ALL_ABOVE 32 /* processes in one batch: then one pass over all is cheaper */
#define STRAYS 256
/* with more at once they are not remembered as dealt with: matching would take too long */
#define PENDING_MATCHED 256
#define HANDLED (1 << 13)
#define RECENT 256
#define GONE_MAX 16		/* files of processes that have ended, in one batch */
#define RECHECK_NS 100000000ULL /* a file that is not probed is not compared more often */
#define WRITING 16
/* a file that was not closed after its last write for so long is looked at all the same */
#define WRITING_NS 1000000000ULL
#define TICK_NS 1000000000ULL /* how often it is looked whether files are still mapped */
#define TICK_MAX_NS 30000000000ULL
#define TICK_SHARE 20 /* not more than this part of the time goes into it */

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
	bool seen, tried, opened;
	uint64_t real_dev, real_ino; /* as the scan has met it; real_ino 0: it has not */
};

/* A file that a scan has met, by its name in the kernel's records. */
struct handled {
	uint64_t key, dev, ino;
	/* of a file that is not probed: as it was found, and when; 0: not yet */
	uint64_t generation, checked_ns;
};

/* A file that is being written to. */
struct writing {
	int mark;
	uint64_t dev, ino, since_ns;
	char *path; /* of an installed one; else NULL */
};

struct discover {
	const struct capture_plan *plan;
	struct files files;
	bool whole; /* the whole machine: neither pids nor a command were given */

	pid_t *pids; /* sorted; the processes to watch unless `whole` */
	int npids;
	/* processes that mapped something and were not ours then: discover_add_pid() may follow */
	pid_t strays[STRAYS];
	unsigned nstrays;

	struct recent recent[RECENT]; /* a ring */
	unsigned nrecent;
	struct watch *watch;
	int timer_fd;		 /* instead of watch */
	struct pending *pending; /* what the kernel has told since... */
	size_t npending;
	struct pending *batch; /* ...these were taken, whose processes are being scanned */
	size_t nbatch;
	bool lost;			/* some mappings it did not tell */
	const struct discover_ops *ops; /* the owner's */
	void *ctx;
	struct unprobed *unprobed;
	discover_unprobed_fn late; /* NULL: nobody wants to know */
	uint64_t begin_ns;	   /* 0: has not begun */
	uint64_t drained_ns;	   /* what was mapped before has been told by then... */
	uint64_t blind_ns; /* ...but not what was mapped from this moment on; 0: all is told */
	struct handled handled[HANDLED]; /* a cache, not a set */
	uint32_t freed;			 /* files that had been let go when it was filled */
	bool paths_done;

	int epoll_fd, tick_fd; /* tick_fd: a timer, set while there are files */
	uint64_t tick_ns, tick_every_ns;
	bool armed;
	struct writing writing[WRITING];
	int nwriting;
	bool rescan;
};

/* ---- what is on disk ---- */

static void add_path(void *ctx, const char *path)
{
	files_own_add(ctx, path);
}

static int scan_library_paths(struct discover *d)
{
	struct files_own o = { .installed = true };

	d->paths_done = true;
	library_paths_list(add_path, &o);
	return files_own_scan(&d->files, &o);
}

static int scan_library(struct discover *d)
{
	struct files_own o = { .installed = true };
	const char *path = d->plan->library;
	int err;

	if (d->files.n)
		return d->files.n;
	files_own_add(&o, path);
	if (!o.n) {
		err = access(path, R_OK) ? -errno : -EINVAL;
		msg_error("%s cannot be probed: %s", path,
			  err == -EINVAL ? "it is not a regular file" : strerror(-err));
		return err;
	}
	err = files_own_scan(&d->files, &o);
	if (!err && !d->files.n) {
		msg_error("%s defines none of the chosen CUDA functions: name a libcudart, a "
			  "libcuda or a program with static "
			  "libcudart",
			  path);
		err = -ENODATA;
	}
	return err ? err : d->files.n;
}

/* ---- what the kernel tells ---- */

static bool is_watched(const struct discover *d, pid_t pid)
{
	size_t at = array_before(d->pids, d->npids, x, *x < pid);

	return at < (size_t)d->npids && d->pids[at] == pid;
}

/* A file's name in the kernel's records; 0: none that can be trusted to stay this file's. */
static uint64_t key_of(const struct watch_map *m)
{
	uint64_t h = m->ino * 0x9e3779b97f4a7c15ULL;

	if (!m->ino || !m->generation)
		return 0;
	h = (h ^ m->generation ^ (uint64_t)m->major << 52 ^ (uint64_t)m->minor << 32) *
	    0xff51afd7ed558ccdULL;
	return (h ^ h >> 29) | 1;
}

static bool may_be_elf(const char *name)
{
	/* "//anon", "[vdso]", "anon_inode:...", devices; /dev/shm holds files. */
	return name[0] == '/' && name[1] != '/' &&
	       (strncmp(name, "/dev/", 5) || !strncmp(name, "/dev/shm/", 9));
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

/* A file that was let go is not handled any more. */
static void forget_handled(struct discover *d)
{
	if (d->freed == d->files.freed)
		return;
	memset(d->handled, 0, sizeof(d->handled));
	d->freed = d->files.freed;
}

/*
 * A mapping of a file that was dealt with. True if the file has to be looked at again: written
 * to in place it keeps all its numbers.
 */
static bool is_other_now(struct discover *d, struct handled *h, const struct watch_map *m)
{
	const struct ct_vma vma = { .pid = (uint32_t)m->pid,
				    .dev = h->dev,
				    .ino = h->ino,
				    .start = m->addr,
				    .end = m->addr + m->len };
	const struct cached_file *v = file_cache_find(&d->files.cache, h->dev, h->ino);
	struct probe_file *p = v ? v->file : NULL;
	uint64_t now = now_ns(), generation;
	struct stat st;

	if (!p && now - h->checked_ns < RECHECK_NS)
		return false;
	h->checked_ns = now;
	if (maps_stat(&vma, &st))
		return false; /* gone already, or not for us */
	generation = files_generation(&st);
	if (!p) {
		bool other = h->generation && h->generation != generation;

		h->generation = generation;
		return other;
	}
	p->seen = vma;
	p->unmapped_ns = 0;
	return generation != p->generation;
}

static void on_map(void *ctx, const struct watch_map *m)
{
	struct discover *d = ctx;
	uint64_t key = key_of(m), number = 0;
	struct handled *h = &d->handled[key >> 8 & (HANDLED - 1)];
	bool known, ours = d->whole || is_watched(d, m->pid);

	forget_handled(d);
	if (m->pid <= 0 || m->pid == getpid() || !may_be_elf(m->name))
		return;
	remember(d, m);
	known = key && h->key == key && !is_other_now(d, h, m);
	/* a child may map something before its birth is told */
	if (ours || d->plan->follow)
		number = unprobed_mapped(d->unprobed, m, known);
	if (known)
		return;
	if (!ours) {
		d->strays[d->nstrays++ % STRAYS] = m->pid;
		return;
	}
	if (!array_room(d->pending, d->npending))
		return;
	d->pending[d->npending++] = (struct pending){ .pid = m->pid,
						      .addr = m->addr,
						      .key = key,
						      .ino = m->ino,
						      .number = number,
						      .dev = (uint64_t)m->major << 20 | m->minor,
						      .name = strdup(m->name) };
}

/* A scan has met a mapping: the file that the kernel told of has been dealt with. */
static void on_met(void *ctx, const struct ct_vma *vma)
{
	struct discover *d = ctx;

	for (size_t i = 0; i < d->nbatch && d->nbatch <= PENDING_MATCHED; i++)
		if (d->batch[i].addr == vma->start && d->batch[i].pid == (pid_t)vma->pid) {
			d->batch[i].seen = true;
			d->batch[i].real_dev = vma->dev;
			d->batch[i].real_ino = vma->ino;
			unprobed_same(d->unprobed, d->batch[i].dev, d->batch[i].ino, vma->dev,
				      vma->ino);
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

/* The kernel has not told who mapped it: those that map it now, and those that did and have ended. */
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
	int err = d->ops->found(d->ctx, f, pid);
	uint64_t now = now_ns();

	/* putting probes on takes long; and who mapped the file meanwhile is to be known */
	if (d->watch && watch_drain(d->watch, on_map, d))
		d->lost = true;
	msg_debug(MSG_FILES, "%s: %d functions, mapped by process %d%s", f->path, f->scan.nprobes,
		  (int)pid, err ? ": not probed" : "");
	if (err)
		return err;
	unprobed_probed(d->unprobed, f->dev, f->ino, now);
	if (d->blind_ns || d->lost)
		tell_mappers(d, f, now);
	return 0;
}

static unsigned on_cost(void *ctx, const struct probe_file *f)
{
	struct discover *d = ctx;

	return d->ops->cost ? d->ops->cost(d->ctx, f) : 1;
}

static unsigned on_closing(void *ctx)
{
	struct discover *d = ctx;

	return d->ops->closing ? d->ops->closing(d->ctx) : 0;
}

static void on_gone(void *ctx, struct probe_file *f, bool rewritten)
{
	struct discover *d = ctx;

	msg_debug(MSG_FILES, "%s: its probes go, it %s", f->path,
		  rewritten ? "was written to" : "is mapped no more");
	unprobed_gone(d->unprobed, f->dev, f->ino);
	if (d->ops->gone)
		d->ops->gone(d->ctx, f, rewritten);
}

static void on_silent(void *ctx, const struct elf_scan *scan)
{
	struct discover *d = ctx;

	if (d->ops->silent)
		d->ops->silent(d->ctx, scan);
}

static void on_stripped(void *ctx, const char *path, const struct elf_scan *scan)
{
	struct discover *d = ctx;

	if (d->ops->stripped)
		d->ops->stripped(d->ctx, path, scan);
}

static const struct discover_ops files_ops = { .found = on_found,
					       .silent = on_silent,
					       .stripped = on_stripped,
					       .cost = on_cost,
					       .closing = on_closing,
					       .gone = on_gone };

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

/* Whether the file was looked at, or is being looked at. That its mapping was met does not say so: the
 * process may have ended before its file was opened. */
static bool is_looked_at(struct discover *d, const struct pending *p, bool *searched)
{
	uint64_t dev = p->real_ino ? p->real_dev : p->dev, ino = p->real_ino ? p->real_ino : p->ino;

	*searched = files_scanning(&d->files, dev, ino);
	return *searched || files_judged(&d->files, dev, ino);
}

static bool is_judged(struct discover *d, const struct pending *p)
{
	bool searched, looked_at = is_looked_at(d, p, &searched);

	for (int i = 0; i < d->files.nlater; i++)
		if (!d->files.later[i] || d->files.later[i] == p->pid)
			return false;
	return looked_at && !searched;
}

/* Processes that ended before they could be looked at: their files, by name, so that at least
 * the next process finds probes. */
static int scan_gone(struct discover *d)
{
	struct files_own o = { .n = 0 };
	int fds[GONE_MAX], n = 0, err;

	for (size_t i = 0; i < d->nbatch && n < GONE_MAX; i++) {
		struct pending *p = &d->batch[i];
		bool again = (p->seen && is_looked_at(d, p, &(bool){ false })) || !p->name ||
			     !unprobed_waits(d->unprobed, p->number);

		for (size_t k = 0; k < i && !again; k++)
			again = d->batch[k].tried && d->batch[k].ino == p->ino &&
				d->batch[k].dev == p->dev;
		if (again)
			continue;
		p->tried = true;
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

/* What a scan has met and is done with need not be looked at again. */
static void note_handled(struct discover *d, const struct pending *p)
{
	uint64_t dev = p->real_ino ? p->real_dev : p->dev, ino = p->real_ino ? p->real_ino : p->ino;
	const struct cached_file *v = p->key ? file_cache_find(&d->files.cache, dev, ino) : NULL;

	if ((!p->seen && !p->opened) || !v || !v->checked_ns || v->refused || v->writing ||
	    v->scanning)
		return;
	d->handled[p->key >> 8 & (HANDLED - 1)] = (struct handled){ .key = p->key,
								    .dev = dev,
								    .ino = ino,
								    .generation = v->generation,
								    .checked_ns = v->checked_ns };
}

static int scan_pending(struct discover *d)
{
	int err = 0, processes = 0;

	d->batch = d->pending;
	d->nbatch = d->npending;
	d->pending = NULL;
	d->npending = 0;
	qsort(d->batch, d->nbatch, sizeof(*d->batch), by_pid);
	for (size_t i = 0; i < d->nbatch; i++)
		processes += !i || d->batch[i].pid != d->batch[i - 1].pid;
	if (d->whole && processes > SCAN_ALL_ABOVE)
		err = files_scan(&d->files, 0);
	else
		for (size_t i = 0; i < d->nbatch && !err; i++)
			if (!i || d->batch[i].pid != d->batch[i - 1].pid)
				err = files_scan(&d->files, d->batch[i].pid);
	for (size_t i = 0; i < d->nbatch && d->ops->mapped; i++)
		if (!i || d->batch[i].pid != d->batch[i - 1].pid)
			d->ops->mapped(d->ctx, d->batch[i].pid);
	if (!err)
		err = scan_gone(d);
	/* not before what is found has its probes: unprobed.h hears of those that map it meanwhile */
	for (size_t i = 0; i < d->nbatch; i++)
		note_handled(d, &d->batch[i]);
	for (size_t i = 0; i < d->nbatch; i++) {
		if (is_judged(d, &d->batch[i]))
			unprobed_forget(d->unprobed, d->batch[i].number);
		free(d->batch[i].name);
	}
	free(d->batch);
	d->batch = NULL;
	d->nbatch = 0;
	return err;
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

/* ---- files that are mapped no more, or were refused ---- */

static int list_watched(struct discover *d, maps_fn fn, void *ctx)
{
	int n = d->whole ? files_list(&d->files, 0, fn, ctx) : 0;

	for (int i = 0; i < d->npids && !d->whole && n >= 0; i++)
		n = files_list(&d->files, d->pids[i], fn, ctx);
	return n < 0 ? n : 0;
}

static int look_whether_mapped(struct discover *d)
{
	uint64_t began = now_ns(), took, every_ns = TICK_NS;
	int err = 0;

	if (files_lost(&d->files)) {
		files_sweep(&d->files);
		err = list_watched(d, files_sweep_vma, &d->files);
		if (err == -EAGAIN) {
			/* somebody's mappings are not known: nothing is let go */
			err = 0;
			every_ns = d->tick_every_ns * 2 < TICK_MAX_NS ? d->tick_every_ns * 2
								      : TICK_MAX_NS;
		} else if (!err && !files_swept(&d->files))
			every_ns = d->tick_every_ns * 2 < TICK_MAX_NS ? d->tick_every_ns * 2
								      : TICK_MAX_NS;
	}
	took = (now_ns() - began) * TICK_SHARE;
	d->tick_every_ns = every_ns > took ? every_ns : took;
	if (!err && d->files.retry &&
	    !(d->files.ops->closing && d->files.ops->closing(d->files.ctx))) {
		d->files.retry = false;
		d->files.freed++;
		d->rescan |= d->files.refused > 0;
	}
	return err;
}

/* ---- files that are written to ---- */

static void written(struct discover *d, int mark, struct probe_file *p)
{
	struct cached_file *v = file_cache_find(&d->files.cache, p->dev, p->ino);
	struct writing w = { .mark = mark, .dev = p->dev, .ino = p->ino, .since_ns = now_ns() };

	w.path = p->installed ? strdup(p->path) : NULL;
	files_rewritten(&d->files, p);
	if (d->nwriting == WRITING) {
		free(w.path);
		rewrites_remove(d->files.rewrites, mark);
		d->rescan = true;
		return;
	}
	if (v)
		v->writing = true;
	d->writing[d->nwriting++] = w;
	d->armed = false;
}

static void write_ended(struct discover *d, int i)
{
	struct writing w = d->writing[i];
	struct cached_file *v = file_cache_find(&d->files.cache, w.dev, w.ino);
	struct files_own o = { .installed = true };

	d->writing[i] = d->writing[--d->nwriting];
	rewrites_remove(d->files.rewrites, w.mark);
	if (v)
		v->writing = false;
	if (w.path) {
		files_own_add(&o, w.path);
		files_own_scan(&d->files, &o);
		free(w.path);
	}
	d->rescan = !d->plan->library;
}

static void on_rewrite(void *ctx, int mark, enum rewrite what)
{
	struct discover *d = ctx;
	struct probe_file *p = files_marked(&d->files, mark);
	struct stat st;

	for (int i = 0; i < d->nwriting; i++) {
		if (d->writing[i].mark != mark)
			continue;
		if (what == REWRITE_WRITTEN)
			d->writing[i].since_ns = now_ns();
		else if (what == REWRITE_CLOSED)
			write_ended(d, i);
		return;
	}
	if (!p)
		return;
	if (what == REWRITE_WRITTEN)
		written(d, mark, p);
	if (what != REWRITE_RENAMED)
		return;
	p->nameless = true;
	if (p->installed &&
	    (stat(p->path, &st) || st.st_dev != p->stat_dev || st.st_ino != p->stat_ino))
		files_installed(&d->files, p, false);
}

static void look_at_writes(struct discover *d)
{
	if (!d->files.rewrites)
		return;
	if (rewrites_drain(d->files.rewrites, on_rewrite, d))
		d->rescan = !d->plan->library;
	for (int i = d->nwriting; i-- > 0;)
		if (now_ns() - d->writing[i].since_ns > WRITING_NS)
			write_ended(d, i);
}

static int wait_for(struct discover *d, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int open_timer(struct discover *d)
{
	struct itimerspec each = { .it_interval.tv_sec = 1, .it_value.tv_sec = 1 };

	d->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (d->timer_fd < 0 || timerfd_settime(d->timer_fd, 0, &each, NULL))
		return -errno;
	return wait_for(d, d->timer_fd);
}

/* The next look. No file, no look. */
static void arm_tick(struct discover *d)
{
	struct itimerspec next = { 0 };
	uint64_t at;

	d->tick_ns = now_ns() + (d->nwriting || d->files.nlater ? TICK_NS : d->tick_every_ns);
	at = d->tick_ns + 1000000; /* so that it is time when the clock says so */
	next.it_value = (struct timespec){ .tv_sec = (time_t)(at / 1000000000),
					   .tv_nsec = (long)(at % 1000000000) };
	if (d->tick_fd < 0) {
		d->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (d->tick_fd < 0 || wait_for(d, d->tick_fd))
			return;
	}
	d->armed = d->files.n || d->nwriting || d->files.nlater;
	/* to set it makes it not readable */
	timerfd_settime(d->tick_fd, TFD_TIMER_ABSTIME, d->armed ? &next : &(struct itimerspec){ 0 },
			NULL);
}

static int arm_if_needed(struct discover *d, int err)
{
	if (!d->armed && (d->files.n || d->nwriting || d->files.nlater))
		arm_tick(d);
	return err ? err : d->files.n;
}

/* Where the kernel does not say that files are written to, they are compared when they are mapped. */
static void open_rewrites(struct discover *d)
{
	int err = rewrites_open(&d->files.rewrites);

	if (!err)
		err = wait_for(d, rewrites_fd(d->files.rewrites));
	if (err)
		msg_verb("the kernel does not report writes to libraries (inotify: %s)",
			 strerror(-err));
}

static void on_none(void *ctx, uint64_t dev, uint64_t ino)
{
	struct discover *d = ctx;

	unprobed_none(d->unprobed, dev, ino);
}

/* Files whose search took long. With each that is done another one of its user can be begun. */
static int take_scanned(struct discover *d)
{
	int n = files_scanned(&d->files, on_none, d);

	if (n > 0 && (d->files.postponed || d->files.again)) {
		d->files.postponed = false;
		d->rescan |= !d->plan->library;
	}
	return n < 0 ? n : 0;
}

/* Processes that took too long, or whose user had no time left. */
static int scan_later(struct discover *d)
{
	pid_t pids[FILES_LATER];
	int n = d->files.nlater, err = 0;

	memcpy(pids, d->files.later, sizeof(pids));
	d->files.nlater = 0;
	for (int i = 0; i < n && !err; i++)
		err = pids[i] || d->whole ? files_scan(&d->files, pids[i]) : 0;
	return err;
}

/* By the clock, and whenever something is drained. */
static int tick(struct discover *d)
{
	uint64_t now = now_ns();
	int err = 0;

	look_at_writes(d);
	err = take_scanned(d);
	if (!err && now >= d->tick_ns) {
		err = look_whether_mapped(d);
		if (!err && d->files.nlater)
			err = scan_later(d);
		arm_tick(d);
	}
	forget_handled(d);
	if (!err && d->rescan) {
		d->rescan = false;
		err = scan_watched(d);
	}
	return err;
}

/* ---- the interface ---- */

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
	int i;

	if (is_watched(d, pid))
		return 0;
	if (array_full(d->npids))
		forget_dead(d);
	i = d->npids;
	if (!array_room(d->pids, d->npids))
		return -ENOMEM;
	for (; i > 0 && d->pids[i - 1] > pid; i--)
		d->pids[i] = d->pids[i - 1];
	d->pids[i] = pid;
	d->npids++;
	return 1;
}

int discover_open(struct discover **out, const struct capture_plan *plan, int maps_prog_fd,
		  const struct discover_ops *ops, void *ctx)
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
	d->ops = ops;
	d->ctx = ctx;
	d->files.ops = &files_ops;
	d->files.ctx = d;
	d->files.met = on_met;
	d->files.met_ctx = d;
	d->files.capture = plan->capture;
	d->whole = !plan->npids && !plan->cmd;
	d->timer_fd = d->tick_fd = -1;
	d->tick_every_ns = TICK_NS;
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll_fd < 0)
		err = -errno;
	d->unprobed = unprobed_open(on_unprobed, d);
	if (!d->unprobed)
		err = -ENOMEM;
	for (int i = 0; i < plan->npids && err >= 0; i++)
		err = insert_pid(d, plan->pids[i]);
	if (err >= 0 && !plan->library) {
		err = watch_open(&d->watch);
		if (err) {
			msg_verb("the kernel does not report new mappings to us (perf_event_open: "
				 "%s): later libraries are "
				 "looked for once a second",
				 strerror(-err));
			err = open_timer(d);
		} else {
			err = wait_for(d, watch_fd(d->watch));
		}
	}
	if (err < 0) {
		msg_error("the processes cannot be watched: %s", strerror(-err));
		discover_close(d);
		return err;
	}
	open_rewrites(d);
	d->files.scans = scans_open(!d->whole || plan->library);
	maps_impatient(d->whole && !plan->library);
	if (d->files.scans)
		wait_for(d, scans_fd(d->files.scans));
	*out = d;
	return 0;
}

void discover_limit(struct discover *d, unsigned descriptors)
{
	d->files.shares.limit = descriptors;
}

void discover_keep_open(struct discover *d)
{
	d->files.open = true;
}

uint64_t discover_refused(const struct discover *d)
{
	return d->files.refused;
}

int discover_scan(struct discover *d)
{
	int err;

	if (d->plan->library)
		return arm_if_needed(d, scan_library(d));
	err = scan_watched(d);
	/* what nobody has mapped does not matter where only threads do */
	if (!err && d->whole && !d->paths_done && !d->plan->on_demand)
		err = scan_library_paths(d);
	return arm_if_needed(d, err);
}

int discover_scan_pid(struct discover *d, pid_t pid)
{
	int err;

	look_at_writes(d);
	err = d->plan->library ? 0 : files_scan(&d->files, pid);
	return arm_if_needed(d, err);
}

int discover_fds(struct discover *d, int *fd, int max)
{
	if (max < 1)
		return 0;
	fd[0] = d->epoll_fd;
	return 1;
}

int discover_drain(struct discover *d)
{
	uint64_t ticks, now = now_ns();
	int err = tick(d);

	if (err)
		return err;
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
	return arm_if_needed(d, err);
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
	/* A forked child has its parent's mappings; only what it mapped before we heard of it is
	 * news. */
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
	if (d->tick_fd >= 0)
		close(d->tick_fd);
	if (d->epoll_fd >= 0)
		close(d->epoll_fd);
	rewrites_close(d->files.rewrites);
	while (d->nwriting)
		free(d->writing[--d->nwriting].path);
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
