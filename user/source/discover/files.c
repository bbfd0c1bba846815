/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files.c - which files are worth probing.
 *
 * A scan lists mappings (maps.c), drops those whose inode is in the file cache already, and reads the rest
 * (elf.c), the files that are called libcuda* first, since a process may be stopped until its
 * probes stand.
 *
 * Three numbers could name a file, and only the vma's own inode is the same for two overlay
 * mounts of one file. A file that no process has mapped yet (an installed library, --library) is
 * therefore mapped for a moment by ourselves, and our own mappings are read as everybody else's
 * are.
 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../api/domain.h"
#include "../../proc/elf_read.h"
#include "../../util/table/array.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "rewrites.h"
#include "scans.h"

/* an entry this young, of a file without probes, is not compared with its generation again */
#define RECHECK_NS 50000000ULL
#define NOT_KNOWN 1  /* a generation: no file has it */
#define SCAN_AGAIN 3 /* times, when a process vanished with a file half looked at */

/* A file that a scan has to read. */
struct candidate {
	struct ct_vma vma;
	int fd; /* -1: to be opened through the mapping */
	bool likely;
	char *path;
};

/* ---- one file ---- */

uint64_t files_generation(const struct stat *st)
{
	uint64_t g = st->st_mtim.tv_sec * 1000000000ULL + st->st_mtim.tv_nsec;

	g = g * 31 + st->st_ctim.tv_sec * 1000000000ULL + st->st_ctim.tv_nsec;
	return (g ^ (uint64_t)st->st_size * 0x9e3779b97f4a7c15ULL) | 2;
}

static int remember(struct files *f, const struct ct_vma *vma, int fd, const char *path)
{
	char name[PATH_MAX];
	struct candidate c = { .vma = *vma, .fd = fd };

	if (!array_room(f->cands, f->ncands))
		return -ENOMEM;
	if (!path) {
		maps_name(vma, name, sizeof(name));
		path = name;
	}
	c.path = strdup(path);
	if (!c.path)
		return -ENOMEM;
	c.likely = api_domain_of_file(c.path) != API_DOMAIN_END;
	f->cands[f->ncands++] = c;
	return 0;
}

/* A program serves the file, and every process that reads it may wait for ever; to probe it the
 * kernel would wait for it while it holds up every fork of the machine. Its name is not asked
 * for: the kernel knows it. */
static void refuse_served(const struct ct_vma *vma)
{
	char name[PATH_MAX];

	maps_name(vma, name, sizeof(name));
	if (api_domain_of_file(name) != API_DOMAIN_END)
		msg_warn("%s is not probed: it lies on FUSE, where a program could block the whole "
			 "machine. Copy it to another file system",
			 name);
	else
		msg_verb("%s is not looked at: it lies on FUSE", name);
}

/* A file was refused: there may be room by now, or it is another user's program that maps it. */
static int refused_again(struct files *f, struct cached_file *v, const struct ct_vma *vma)
{
	uint32_t uid = files_uid(f, (pid_t)vma->pid);

	if (v->uid == uid && v->freed == f->freed)
		return 0;
	v->uid = uid;
	v->freed = f->freed;
	return files_room(f, uid, v->cost) ? remember(f, vma, -1, NULL) : 0;
}

/* A mapping passes by: is its file news? */
static int on_vma(void *ctx, const struct ct_vma *vma)
{
	struct files *f = ctx;
	struct cached_file *v;
	struct stat st;
	uint64_t gen = NOT_KNOWN, now;
	int err;

	if (f->met)
		f->met(f->met_ctx, vma);
	v = file_cache_get(&f->cache, vma->dev, vma->ino);
	if (!v)
		return -ENOMEM;
	if (v->file) {
		v->file->seen = *vma;
		v->file->unmapped_ns = 0;
	}
	if (v->writing || v->scanning)
		return 0;
	if (v->refused)
		return refused_again(f, v, vma);
	if (v->round == f->round && v->checked_ns)
		return 0;
	now = now_ns();
	if (v->checked_ns && !v->file && now - v->checked_ns < RECHECK_NS) {
		v->round = f->round;
		return 0;
	}
	if (vma->magic == FUSE_SUPER_MAGIC) {
		if (!v->checked_ns)
			refuse_served(vma);
		v->checked_ns = now;
		v->round = f->round;
		return 0;
	}
	err = maps_stat(vma, &st);
	if (err == -ENOMEM)
		return err;
	if (!err)
		gen = files_generation(&st);
	else if (err == -EAGAIN)
		files_later(f, (pid_t)vma->pid);
	if (err && err != -EPERM && err != -EACCES)
		/* gone with its process, or replaced: another process that maps it will be asked */
		return 0;
	if (v->checked_ns &&
	    (v->generation == gen || (v->file && !files_compare(f, v->file, vma, gen)))) {
		v->generation = gen;
		v->checked_ns = now;
		v->round = f->round;
		return 0;
	}
	v->round = f->round;
	v->checked_ns = now;
	v->generation = gen;
	return remember(f, vma, -1, NULL);
}

static void files_forget(struct probe_file *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p->path);
	elf_scan_free(&p->scan);
	free(p);
}

/* The file of a candidate; the scan is its own from here on. NULL: no memory. */
static struct probe_file *make_file(struct files *f, struct candidate *c,
				    const struct cached_file *v, struct elf_scan *scan)
{
	struct probe_file *p = calloc(1, sizeof(*p));
	struct stat st;

	if (!p || !array_room(f->list, f->n)) {
		free(p);
		return NULL;
	}
	*p = (struct probe_file){ .dev = c->vma.dev,
				  .ino = c->vma.ino,
				  .fd = c->fd,
				  .path = c->path,
				  .scan = *scan,
				  .files = f,
				  .seen = c->vma,
				  .mark = -1,
				  .installed = v->installed };
	c->fd = -1;
	c->path = NULL;
	p->uid = p->installed || !c->vma.pid ? SHARES_INSTALLED : files_uid(f, (pid_t)c->vma.pid);
	if (!fstat(p->fd, &st)) {
		p->stat_dev = st.st_dev;
		p->stat_ino = st.st_ino;
		p->generation = files_generation(&st);
		p->nameless = !st.st_nlink;
		/* of a process that has ended: who owns the file has had to do with it */
		if (!c->vma.pid && !p->installed)
			p->uid = st.st_uid;
	}
	p->unmapped_ns = c->vma.pid || p->installed ? 0 : now_ns();
	return p;
}

static int add_file(struct files *f, struct candidate *c, struct elf_scan *scan)
{
	struct cached_file *v = file_cache_get(&f->cache, c->vma.dev, c->vma.ino);
	struct probe_file *p = v ? make_file(f, c, v, scan) : NULL;
	struct stat st;
	unsigned want;
	int err;

	if (!p) {
		elf_scan_free(scan);
		return -ENOMEM;
	}
	want = f->ops->cost ? f->ops->cost(f->ctx, p) : 1;
	if (!files_charge(f, p, v, want)) {
		files_forget(p);
		return 0;
	}
	v->file = p;
	v->refused = false;
	f->list[f->n++] = p;
	/* What is written from here on is told; what was written since it was read makes it
	 * another file. */
	p->mark = rewrites_add(f->rewrites, p->fd);
	p->nameless |= p->mark < 0;
	if (fstat(p->fd, &st) ||
	    (v->generation != NOT_KNOWN && files_generation(&st) != v->generation)) {
		files_release(f, p, false);
		f->again = true;
		return 0;
	}
	msg_verb("%s: %d functions%s%s", p->path, p->scan.nprobes,
		 p->scan.role == ELF_STATIC ? ", " : "",
		 p->scan.role == ELF_STATIC ? api_domains[p->scan.domain].linked : "");
	if (p->scan.nunseen)
		msg_warn("%s: %d operators are not recorded: it is not known where their code "
			 "returns",
			 p->path, p->scan.nunseen);
	err = f->ops->found(f->ctx, p, (pid_t)c->vma.pid);
	want = f->ops->cost ? f->ops->cost(f->ctx, p) : 1;
	if (err != -EMFILE && err != -ENFILE &&
	    (want <= p->descriptors || files_charge(f, p, v, want))) {
		probe_file_shut(p);
		return 0;
	}
	if (!v->refused)
		files_refuse(f, v, p->path, p->uid, want);
	files_release(f, p, false);
	return 0;
}

/* A file that could not be searched; by its name it has functions of CUDA's. */
static void count_refused(struct files *f, const struct candidate *c)
{
	struct cached_file *v = file_cache_get(&f->cache, c->vma.dev, c->vma.ino);

	if (!v || !c->likely || v->counted)
		return;
	v->counted = true;
	f->refused++;
}

/* It has been searched. */
static int judge(struct files *f, struct candidate *c, int err, struct elf_scan *scan)
{
	if (err == -ENOMEM)
		return err;
	if (err == -ETIME || err == -EFBIG) {
		count_refused(f, c);
		msg_warn("%s is not probed: it has more symbols than can be searched in %d s, or "
			 "than %d",
			 c->path, SCANS_S, ELF_SYMBOLS_MAX);
	} else if (err && err != -ENOEXEC) {
		msg_verb("%s cannot be searched for functions: %s", c->path, strerror(-err));
	}
	if (err)
		return 0;
	if (scan->nsilent && f->ops->silent)
		f->ops->silent(f->ctx, scan);
	if (scan->unnamed && f->ops->stripped)
		f->ops->stripped(f->ctx, c->path, scan);
	if (scan->role != ELF_NONE && scan->nprobes)
		return add_file(f, c, scan);
	elf_scan_free(scan);
	return 0;
}

static void search_later(struct files *f, const struct ct_vma *vma, const char *path, bool likely,
			 bool begun)
{
	struct cached_file *v = file_cache_get(&f->cache, vma->dev, vma->ino);

	if (v) {
		v->scanning = begun;
		v->checked_ns = begun ? v->checked_ns : 0;
	}
	f->postponed |= !begun;
	if (likely)
		msg_warn("%s takes long to be searched for functions: its calls are seen when that "
			 "is done",
			 path);
	else
		msg_verb("%s takes long to be searched for functions", path);
}

/* A worker searches it, and is waited for for a while. */
static int files_search(struct files *f, struct candidate *c)
{
	struct scan_job *j = scan_job_new(&c->vma, c->fd, f->capture);
	char *path = strdup(c->path);
	struct elf_scan scan;
	int err;

	if (!j || !path) {
		free(path);
		free(j);
		return -ENOMEM;
	}
	j->path = path;
	err = scans_run(f->scans, j, c->vma.pid ? files_uid(f, (pid_t)c->vma.pid) : 0);
	if (err == -EINPROGRESS) {
		c->fd = -1;
		search_later(f, &c->vma, c->path, c->likely, true);
		return 0;
	}
	if (err == -ECHILD) {
		/* j stays as its reader left it */
		c->fd = -1;
		count_refused(f, c);
		msg_warn("%s is not probed: the reader that searched it crashed", c->path);
		return 0;
	}
	j->fd = -1;
	scan = j->scan;
	j->scan = (struct elf_scan){ .version_from = "" };
	if (err == -EBUSY)
		search_later(f, &c->vma, c->path, c->likely, false);
	err = err ? 0 : judge(f, c, j->err, &scan);
	scan_job_free(j);
	return err;
}

bool files_scanning(const struct files *f, uint64_t dev, uint64_t ino)
{
	const struct cached_file *v = file_cache_find(&f->cache, dev, ino);

	return v && (v->scanning || (f->postponed && !v->checked_ns));
}

/* One that took long. Returns whether it has probes, or may get them; or -errno. */
static int take_in(struct files *f, struct scan_job *j)
{
	struct cached_file *v = file_cache_get(&f->cache, j->vma.dev, j->vma.ino);
	struct candidate c = { .vma = j->vma,
			       .fd = j->fd,
			       .path = j->path,
			       .likely = api_domain_of_file(j->path) != API_DOMAIN_END };
	int err;

	if (!v)
		return -ENOMEM;
	v->scanning = false;
	if (v->file)
		return 1;
	err = judge(f, &c, j->err, &j->scan);
	/* what has become of them is the file's, or judge()'s */
	j->scan = (struct elf_scan){ .version_from = "" };
	j->fd = c.fd;
	j->path = c.path;
	v = file_cache_find(&f->cache, j->vma.dev, j->vma.ino);
	return err ? err : v && (v->file || v->refused || f->again);
}

int files_scanned(struct files *f, void (*none)(void *ctx, uint64_t dev, uint64_t ino), void *ctx)
{
	struct scan_job *j;
	int got = 0, n = 0;

	while (f->scans && got >= 0 && (j = scans_next(f->scans))) {
		if (!n++)
			files_next_round(f);
		got = take_in(f, j);
		if (!got)
			none(ctx, j->vma.dev, j->vma.ino);
		scan_job_free(j);
	}
	return got < 0 ? got : n;
}

/* 0: of all. Said once: the cause is the same for each. */
static void note_short(struct files *f, const char *what, pid_t pid, int err)
{
	if (!f->said_short)
		msg_warn("%s of programs cannot be opened (%s): cudatrace tries again each second; "
			 "until "
			 "then calls of functions that have no probes yet are not shown%s",
			 what, strerror(-err),
			 err == -ENOMEM ? "" : "; raise the limit of open files (`ulimit -n`)");
	f->said_short = true;
	files_later(f, pid);
}

static int examine(struct files *f, struct candidate *c)
{
	struct cached_file *known = file_cache_find(&f->cache, c->vma.dev, c->vma.ino);
	struct elf_scan scan;
	int err;

	/* what was refused before may be refused again without a look at it */
	if (known && known->refused && !files_room(f, known->uid, known->cost))
		return 0;

	if (c->fd < 0)
		c->fd = maps_open(&c->vma);
	if (c->fd == -EINVAL || c->fd == -EPERM || c->fd == -EACCES)
		return 0; /* a device, or not for us */
	if (c->fd == -EAGAIN) {
		if (known)
			known->checked_ns = 0;
		files_later(f, (pid_t)c->vma.pid);
		return 0;
	}
	if (c->fd < 0) {
		struct cached_file *v = file_cache_get(&f->cache, c->vma.dev, c->vma.ino);

		if (v)
			v->checked_ns = 0;
		if (v && (c->fd == -EMFILE || c->fd == -ENFILE)) {
			note_short(f, "libraries", (pid_t)c->vma.pid, c->fd);
			return 0;
		}
		f->again = true;
		return 0;
	}
	if (f->scans)
		return files_search(f, c);
	err = elf_scan(c->fd, f->capture, &scan);
	return judge(f, c, err, &scan);
}

/* Reads what a listing left behind, the likely files first. */
static int examine_all(struct files *f)
{
	int err = 0;

	for (int likely = 1; likely >= 0; likely--) {
		for (size_t i = 0; i < f->ncands; i++) {
			struct candidate *c = &f->cands[i];

			if (c->likely != likely)
				continue;
			if (!err)
				err = examine(f, c);
			if (c->fd >= 0)
				close(c->fd);
			free(c->path);
		}
	}
	f->ncands = 0;
	return err;
}

/* Lists mappings by the iterator, or, when it turns out not to work here, by /proc from then on. */
int files_list(struct files *f, pid_t pid, maps_fn fn, void *ctx)
{
	int n = maps_read(f->prog_fd, pid, fn, ctx);

	if (n < 0 && n != -EAGAIN && n != -ENOMEM && n != -EMFILE && n != -ENFILE &&
	    f->prog_fd >= 0) {
		msg_verb("mappings cannot be listed by BPF iterator (%s): reading /proc instead",
			 strerror(-n));
		f->prog_fd = -1;
		n = maps_read(-1, pid, fn, ctx);
	}
	return n;
}

void files_later(struct files *f, pid_t pid)
{
	for (int i = 0; i < f->nlater; i++)
		if (f->later[i] == pid)
			return;
	if (f->nlater == FILES_LATER)
		f->later[f->nlater = 0] = 0;
	f->later[f->nlater++] = pid;
}

void files_next_round(struct files *f)
{
	if (!++f->round)
		f->round = 1;
	f->again = false;
}

static void list_later(struct files *f, pid_t pid)
{
	const pid_t *pids = &pid;
	int n = pid ? 1 : maps_unlisted(&pids);

	for (int i = 0; i < n; i++)
		files_later(f, pids[i]);
}

int files_scan(struct files *f, pid_t pid)
{
	int n, err, tries = 0;

	do {
		files_next_round(f);
		n = files_list(f, pid, on_vma, f);
		err = examine_all(f);
		if (n == -EAGAIN)
			list_later(f, pid);
		else if (maps_is_short(n))
			note_short(f, "the mappings", pid, n);
		else if (n < 0)
			err = n;
	} while (!err && f->again && ++tries < SCAN_AGAIN);
	file_cache_trim(&f->cache);
	return err;
}

bool files_judged(struct files *f, uint64_t dev, uint64_t ino)
{
	const struct cached_file *v = file_cache_get(&f->cache, dev, ino);

	return v && v->checked_ns;
}

/* ---- files that nobody has mapped yet ---- */

static void own_add(struct files_own *o, const char *path, const char *name)
{
	struct stat st, known;
	int fd;

	if (o->n == FILES_OWN_MAX || stat(path, &st) || !S_ISREG(st.st_mode))
		return;
	for (int i = 0; i < o->n; i++)
		if (!fstat(o->files[i].fd, &known) && known.st_dev == st.st_dev &&
		    known.st_ino == st.st_ino)
			return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return;
	o->files[o->n].fd = fd;
	o->files[o->n].met = false;
	o->files[o->n].path = strdup(name);
	/* Never touched, so that a file that shrinks does no harm. */
	o->files[o->n].addr = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	o->n++;
}

void files_own_add(struct files_own *o, const char *path)
{
	own_add(o, path, path);
}

void files_own_add_open(struct files_own *o, int fd, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own_add(o, path, name);
}

/* One of our files, with the identity that the mapping has. */
static int own_take(struct files *f, struct files_own *o, int i, const struct ct_vma *vma)
{
	struct cached_file *v = file_cache_get(&f->cache, vma->dev, vma->ino);
	struct stat st;
	int err;

	o->files[i].met = true;
	if (!v || !o->files[i].path)
		return -ENOMEM;
	v->installed |= o->installed;
	if (v->file && o->installed)
		files_installed(f, v->file, true);
	if (fstat(o->files[i].fd, &st) ||
	    (v->checked_ns && (v->file || v->generation == files_generation(&st))))
		return 0;
	v->checked_ns = now_ns();
	v->generation = files_generation(&st);
	v->round = f->round;
	err = remember(f, vma, o->files[i].fd, o->files[i].path);
	if (!err)
		o->files[i].fd = -1;
	return err;
}

struct own_list {
	struct files *f;
	struct files_own *o;
};

static int own_vma(void *ctx, const struct ct_vma *vma)
{
	struct own_list *l = ctx;
	struct ct_vma v = *vma;

	v.pid = 0; /* found on disk */
	for (int i = 0; i < l->o->n; i++)
		if (!l->o->files[i].met && (uintptr_t)l->o->files[i].addr == vma->start)
			return own_take(l->f, l->o, i, &v);
	return 0;
}

int files_own_scan(struct files *f, struct files_own *o)
{
	struct own_list l = { f, o };
	int err, read_err;

	files_next_round(f);
	err = files_list(f, getpid(), own_vma, &l);
	if (err == -EAGAIN) /* not in time, where others have the processors */
		err = 0;
	/* A file that could not be mapped (noexec), or was not listed, goes by what stat(2) says. */
	for (int i = 0; i < o->n && err >= 0; i++) {
		struct ct_vma v = { 0 };
		struct stat st;

		if (o->files[i].met || fstat(o->files[i].fd, &st))
			continue;
		v.dev = maps_dev(st.st_dev);
		v.ino = st.st_ino;
		err = own_take(f, o, i, &v);
	}
	for (int i = 0; i < o->n; i++) {
		if (o->files[i].addr != MAP_FAILED)
			munmap(o->files[i].addr, 1);
		if (o->files[i].fd >= 0)
			close(o->files[i].fd);
		free(o->files[i].path);
	}
	o->n = 0;
	read_err = examine_all(f);
	return err < 0 ? err : read_err;
}

void files_close(struct files *f)
{
	for (int i = 0; i < f->n; i++)
		files_forget(f->list[i]);
	free(f->list);
	file_cache_free(&f->cache);
	shares_free(&f->shares);
	free(f->cands);
	scans_close(f->scans);
}
