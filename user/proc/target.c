/* SPDX-License-Identifier: BSD-2-Clause */
/* target.c - see target.h. Knows /proc; knows no record and no file format. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../util/io/bounded.h"
#include "../util/table/array.h"
#include "../util/msg.h"
#include "../util/now.h"
#include "target.h"

#define LIMIT_MS 1000		/* time limit of one read; a page from a disk takes a few ms */
#define AGAIN_NS 30000000000ULL /* how long a process is not read after it blocked a read */
#define MAPS_MAX (64u << 20)	/* bytes of /proc/PID/maps that are read */

/* The descriptors that a process is read through. A worker uses them during a read, and owns them
 * for good if the read takes too long. */
struct reach {
	int dir, mem, root; /* descriptors of /proc/PID and of files in it; -1: not opened yet */
	/* /proc/TID of a thread that is used instead of the main thread, which has ended; -1: not
	 * needed */
	int thread;
};

struct target {
	struct reach *in; /* NULL: an abandoned worker owns it */
	pid_t pid;
	uint32_t uid;	   /* the process's effective user; BOUNDED_NOBODY: not known */
	uint64_t ticks;	   /* when it began; 0: not known */
	uint64_t again_ns; /* while there is no reach: when to try again */
	bool reported;
	struct target_map *maps;
	int nmaps;
	char *text; /* /proc/PID/maps; the paths point into it */
	size_t text_len;
	bool mapped;
};

/* A task for a worker. Its operation fills in result, and buf if it reads. */
struct timed_read {
	struct bounded_job job;
	void (*op)(struct timed_read *);
	struct reach *in;
	const char *what; /* for messages */
	uint64_t addr;
	size_t len; /* size of buf, or bytes read of a text */
	/* either the operation allocates it for a text, or it is allocated together with the
	 * read */
	char *buf;
	ssize_t result;
	bool opens;		  /* the result is a descriptor */
	uint64_t start, end, ino; /* of a mapping */
	char path[];		  /* or the name of a file in /proc/PID */
};

/* Returns when the process began, in clock ticks of boottime; 0: cannot be read. */
static uint64_t start_ticks(int dir)
{
	char buf[1024], *at;
	int fd = openat(dir, "stat", O_RDONLY | O_CLOEXEC), field;
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	at = strrchr(buf, ')'); /* the name may contain anything, so the last ')' is searched */
	for (field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static void reach_close(struct reach *in)
{
	if (!in)
		return;
	if (in->mem >= 0)
		close(in->mem);
	if (in->root >= 0)
		close(in->root);
	if (in->thread >= 0)
		close(in->thread);
	if (in->dir >= 0)
		close(in->dir);
	free(in);
}

/* Opens the reach. It waits for nothing that the process controls. */
static int reach_open(struct reach **out, pid_t pid)
{
	struct reach *in = malloc(sizeof(*in));
	char path[32];
	int err;

	*out = NULL;
	if (!in)
		return -ENOMEM;
	*in = (struct reach){ -1, -1, -1, -1 };
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	in->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (in->dir < 0) {
		err = errno == ENOENT ? -ESRCH : -errno;
		reach_close(in);
		return err;
	}
	*out = in;
	return 0;
}

static uint32_t effective_uid(int dir)
{
	char buf[4096], *at;
	int fd = openat(dir, "status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, sizeof(buf) - 1) : -1;

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	at = strstr(buf, "\nUid:");
	if (at)
		strtoul(at + 5, &at, 10);
	return at ? (uint32_t)strtoul(at, NULL, 10) : BOUNDED_NOBODY;
}

int target_open(struct target **out, pid_t pid, uint64_t start_boottime_ns)
{
	struct target *t = calloc(1, sizeof(*t));
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	int err;

	*out = NULL;
	if (!t)
		return -ENOMEM;
	t->pid = pid;
	err = reach_open(&t->in, pid);
	if (err) {
		free(t);
		return err;
	}
	t->ticks = start_ticks(t->in->dir);
	t->uid = effective_uid(t->in->dir);
	/* stat is in our time namespace, boottime in the initial one: a difference of one tick does
	 * not mean another process */
	if (start_boottime_ns) {
		uint64_t want = start_boottime_ns / (1000000000 / hz);

		if (!t->ticks || (t->ticks > want ? t->ticks - want : want - t->ticks) > 1) {
			target_close(t);
			return -ESRCH;
		}
	}
	*out = t;
	return 0;
}

void target_close(struct target *t)
{
	if (!t)
		return;
	reach_close(t->in);
	free(t->maps);
	free(t->text);
	free(t);
}

pid_t target_pid(const struct target *t)
{
	return t->pid;
}

uint32_t target_uid(const struct target *t)
{
	return t->uid;
}

/* ---- timed reads ---- */

static void timed_read_free(struct timed_read *e)
{
	free(e->buf);
	free(e);
}

static void timed_read_run(struct bounded_job *job)
{
	struct timed_read *e = (struct timed_read *)job;

	e->op(e);
}

static void timed_read_drop(struct bounded_job *job)
{
	struct timed_read *e = (struct timed_read *)job;

	if (e->opens && e->result >= 0)
		close((int)e->result);
	reach_close(e->in);
	timed_read_free(e);
}

/* Makes a timed read with a buffer of `size` bytes and a name or path. NULL: no memory. */
static struct timed_read *timed_read_make(void (*op)(struct timed_read *), const char *what,
					  size_t size, const char *path)
{
	struct timed_read *e = calloc(1, sizeof(*e) + strlen(path) + 1);

	if (!e)
		return NULL;
	e->job = (struct bounded_job){ .run = timed_read_run, .drop = timed_read_drop };
	e->op = op;
	e->what = what;
	e->len = size;
	strcpy(e->path, path);
	e->buf = size ? malloc(size) : NULL;
	if (size && !e->buf) {
		free(e);
		return NULL;
	}
	return e;
}

/* A process that blocked a worker is not read for a while. Then it is opened again, if it is still
 * the same process. */
static int reach_again(struct target *t)
{
	int err;

	if (now_ns() < t->again_ns)
		return -ETIMEDOUT;
	t->again_ns = now_ns() + AGAIN_NS;
	err = reach_open(&t->in, t->pid);
	if (!err && (!t->ticks || start_ticks(t->in->dir) != t->ticks)) {
		reach_close(t->in);
		t->in = NULL;
		err = -ESRCH;
	}
	return err;
}

static void target_tell(struct target *t, const char *what)
{
	if (!t->reported)
		msg_warn("process %d: its %s could not be read within %u ms; its page or file may "
			 "not be served: cudatrace continues without them and tries again after %u "
			 "s",
			 (int)t->pid, what, LIMIT_MS, (unsigned int)(AGAIN_NS / 1000000000));
	t->reported = true;
}

/* Lets a worker do the read. Returns 0 if the read's result is valid. Otherwise returns -errno,
 * and the caller no longer owns the read. */
static int send_out(struct target *t, struct timed_read *e)
{
	const char *what = e ? e->what : "";
	int err = !e ? -ENOMEM : t->in ? 0 : reach_again(t);

	if (e && !err) {
		e->in = t->in;
		err = bounded_run(&e->job, t->uid, LIMIT_MS);
	}
	if (!err)
		return 0;
	if (err == -ETIMEDOUT && t->in) {
		t->in = NULL;
		t->again_ns = now_ns() + AGAIN_NS;
		target_tell(t, what);
	} else if (e) {
		timed_read_free(e);
	}
	return err;
}

/* The same, for a timed read of which only the result is needed. */
static ssize_t send_for_result(struct target *t, struct timed_read *e)
{
	ssize_t result;
	int err = send_out(t, e);

	if (err)
		return err;
	result = e->result;
	timed_read_free(e);
	return result;
}

static void read_proc_file(struct timed_read *e)
{
	int fd = openat(e->in->dir, e->path, O_RDONLY | O_CLOEXEC), err;
	size_t n = 0;
	ssize_t got;

	if (fd < 0) {
		e->result = -errno;
		return;
	}
	do {
		got = read(fd, e->buf + n, e->len - 1 - n);
		err = got < 0 ? -errno : 0;
		n += got > 0 ? (size_t)got : 0;
	} while (got > 0 && n < e->len - 1);
	close(fd);
	e->result = n || !err ? (ssize_t)n : err;
}

ssize_t target_proc(struct target *t, const char *name, char *buf, size_t size)
{
	struct timed_read *e =
		timed_read_make(read_proc_file, "arguments and environment", size, name);
	int err = send_out(t, e);
	ssize_t n;

	if (err)
		return err;
	n = e->result;
	if (n >= 0) {
		memcpy(buf, e->buf, (size_t)n);
		buf[n] = '\0';
	}
	timed_read_free(e);
	return n;
}

ssize_t target_exe(struct target *t, char *buf, size_t size)
{
	ssize_t n = t->in ? readlinkat(t->in->dir, "exe", buf, size - 1) : -1;

	if (n < 0)
		return t->in ? -errno : -ETIMEDOUT;
	buf[n] = '\0';
	return n;
}

/* ---- a process without its main thread ---- */

/* Returns the directory through which the process's memory and files can be read. */
static int target_live(const struct reach *t)
{
	return t->thread >= 0 ? t->thread : t->dir;
}

static bool shows_memory(int dir)
{
	int fd = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
	bool any;
	char c;

	if (fd < 0)
		return false;
	any = read(fd, &c, 1) == 1;
	close(fd);
	return any;
}

/* /proc/TID of a thread of the process; -1: it has ended. */
static int open_thread(const struct reach *t, const char *tid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%.16s", tid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "task/%.16s", tid);
	/* checks that the number still belongs to a thread of this process */
	if (fd >= 0 && (faccessat(t->dir, path, F_OK, 0) || !shows_memory(fd))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* When the main thread of a process ends, the process keeps its memory, but it cannot be read under
 * the process's own number. Looks for another thread. True: what has just failed may succeed
 * now. */
static bool find_thread(struct reach *t)
{
	int fd, found = -1;
	struct dirent *e;
	DIR *tasks;

	if (shows_memory(target_live(t)))
		return false;
	fd = openat(t->dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tasks = fd >= 0 ? fdopendir(fd) : NULL;
	if (!tasks) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (found < 0 && (e = readdir(tasks)))
		if (isdigit((unsigned char)e->d_name[0]))
			found = open_thread(t, e->d_name);
	closedir(tasks);
	if (found < 0)
		return false;
	if (t->thread >= 0)
		close(t->thread);
	t->thread = found;
	return true;
}

/* ---- memory ---- */

static ssize_t read_some(struct reach *t, uint64_t addr, void *buf, size_t len)
{
	bool opened = t->mem < 0;
	ssize_t n;

	if (addr > INT64_MAX)
		return -EFAULT;
	if (opened) {
		t->mem = openat(target_live(t), "mem", O_RDONLY | O_CLOEXEC);
		if (t->mem < 0 && errno != ENOENT && errno != ESRCH)
			return -errno;
	}
	do
		n = t->mem < 0 ? 0 : pread(t->mem, buf, len, (off_t)addr);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EIO || errno == EOVERFLOW ? -EFAULT : -errno;
	if (n)
		return n;
	/* there is no memory, or none any more: the process ended or exec'd, or its main thread
	 * ended */
	if (!opened)
		return -ESRCH;
	if (t->mem >= 0)
		close(t->mem);
	t->mem = -1;
	return find_thread(t) ? read_some(t, addr, buf, len) : -ESRCH;
}

static void read_memory(struct timed_read *e)
{
	size_t have = 0;

	while (have < e->len) {
		ssize_t n = read_some(e->in, e->addr + have, e->buf + have, e->len - have);

		if (n < 0) {
			e->result = n;
			return;
		}
		have += (size_t)n;
	}
}

int target_read(struct target *t, uint64_t addr, void *buf, size_t len)
{
	struct timed_read *e = len ? timed_read_make(read_memory, "memory", len, "") : NULL;
	int err;

	if (!len)
		return 0;
	if (e)
		e->addr = addr;
	err = send_out(t, e);
	if (err)
		return err;
	err = (int)e->result;
	if (!err)
		memcpy(buf, e->buf, len);
	timed_read_free(e);
	return err;
}

static void read_string(struct timed_read *e)
{
	size_t have = 0, size = e->len;

	while (have < size - 1) {
		/* page by page: the string may end just before an unmapped page */
		size_t room = size - 1 - have, page = 4096 - ((e->addr + have) & 4095);
		ssize_t n =
			read_some(e->in, e->addr + have, e->buf + have, room < page ? room : page);
		char *nul;

		e->result = n;
		if (n < 0)
			return;
		nul = memchr(e->buf + have, '\0', (size_t)n);
		if (nul) {
			e->result = nul - e->buf;
			return;
		}
		have += (size_t)n;
	}
	e->buf[have] = '\0';
	e->result = -E2BIG;
}

ssize_t target_read_string(struct target *t, uint64_t addr, char *buf, size_t size)
{
	struct timed_read *e = size ? timed_read_make(read_string, "memory", size, "") : NULL;
	ssize_t n;
	int err;

	if (!size)
		return -EINVAL;
	if (e)
		e->addr = addr;
	err = send_out(t, e);
	if (err)
		return err;
	n = e->result;
	if (n >= 0 || n == -E2BIG)
		memcpy(buf, e->buf, n >= 0 ? (size_t)n + 1 : size);
	timed_read_free(e);
	return n;
}

static void read_pagemap(struct timed_read *e)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = e->addr / page,
		 n = (e->end - 1) / page - first + 1, *entries;
	int fd = openat(target_live(e->in), "pagemap", O_RDONLY | O_CLOEXEC);

	entries = calloc(n, sizeof(*entries));
	e->result = fd < 0 ? -errno : !entries ? -ENOMEM : 1;
	if (e->result > 0 &&
	    pread(fd, entries, n * sizeof(*entries), (off_t)(first * sizeof(*entries))) !=
		    (ssize_t)(n * sizeof(*entries)))
		e->result = -ESRCH;
	/* Documentation/admin-guide/mm/pagemap.rst: 63 present, 62 swapped, 61 of a file */
	for (uint64_t i = 0; e->result > 0 && i < n; i++)
		if (entries[i] >> 62 && !(entries[i] >> 61 & 1))
			e->result = 0;
	free(entries);
	if (fd >= 0)
		close(fd);
}

int target_is_as_in_file(struct target *t, uint64_t addr, size_t len)
{
	struct timed_read *e = timed_read_make(read_pagemap, "memory", 0, "");

	if (e) {
		e->addr = addr;
		e->end = addr + len;
	}
	return (int)send_for_result(t, e);
}

/* ---- search ---- */

#define SEARCH_NS (LIMIT_MS * 1000000ULL / 4) /* time of one read */
#define SEARCH_PAGES 512		      /* looked at together */

struct search {
	struct timed_read *e;
	uint64_t word, page;
	int pagemap, max, n;
	uint64_t *found;
	char *buf;
};

/* Notes the places of the word in memory that was copied from an address. False: there is no more
 * room; the search goes on behind the last place. */
static bool note_words(struct search *s, uint64_t addr, size_t len)
{
	for (size_t i = 0; i + 8 <= len; i += 8) {
		if (memcmp(s->buf + i, &s->word, 8))
			continue;
		s->found[s->n++] = addr + i;
		if (s->n == s->max) {
			s->e->addr = addr + i + 8;
			return false;
		}
	}
	return true;
}

/* Searches the resident ones of some pages. A page that cannot be read is passed over: it has gone
 * meanwhile, or is of a device. */
static bool search_pages(struct search *s, uint64_t first, size_t n)
{
	uint64_t entries[SEARCH_PAGES];
	ssize_t got = pread(s->pagemap, entries, n * 8, (off_t)(first * 8));

	n = got > 0 ? (size_t)got / 8 : 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t begin = (first + i) * s->page, from;
		size_t run = 0;
		ssize_t have;

		while (i + run < n && entries[i + run] >> 63)
			run++;
		if (!run)
			continue;
		have = read_some(s->e->in, begin, s->buf, run * s->page);
		i += run - 1;
		from = s->e->addr > begin ? s->e->addr - begin : 0;
		if (have <= 0 || from >= (uint64_t)have)
			continue;
		if (from)
			memset(s->buf, 0, from);
		if (begin + (uint64_t)have > s->e->end)
			have = (ssize_t)(s->e->end - begin);
		if (!note_words(s, begin, (size_t)have))
			return false;
	}
	return true;
}

/* e->buf has the word and, afterwards, what was found; e->addr is where it has come to. */
static void search_memory(struct timed_read *e)
{
	uint64_t until_ns = now_ns() + SEARCH_NS;
	struct search s = {
		.e = e,
		.page = (uint64_t)sysconf(_SC_PAGESIZE),
		.pagemap = openat(target_live(e->in), "pagemap", O_RDONLY | O_CLOEXEC),
		.max = (int)(e->len / 8),
		.found = (uint64_t *)(void *)e->buf,
	};

	memcpy(&s.word, e->buf, 8);
	s.buf = malloc(SEARCH_PAGES * s.page);
	e->result = s.pagemap < 0 ? -errno : s.buf ? 0 : -ENOMEM;
	while (!e->result && e->addr < e->end && now_ns() < until_ns) {
		uint64_t first = e->addr / s.page, last = (e->end - 1) / s.page,
			 n = last - first + 1 < SEARCH_PAGES ? last - first + 1 : SEARCH_PAGES;

		if (!search_pages(&s, first, n))
			break;
		e->addr = (first + n) * s.page;
	}
	if (e->addr > e->end)
		e->addr = e->end;
	if (!e->result)
		e->result = s.n;
	if (s.pagemap >= 0)
		close(s.pagemap);
	free(s.buf);
}

int target_find_word(struct target *t, uint64_t *at, uint64_t end, uint64_t word, uint64_t *found,
		     int max)
{
	struct timed_read *e = timed_read_make(search_memory, "memory", (size_t)max * 8, "");
	int err;

	if (e) {
		e->addr = *at;
		e->end = end;
		memcpy(e->buf, &word, 8);
	}
	err = send_out(t, e);
	if (err)
		return err;
	err = (int)e->result;
	if (err >= 0) {
		*at = e->addr;
		memcpy(found, e->buf, (size_t)err * 8);
	}
	timed_read_free(e);
	return err;
}

/* ---- mappings ---- */

static int read_text(struct reach *t, char **text, size_t *len)
{
	size_t cap = 65536, have = 0;
	int fd = openat(target_live(t), "maps", O_RDONLY | O_CLOEXEC), err = 0;
	char *buf;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	buf = malloc(cap);
	if (!buf)
		err = -ENOMEM;
	while (!err) {
		ssize_t n = read(fd, buf + have, cap - 1 - have);
		char *more;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = -errno;
		if (n <= 0)
			break;
		have += (size_t)n;
		if (have < cap - 1)
			continue;
		more = cap < MAPS_MAX ? realloc(buf, cap * 2) : NULL;
		if (more) {
			buf = more;
			cap *= 2;
		} else {
			err = -E2BIG;
		}
	}
	close(fd);
	if (!err && !have)
		err = -ESRCH; /* a zombie, or this thread has ended */
	if (err) {
		free(buf);
		return err;
	}
	buf[have] = '\0';
	*text = buf;
	*len = have;
	return 0;
}

/* "7f00-7f01 r-xp 00001000 08:02 1234    /lib/x.so" */
static bool parse_line(char *s, struct target_map *m)
{
	uint64_t major_no, minor_no;
	char *end;

	m->start = strtoull(s, &end, 16);
	if (*end != '-')
		return false;
	m->end = strtoull(end + 1, &end, 16);
	if (*end != ' ' || strnlen(end, 6) < 6)
		return false;
	m->read = end[1] == 'r';
	m->write = end[2] == 'w';
	m->exec = end[3] == 'x';
	m->offset = strtoull(end + 5, &end, 16);
	major_no = strtoull(end, &end, 16);
	if (*end != ':')
		return false;
	minor_no = strtoull(end + 1, &end, 16);
	m->dev = major_no << 20 | minor_no;
	m->ino = strtoull(end, &end, 10);
	while (*end == ' ')
		end++;
	m->path = end;
	return m->end > m->start;
}

static void read_maps(struct timed_read *e)
{
	int err = read_text(e->in, &e->buf, &e->len);

	if (err == -ESRCH && find_thread(e->in))
		err = read_text(e->in, &e->buf, &e->len);
	e->result = err;
}

int target_refresh(struct target *t)
{
	struct timed_read *e = timed_read_make(read_maps, "mappings", 0, "");
	struct target_map *maps = NULL;
	char *text, *keep, *line, *save = NULL;
	int n = 0, err = send_out(t, e);
	size_t len;
	bool changed;

	if (err)
		return err;
	err = (int)e->result;
	text = e->buf;
	len = e->len;
	e->buf = NULL;
	timed_read_free(e);
	if (err)
		return err;
	changed = !t->mapped || len != t->text_len;
	keep = text;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!array_room(maps, n)) {
			free(maps);
			free(keep);
			return -ENOMEM;
		}
		if (parse_line(line, &maps[n]))
			n++;
	}
	/* the newlines of both texts have already been replaced */
	changed = changed || memcmp(keep, t->text, len);
	free(t->maps);
	free(t->text);
	t->maps = maps;
	t->nmaps = n;
	t->text = keep;
	t->text_len = len;
	t->mapped = true;
	return changed;
}

int target_maps(struct target *t, const struct target_map **maps)
{
	int err = t->mapped ? 0 : target_refresh(t);

	*maps = t->maps;
	return err < 0 ? err : t->nmaps;
}

const struct target_map *target_map_at(struct target *t, uint64_t addr)
{
	size_t at;

	if (!t->mapped && target_refresh(t) < 0)
		return NULL;
	at = array_before(t->maps, t->nmaps, x, x->end <= addr);
	return at < (size_t)t->nmaps && t->maps[at].start <= addr ? &t->maps[at] : NULL;
}

/* ---- files ---- */

/* Never follows a link out of the process's root. */
static int open_below(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned int)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* Opens the file that a link in map_files leads to, if it is a regular file. */
static int open_link(int dir, const char *name)
{
	struct stat st;
	int fd = openat(dir, name, O_PATH | O_CLOEXEC);

	/* not opened with O_RDONLY at once: opening a device or a FIFO may have effects or wait */
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	close(fd);
	fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_root(struct reach *in)
{
	/* O_PATH: this does not ask a file server */
	if (in->root < 0)
		in->root = openat(target_live(in), "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (in->root < 0 && errno == ENOENT && find_thread(in))
		in->root = openat(target_live(in), "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return in->root >= 0 ? in->root : -errno;
}

static int open_mapped(struct timed_read *e)
{
	struct stat st;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, e->start, e->end);
	fd = open_link(target_live(e->in), name);
	if (fd == -ENOENT && find_thread(e->in))
		fd = open_link(target_live(e->in), name);
	/* without CAP_CHECKPOINT_RESTORE, open it by its path below the process's root, if it is
	 * still the same file */
	if ((fd == -EPERM || fd == -EACCES) && e->path[0] == '/' && open_root(e->in) >= 0) {
		fd = open_below(e->in->root, e->path, O_RDONLY | O_NONBLOCK);
		if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_ino != e->ino)) {
			close(fd);
			fd = -ENOENT;
		}
	}
	return fd;
}

static void open_map(struct timed_read *e)
{
	struct statfs fs;
	int fd = open_mapped(e);

	if (fd >= 0 && !fstatfs(fd, &fs) && fs.f_type == FUSE_SUPER_MAGIC) {
		close(fd);
		fd = -EREMOTE;
	}
	e->result = fd;
}

int target_open_map(struct target *t, const struct target_map *m)
{
	struct timed_read *e = m->ino ? timed_read_make(open_map, "files", 0, m->path) : NULL;

	if (!m->ino)
		return -EINVAL;
	if (e) {
		e->opens = true;
		e->start = m->start;
		e->end = m->end;
		e->ino = m->ino;
	}
	return (int)send_for_result(t, e);
}

static void open_path(struct timed_read *e)
{
	int root = e->in ? open_root(e->in) : -ESRCH,
	    fd = root >= 0 ? open_below(root, e->path, O_PATH) : root;
	struct stat st;
	struct statfs fs;
	char name[32];

	/* the process is gone: perhaps it had the same root as we have */
	if (fd == -ESRCH || fd == -ENOENT)
		fd = open(e->path, O_PATH | O_CLOEXEC);
	e->result = fd < 0 ? -ENOENT : -EREMOTE;
	if (fd < 0)
		return;
	/* checked before it is opened, because opening a device may have effects */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !fstatfs(fd, &fs) &&
	    fs.f_type != FUSE_SUPER_MAGIC)
		e->result = open(name, O_RDONLY | O_CLOEXEC);
	close(fd);
}

int target_open_path(struct target *t, const char *path)
{
	struct timed_read *e = timed_read_make(open_path, "files", 0, path);
	int err;

	if (e)
		e->opens = true;
	if (t)
		return (int)send_for_result(t, e);
	err = e ? bounded_run(&e->job, BOUNDED_NOBODY, LIMIT_MS) : -ENOMEM;
	if (!err)
		err = (int)e->result;
	if (e && err != -ETIMEDOUT)
		timed_read_free(e);
	return err;
}

static void open_root_timed(struct timed_read *e)
{
	e->result = open_root(e->in);
}

int target_root(struct target *t)
{
	/* it was found before, or can be had without looking for a thread */
	if (t->in && t->in->root >= 0)
		return t->in->root;
	return (int)send_for_result(t, timed_read_make(open_root_timed, "root", 0, ""));
}
