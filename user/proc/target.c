/* SPDX-License-Identifier: BSD-2-Clause */
/* target.c - see target.h. Knows /proc; knows no record and no format of file. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target.h"

#define MAPS_MAX (64u << 20) /* bytes of /proc/PID/maps that are read */

struct target {
	pid_t pid;
	int dir, mem, root; /* of /proc/PID; -1: not opened yet */
	int thread;	    /* /proc/TID of a thread in place of the main one, which has ended; -1: not needed */
	struct target_map *maps;
	int nmaps;
	char *text; /* /proc/PID/maps; the paths point into it */
	size_t text_len;
	bool mapped;
};

/* When the process began, in clock ticks of boottime; 0: not to be had. */
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
	at = strrchr(buf, ')'); /* the name may hold anything */
	for (field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

int target_open(struct target **out, pid_t pid, uint64_t start_boottime_ns)
{
	struct target *t = calloc(1, sizeof(*t));
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	char path[32];
	int err;

	*out = NULL;
	if (!t)
		return -ENOMEM;
	t->pid = pid;
	t->mem = t->root = t->thread = -1;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	t->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dir < 0) {
		err = errno == ENOENT ? -ESRCH : -errno;
		free(t);
		return err;
	}
	/* stat is in our time namespace, boottime in the initial one: a tick's difference is no other process */
	if (start_boottime_ns) {
		uint64_t ticks = start_ticks(t->dir), want = start_boottime_ns / (1000000000 / hz);

		if (!ticks || (ticks > want ? ticks - want : want - ticks) > 1) {
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
	if (t->mem >= 0)
		close(t->mem);
	if (t->root >= 0)
		close(t->root);
	if (t->thread >= 0)
		close(t->thread);
	close(t->dir);
	free(t->maps);
	free(t->text);
	free(t);
}

pid_t target_pid(const struct target *t)
{
	return t->pid;
}

ssize_t target_proc(struct target *t, const char *name, char *buf, size_t size)
{
	int fd = openat(t->dir, name, O_RDONLY | O_CLOEXEC), err;
	size_t n = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	do {
		got = read(fd, buf + n, size - 1 - n);
		err = got < 0 ? -errno : 0;
		n += got > 0 ? (size_t)got : 0;
	} while (got > 0 && n < size - 1);
	close(fd);
	buf[n] = '\0';
	return n || !err ? (ssize_t)n : err;
}

ssize_t target_exe(struct target *t, char *buf, size_t size)
{
	ssize_t n = readlinkat(t->dir, "exe", buf, size - 1);

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return n;
}

/* ---- a process without its main thread -------------------------------------------------------------------- */

/* The directory that shows the process's memory and files. */
static int live(const struct target *t)
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
static int open_thread(const struct target *t, const char *tid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%.16s", tid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "task/%.16s", tid);
	/* whoever has the number now is one of this process's threads */
	if (fd >= 0 && (faccessat(t->dir, path, F_OK, 0) || !shows_memory(fd))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* A process keeps its memory when its main thread ends, but shows none of it under its own number. True: what has just
 * failed may succeed now. */
static bool find_thread(struct target *t)
{
	int fd, found = -1;
	struct dirent *e;
	DIR *tasks;

	if (shows_memory(live(t)))
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

/* ---- memory ------------------------------------------------------------------------------------------- */

static ssize_t read_some(struct target *t, uint64_t addr, void *buf, size_t len)
{
	bool opened = t->mem < 0;
	ssize_t n;

	if (addr > INT64_MAX)
		return -EFAULT;
	if (opened) {
		t->mem = openat(live(t), "mem", O_RDONLY | O_CLOEXEC);
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
	/* nothing there, or none any more: the process ended or exec'd; or its main thread ended */
	if (!opened)
		return -ESRCH;
	if (t->mem >= 0)
		close(t->mem);
	t->mem = -1;
	return find_thread(t) ? read_some(t, addr, buf, len) : -ESRCH;
}

int target_read(struct target *t, uint64_t addr, void *buf, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = read_some(t, addr + have, (char *)buf + have, len - have);

		if (n < 0)
			return (int)n;
		have += (size_t)n;
	}
	return 0;
}

ssize_t target_read_string(struct target *t, uint64_t addr, char *buf, size_t size)
{
	size_t have = 0;

	if (!size)
		return -EINVAL;
	while (have < size - 1) {
		/* page by page: the string may end just before what is not mapped */
		size_t room = size - 1 - have, page = 4096 - ((addr + have) & 4095);
		ssize_t n = read_some(t, addr + have, buf + have, room < page ? room : page);
		char *nul;

		if (n < 0)
			return n;
		nul = memchr(buf + have, '\0', (size_t)n);
		if (nul)
			return nul - buf;
		have += (size_t)n;
	}
	buf[have] = '\0';
	return -E2BIG;
}

/* ---- mappings ----------------------------------------------------------------------------------------- */

static int read_text(struct target *t, char **text, size_t *len)
{
	size_t cap = 65536, have = 0;
	int fd = openat(live(t), "maps", O_RDONLY | O_CLOEXEC), err = 0;
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

int target_refresh(struct target *t)
{
	struct target_map *maps = NULL;
	char *text = NULL, *keep, *line, *save = NULL;
	size_t len = 0;
	int n = 0, cap = 0, err = read_text(t, &text, &len);
	bool changed;

	if (err == -ESRCH && find_thread(t))
		err = read_text(t, &text, &len);
	if (err)
		return err;
	changed = !t->mapped || len != t->text_len;
	keep = text;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (n == cap) {
			struct target_map *more = realloc(maps, (size_t)(cap ? 2 * cap : 256) * sizeof(*maps));

			if (!more) {
				free(maps);
				free(keep);
				return -ENOMEM;
			}
			maps = more;
			cap = cap ? 2 * cap : 256;
		}
		if (parse_line(line, &maps[n]))
			n++;
	}
	/* both have their newlines replaced by now */
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
	int lo = 0, hi;

	if (!t->mapped && target_refresh(t) < 0)
		return NULL;
	hi = t->nmaps;
	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		if (addr >= t->maps[mid].end)
			lo = mid + 1;
		else if (addr < t->maps[mid].start)
			hi = mid;
		else
			return &t->maps[mid];
	}
	return NULL;
}

/* ---- files -------------------------------------------------------------------------------------------- */

/* Never follows a link out of the process's root. */
static int open_below(int root, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

int target_open_map(struct target *t, const struct target_map *m)
{
	char name[64];
	struct stat st;
	int fd, err;

	if (!m->ino)
		return -EINVAL;
	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, m->start, m->end);
	/* not O_RDONLY at once: opening a device or a FIFO may do something or wait */
	fd = openat(live(t), name, O_PATH | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && find_thread(t))
		fd = openat(live(t), name, O_PATH | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	if (fd >= 0)
		close(fd);
	fd = openat(live(t), name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	err = -errno;
	/* without CAP_CHECKPOINT_RESTORE: by its path below the process's root, if that is still the same file */
	if ((err == -EPERM || err == -EACCES) && m->path[0] == '/' && target_root(t) >= 0) {
		fd = open_below(t->root, m->path);
		if (fd < 0)
			return fd;
		if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == m->ino)
			return fd;
		close(fd);
		return -ENOENT;
	}
	return err;
}

int target_root(struct target *t)
{
	if (t->root < 0)
		t->root = openat(live(t), "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->root < 0 && errno == ENOENT && find_thread(t))
		t->root = openat(live(t), "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->root >= 0 ? t->root : -errno;
}
