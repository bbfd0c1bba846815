/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_discover.c - finding files to probe, without BPF: mappings come from /proc here. This
 * program defines a function by one of CUDA's names; copies of it, and children that map them,
 * are what is to be found. Without root the same is tried by name instead of map_files, and once
 * a second instead of at the kernel's word.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../user/source/discover/discover.h"
#include "../../user/util/now.h"
#include "../../user/source/discover/files.h"
#include "../../user/source/discover/library_paths.h"
#include "../../user/source/discover/scans.h"
#include "unit.h"

int cudaMalloc(void **p, size_t n);
__attribute__((noinline, used)) int cudaMalloc(void **p, size_t n)
{
	*p = NULL;
	return n != 0;
}

static char dir[] = "/tmp/test_discover.XXXXXX";
static struct capture_plan plan;

struct seen {
	int n, gone, rewritten;
	bool wrong; /* found() while the file has probes */
	char path[512];
	pid_t pid;
};

static int on_found(void *ctx, struct probe_file *f, pid_t pid)
{
	struct seen *s = ctx;

	if (strncmp(f->path, dir, strlen(dir)))
		return 0;
	s->n++;
	s->wrong |= s->n - s->gone > 1;
	snprintf(s->path, sizeof(s->path), "%s", f->path);
	s->pid = pid;
	CHECK(f->scan.nprobes == 1 && f->scan.probes[0].offset && f->fd >= 0 && f->ino);
	return 0;
}

static void on_gone(void *ctx, struct probe_file *f, bool rewritten)
{
	struct seen *s = ctx;

	if (strncmp(f->path, dir, strlen(dir)))
		return;
	s->gone++;
	s->rewritten += rewritten;
}

static unsigned three(void *ctx, const struct probe_file *f)
{
	(void)ctx, (void)f;
	return 3;
}

static const struct discover_ops ops = { .found = on_found, .gone = on_gone, .cost = three };

static const char *copy_self(const char *name)
{
	static char path[256];
	char cmd[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(cmd, sizeof(cmd), "cp /proc/%d/exe %s", getpid(), path);
	if (system(cmd))
		abort();
	return path;
}

static void *map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	close(fd);
	if (p == MAP_FAILED)
		abort();
	return p;
}

/* A child that maps `path`, now or at the first byte from the returned pipe, and waits to be
 * killed. */
static pid_t child(const char *path, int *go)
{
	int ready[2], start[2];
	pid_t pid;
	char c;

	if (pipe2(ready, O_CLOEXEC) || pipe2(start, O_CLOEXEC))
		abort();
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!go)
			map(path);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		if (go && read(start[0], &c, 1) == 1)
			map(path);
		pause();
		_exit(0);
	}
	if (read(ready[0], &c, 1) != 1)
		abort();
	close(ready[0]);
	close(ready[1]);
	close(start[0]);
	if (go)
		*go = start[1];
	else
		close(start[1]);
	return pid;
}

static bool child_maps(pid_t pid, const char *path)
{
	char maps[64], *text = NULL;
	bool there = false;

	snprintf(maps, sizeof(maps), "/proc/%d/maps", pid);
	for (int i = 0; i < 3000 && !there; i++) {
		text = unit_read(maps);
		there = text && strstr(text, path);
		free(text);
		if (!there)
			poll(NULL, 0, 10);
	}
	return there;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool wait_for(struct discover *d, const struct seen *s, int n)
{
	struct pollfd p = { .events = POLLIN };

	if (discover_fds(d, &p.fd, 1) != 1)
		return false;
	for (int i = 0; i < 3000 && s->n < n; i++) {
		poll(&p, 1, 10);
		discover_drain(d);
	}
	return s->n == n;
}

/* Looks at the process; what takes longer than the main loop may wait comes later. */
static bool finds(struct discover *d, pid_t pid, const struct seen *s, int n)
{
	return discover_scan_pid(d, pid) >= 0 && wait_for(d, s, n);
}

/* Looks at the process, or at all (0), until the answer is whole: so many files, and so many that are
 * news. Where others have the processors, what is looked for may come later. */
static bool scanned(struct discover *d, pid_t pid, int files, const struct seen *s, int n)
{
	int got = 0;

	for (int i = 0; i < 3000; i++) {
		got = pid ? discover_scan_pid(d, pid) : discover_scan(d);
		if (got < 0 || (got >= files && s->n == n))
			break;
		poll(NULL, 0, 10);
		discover_drain(d);
	}
	return got >= files && s->n == n;
}

static bool wait_refused(struct discover *d, uint64_t n)
{
	for (int i = 0; i < 3000 && discover_refused(d) < n; i++) {
		poll(NULL, 0, 10);
		discover_drain(d);
	}
	return discover_refused(d) == n;
}

static struct discover *start(struct seen *s, const pid_t *pids, int npids)
{
	struct discover *d;

	memset(s, 0, sizeof(*s));
	plan.pids = pids;
	plan.npids = npids;
	CHECK(discover_open(&d, &plan, -1, &ops, s) == 0);
	/* Nobody blocks his mappings here: who is not listed in time only has no processor. */
	maps_impatient(false);
	return d;
}

static void test_running(void)
{
	const char *path = copy_self("running.so");
	pid_t pid = child(path, NULL), other;
	struct probe_file **files;
	struct discover *d;
	struct seen s;

	d = start(&s, &pid, 1);
	CHECK(scanned(d, 0, 1, &s, 1) && s.pid == pid && !strcmp(s.path, path));
	CHECK(scanned(d, 0, 1, &s, 1));
	CHECK(scanned(d, pid, 1, &s, 1));
	CHECK(discover_files(d, &files) >= 1 && files[0]->fd < 0 && !probe_file_open(files[0]) &&
	      files[0]->fd >= 0);
	probe_file_shut(files[0]);
	/* The same file in another process is no news. */
	other = child(path, NULL);
	CHECK(scanned(d, other, 1, &s, 1));
	end(other);
	end(pid);
	CHECK(scanned(d, 0, 1, &s, 1)); /* gone: no error */
	discover_close(d);
}

/* Deleted files and processes in which another mapping has the name. */
/* cudatrace has no descriptor left for a moment: what a process maps is found when there are some again. */
static void test_no_descriptors(void)
{
	struct rlimit was, few;
	pid_t pid = child(copy_self("short.so"), NULL);
	int fds[256], n = 0;
	struct discover *d;
	struct seen s;

	CHECK(!getrlimit(RLIMIT_NOFILE, &was));
	few = (struct rlimit){ 256, was.rlim_max };
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	d = start(&s, &pid, 1);
	while (n < 256 && (fds[n] = dup(0)) >= 0)
		n++;
	CHECK(discover_scan_pid(d, pid) >= 0 && !s.n);
	while (n)
		close(fds[--n]);
	CHECK(wait_for(d, &s, 1));
	CHECK(!setrlimit(RLIMIT_NOFILE, &was));
	end(pid);
	discover_close(d);
}

static void test_deleted(void)
{
	const char *path = copy_self("deleted.so");
	pid_t pid = child(path, NULL);
	struct discover *d;
	struct seen s;

	unlink(path);
	d = start(&s, &pid, 1);
	/* map_files takes privilege; by name it cannot be had any more */
	CHECK(scanned(d, 0, 0, &s, geteuid() == 0));
	discover_close(d);
	end(pid);
}

/* An inode number is given away again once its file is gone: the new file must not get the old
 * one's entry. */
static void test_reused(void)
{
	struct timespec pause_ns = { .tv_nsec = 60000000 };
	struct discover *d;
	char path[256], cmd[600];
	struct stat a, b;
	struct seen s;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/reused.so", dir);
	snprintf(cmd, sizeof(cmd), "cp /bin/true %s", path);
	CHECK(system(cmd) == 0 && stat(path, &a) == 0);
	pid = child(path, NULL);
	d = start(&s, NULL, 0);
	CHECK(discover_scan_pid(d, pid) >= 0 && s.n == 0);
	end(pid);
	nanosleep(&pause_ns, NULL);
	/* In place: the same number for certain. */
	snprintf(cmd, sizeof(cmd), "cat /proc/%d/exe > %s", getpid(), path);
	CHECK(system(cmd) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino);
	pid = child(path, NULL);
	CHECK(finds(d, pid, &s, 1));
	discover_close(d);
	end(pid);
}

/* What nobody maps is let go: at once when it has no name any more. */
static void test_let_go(void)
{
	const char *path = copy_self("let_go.so");
	pid_t pid = child(path, NULL), other = child(path, NULL), pids[] = { pid, other };
	struct discover *d;
	struct seen s;

	if (geteuid())
		goto out;
	unlink(path);
	d = start(&s, pids, 2);
	CHECK(scanned(d, 0, 1, &s, 1) && !s.gone);
	end(pid);
	/* the other one maps it */
	for (int i = 0; i < 150; i++) {
		poll(NULL, 0, 10);
		discover_drain(d);
	}
	CHECK(!s.gone);
	end(other);
	for (int i = 0; i < 6000 && !s.gone; i++) {
		poll(NULL, 0, 10);
		discover_drain(d);
	}
	CHECK(s.gone == 1 && !s.rewritten && s.n == 1);
	discover_close(d);
	return;
out:
	end(pid);
	end(other);
}

static void rewrite(const char *path, bool by_mapping)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct elf_scan scan;
	struct stat st;
	char *p, byte = 0;

	CHECK(elf_scan(fd, NULL, &scan) == 0 && scan.nprobes == 1);
	CHECK(fstat(fd, &st) == 0 && pread(fd, &byte, 1, (off_t)scan.probes[0].offset) == 1);
	byte = (char)~byte;
	if (by_mapping) {
		p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		CHECK(p != MAP_FAILED);
		p[scan.probes[0].offset] = byte;
		munmap(p, (size_t)st.st_size);
	} else {
		CHECK(pwrite(fd, &byte, 1, (off_t)scan.probes[0].offset) == 1);
	}
	elf_scan_free(&scan);
	close(fd);
}

/* Other functions in the same file: the old ones are gone before the new ones are found, whether
 * the kernel has told of it or not. */
static void test_rewritten(bool by_mapping)
{
	const char *path = copy_self(by_mapping ? "mapped_anew.so" : "rewritten.so");
	pid_t pid = child(path, NULL), other;
	struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };
	struct discover *d;
	struct seen s;

	d = start(&s, NULL, 0);
	CHECK(finds(d, pid, &s, 1));
	/* another time alone is nothing */
	CHECK(utimensat(AT_FDCWD, path, now, 0) == 0);
	CHECK(scanned(d, pid, 1, &s, 1) && !s.gone);
	poll(NULL, 0, 20); /* the time of change is told in ticks */
	rewrite(path, by_mapping);
	CHECK(finds(d, pid, &s, 2));
	CHECK(s.gone == 1 && s.rewritten == 1 && !s.wrong);
	other = child(path, NULL);
	CHECK(scanned(d, other, 1, &s, 2) && s.gone == 1);
	discover_close(d);
	end(pid);
	end(other);
}

/* ---- files that take long to be searched ---- */

static ino_t slow_ino;
static int slow_err, slow_pipe[2];

/* The reader is held until the test writes, as by a page that nobody serves. */
static int held(int fd, const uint64_t *capture, uint64_t until_ns, struct elf_scan *out)
{
	struct stat st;
	char c;

	(void)until_ns;
	if (!fstat(fd, &st) && st.st_ino == slow_ino && read(slow_pipe[0], &c, 1) == 1 && slow_err)
		return slow_err;
	return elf_scan(fd, capture, out);
}

static int nlate;
static pid_t late_pid;

static void on_late(void *ctx, pid_t pid, uint64_t from_ns, uint64_t to_ns)
{
	(void)ctx, (void)from_ns, (void)to_ns;
	nlate += pid == late_pid;
}

/* While a file is being searched the others are found; and when it is done it is probed, and
 * those that mapped it meanwhile are told of. */
static void test_slow(int err)
{
	const char *path = copy_self(err ? "libcudart.so.bad" : "slow.so");
	struct discover *d;
	struct stat st;
	struct seen s;
	pid_t slow, quick;
	int go;

	CHECK(!stat(path, &st) && !pipe2(slow_pipe, O_CLOEXEC));
	slow_ino = st.st_ino;
	slow_err = err;
	scans_by = held;
	late_pid = slow = child(path, &go);
	d = start(&s, NULL, 0);
	discover_on_unprobed(d, on_late);
	discover_begin(d, now_ns());
	nlate = 0;
	CHECK(write(go, "", 1) == 1);
	CHECK(child_maps(slow, path));
	/* by the kernel's word, if it gives it, and without */
	CHECK(discover_drain(d) >= 0);
	CHECK(discover_scan_pid(d, slow) >= 0);
	CHECK(!s.n);
	/* the held file may have used up all the time that we wait for its user's files */
	quick = child(copy_self("quick.so"), NULL);
	CHECK(finds(d, quick, &s, 1));
	CHECK(s.pid == quick);
	/* nor is it begun again */
	CHECK(discover_scan_pid(d, slow) >= 1);
	CHECK(s.n == 1 && !nlate);
	CHECK(write(slow_pipe[1], "", 1) == 1);
	if (err) {
		/* the pipe is read, and nothing comes of it */
		CHECK(wait_refused(d, 1));
		CHECK(s.n == 1);
	} else {
		CHECK(wait_for(d, &s, 2));
		CHECK(s.pid == slow);
		CHECK(geteuid() || CHECK_EQ(1, nlate));
	}
	discover_end(d, now_ns());
	CHECK(!err || !nlate);
	discover_close(d);
	end(slow);
	end(quick);
	scans_by = elf_scan_until;
	close(slow_pipe[0]);
	close(slow_pipe[1]);
	close(go);
}

/* A file that may have been rewritten lies where nobody serves it any more: its probes are given up,
 * and we are not held up. */
static void test_compare_held(void)
{
	struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };
	const char *path = copy_self("unserved.so");
	pid_t pid = child(path, NULL);
	struct bounded_counts counts;
	struct discover *d;
	struct stat st;
	struct seen s;

	CHECK(!stat(path, &st) && !pipe2(slow_pipe, O_CLOEXEC));
	slow_ino = st.st_ino;
	slow_err = -EIO;
	d = start(&s, NULL, 0);
	CHECK(finds(d, pid, &s, 1));
	scans_by = held;
	poll(NULL, 0, 20); /* the time of change is told in ticks */
	CHECK(utimensat(AT_FDCWD, path, now, 0) == 0);
	CHECK(discover_scan_pid(d, pid) >= 0);
	CHECK(s.n == 1 && s.gone == 1 && s.rewritten == 1);
	CHECK(write(slow_pipe[1], "12", 2) == 2);
	do {
		poll(NULL, 0, 1);
		bounded_counts(&counts);
	} while (counts.held);
	discover_close(d);
	end(pid);
	scans_by = elf_scan_until;
	close(slow_pipe[0]);
	close(slow_pipe[1]);
}

static int crashes(int fd, const uint64_t *capture, uint64_t until_ns, struct elf_scan *scan)
{
	struct stat st;

	if (!fstat(fd, &st) && st.st_ino == slow_ino)
		kill(getpid(), SIGKILL);
	return elf_scan_until(fd, capture, until_ns, scan);
}

/* A library by which its reader crashes is said to be refused, and others are found. */
static void test_crashed(void)
{
	const char *path = copy_self("libcudart.so.crash");
	pid_t first = child(path, NULL), other;
	struct bounded_counts before, after;
	struct discover *d;
	struct stat st;
	struct seen s;

	CHECK(!stat(path, &st));
	slow_ino = st.st_ino;
	other = child(copy_self("other.so"), NULL);
	scans_by = crashes;
	bounded_counts(&before);
	d = start(&s, NULL, 0);
	CHECK(discover_scan_pid(d, first) >= 0 && !s.n);
	CHECK(wait_refused(d, 1));
	CHECK(finds(d, other, &s, 1));
	CHECK(scanned(d, first, 1, &s, 1));
	bounded_counts(&after);
	CHECK_EQ(before.crashed + 1, after.crashed);
	CHECK_EQ(0, after.held);
	discover_close(d);
	end(first);
	end(other);
	scans_by = elf_scan_until;
}

static void test_shares(void)
{
	struct shares s = { .limit = 100 };

	CHECK(shares_fit(&s, 1, 50, 0) && !shares_fit(&s, 1, 51, 0) &&
	      shares_fit(&s, SHARES_INSTALLED, 100, 0));
	CHECK(shares_take(&s, 1, 50) == 0);
	CHECK(!shares_fit(&s, 1, 1, 0) && shares_fit(&s, 2, 25, 0) && !shares_fit(&s, 2, 26, 0) &&
	      !shares_fit(&s, 2, 25, 10));
	CHECK(shares_take(&s, 2, 25) == 0 && shares_take(&s, 3, 12) == 0);
	CHECK(!shares_fit(&s, 3, 1, 0) && shares_fit(&s, 4, 6, 0));
	shares_give(&s, 1, 50);
	CHECK(s.n == 2 && s.used == 37 && shares_fit(&s, 3, 10, 0));
	s.limit = 0;
	CHECK(shares_fit(&s, 1, 1000000, 0));
	shares_free(&s);
}

/* A user whose programs map too much is refused; what is refused is found when there is room. */
static void test_refused(void)
{
	pid_t pids[4];
	struct discover *d;
	struct seen s;
	char name[32];

	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "refused.%d.so", i);
		pids[i] = child(copy_self(name), NULL);
	}
	d = start(&s, pids, 4);
	/* half of that for one user: this program, which they run, and two files */
	discover_limit(d, 18);
	CHECK(scanned(d, 0, 3, &s, 2) && discover_refused(d) == 2);
	CHECK(scanned(d, 0, 3, &s, 2) && discover_refused(d) == 2);
	for (int i = 0; i < 4; i++)
		if (i < 2)
			end(pids[i]);
	for (int i = 0; i < 6000 && s.n < 4; i++) {
		poll(NULL, 0, 10);
		discover_drain(d);
		discover_scan_pid(d, pids[2]);
		discover_scan_pid(d, pids[3]);
	}
	/* the first two have names, and were kept until the others came */
	CHECK(s.n == 4 && s.gone == 2 && discover_refused(d) == 2);
	discover_close(d);
	end(pids[2]);
	end(pids[3]);
}

static void test_later(void)
{
	const char *path = copy_self("later.so");
	pid_t pid, unrelated;
	struct discover *d;
	int go, go2;
	struct seen s;

	pid = child(path, &go);
	d = start(&s, &pid, 1);
	CHECK(discover_scan(d) >= 0 && s.n == 0);
	CHECK(write(go, "", 1) == 1);
	CHECK(wait_for(d, &s, 1) && s.pid == pid);
	/* A process that is not ours is left alone, until it is. */
	path = copy_self("stray.so");
	unrelated = child(path, &go2);
	CHECK(write(go2, "", 1) == 1);
	CHECK(child_maps(unrelated, path));
	for (int i = 0; i < 10; i++) {
		poll(NULL, 0, 10);
		discover_drain(d);
	}
	CHECK(s.n == 1);
	CHECK(discover_add_pid(d, unrelated) >= 0 && wait_for(d, &s, 2));
	discover_close(d);
	close(go);
	close(go2);
	end(pid);
	end(unrelated);
}

static void *map_and_stay(void *arg)
{
	int *ready = arg;

	/* The main thread ends first, in whatever order the two arrive here. */
	map(getenv("TEST_MAP"));
	poll(NULL, 0, 50);
	if (write(*ready, "", 1) == 1)
		pause();
	return NULL;
}

/* The main thread has ended: /proc shows the process's memory under the other thread's number only. */
static void test_headless(void)
{
	const char *path = copy_self("headless.so");
	struct discover *d;
	struct seen s;
	int ready[2];
	pid_t pid;
	char c;

	setenv("TEST_MAP", path, 1);
	if (pipe2(ready, O_CLOEXEC))
		abort();
	pid = fork();
	if (!pid) {
		pthread_t t;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_create(&t, NULL, map_and_stay, &ready[1]);
		pthread_exit(NULL);
	}
	CHECK(read(ready[0], &c, 1) == 1);
	d = start(&s, &pid, 1);
	CHECK(scanned(d, 0, 0, &s, 1));
	discover_close(d);
	close(ready[0]);
	close(ready[1]);
	end(pid);
}

static void test_library(void)
{
	const char *path = copy_self("library.so");
	struct discover *d;
	struct seen s;

	plan.library = path;
	d = start(&s, NULL, 0);
	CHECK(scanned(d, 0, 1, &s, 1) && s.pid == 0);
	CHECK(scanned(d, 0, 1, &s, 1));
	CHECK(discover_fds(d, &(int){ 0 }, 1) == 1 && discover_drain(d) == 1);
	discover_close(d);
	plan.library = NULL;
}

static void test_file_cache(void)
{
	struct file_cache t = { 0 };
	struct probe_file some;
	int bad = 0;

	for (uint64_t i = 1; i <= 70000; i++) {
		struct cached_file *v = file_cache_get(&t, i % 7, i);

		bad += !v || v->checked_ns;
		if (v)
			v->checked_ns = i;
		if (v && i % 1000 == 0)
			v->file = &some;
	}
	for (uint64_t i = 1; i <= 70000; i++)
		bad += file_cache_get(&t, i % 7, i)->checked_ns != i;
	file_cache_trim(&t);
	CHECK(!bad && t.all.n == 70);
	for (uint64_t i = 1000; i <= 70000; i += 1000)
		bad += file_cache_get(&t, i % 7, i)->checked_ns != i;
	CHECK(!bad && t.all.n == 70);
	file_cache_free(&t);
}

/* What a cache names, in its order, with a space behind each. */
static void add_path(void *ctx, const char *path)
{
	char *text = ctx;
	size_t len = strlen(text);

	CHECK(strlen(path) < 100000);
	snprintf(text + len, 512 - len, "%s ", path);
}

static const char *in_cache(const void *bytes, size_t len)
{
	static char text[512];
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cache", dir);
	f = fopen(path, "we");
	if (!f || fwrite(bytes, 1, len, f) != len || fclose(f))
		abort();
	text[0] = '\0';
	library_paths_cache(path, add_path, text);
	return text;
}

#define CACHE_STRINGS                                                                    \
	"libc.so.6\0/lib/libc.so.6\0libcuda.so.1\0/x/libcuda.so.1\0libcudart.so.13\0/y/" \
	"libcudart.so.13"
enum {
	CACHE_HEAD = 48,
	CACHE_ENTRY = 24,
	CACHE_N = 3,
	CACHE_BASE = CACHE_HEAD + CACHE_N * CACHE_ENTRY
};

struct cache {
	uint8_t bytes[CACHE_BASE + sizeof(CACHE_STRINGS)];
};

/* A loader's cache of three libraries, two of them CUDA's. */
static struct cache make_cache(void)
{
	static const uint32_t keys[CACHE_N][2] = { { 0, 10 }, { 25, 38 }, { 54, 70 } };
	struct cache c = { "glibc-ld.so.cache1.1" };

	c.bytes[20] = CACHE_N;
	for (int i = 0; i < CACHE_N; i++)
		for (int k = 0; k < 2; k++) {
			uint32_t at = CACHE_BASE + keys[i][k];

			memcpy(c.bytes + CACHE_HEAD + i * CACHE_ENTRY + 4 + k * 4, &at, 4);
		}
	memcpy(c.bytes + CACHE_BASE, CACHE_STRINGS, sizeof(CACHE_STRINGS));
	return c;
}

/* The loader's cache: a made one, one with a number at a time that is wrong, and the same cut off anywhere. */
static void test_cache(void)
{
	static const struct {
		const char *what;
		size_t at;
		uint32_t value;
		const char *paths;
	} rows[] = {
		{ "as it is", 0, 0x62696c67, "/x/libcuda.so.1 /y/libcudart.so.13 " },
		{ "another format", 16, 0x322e3165, "" },
		{ "fewer entries", 20, 2, "/x/libcuda.so.1 " },
		{ "none", 20, 0, "" },
		{ "a name behind the end", 76, sizeof(struct cache), "/y/libcudart.so.13 " },
		{ "a name far away", 76, UINT32_MAX, "/y/libcudart.so.13 " },
		{ "a path behind the end", 80, sizeof(struct cache), "/y/libcudart.so.13 " },
		{ "a path far away", 80, UINT32_MAX, "/y/libcudart.so.13 " },
		{ "a path that is the last byte", 80, sizeof(struct cache) - 1,
		  " /y/libcudart.so.13 " },
		{ "another library", 76, CACHE_BASE, "/y/libcudart.so.13 " },
	};
	struct cache c = make_cache();
	char path[256];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cache bad = c;

		CASE_ROW("%s", rows[i].what);
		memcpy(bad.bytes + rows[i].at, &rows[i].value, 4);
		CHECK_TEXT(rows[i].paths, in_cache(&bad, sizeof(bad)));
	}
	for (size_t len = 0; len < sizeof(c); len++) {
		const char *got = in_cache(&c, len);

		CASE_ROW("cut at %zu", len);
		/* strings that are cut end there; entries that are cut are none */
		if (len <= CACHE_BASE + 38)
			CHECK_TEXT("", got);
		else if (len > CACHE_BASE + 70)
			CHECK(!strncmp(got, "/x/libcuda.so.1 /y", 18 - (len == CACHE_BASE + 71)));
	}
	/* more entries than there is room for: what follows is taken for entries, and nothing is read behind it */
	c.bytes[20] = c.bytes[21] = c.bytes[22] = c.bytes[23] = 0xff;
	CASE_ROW("too many entries");
	CHECK(!strncmp(in_cache(&c, sizeof(c)), "/x/libcuda.so.1 /y/libcudart.so.13 ", 35));
	CASE_ROW("no file");
	CHECK_TEXT("", in_cache("", 0));
	snprintf(path, sizeof(path), "%s/cache", dir);
	CHECK(!unlink(path));
	library_paths_cache(path, add_path, path);
	library_paths_cache(dir, add_path, path);
	library_paths_cache("/dev/zero", add_path, path);
	CHECK(strstr(path, "/cache") && !strstr(path, " "));
}

/* A cache that older loaders read, too: the older format comes first, 12 bytes for each of its entries. */
static void test_old_cache(void)
{
	static const struct {
		uint32_t n;
		size_t bytes; /* what precedes the newer cache, which begins at a multiple of 8 */
		bool found;
	} rows[] = { { 0, 16, true },	  { 1, 32, true },	    { 2, 40, true },
		     { 2, 48, false },	  { 3, 56, true },	    { 3, 32, false },
		     { 1000, 40, false }, { UINT32_MAX, 40, false } };
	struct cache c = make_cache();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t bytes[64 + sizeof(c)] = "ld.so-1.7.0";

		CASE_ROW("%u entries, %zu bytes", rows[i].n, rows[i].bytes);
		memcpy(bytes + 12, &rows[i].n, 4);
		memcpy(bytes + rows[i].bytes, &c, sizeof(c));
		CHECK_TEXT(rows[i].found ? "/x/libcuda.so.1 /y/libcudart.so.13 " : "",
			   in_cache(bytes, rows[i].bytes + sizeof(c)));
	}
	CASE_ROW("nothing behind it");
	CHECK_TEXT("", in_cache("ld.so-1.7.0\0\0\0\0\0", 16));
	CHECK_TEXT("", in_cache("ld.so-1.7.0\0\1\0\0\0", 16));
	CHECK_TEXT("", in_cache("ld.so-1.7.0\0\1\0", 15));
}

struct wanted_path {
	char path[256];
	int found;
};

static void want_path(void *ctx, const char *path)
{
	struct wanted_path *w = ctx;

	w->found += !strcmp(path, w->path);
}

/* The folders that variables of the environment name, and those of Python's packages below them. */
static void test_homes(void)
{
	static const struct {
		const char *variable, *below;
		int found;
	} rows[] = {
		{ "CUDA_HOME", "lib64", 1 },
		{ "CUDA_PATH", "lib64", 1 },
		{ "CUDA_PATH", "lib", 0 },
		{ "CONDA_PREFIX", "lib", 1 },
		{ "CONDA_PREFIX", "lib/python3.11/site-packages/nvidia/cuda_runtime/lib", 1 },
		{ "VIRTUAL_ENV", "lib/python3.11/site-packages/nvidia/cu13/lib", 1 },
		{ "VIRTUAL_ENV", "lib", 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *was = getenv(rows[i].variable);
		char *kept = was ? strdup(was) : NULL, home[128], command[768];
		struct wanted_path w = { .found = 0 };

		CASE_ROW("%s %s", rows[i].variable, rows[i].below);
		snprintf(home, sizeof(home), "%s/home%zu", dir, i);
		snprintf(w.path, sizeof(w.path), "%s/%s/libcudart.so.13", home, rows[i].below);
		snprintf(command, sizeof(command), "mkdir -p %s/%s && touch %s", home,
			 rows[i].below, w.path);
		CHECK(!system(command));
		setenv(rows[i].variable, home, 1);
		library_paths_list(want_path, &w);
		CHECK_EQ(rows[i].found, w.found);
		/* a path that depends on where cudatrace was started is none */
		setenv(rows[i].variable, "home", 1);
		library_paths_list(want_path, &w);
		CHECK_EQ(rows[i].found, w.found);
		if (kept)
			setenv(rows[i].variable, kept, 1);
		else
			unsetenv(rows[i].variable);
		free(kept);
	}
}

/* ---- processes whose mappings cannot be listed ---- */

static int release[2]; /* a pipe: who is held waits until its other end is closed */
static _Atomic pid_t held_pid;

static void hold_listing(pid_t pid)
{
	char c;

	if ((!pid || pid == held_pid) && read(release[0], &c, 1) < 0)
		abort();
}

static pid_t idle_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	return pid;
}

static int count_mappings(void *ctx, const struct ct_vma *v)
{
	const pid_t *pids = ((void **)ctx)[0];
	int *n = ((void **)ctx)[1];

	n[0] += (pid_t)v->pid == pids[0];
	n[1] += (pid_t)v->pid == pids[1];
	return 0;
}

/* A process that holds the lock of its mappings, or has too many of them, is left out; others are
 * listed. Without a limit this test does not end. */
static void test_unlisted(void)
{
	pid_t pids[2] = { idle_child(), idle_child() };
	const pid_t *unlisted;
	int n[2] = { 0, 0 };
	void *ctx[] = { pids, n };
	bool there = false;

	CHECK(!pipe(release));
	held_pid = pids[0];
	maps_begins = hold_listing;
	maps_impatient(true);
	CHECK_EQ(-EAGAIN, maps_read(-1, pids[0], count_mappings, ctx));
	CHECK(maps_read(-1, pids[1], count_mappings, ctx) > 0);
	CHECK(!n[0] && n[1] > 0);
	/* not even asked again */
	CHECK_EQ(-EAGAIN, maps_read(-1, pids[0], count_mappings, ctx));
	/* the pass over all is held too: each is listed by itself */
	n[1] = 0;
	CHECK_EQ(-EAGAIN, maps_read(-1, 0, count_mappings, ctx));
	CHECK(!n[0] && n[1] > 0);
	for (int i = maps_unlisted(&unlisted); i-- > 0;)
		there |= unlisted[i] == pids[0];
	CHECK(there);
	close(release[1]);
	maps_begins = NULL;
	maps_impatient(false);
	for (int i = 0; i < 2; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	close(release[0]);
}

/* Our own mappings cannot be listed in time: files that nobody has mapped are found all the same. */
static void test_own_unlisted(void)
{
	struct discover *d;
	struct seen s;

	CHECK(!pipe(release));
	held_pid = getpid();
	plan.library = copy_self("own_unlisted.so");
	d = start(&s, NULL, 0);
	maps_begins = hold_listing;
	maps_impatient(true);
	CHECK_EQ(1, discover_scan(d));
	CHECK(s.n == 1 && s.pid == 0);
	close(release[1]);
	maps_begins = NULL;
	maps_impatient(false);
	discover_close(d);
	plan.library = NULL;
	close(release[0]);
}

int main(void)
{
	char cmd[300];
	void *p;

	if (!mkdtemp(dir) || !cudaMalloc(&p, 1))
		abort();
	memset(plan.capture, 0xff, sizeof(plan.capture));
	RUN(test_no_descriptors);
	RUN(test_running);
	RUN(test_deleted);
	RUN(test_reused);
	RUN(test_let_go);
	RUN(test_rewritten, false);
	RUN(test_rewritten, true);
	RUN(test_slow, 0);
	RUN(test_slow, -ETIME);
	RUN(test_compare_held);
	RUN(test_crashed);
	RUN(test_shares);
	RUN(test_refused);
	RUN(test_later);
	RUN(test_headless);
	RUN(test_library);
	RUN(test_file_cache);
	RUN(test_homes);
	RUN(test_cache);
	RUN(test_old_cache);
	RUN(test_own_unlisted);
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	CHECK(system(cmd) == 0);
	RUN(test_unlisted);
	return unit_end();
}
