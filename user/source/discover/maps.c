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
 *
 * A process may hold the lock of its mappings for as long as it likes, have a million of them, or
 * thousands of threads that the iterator visits one after the other; a file may lie on a server
 * that does not answer. So workers list mappings and open files (util/io/bounded.h), and the main
 * loop waits for them as long as the process's user has an allowance. If the pass over all
 * processes takes too long, each process is listed by itself for a while.
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
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../../util/allowance.h"
#include "../../util/io/bounded.h"
#include "../../util/msg.h"
#include "../../util/now.h"
#include "../../util/table/array.h"
#include "../host.h"
#include "../../../wire/control.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define LIMIT_MS 1000 /* for one process, or one file, of a whole machine */
#define WHOLE_MS 1000 /* for all processes in one pass */
/* for those of a program that was chosen, whose calls are all wanted; a worker that is abandoned
 * gives up then */
#define PLENTY_MS 10000
#define APART_NS \
	60000000000ULL /* how long there is no pass over all after one that took too long */
#define AGAIN_NS 10000000000ULL	 /* how long a process that took too long is not read again */
#define PROCESS_MAX (128u << 10) /* mappings of one process */
#define WHOLE_MAX (1u << 20)	 /* of all */
#define SHARE 4 /* the part of the main loop's time that one user's processes get */
#define BLOCKED 64
/* threads that are asked in place of the main one; those that have ended are not listed */
#define OTHERS_MAX 8
#define LINES_BYTES (32u << 10) /* read at a time, of which the kernel gives a page or more */

static struct {
	bool impatient;
	uint64_t apart_ns; /* until then there is no pass over all */
	struct allowance allowance;
	struct {
		pid_t pid;
		uint64_t until_ns;
	} blocked[BLOCKED]; /* a ring */
	unsigned int nblocked;
	pid_t unlisted[MAPS_UNLISTED]; /* by the last pass over all */
	int nunlisted;
} limits;

void (*maps_begins)(pid_t pid);

void maps_impatient(bool impatient)
{
	limits.impatient = impatient;
}

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

static int read_iter(int prog_fd, pid_t pid, uint64_t until_ns, maps_fn fn, void *ctx)
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
		if (now_ns() > until_ns) {
			err = -ETIME;
			break;
		}
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

/* A process that has ended, or is not for us, has no mappings; that we lack something says nothing of it. */
static int not_opened(void)
{
	return maps_is_short(-errno) ? -errno : 0;
}

static int read_lines(const char *path, pid_t pid, line_fn fn, void *ctx)
{
	struct line l = { .vma.pid = pid };
	FILE *f = fopen(path, "re");
	char *text = NULL, buf[LINES_BYTES];
	size_t cap = 0;
	ssize_t len;
	int err = 0, count = 0;

	if (!f)
		return not_opened();
	setvbuf(f, buf, _IOFBF, sizeof(buf));
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

/* <linux/fs.h>, since Linux 6.11. The text of all mappings takes ten times as long, most of it for their names. */
struct query {
	uint64_t size, query_flags, address;
	uint64_t start, end, flags, page_size, offset, ino;
	uint32_t major, minor, name_bytes, build_id_bytes;
	uint64_t name, build_id;
};
#define QUERY _IOWR('f', 17, struct query)
#define QUERY_FILES (0x04 | 0x10 | 0x20) /* the next executable mapping of a file */
_Static_assert(sizeof(struct query) == 104, "struct procmap_query");

/* The executable mappings of files of a thread. Returns how many, fn's error, or -ENOSYS. */
static int read_queries(pid_t tid, pid_t pid, maps_fn fn, void *ctx)
{
	struct query q = { .size = sizeof(q), .query_flags = QUERY_FILES };
	char path[64];
	int fd, err = 0, count = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return not_opened();
	while (err >= 0 && !ioctl(fd, QUERY, &q)) {
		struct ct_vma v = { .pid = (uint32_t)pid,
				    .dev = (uint64_t)q.major << 20 | q.minor,
				    .ino = q.ino,
				    .start = q.start,
				    .end = q.end,
				    .pgoff = q.offset / (uint64_t)sysconf(_SC_PAGESIZE) };

		q.address = q.end;
		if (!v.ino)
			continue;
		count++;
		err = fn(ctx, &v);
	}
	if (err >= 0 && errno == ENOTTY)
		err = -ENOSYS;
	close(fd);
	return err < 0 ? err : count;
}

/* Whether the main thread of a process has ended: others may be left. */
static bool leader_ended(pid_t pid)
{
	char text[512];
	const char *state = host_stat(pid, text, sizeof(text));

	return state && (*state == 'Z' || *state == 'X');
}

/* Calls fn with the numbers of some other threads of a process whose main thread has ended, until
 * it answers other than 0, which is returned. */
static int each_other(pid_t pid, int (*fn)(void *ctx, pid_t tid), void *ctx)
{
	struct dirent *e;
	char path[32];
	int r = 0;
	DIR *dir;

	if (!leader_ended(pid))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	for (int n = 0; dir && !r && n < OTHERS_MAX && (e = readdir(dir));)
		if (isdigit((unsigned char)e->d_name[0]) && atoi(e->d_name) != pid) {
			r = fn(ctx, atoi(e->d_name));
			n++;
		}
	if (dir)
		closedir(dir);
	return r;
}

struct reading {
	pid_t pid;
	line_fn fn;
	void *ctx;
};

static int read_task(void *ctx, pid_t tid)
{
	const struct reading *r = ctx;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	return read_lines(path, r->pid, r->fn, r->ctx);
}

/* The lines of a process; of another of its threads when the main one has ended. */
static int read_process(pid_t pid, line_fn fn, void *ctx)
{
	struct reading r = { pid, fn, ctx };
	int n = read_task(&r, pid);

	return n ? n : each_other(pid, read_task, &r);
}

struct outlet {
	pid_t pid;
	maps_fn fn;
	void *ctx;
};

static int to_outlet(void *ctx, struct line *l)
{
	struct outlet *o = ctx;

	return o->fn(o->ctx, &l->vma);
}

static int query_task(void *ctx, pid_t tid)
{
	struct outlet *o = ctx;
	int n = read_queries(tid, o->pid, o->fn, o->ctx);
	char path[64];

	if (n != -ENOSYS)
		return n;
	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	return read_lines(path, o->pid, to_outlet, o);
}

/* The mappings of a process, without names. */
static int list_process(pid_t pid, maps_fn fn, void *ctx)
{
	struct outlet o = { pid, fn, ctx };
	int n = query_task(&o, pid);

	return n ? n : each_other(pid, query_task, &o);
}

static int read_proc(pid_t pid, maps_fn fn, void *ctx)
{
	struct dirent *e;
	int n = 0, one;
	DIR *dir;

	if (pid)
		return list_process(pid, fn, ctx);
	dir = opendir("/proc");
	if (!dir)
		return -errno;
	while (n >= 0 && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		one = list_process(atoi(e->d_name), fn, ctx);
		n = one < 0 ? one : n + one;
	}
	closedir(dir);
	return n;
}

/* ---- for a limited time ---- */

/* The real user of a process. `memory`: has it any, as far as that can be told? */
static uint32_t owner_of(pid_t pid, bool *memory)
{
	char text[4096];
	const char *threads, *uid;

	if (host_status(pid, text, sizeof(text)))
		text[0] = '\0';
	threads = host_status_line(text, "Threads");
	*memory = host_status_line(text, "VmSize") || (threads && atoi(threads) > 1);
	uid = host_status_line(text, "Uid");
	return uid ? (uint32_t)strtoul(uid, NULL, 10) : BOUNDED_NOBODY;
}

/* When a process that took too long may be tried again; 0: it did not. */
static uint64_t blocked_until(pid_t pid)
{
	uint64_t until_ns = 0;

	for (unsigned int i = 0; i < BLOCKED; i++)
		if (pid && limits.blocked[i].pid == pid && limits.blocked[i].until_ns > until_ns)
			until_ns = limits.blocked[i].until_ns;
	return until_ns;
}

static void note_blocked(pid_t pid, const char *what)
{
	unsigned int i = limits.nblocked++ % BLOCKED;

	if (!pid)
		return;
	limits.blocked[i].pid = pid;
	limits.blocked[i].until_ns = now_ns() + AGAIN_NS;
	msg_warn("process %d: %s took too long: cudatrace goes on without, and tries again later",
		 pid, what);
}

/* Has a worker do the job, for a process of this owner. Returns as bounded_run(), and -EAGAIN: the
 * owner has had his share of time, or the process took too long a short while ago. */
static int run_for(struct bounded_job *job, pid_t pid, uint32_t owner, const char *what)
{
	uint64_t *left, began = now_ns();
	uint64_t wait_ms = !pid ? WHOLE_MS : limits.impatient ? LIMIT_MS : PLENTY_MS;
	uint64_t blocked_ns = blocked_until(pid);
	/* root and the user who runs us are trusted not to do so on purpose */
	bool trusted = !limits.impatient || !pid || (!blocked_ns && (!owner || owner == geteuid()));
	int err;

	limits.allowance.max_ns = LIMIT_MS * 1000000ULL;
	limits.allowance.part = SHARE;
	left = allowance_of(&limits.allowance, owner);
	if (!trusted && *left / 1000000 < wait_ms)
		wait_ms = *left / 1000000;
	if (!wait_ms || began < blocked_ns)
		return -EAGAIN;
	err = bounded_run(job, owner, (unsigned int)wait_ms);
	if (pid)
		allowance_take(left, began);
	if (err == -ETIMEDOUT)
		note_blocked(pid, what);
	return err;
}

struct listing {
	struct bounded_job job;
	int prog_fd;
	pid_t pid;
	uint64_t until_ns;
	struct ct_vma *vmas;
	size_t n, max;
	int result;
};

static void listing_free(struct listing *l)
{
	if (l->prog_fd >= 0)
		close(l->prog_fd);
	free(l->vmas);
	free(l);
}

static void listing_drop(struct bounded_job *job)
{
	listing_free((struct listing *)job);
}

static int collect(void *ctx, const struct ct_vma *v)
{
	struct listing *l = ctx;

	if (l->n >= l->max)
		return -E2BIG;
	if (!(l->n & 1023) && now_ns() > l->until_ns)
		return -ETIME;
	if (!array_room(l->vmas, l->n))
		return -ENOMEM;
	l->vmas[l->n++] = *v;
	return 0;
}

static void listing_run(struct bounded_job *job)
{
	struct listing *l = (struct listing *)job;
	bool iter = l->prog_fd >= 0;

	if (maps_begins)
		maps_begins(l->pid);
	l->result = iter ? read_iter(l->prog_fd, l->pid, l->until_ns, collect, l)
			 : read_proc(l->pid, collect, l);
	/* The iterator may walk main threads only: look again at a process that seems to have
	 * nothing mapped. */
	if (!l->result && l->pid && iter)
		l->result = read_proc(l->pid, collect, l);
}

static struct listing *listing_new(int prog_fd, pid_t pid)
{
	struct listing *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->job = (struct bounded_job){ .run = listing_run, .drop = listing_drop };
	l->prog_fd = prog_fd >= 0 ? fcntl(prog_fd, F_DUPFD_CLOEXEC, 0) : -1;
	l->pid = pid;
	l->max = pid ? PROCESS_MAX : WHOLE_MAX;
	l->until_ns = now_ns() + PLENTY_MS * 1000000ULL;
	return l;
}

/* Lists one process, or all in one pass. */
static int read_pass(int prog_fd, pid_t pid, uint32_t owner, maps_fn fn, void *ctx)
{
	struct listing *l = listing_new(prog_fd, pid);
	int err = l ? run_for(&l->job, pid, owner, "to list its mappings") : -ENOMEM, n;

	if (err == -ENOMEM && l)
		listing_run(&l->job); /* there is no worker */
	else if (err) {
		if (l && err != -ETIMEDOUT)
			listing_free(l);
		return err == -ENOMEM ? err : -EAGAIN;
	}
	n = l->result;
	/* the beginning of a list that is too long is better than nothing */
	if (n == -E2BIG || n == -ETIME)
		n = pid ? (int)l->n : -EAGAIN;
	for (size_t i = 0; n >= 0 && i < l->n; i++) {
		err = fn(ctx, &l->vmas[i]);
		n = err < 0 ? err : n;
	}
	listing_free(l);
	return n;
}

static int read_each(int prog_fd, maps_fn fn, void *ctx)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	int n = 0, one;
	bool memory;

	limits.nunlisted = 0;
	if (!dir)
		return -errno;
	while (n >= 0 && (e = readdir(dir))) {
		pid_t pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;
		uint32_t owner = pid ? owner_of(pid, &memory) : 0;

		if (!pid || !memory)
			continue;
		one = read_pass(prog_fd, pid, owner, fn, ctx);
		if (one == -EAGAIN)
			limits.unlisted[limits.nunlisted++ % MAPS_UNLISTED] = pid;
		n = one == -EAGAIN ? n : one < 0 ? one : n + one;
	}
	closedir(dir);
	return n < 0 || !limits.nunlisted ? n : -EAGAIN;
}

int maps_unlisted(const pid_t **pids)
{
	*pids = limits.unlisted;
	return limits.nunlisted < MAPS_UNLISTED ? limits.nunlisted : MAPS_UNLISTED;
}

int maps_read(int prog_fd, pid_t pid, maps_fn fn, void *ctx)
{
	bool memory;
	int n;

	if (pid)
		return read_pass(prog_fd, pid, owner_of(pid, &memory), fn, ctx);
	n = now_ns() < limits.apart_ns ? -EAGAIN : read_pass(prog_fd, 0, BOUNDED_NOBODY, fn, ctx);
	if (n != -EAGAIN)
		return n;
	if (now_ns() >= limits.apart_ns)
		msg_verb("to list the mappings of all processes at once takes too long: they are "
			 "listed one by one");
	limits.apart_ns = now_ns() >= limits.apart_ns ? now_ns() + APART_NS : limits.apart_ns;
	return read_each(prog_fd, fn, ctx);
}

/* ---- the file behind a mapping ---- */

struct link {
	const struct ct_vma *v;
	char *path;
	size_t len;
};

static int try_link(void *ctx, pid_t tid)
{
	const struct link *l = ctx;
	struct stat st;

	snprintf(l->path, l->len, "/proc/%d/map_files/%llx-%llx", tid,
		 (unsigned long long)l->v->start, (unsigned long long)l->v->end);
	return !lstat(l->path, &st) || errno == EPERM || errno == EACCES;
}

/* The number under which /proc shows the mapping: the process's, or another thread's when the
 * main one has ended. */
static void link_path(const struct ct_vma *v, char *path, size_t len)
{
	struct link l = { v, path, len };

	if (!try_link(&l, (pid_t)v->pid) && !each_other((pid_t)v->pid, try_link, &l))
		snprintf(path, len, "/proc/%u/map_files/%llx-%llx", v->pid,
			 (unsigned long long)v->start, (unsigned long long)v->end);
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

/* What a worker does about a file. */
struct timed_read {
	struct bounded_job job;
	struct ct_vma vma;
	int fd, err;
	struct stat st;
	char name[PATH_MAX];
};

static void timed_read_drop(struct bounded_job *job)
{
	struct timed_read *e = (struct timed_read *)job;

	if (e->fd >= 0)
		close(e->fd);
	free(e);
}

/* Returns the read when it is done, or NULL, with the reason in *err. */
static struct timed_read *send_out(const struct ct_vma *v, void (*run)(struct bounded_job *),
				   int *err)
{
	struct timed_read *e = calloc(1, sizeof(*e));
	bool memory;

	*err = -ENOMEM;
	if (!e)
		return NULL;
	e->job = (struct bounded_job){ .run = run, .drop = timed_read_drop };
	e->vma = *v;
	e->fd = -1;
	*err = run_for(&e->job, (pid_t)v->pid, owner_of((pid_t)v->pid, &memory),
		       "to open a file that it has mapped");
	if (*err == -ENOMEM) {
		run(&e->job);
		*err = 0;
	}
	if (!*err)
		return e;
	if (*err != -ETIMEDOUT)
		free(e);
	*err = -EAGAIN;
	return NULL;
}

static void stat_by_name(struct bounded_job *job)
{
	struct timed_read *e = (struct timed_read *)job;
	char path[PATH_MAX + 64];

	e->err = path_by_name(&e->vma, path, sizeof(path), &e->st);
}

/* What this machine knows of a file: a server is not asked. */
static int stat_unasked(const char *path, struct stat *st)
{
	struct statx x;

	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &x))
		return -errno;
	*st = (struct stat){
		.st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
		.st_ino = x.stx_ino,
		.st_mode = x.stx_mode,
		.st_nlink = x.stx_nlink,
		.st_uid = x.stx_uid,
		.st_size = (off_t)x.stx_size,
		.st_mtim = { x.stx_mtime.tv_sec, x.stx_mtime.tv_nsec },
		.st_ctim = { x.stx_ctime.tv_sec, x.stx_ctime.tv_nsec },
	};
	return 0;
}

int maps_stat(const struct ct_vma *v, struct stat *st)
{
	char path[160];
	struct timed_read *e;
	int err;

	link_path(v, path, sizeof(path));
	err = stat_unasked(path, st);
	if (err != -EPERM && err != -EACCES)
		return err;
	e = send_out(v, stat_by_name, &err);
	if (!e)
		return err;
	err = e->err;
	*st = e->st;
	free(e);
	return err;
}

bool maps_there(const struct ct_vma *v)
{
	char path[160];
	struct stat st;

	link_path(v, path, sizeof(path));
	return !lstat(path, &st) || (errno != ENOENT && errno != ESRCH);
}

static int open_now(const struct ct_vma *v)
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

static void open_it(struct bounded_job *job)
{
	struct timed_read *e = (struct timed_read *)job;

	e->fd = open_now(&e->vma);
}

int maps_open(const struct ct_vma *v)
{
	struct timed_read *e;
	int err, fd;

	e = send_out(v, open_it, &err);
	if (!e)
		return err;
	fd = e->fd;
	free(e);
	return fd;
}

static void name_it(struct bounded_job *job)
{
	struct timed_read *e = (struct timed_read *)job;
	struct named named = { .start = e->vma.start, .path = e->name, .len = sizeof(e->name) };

	read_process((pid_t)e->vma.pid, find_name, &named);
}

void maps_name(const struct ct_vma *v, char *buf, size_t len)
{
	struct timed_read *e;
	char path[160];
	ssize_t n;
	int err;

	link_path(v, path, sizeof(path));
	n = readlink(path, buf, len - 1);
	buf[n < 0 ? 0 : n] = 0;
	e = n < 0 ? send_out(v, name_it, &err) : NULL;
	if (e)
		snprintf(buf, len, "%s", e->name);
	free(e);
}
