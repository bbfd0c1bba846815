/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_launch.c - programs that are started under the tracer, and must not notice. The programs
 * are this file's own modes (`test_launch MODE FD`); they exit 0 when all was as without a
 * tracer. What needs root is left out without it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../user/source/launch/launch.h"
#include "../../user/util/msg.h"
#include "unit.h"

#define STORM 500
#define ASKS 40
#define SIGNALS 200
/* the whole program, which takes 7 s alone: a hang is a failure, other work on both processors
 * is none */
#define LIMIT_S 600

static char self[4096];

/* ---- the programs ---- */

static volatile int interrupted, urgent, ending;
static int out_fd = -1, in_fd = -1;

static void sleep_ms(int ms)
{
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static void say_byte(int sig)
{
	if (write(out_fd, "x", 1) != 1)
		_exit(99);
	(void)sig;
}

static void count_urgent(int sig)
{
	(void)sig;
	urgent++;
}

static void *in_epoll(void *arg)
{
	struct epoll_event ev;
	int fd = epoll_create1(0);

	while (!ending)
		if (epoll_wait(fd, &ev, 1, 20) < 0)
			interrupted++;
	return arg;
}

static void *in_recv(void *arg)
{
	struct timeval tv = { .tv_usec = 20000 };
	int fds[2];
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return arg;
	setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	while (!ending)
		if (recv(fds[0], &c, 1, 0) < 0 && errno == EINTR)
			interrupted++;
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static void *exec_exit7(void *arg)
{
	execl(self, self, "exit7", (char *)NULL);
	return arg;
}

/* Descriptors that a program started from here gets. */
static int inherited(void)
{
	int n = 0;

	for (int fd = 3; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) == 0;
	return n;
}

static int mode_signals(void)
{
	struct sigaction sa;
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int sig = 1; sig < 32; sig++)
		if (sigismember(&mask, sig) ||
		    (sigaction(sig, NULL, &sa), sa.sa_handler == SIG_IGN))
			return sig;
	return 100 + inherited();
}

static int mode_storm(void)
{
	pthread_t t;
	int status, sum = 0;

	for (int i = 0; i < STORM; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(i % 5);
		if (i % 10 == 0 &&
		    (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL)))
			return 2;
		if (i % 2 == 0 && waitpid(pid, &status, 0) == pid)
			sum++;
	}
	while (wait(&status) > 0)
		sum++;
	return sum != STORM;
}

static int mode_spawn(void)
{
	char *argv[] = { (char *)"true", NULL };
	int status, bad = 0;
	pid_t pid = vfork();

	if (!pid) {
		execve("/bin/true", argv, environ);
		_exit(1);
	}
	bad += waitpid(pid, &status, 0) != pid || status;
	bad += posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) != 0;
	bad += waitpid(pid, &status, 0) != pid || status;
	return bad;
}

/* Processes whose end is told by another signal than SIGCHLD, or by none: to ptrace they are
 * born as threads are. */
static int mode_clones(void)
{
	int status, bad = 0;
	pthread_t t;

	signal(SIGUSR2, SIG_IGN);
	for (int i = 0; i < 50; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone, i % 2 ? SIGUSR2 : 0, NULL, NULL, NULL, NULL);

		if (!pid) {
			pthread_create(&t, NULL, nothing, NULL);
			_exit(execl("/bin/true", "true", (char *)NULL));
		}
		bad += waitpid(pid, &status, __WALL) != pid || status;
	}
	return bad;
}

/* Ends before its child does, which lives as long as somebody may write to the pipe. */
static int mode_leaves(void)
{
	char c;

	if (!fork())
		_exit(read(out_fd, &c, 1) != 0);
	return 5;
}

static bool ask(pid_t tid)
{
	return write(out_fd, &tid, sizeof(tid)) == sizeof(tid);
}

/* Asks again and again while two threads wait in system calls that a stop would interrupt, and
 * finds that the answer came with a stop. All signals are blocked. */
static int mode_ask(void)
{
	pthread_t a, b;
	sigset_t all;
	char c;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	pthread_create(&a, NULL, in_epoll, NULL);
	pthread_create(&b, NULL, in_recv, NULL);
	for (int i = 0; i < ASKS; i++) {
		/* nobody's, and that of a process that is not in the tree */
		if (!ask(0x7fffffff) || !ask(1) || !ask(gettid()))
			return 3;
		while (read(in_fd, &c, 1) != 1)
			;
		sleep_ms(2);
	}
	ending = 1;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	sigpending(&all);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sigismember(&all, sig) > 0)
			return 10 + sig;
	return interrupted ? 1 : 0;
}

/* Says that it runs, waits until it may end, and leaves a thread in epoll_wait meanwhile. */
static int mode_wait(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, in_epoll, NULL);
	pthread_create(&b, NULL, in_recv, NULL);
	say_byte(0);
	sleep_ms(300);
	ending = 1;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	say_byte(0);
	return interrupted != 0;
}

static int mode_tick(void)
{
	while (!ending) {
		say_byte(0);
		sleep_ms(2);
	}
	return 0;
}

static int mode_count(void)
{
	signal(SIGUSR1, say_byte);
	signal(SIGURG, count_urgent);
	for (int i = 0; i < 3; i++)
		kill(getpid(), SIGURG);
	say_byte(0);
	while (!ending)
		pause();
	return 0;
}

/* Urgent data on a socket: the kernel itself sends this SIGURG. */
static int mode_oob(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);
	int l = socket(AF_INET, SOCK_STREAM, 0), a = socket(AF_INET, SOCK_STREAM, 0), b;

	signal(SIGURG, count_urgent);
	if (bind(l, (void *)&sa, len) || listen(l, 1) || getsockname(l, (void *)&sa, &len) ||
	    connect(a, (void *)&sa, len))
		return 3;
	b = accept(l, NULL, NULL);
	fcntl(b, F_SETOWN, getpid());
	send(a, "!", 1, MSG_OOB);
	for (int i = 0; i < 10000 && !urgent; i++)
		sleep_ms(2);
	return urgent != 1;
}

static int mode_user(void)
{
	gid_t groups[8];
	int n = getgroups(8, groups);

	return getuid() != 65534 || geteuid() != 65534 || getegid() != 65534 || n != 1 ||
	       groups[0] != 65534 || strcmp(getenv("USER"), "nobody") ||
	       strcmp(getenv("LOGNAME"), "nobody") || !getenv("HOME");
}

static int mode_env(void)
{
	const char *a = getenv("CT_SET"), *same = getenv("CT_SAME");

	return !a || strcmp(a, "two") || getenv("CT_UNSET") || getenv("CT_BARE") || !same ||
	       strcmp(same, "3=4");
}

static int program(const char *mode)
{
	pthread_t t;

	if (!strcmp(mode, "exit7"))
		return 7;
	if (!strcmp(mode, "term")) {
		kill(getpid(), SIGTERM);
		return 1;
	}
	if (!strcmp(mode, "threadexec")) {
		pthread_create(&t, NULL, nothing, NULL);
		pthread_create(&t, NULL, exec_exit7, NULL);
		for (;;)
			pause();
	}
	return !strcmp(mode, "signals")	 ? mode_signals()
	       : !strcmp(mode, "storm")	 ? mode_storm()
	       : !strcmp(mode, "spawn")	 ? mode_spawn()
	       : !strcmp(mode, "clones") ? mode_clones()
	       : !strcmp(mode, "leaves") ? mode_leaves()
	       : !strcmp(mode, "ask")	 ? mode_ask()
	       : !strcmp(mode, "wait")	 ? mode_wait()
	       : !strcmp(mode, "tick")	 ? mode_tick()
	       : !strcmp(mode, "count")	 ? mode_count()
	       : !strcmp(mode, "oob")	 ? mode_oob()
	       : !strcmp(mode, "user")	 ? mode_user()
	       : !strcmp(mode, "env")	 ? mode_env()
					 : 98;
}

/* ---- the tracer's side ---- */

struct seen {
	int forks, execs, asked, bad;
	bool kill_at_exec;
	bool alone;	       /* the program's children are not wanted */
	int ask_fd, answer_fd; /* 0: nobody asks */
};

static void on_stop(void *ctx, pid_t pid, pid_t tid, int why)
{
	struct seen *s = ctx;
	bool exec = why == LAUNCH_EXEC;

	if (exec)
		s->execs++;
	else
		s->asked++;
	if (pid != tid || (!exec && why != LAUNCH_ASKED + 1))
		s->bad++;
	if (exec && s->kill_at_exec)
		kill(pid, SIGKILL);
}

static void on_fork(void *ctx, pid_t parent, pid_t child)
{
	struct seen *s = ctx;

	s->forks++;
	if (parent <= 0 || child <= 0 || parent == child)
		s->bad++;
}

static int ask_fd(void *ctx)
{
	struct seen *s = ctx;

	return s->ask_fd ? s->ask_fd : -1;
}

static bool next_ask(void *ctx, struct launch_ask *ask)
{
	struct seen *s = ctx;

	ask->why = LAUNCH_ASKED + 1;
	return read(s->ask_fd, &ask->tid, sizeof(ask->tid)) == sizeof(ask->tid);
}

static void answer(void *ctx, const struct launch_ask *ask)
{
	struct seen *s = ctx;

	if (write(s->answer_fd, "x", 1) != 1)
		s->bad++;
	(void)ask;
}

static const struct launch_ops ops = { .on_stop = on_stop,
				       .on_fork = on_fork,
				       .ask_fd = ask_fd,
				       .next_ask = next_ask,
				       .interrupted = answer };

static void on_child(int sig)
{
	(void)sig;
}

/* Until it ends, for at most ms; true when it has ended. */
static bool poll_for(struct launch *l, int ms)
{
	for (int i = 0; i < ms / 2; i++) {
		if (launch_poll(l))
			return true;
		usleep(2000);
	}
	return launch_poll(l);
}

/* The next byte of the program, which must not have ended. */
static bool next_byte(struct launch *l, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	for (int i = 0; i < 2500; i++) {
		launch_poll(l);
		if (poll(&p, 1, 2) == 1)
			return read(fd, &c, 1) == 1;
	}
	return false;
}

/* that check needs ptrace itself */
static char *no_leaks[] = { (char *)"ASAN_OPTIONS=detect_leaks=0", NULL };

static struct launch *start(const char *mode, int fd, struct seen *s)
{
	char num[16], *cmd[] = { self, (char *)mode, num, NULL };
	struct launch *l;

	snprintf(num, sizeof(num), "%d", fd);
	if (launch_open(&l, cmd, NULL, no_leaks, !s->alone, &ops, s))
		return NULL;
	if (launch_start(l)) {
		launch_close(l);
		return NULL;
	}
	return l;
}

/* The wait status of a whole run; -1: it could not be run, or went on for too long. */
static int run_cmd(char *const cmd[], const char *user, char *const env[], struct seen *s)
{
	struct launch *l;
	int status = -1;

	if (launch_open(&l, cmd, user, env, !s->alone, &ops, s))
		return -1;
	if (!launch_start(l) && poll_for(l, 10000))
		status = launch_status(l);
	launch_close(l);
	CHECK(!s->bad);
	return status;
}

static int run(const char *mode, struct seen *s)
{
	char *cmd[] = { self, (char *)mode, NULL };

	return run_cmd(cmd, NULL, no_leaks, s);
}

/* ---- cases ---- */

static void test_status(void)
{
	struct seen s = {};
	int status;

	CHECK(run("exit7", &s) == W_EXITCODE(7, 0));
	CHECK(s.execs == 1 && s.forks == 0);
	status = run("term", &s);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	s.kill_at_exec = true; /* killed while it is stopped */
	status = run("exit7", &s);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Without its children: they live as if nobody traced, and nobody waits for them. */
static void test_alone(void)
{
	static const char *const modes[] = { "storm", "spawn", "clones" };
	struct seen s = { .alone = true };
	struct launch *l;
	int fds[2], status;

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		s.execs = 0;
		CHECK(run(modes[i], &s) == 0);
		CHECK(s.execs == 1 && s.forks == 0);
	}
	CHECK(!pipe(fds));
	fcntl(fds[1], F_SETFD, FD_CLOEXEC);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	l = start("leaves", fds[0], &s);
	CHECK(l && poll_for(l, 10000) && launch_status(l) == W_EXITCODE(5, 0));
	launch_close(l);
	CHECK(waitpid(-1, NULL, WNOHANG) == 0); /* the child, which is ours now, lives on */
	close(fds[1]);
	CHECK(waitpid(-1, &status, 0) > 0 && !status);
	close(fds[0]);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	s = (struct seen){ .alone = false };
	CHECK(run("clones", &s) == 0);
	CHECK(s.forks == 50 && s.execs == 51);
}

static void test_surroundings(void)
{
	char *env[] = { (char *)"CT_SET=one", (char *)"CT_SET=two", (char *)"CT_UNSET",
			(char *)"CT_BARE",    no_leaks[0],	    NULL };
	char *cmd[] = { self, (char *)"env", NULL };
	struct seen s = {};
	sigset_t some, old;

	setenv("CT_UNSET", "1", 1);
	setenv("CT_SAME", "3=4", 1);
	CHECK(run_cmd(cmd, NULL, env, &s) == 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&some);
	sigaddset(&some, SIGTERM);
	sigprocmask(SIG_BLOCK, &some, &old);
	CHECK(run("signals", &s) == W_EXITCODE(100 + inherited(), 0));
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_IGN);
	CHECK(run("exit7", &s) == W_EXITCODE(7, 0));
	signal(SIGCHLD, on_child);
}

static char said[1024];

/* What one launch_open() answers that must fail; its words go to said. */
static int refused(const char *name, const char *user)
{
	char *cmd[] = { (char *)name, NULL }, path[] = "/tmp/ct_test_launch.XXXXXX", *got;
	int saved = dup(STDERR_FILENO), fd = mkstemp(path), err;
	struct launch *l = NULL;
	struct seen s = {};

	dup2(fd, STDERR_FILENO);
	err = launch_open(&l, cmd, user, NULL, true, &ops, &s);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd);
	got = unit_read(path);
	snprintf(said, sizeof(said), "%s", got ? got : "");
	free(got);
	unlink(path);
	launch_close(l);
	return err;
}

static void test_refused(void)
{
	CHECK(refused("ct-no-such-program", NULL) == -ENOENT);
	CHECK_TEXT("cudatrace: error: cannot run 'ct-no-such-program': No such file or directory\n",
		   said);
	CHECK(refused("", NULL) == -ENOENT);
	CHECK(refused("/etc/passwd", NULL) == -EACCES);
	CHECK_TEXT("cudatrace: error: cannot run '/etc/passwd': Permission denied\n", said);
	CHECK(refused("/tmp", NULL) == -EACCES);
	CHECK(refused("true", "ct-no-such-user") == -ENOENT);
	CHECK_TEXT("cudatrace: error: there is no user 'ct-no-such-user' in /etc/passwd: give a "
		   "name or a uid that is there\n",
		   said);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void write_script(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void test_scripts(void)
{
	char dir[] = "/tmp/ct_test_launch.XXXXXX", path[64], *cmd[] = { path, (char *)"5", NULL };
	char var[96], *env[] = { var, NULL },
		      *by_name[] = { (char *)"ct-script", (char *)"6", NULL };
	struct seen s = {};
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), saved = dup(STDERR_FILENO);

	CHECK(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/ct-script", dir);
	snprintf(var, sizeof(var), "PATH=/nonexistent:%s:/bin", dir);
	write_script(path, "exit $1\n");
	CHECK(run_cmd(cmd, NULL, NULL, &s) == W_EXITCODE(5, 0));
	CHECK(run_cmd(by_name, NULL, env, &s) == W_EXITCODE(6, 0));
	write_script(path, "#!/proc/nonexistent\n");
	dup2(null, STDERR_FILENO);
	CHECK(run_cmd(cmd, NULL, NULL, &s) == W_EXITCODE(127, 0));
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(null);
	unlink(path);
	rmdir(dir);
}

static void test_user(void)
{
	char dir[] = "/tmp/ct_test_launch.XXXXXX", path[64],
	     *cmd[] = { path, (char *)"user", NULL };
	struct seen s = {};
	FILE *in, *out;
	int c;

	/* a copy that everybody may read: the build folder may be private */
	CHECK(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/program", dir);
	in = fopen(self, "re");
	out = fopen(path, "we");
	while (in && out && (c = getc(in)) != EOF)
		putc(c, out);
	if (in)
		fclose(in);
	if (out)
		fclose(out);
	chmod(dir, 0755);
	chmod(path, 0755);
	CHECK(run_cmd(cmd, "nobody", no_leaks, &s) == 0);
	CHECK(run_cmd(cmd, "65534", no_leaks, &s) == 0);
	unlink(path);
	rmdir(dir);
}

static void test_tree(void)
{
	struct seen s = {};

	CHECK(run("storm", &s) == 0);
	CHECK(s.forks == STORM && s.execs == 1);
	s = (struct seen){};
	CHECK(run("threadexec", &s) == W_EXITCODE(7, 0));
	CHECK(s.forks == 0 && s.execs == 2);
	s = (struct seen){};
	CHECK(run("spawn", &s) == 0);
	CHECK(s.forks == 2 && s.execs == 3);
}

static void test_stop_and_go(void)
{
	struct pollfd p;
	struct seen s = {};
	struct launch *l;
	int fds[2], status;
	char drain[4096];

	CHECK(!pipe(fds));
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	l = start("tick", fds[1], &s);
	CHECK(l && next_byte(l, fds[0]));
	launch_signal(l, SIGSTOP);
	poll_for(l, 50);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	while (read(fds[0], drain, sizeof(drain)) > 0)
		;
	p = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	poll_for(l, 50);
	CHECK(poll(&p, 1, 0) == 0);
	launch_signal(l, SIGCONT);
	CHECK(next_byte(l, fds[0]));
	launch_signal(l, SIGTERM);
	CHECK(poll_for(l, 5000));
	status = launch_status(l);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	launch_close(l);
	close(fds[0]);
	close(fds[1]);
}

static void test_signals(void)
{
	struct seen s = {};
	struct launch *l;
	int fds[2], got = 0;

	CHECK(!pipe(fds));
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	l = start("count", fds[1], &s);
	CHECK(l && next_byte(l, fds[0]));
	for (int i = 0; i < SIGNALS; i++) {
		launch_signal(l, SIGUSR1);
		got += next_byte(l, fds[0]);
	}
	CHECK(got == SIGNALS);
	poll_for(l, 20);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	CHECK(read(fds[0], &got, 1) < 0); /* none too many */
	launch_signal(l, SIGKILL);
	CHECK(poll_for(l, 5000) && s.asked == 0);
	launch_close(l);
	close(fds[0]);
	close(fds[1]);
	CHECK(run("oob", &s) == 0);
	CHECK(s.asked == 0);
}

/* Threads ask to be stopped: they are, whatever they block, and nobody else is. */
static void test_asked(void)
{
	char ask[16], answer[16], *cmd[] = { self, (char *)"ask", ask, answer, NULL };
	struct seen s = {};
	int asks[2], answers[2];

	CHECK(!pipe(asks) && !pipe2(answers, O_NONBLOCK));
	fcntl(asks[0], F_SETFL, O_NONBLOCK);
	s.ask_fd = asks[0];
	s.answer_fd = answers[1];
	snprintf(ask, sizeof(ask), "%d", asks[1]);
	snprintf(answer, sizeof(answer), "%d", answers[0]);
	CHECK(run_cmd(cmd, NULL, no_leaks, &s) == 0);
	CHECK_EQ(s.asked, ASKS);
	for (int i = 0; i < 2; i++) {
		close(asks[i]);
		close(answers[i]);
	}
}

static void test_detach(void)
{
	char *cmd[] = { self, (char *)"exit7", NULL };
	struct seen s = {};
	struct launch *l = NULL;
	int fds[2], status = -1;
	pid_t pid;

	CHECK(!pipe(fds));
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	l = start("wait", fds[1], &s);
	CHECK(l && next_byte(l, fds[0]));
	poll_for(l, 50);
	pid = launch_pid(l);
	launch_close(l);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);

	/* a stopped one stays so */
	l = start("tick", fds[1], &s);
	CHECK(l && next_byte(l, fds[0]));
	pid = launch_pid(l);
	launch_signal(l, SIGSTOP);
	poll_for(l, 50);
	launch_close(l);
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);

	/* one that was not started is ended */
	CHECK(!launch_open(&l, cmd, NULL, NULL, true, &ops, &s));
	launch_close(l);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	close(fds[0]);
	close(fds[1]);
}

/* The tracer is killed: the program goes on to its end. */
static void test_orphan(void)
{
	struct pollfd p;
	struct seen s = {};
	int fds[2], status;
	pid_t tracer;
	char c;

	CHECK(!pipe(fds));
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	tracer = fork();
	if (!tracer) {
		struct launch *l = start("wait", fds[1], &s);

		if (l)
			poll_for(l, 10000);
		_exit(0);
	}
	p = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	CHECK(poll(&p, 1, 5000) == 1 && read(fds[0], &c, 1) == 1);
	kill(tracer, SIGKILL);
	CHECK(waitpid(tracer, &status, 0) == tracer && WIFSIGNALED(status));
	CHECK(poll(&p, 1, 5000) == 1 && read(fds[0], &c, 1) == 1);
	close(fds[0]);
	close(fds[1]);
}

/* The result of a function in a forked child; -1: it did not return one. */
static int in_child(int (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(fn());
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* From this call on, no process can be made that shares our memory, except a thread. */
static bool refuse_processes(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, CLONE_VM | CLONE_THREAD | CLONE_VFORK),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLONE_VM, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { ARRAY_LEN(code), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int by_thread(void)
{
	struct seen s = {};
	int bad = !refuse_processes();

	bad |= (run("exit7", &s) != W_EXITCODE(7, 0)) << 1;
	bad |= (run("storm", &s) != 0 || s.forks != STORM) << 2;
	bad |= (run("threadexec", &s) != W_EXITCODE(7, 0)) << 3;
	return bad;
}

/* Where the tracer cannot be a process it is a thread. */
static void test_by_thread(void)
{
	CHECK_EQ(0, in_child(by_thread));
}

static int stopped_fds[2];

/* This tracer is stopped while its program begins. Afterwards it says that it has seen the
 * program's end. */
static int stopped(void)
{
	char *cmd[] = { self, (char *)"storm", NULL };
	struct seen s = {};
	struct launch *l;
	int status;

	close(stopped_fds[0]);
	if (launch_open(&l, cmd, NULL, no_leaks, true, &ops, &s))
		return 1;
	close(stopped_fds[1]);
	if (launch_start(l))
		return 2;
	raise(SIGSTOP);
	if (!poll_for(l, 10000))
		return 3;
	status = launch_status(l);
	launch_close(l);
	return status == 0 && s.execs == 1 ? 0 : 4;
}

/* A tracer that is stopped holds up nobody: not at exec, and at none of many forks. When it goes on it finds
 * how the program has ended. */
static void test_stopped(void)
{
	struct pollfd p;
	int status;
	pid_t pid;
	char c;

	CHECK(!pipe(stopped_fds));
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(stopped());
	close(stopped_fds[1]);
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	/* the program and its children have it, and nobody else */
	p = (struct pollfd){ .fd = stopped_fds[0], .events = POLLIN };
	CHECK(poll(&p, 1, 20000) == 1 && read(stopped_fds[0], &c, 1) == 0);
	kill(pid, SIGCONT);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(0, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	close(stopped_fds[0]);
}

int main(int argc, char **argv)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return 1;
	if (argc > 1) {
		out_fd = argc > 2 ? atoi(argv[2]) : -1;
		in_fd = argc > 3 ? atoi(argv[3]) : -1;
		return program(argv[1]);
	}
	alarm(LIMIT_S);
	signal(SIGCHLD, on_child);
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGHUP, SIG_DFL); /* nohup(1) has it ignored, which programs inherit */
	RUN(test_status);
	RUN(test_alone);
	RUN(test_surroundings);
	RUN(test_refused);
	RUN(test_scripts);
	RUN(test_tree);
	RUN(test_stop_and_go);
	RUN(test_signals);
	RUN(test_detach);
	RUN(test_asked);
	RUN(test_orphan);
	RUN(test_by_thread);
	RUN(test_stopped);
	if (!geteuid())
		RUN(test_user);
	else
		printf("not root: -u is left out\n");
	return unit_end();
}
