/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_inject.c - injects into real programs (prog/inject_prog.c), which look whether anything of
 * theirs has changed, and reads the sentences of the refusals. As root, or as whoever may ptrace(2)
 * its own children.
 *
 * test_inject PID SO [HOW]: injects into a process by hand.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../user/session/inject_frames.h"
#include "../../user/source/inject/inject_remote.h"
#include "../../user/util/io/bounded.h"
#include "../../user/util/msg.h"
#include "prog/inject_prog.h"
#include "unit.h"

#define SRC "tests/unit/prog/"

static char dir[] = "/tmp/cudatrace-inject-XXXXXX";
static struct inject_frames *frames;
static char *so;
static size_t so_bytes;
static char said[4096]; /* on stderr, by the last inject() */

/* ---- a program under test ---- */

static struct shared *sh;
static pid_t pid;
static int input = -1; /* the program's standard input */

static void nap(long us)
{
	nanosleep(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 },
		  NULL);
}

static void begin_program(const char *program, const char *mode)
{
	int fd = memfd_create("shared", 0), pipes[2];
	char path[128];

	if (fd < 0 || ftruncate(fd, sizeof(*sh)) || pipe2(pipes, O_CLOEXEC))
		abort();
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	snprintf(path, sizeof(path), "%s/%s", dir, program);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(fd, 3);
		dup2(pipes[0], 0);
		execl(path, path, mode, NULL);
		_exit(127);
	}
	if (fd != 3)
		close(fd);
	close(pipes[0]);
	input = pipes[1];
	for (int i = 0; i < 10000 && !sh->ready; i++)
		nap(1000);
	if (!sh->ready)
		printf("%s %s did not get ready\n", program, mode);
}

static void begin(const char *mode)
{
	begin_program("prog", mode);
}

/* Until it has gone round once more, twice. */
static void rounds(void)
{
	for (long was = sh->rounds, i = 0; i < 20000 && sh->rounds < was + 2; i++)
		nap(1000);
}

/* Tells it to stop; its result is what it would have been. */
static void end(const char *mode)
{
	int status = -1;

	sh->stop = 1;
	close(input);
	if (waitpid(pid, &status, 0) != pid || status || sh->bad)
		printf("%s: status %#x, bad %ld\n", mode, status, sh->bad);
	CHECK(status == 0);
	CHECK(sh->bad == 0);
	munmap((void *)sh, sizeof(*sh));
}

static int inject_how(struct inject_result *r, const char *how, int limit_ms)
{
	struct inject_what what = {
		.so = so,
		.so_bytes = so_bytes,
		.symbol = "cudatrace_agent_start",
		.how = how,
		.sock_type = SOCK_SEQPACKET,
		.limit_ms = limit_ms,
		.frames = inject_frames_get,
		.ctx = frames,
	};
	int fd = memfd_create("stderr", MFD_CLOEXEC), old = dup(2), err;
	ssize_t n;

	dup2(fd, 2);
	err = inject_run(pid, &what, r);
	dup2(old, 2);
	close(old);
	n = pread(fd, said, sizeof(said) - 1, 0);
	said[n > 0 ? n : 0] = '\0';
	close(fd);
	if (getenv("SHOW") && err)
		printf("%d in try %d, held for %llu us: %s", err, r->tries,
		       (unsigned long long)r->stopped_ns / 1000, said);
	return err;
}

static int inject(struct inject_result *r)
{
	return inject_how(r, "v1 fd=N", 10000);
}

/* One message, of one line, that has these words. */
static void check_said(const char *words)
{
	char *end_of_line = strchr(said, '\n');
	int good = strstr(said, words) && end_of_line && !end_of_line[1] &&
		   strstr(said, "cudatrace: error: ") == said;

	if (!good)
		printf("not said: %s; but: %s\n", words, said);
	CHECK(good);
}

/* The object answers over the socket from within the process. */
static void check_answer(struct inject_result *r, int starts)
{
	struct pollfd p = { .fd = r->sock, .events = POLLIN };
	int say[2] = {};

	if (r->sock < 0)
		return; /* it was not injected, which has been said */
	CHECK(poll(&p, 1, 10000) == 1);
	CHECK(recv(r->sock, say, sizeof(say), MSG_DONTWAIT) == sizeof(say));
	if (say[0] != pid || say[1] != starts)
		printf("said %d %d, not %d %d\n", say[0], say[1], (int)pid, starts);
	CHECK(say[0] == pid && say[1] == starts);
	/* it has closed its end, and nobody else holds one */
	CHECK(poll(&p, 1, 10000) == 1);
	CHECK(recv(r->sock, say, sizeof(say), MSG_DONTWAIT) == 0);
	CHECK(fcntl(r->sock, F_GETFD) == FD_CLOEXEC);
	close(r->sock);
}

/* ---- working programs ---- */

/* How much a process has of something: what a file of /proc/PID says, by lines or by a number. */
static long count_in(const char *name, const char *key)
{
	char path[64], cmd[128], line[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	if (key)
		snprintf(cmd, sizeof(cmd), "grep '^%s:' %s | tr -dc 0-9", key, path);
	else
		snprintf(cmd, sizeof(cmd), "%s %s | wc -l", strcmp(name, "fd") ? "cat" : "ls",
			 path);
	f = popen(cmd, "re");
	if (!f || !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		pclose(f);
	return strtol(line, NULL, 10);
}

static void test_mode(const char *mode, int times)
{
	struct inject_result r;
	int bad = 0;

	begin(mode);
	for (int i = 0; i < times; i++) {
		int err = inject(&r);

		bad += err != 0;
		if (err)
			printf("%s: %s", mode, said);
		else {
			CHECK(r.reused == (i > 0));
			CHECK(said[0] == '\0');
			check_answer(&r, i + 1);
		}
	}
	CHECK(!bad);
	if (strcmp(mode, "read"))
		rounds();
	end(mode);
}

/* Nothing grows, whether nothing else goes on in the program or much. */
static void test_growth(const char *mode, int times)
{
	struct inject_result r;
	long fds = 0, maps = 0, size = 0;

	begin(mode);
	for (int i = 0; i < times; i++) {
		CHECK(!inject(&r));
		check_answer(&r, i + 1);
		if (!i) {
			fds = count_in("fd", NULL);
			maps = count_in("maps", NULL);
			size = count_in("status", "VmSize");
		}
	}
	CHECK(count_in("fd", NULL) == fds);
	if (strcmp(mode, "many")) { /* whose allocator makes arenas as it goes */
		CHECK(count_in("maps", NULL) == maps);
		CHECK(count_in("status", "VmSize") == size);
	}
	rounds();
	end(mode);
}

/* The main thread waits for another one, which is not to be used: as programs do that have workers. */
static void test_joins(void)
{
	struct inject_result r;

	begin("joins");
	for (int i = 0; i < 3; i++) {
		CHECK(!inject(&r));
		CHECK_EQ(pid, r.tid);
		check_answer(&r, i + 1);
	}
	end("joins");
}

/* System calls that the kernel does not begin anew: the thread is left alone, or is met outside
 * of them. */
static void test_never_eintr(const char *mode)
{
	struct inject_result r;

	begin(mode);
	for (int i = 0; i < 8; i++) {
		int err = inject_how(&r, "v1 fd=N", 100);

		CHECK(err == 0 || err == -EAGAIN);
		if (!err)
			close(r.sock);
		else
			check_said("in a system call that would not go on as before");
	}
	rounds();
	end(mode);
}

/* Queued signals arrive each once, on the stack that they are meant for, however many there are
 * meanwhile. */
static void test_signals(void)
{
	long sent[2] = {};
	struct inject_result r;
	int fds[2];
	pid_t sender;

	begin("signals");
	if (pipe(fds))
		abort();
	fflush(stdout);
	sender = fork();
	if (!sender) {
		while (!sh->child) {
			union sigval v = { .sival_int = (int)(sent[0] % 1000) };

			if (!sigqueue(pid, SIGRTMIN, v))
				sent[1] += v.sival_int, sent[0]++;
			if (sent[0] % 16 == 0)
				nap(100);
		}
		_exit(write(fds[1], sent, sizeof(sent)) != sizeof(sent));
	}
	for (int i = 0; i < 10; i++) {
		CHECK(!inject(&r));
		check_answer(&r, i + 1);
	}
	sh->child = 1;
	waitpid(sender, NULL, 0);
	CHECK(read(fds[0], sent, sizeof(sent)) == sizeof(sent));
	close(fds[0]);
	close(fds[1]);
	for (int i = 0; i < 10000 && sh->signals != sent[0]; i++)
		nap(1000);
	CHECK(sent[0] > 100);
	CHECK(sh->signals == sent[0]);
	CHECK(sh->sum == sent[1]);
	end("signals");
}

/* Stopped and continued all the time by somebody else. */
static void test_stop_and_go(void)
{
	struct inject_result r;
	pid_t other;

	begin("vectors");
	fflush(stdout);
	other = fork();
	if (!other) {
		while (!sh->child) {
			kill(pid, SIGSTOP);
			nap(200);
			kill(pid, SIGCONT);
			nap(3000);
		}
		_exit(0);
	}
	for (int i = 0; i < 50; i++) {
		int err = inject(&r);

		CHECK(err == 0 || err == -EAGAIN);
		if (!err)
			close(r.sock);
		else
			check_said("stopped");
	}
	sh->child = 1;
	waitpid(other, NULL, 0);
	rounds();
	end("vectors");
}

/* Programs that end while it is tried. */
static void test_ending(void)
{
	struct inject_result r;
	int added = 0;

	for (int i = 0; i < 40; i++) {
		int err;

		begin("brief");
		nap(i * 300);
		err = inject_how(&r, "v1 fd=N", 2000);
		added += !err;
		if (err && err != -ESRCH && err != -EAGAIN)
			printf("ending: %d, %s", err, said);
		CHECK(err == 0 || err == -ESRCH || err == -EAGAIN);
		if (!err)
			close(r.sock);
		end("brief");
	}
	CHECK(added > 0);
}

/* ---- objects that misbehave ---- */

static void test_misbehaving(void)
{
	struct inject_result r;
	long fds;

	begin("vectors");
	CHECK(!inject(&r));
	check_answer(&r, 1);
	fds = count_in("fd", NULL);

	CHECK(inject_how(&r, "v1 fd=N refuse", 10000) == -EPROTO);
	CHECK(r.answer == -7 && r.sock == -1);
	check_said("the agent did not start (-7)");

	CHECK(inject_how(&r, "v1 fd=N crash", 10000) == -EFAULT);
	check_said("cudatrace_agent_start crashed (signal 11)");

	/* limits are long enough for finding a safe point where others have the processors */
	CHECK(inject_how(&r, "v1 fd=N hang", 2000) == -ETIME);
	check_said("cudatrace_agent_start did not return within 2000 ms");
	CHECK(count_in("fd", NULL) == fds);

	/* longer than its limit, but it waits for no lock */
	CHECK(!inject_how(&r, "v1 fd=N very slow", 2000));
	CHECK(r.stopped_ns > 2500000000);
	check_answer(&r, 5);
	rounds();
	end("vectors");
}

/* Where descriptors cannot be fetched from the target, it connects to us. */
static void test_no_getfd(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 438, 0, 1), /* pidfd_getfd */
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = 4, .filter = code };
	int status = -1;
	pid_t tracer;
	long fds;

	begin("nanosleep");
	fds = count_in("fd", NULL);
	fflush(stdout);
	tracer = fork();
	if (!tracer) {
		struct inject_result r;
		int say[2] = {};

		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) || inject(&r))
			_exit(1);
		_exit(recv(r.sock, say, sizeof(say), 0) == sizeof(say) && say[0] == pid ? 0 : 2);
	}
	waitpid(tracer, &status, 0);
	CHECK(status == 0);
	CHECK(count_in("fd", NULL) == fds);
	rounds();
	end("nanosleep");
}

/* Not by a command: its pipe would be counted with or without its other end. */
static long own_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	long n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* The program puts another file in the memfd's place, one that only we may write: nothing is
 * written to it. Whether the injection succeeds is its own affair. */
static void test_swapped(void)
{
	static const char text[] = "precious\n";
	struct inject_result r;
	char path[64], *got;
	long fds;
	FILE *f;

	snprintf(path, sizeof(path), "%s/precious", dir);
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
	begin(path);
	fds = own_fds();
	for (int i = 0; i < 20; i++) {
		if (!inject(&r))
			close(r.sock);
		rounds();
	}
	CHECK(own_fds() == fds);
	got = unit_read(path);
	CHECK_TEXT(text, got ? got : "(no file)");
	free(got);
	end("swapped");
}

/* cudatrace is killed while the function runs: the program goes on as if nothing had been. */
static void test_killed(const char *mode)
{
	pid_t tracer;

	begin(mode);
	for (int i = 0; i < 2; i++) {
		fflush(stdout);
		tracer = fork();
		if (!tracer) {
			struct inject_result r;

			inject_how(&r, "v1 fd=N slow", 10000);
			_exit(0);
		}
		for (int k = 0; k < 10000 && count_in("status", "TracerPid") == 0; k++)
			;
		nap(100000 + 50000 * i);
		kill(tracer, SIGKILL);
		waitpid(tracer, NULL, 0);
		rounds();
	}
	CHECK(count_in("status", "TracerPid") == 0);
	end(mode);
}

/* Processes get numbers far above the lowest. */
static bool high_numbers(void)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, "20000", 5) == 5;

	if (fd >= 0)
		close(fd);
	return done;
}

/* A thread with a descriptor table of its own is not used, whatever its number is. */
static void test_lowest(void)
{
	if (high_numbers())
		test_mode("lowest", 3);
	else
		printf("skipped: no thread can be given a lower number here\n");
}

/* Nor is one that gets it when it has already been chosen. */
static void test_part(void)
{
	struct inject_result r;
	int added = 0;

	begin("part");
	for (int i = 0; i < 100; i++) {
		int err = inject_how(&r, "v1 fd=N", 300);

		CHECK(err == 0 || err == -EAGAIN);
		if (!err)
			check_answer(&r, ++added);
		else
			check_said("at a safe point");
	}
	CHECK(added > 0);
	rounds();
	end("part");
}

static int read_so(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st))
		return -1;
	so_bytes = (size_t)st.st_size;
	so = malloc(so_bytes);
	if (!so || read(fd, so, so_bytes) != st.st_size)
		return -1;
	return close(fd);
}

static void test_no_object(void)
{
	struct inject_result r;
	char *good = so;
	size_t good_bytes = so_bytes;
	char path[64];

	begin("nanosleep");
	so_bytes = 100;
	CHECK(inject(&r) < 0);
	check_said("the object to be loaded has no function cudatrace_agent_start");
	so_bytes = good_bytes;
	snprintf(path, sizeof(path), "%s/broken", dir);
	CHECK(!read_so(path));
	CHECK(inject(&r) == -ELIBBAD);
	check_said("undefined symbol: nobody_has_this");
	free(so);
	so = good;
	so_bytes = good_bytes;
	CHECK(!inject(&r));
	check_answer(&r, 1);
	rounds();
	end("nanosleep");
}

/* ---- refusals ---- */

static void refused(const char *program, const char *mode, int want, const char *words)
{
	struct inject_result r;
	int err;

	begin_program(program, mode);
	err = inject_how(&r, "v1 fd=N", 300);
	if (err != want)
		printf("%s: %d, not %d; %s\n", mode, err, want, said);
	CHECK(err == want);
	CHECK(r.sock == -1);
	check_said(words);
	end(mode);
}

static void test_stopped(void)
{
	struct inject_result r;
	int status;

	begin("nanosleep");
	kill(pid, SIGSTOP);
	waitpid(pid, &status, WUNTRACED);
	CHECK(inject(&r) == -EAGAIN);
	check_said("is stopped: let it go on first");
	kill(pid, SIGCONT);
	end("nanosleep");
}

static void test_traced(void)
{
	struct inject_result r;
	pid_t tracer;

	begin("nanosleep");
	fflush(stdout);
	tracer = fork();
	if (!tracer) {
		sh->child = ptrace(PTRACE_SEIZE, pid, 0, 0) ? 2 : 1;
		while (!sh->stop)
			nap(1000);
		_exit(0);
	}
	for (int i = 0; i < 10000 && !sh->child; i++)
		nap(1000);
	CHECK(sh->child == 1);
	CHECK(inject(&r) == -EBUSY);
	check_said("(test_inject), and a process has only one tracer at a time");
	sh->stop = 1;
	waitpid(tracer, NULL, 0);
	end("nanosleep");
}

static void test_vfork(void)
{
	struct inject_result r;
	pid_t parent;

	begin("vfork");
	parent = pid;
	/* the parent stands in vfork(2) */
	CHECK(inject_how(&r, "v1 fd=N", 200) == -EAGAIN);
	check_said("at a safe point");
	pid = sh->child;
	CHECK(inject_how(&r, "v1 fd=N", 200) == -EAGAIN);
	check_said("runs in the memory of its parent");
	pid = parent;
	end("vfork");
}

static void test_not_there(void)
{
	struct inject_result r;

	pid = fork();
	if (!pid)
		_exit(0);
	nap(100000);
	CHECK(inject(&r) == -ESRCH); /* a zombie */
	check_said("has ended");
	waitpid(pid, NULL, 0);
	CHECK(inject(&r) == -ESRCH);
	check_said("there is no process");
}

static void test_refusals(void)
{
	refused("static", "nanosleep", -ENOEXEC, "is a static program");
	refused("prog", "kills", -EACCES, "seccomp filter");
	refused("prog", "denies", -EACCES, "seccomp filter");
	if (!geteuid())
		refused("prog", "hidden", -EPERM, "protects its memory");
	test_stopped();
	test_traced();
	test_vfork();
	test_not_there();
}

/* ---- by hand, and all of it ---- */

static int by_hand(const char *how)
{
	struct inject_result r;
	int err = inject_how(&r, how, 10000);

	fputs(said, stderr);
	printf("%d, answer %d, %s, thread %d, try %d, held for %llu us\n", err, r.answer,
	       r.reused ? "reused" : "loaded", (int)r.tid, r.tries,
	       (unsigned long long)r.stopped_ns / 1000);
	return err ? 1 : 0;
}

static bool build(const char *out, const char *flags, const char *src)
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd), "gcc -O2 -g -D_GNU_SOURCE -pthread %s -o %s/%s " SRC "%s", flags,
		 dir, out, src);
	if (!system(cmd))
		return true;
	printf("FAILED: " SRC "%s cannot be built\n", src);
	return false;
}

/* ---- memory that is never served ---- */

static bool serve_never(void *page)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register r = { .range = { (uintptr_t)page, 4096 },
				     .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	return fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &r);
}

/* A write that hangs is given up, whoever asks for it goes on, and the worker comes back when the
 * program has ended. */
static void test_write_hangs(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct inject_remote r = { 0 };
	struct bounded_counts before, after;
	int ready[2], err;
	char can = 0;

	CHECK(pages != MAP_FAILED && !pipe2(ready, O_CLOEXEC));
	r.tid = fork();
	if (!r.tid) {
		pages[4096] = 1;
		can = serve_never(pages) ? 'y' : 'n';
		if (write(ready[1], &can, 1) == 1)
			pause();
		_exit(0);
	}
	CHECK(read(ready[0], &can, 1) == 1);
	if (can == 'y') {
		bounded_counts(&before);
		CHECK_EQ(-ETIMEDOUT, inject_remote_write(&r, (uintptr_t)pages, "text", 5));
		bounded_counts(&after);
		CHECK_EQ(before.left + 1, after.left);
		CHECK_EQ(before.held + 1, after.held);
		/* on a busy machine another one may take too long, too */
		do
			err = inject_remote_write(&r, (uintptr_t)pages + 4096, "text", 5);
		while (err == -ETIMEDOUT);
		CHECK_EQ(0, err);
	} else {
		printf("skipped: no userfaultfd here\n");
	}
	CHECK(!kill(r.tid, SIGKILL) && waitpid(r.tid, NULL, 0) == r.tid);
	do {
		sched_yield();
		bounded_counts(&after);
	} while (after.held);
	munmap(pages, 8192);
	close(ready[0]);
	close(ready[1]);
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "nanosleep", "poll", "ppoll", "select", "futex",
					     "cond",	  "read", "stale", "heap",   "heaps",
					     "vectors",	  "many", "allows" };
	char path[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	msg_unlimited = true;
	frames = inject_frames_open();
	if (argc > 2 && frames) {
		pid = atoi(argv[1]);
		return read_so(argv[2]) ? 1 : by_hand(argc > 3 ? argv[3] : "v1 fd=N");
	}
	if (!frames || !mkdtemp(dir))
		abort();
	chmod(dir, 0755);
	if (!build("prog", "", "inject_prog.c") || !build("static", "-static", "inject_prog.c") ||
	    !build("so", "-fPIC -shared", "inject_so.c") ||
	    !build("broken", "-fPIC -shared -DBROKEN", "inject_so.c"))
		return 1;
	snprintf(path, sizeof(path), "%s/so", dir);
	if (read_so(path))
		abort();
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		RUN(test_mode, modes[i], 3);
	RUN(test_growth, "nanosleep", 40);
	RUN(test_growth, "vectors", 40);
	RUN(test_growth, "many", 10);
	RUN(test_joins);
	RUN(test_never_eintr, "epoll");
	RUN(test_never_eintr, "sem");
	RUN(test_never_eintr, "recv");
	RUN(test_signals);
	RUN(test_stop_and_go);
	RUN(test_ending);
	RUN(test_misbehaving);
	RUN(test_no_getfd);
	RUN(test_swapped);
	RUN(test_killed, "vectors");
	RUN(test_killed, "cond");
	RUN(test_lowest);
	RUN(test_part);
	RUN(test_no_object);
	RUN(test_write_hangs);
	RUN(test_refusals);
	inject_frames_close(frames);
	free(so);
	snprintf(path, sizeof(path), "rm -r %s", dir);
	CHECK(system(path) == 0);
	return unit_end();
}
