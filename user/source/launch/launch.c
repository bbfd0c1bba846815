/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launch.c - see launch.h.
 *
 * A thread of ours is the tracer: it interrupts the threads that ask for it, makes the ptrace(2)
 * calls that launch_poll() asks for, and does nothing else. To detach, it ends: the kernel then lets
 * every tracee go where it is. PTRACE_DETACH would need each of them stopped first, and a stop makes
 * epoll_wait(2), and recv(2) with a time-out, fail with EINTR in the program. wait(2) works for the
 * whole process, so what a stop is for is done on the caller's thread.
 *
 * A table of threads tells new processes from known ones: a child's first stop and its parent's
 * fork event come in either order. Knows nothing of BPF or of CUDA.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/io/child.h"
#include "../../util/msg.h"
#include "../../util/table/keyed.h"
#include "../../util/thread.h"
#include "launch.h"
#include "launch_child.h"

#define EVENTS_MAX 4096 /* of one launch_poll(): the loop has other things to do too */
#define ONE_PROCESS (PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE)
#define ITS_TREE (ONE_PROCESS | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK)

struct tracee {
	pid_t tid, tgid;
};

struct launch {
	const struct launch_ops *ops;
	void *ctx;
	struct launch_child child;
	char *name; /* for messages */
	int status;
	bool started, execed, exited, ended, closing;
	bool follow; /* descendants too */
	struct keyed tracees;
	/* the tracer thread, and what it is asked */
	pthread_t thread;
	bool threaded;
	int asked; /* an eventfd */
	sem_t answered;
	pid_t tracer; /* its tid */
	int request;  /* -1: end */
	pid_t tid;
	unsigned long addr, data;
	int err;
	/* what threads asked for and were interrupted for: struct asking, of both threads */
	struct keyed askings;
	pthread_mutex_t lock;
};

struct asking {
	pid_t tid;
	int why;
};

/* ---- what threads ask for ---- */

static bool begin_asking(struct launch *l, const struct launch_ask *ask)
{
	struct asking *a;

	pthread_mutex_lock(&l->lock);
	a = keyed_get(&l->askings, &ask->tid, &(bool){ false });
	if (a)
		a->why = ask->why;
	pthread_mutex_unlock(&l->lock);
	return a;
}

/* What it asked for, which is answered with that; 0: nothing. */
static int end_asking(struct launch *l, pid_t tid)
{
	struct asking *a;
	int why = 0;

	pthread_mutex_lock(&l->lock);
	a = keyed_find(&l->askings, &tid);
	if (a) {
		why = a->why;
		keyed_remove(&l->askings, a);
	}
	pthread_mutex_unlock(&l->lock);
	return why;
}

/* ---- the tracer thread ---- */

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) < 0 && errno == EINTR)
		;
}

static void interrupt(struct launch *l, const struct launch_ask *ask)
{
	if (!begin_asking(l, ask))
		return;
	if (ptrace(PTRACE_INTERRUPT, ask->tid, 0, 0) < 0)
		end_asking(l, ask->tid); /* not a tracee, or killed */
	else
		l->ops->interrupted(l->ctx, ask);
}

static void *tracer_main(void *arg)
{
	struct launch *l = arg;
	struct pollfd fds[] = {
		{ .fd = l->asked, .events = POLLIN },
		{ .fd = l->ops->ask_fd ? l->ops->ask_fd(l->ctx) : -1, .events = POLLIN },
	};
	struct launch_ask ask;
	uint64_t n;

	/* With a working directory of its own it does not keep the others from setns(2). */
	unshare(CLONE_FS);
	l->tracer = gettid();
	sem_post(&l->answered);
	for (;;) {
		poll(fds, ARRAY_LEN(fds), -1);
		while (fds[1].fd >= 0 && l->ops->next_ask(l->ctx, &ask))
			interrupt(l, &ask);
		if (!(fds[0].revents & POLLIN) || read(l->asked, &n, sizeof(n)) < 0)
			continue;
		if (l->request < 0)
			return NULL;
		l->err = ptrace((enum __ptrace_request)l->request, l->tid, l->addr, l->data) < 0
				 ? -errno
				 : 0;
		sem_post(&l->answered);
	}
}

static int tracer_open(struct launch *l)
{
	int err;

	l->asked = eventfd(0, EFD_CLOEXEC);
	if (l->asked < 0)
		return -errno;
	sem_init(&l->answered, 0, 0);
	pthread_mutex_init(&l->lock, NULL);
	keyed_open_of(&l->askings, struct asking, tid, SIZE_MAX);
	err = thread_start(&l->thread, "ct-tracer", 0, tracer_main, l);
	if (err)
		return err;
	l->threaded = true;
	wait_for(&l->answered);
	return 0;
}

static void request(struct launch *l, int what)
{
	l->request = what;
	while (eventfd_write(l->asked, 1) < 0 && errno == EINTR)
		;
}

static void tracer_close(struct launch *l)
{
	if (l->threaded) {
		request(l, -1);
		pthread_join(l->thread, NULL);
	}
	l->threaded = false;
	keyed_close(&l->askings);
	if (l->asked >= 0)
		close(l->asked);
	l->asked = -1;
}

/* ptrace(2). -ESRCH is no error for the callers: the tracee was killed meanwhile, and wait(2)
 * will say so. */
static int trace(struct launch *l, int what, pid_t tid, unsigned long addr, unsigned long data)
{
	l->tid = tid;
	l->addr = addr;
	l->data = data;
	request(l, what);
	wait_for(&l->answered);
	return l->err;
}

/* ---- the table ---- */

static struct tracee *find(const struct launch *l, pid_t tid)
{
	return keyed_find(&l->tracees, &tid);
}

/* Without memory children may be reported twice, or late. */
static void add(struct launch *l, pid_t tid, pid_t tgid)
{
	struct tracee *t = keyed_get(&l->tracees, &tid, &(bool){ false });

	if (t)
		t->tgid = tgid;
}

static void del(struct launch *l, pid_t tid)
{
	struct tracee *t = find(l, tid);

	end_asking(l, tid);
	if (t)
		keyed_remove(&l->tracees, t);
}

/* ---- new threads and processes ---- */

struct ids {
	pid_t tgid, ppid, tracer;
};

/* 0, or -errno: no such thread. Threads that ended but were not waited for are still there. */
static int read_ids(pid_t tid, struct ids *ids)
{
	char path[64], line[256];
	FILE *f;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (n < 3 && fgets(line, sizeof(line), f))
		n += sscanf(line, "Tgid: %d", &ids->tgid) == 1 ||
		     sscanf(line, "PPid: %d", &ids->ppid) == 1 ||
		     sscanf(line, "TracerPid: %d", &ids->tracer) == 1;
	fclose(f);
	return n == 3 ? 0 : -ESRCH;
}

static void joined(struct launch *l, pid_t tid, pid_t tgid, pid_t parent)
{
	add(l, tid, tgid);
	if (tid == tgid && l->follow && !l->closing)
		l->ops->on_fork(l->ctx, parent, tid);
}

/* The thread group of a thread that stopped; one that nobody announced is new. */
static pid_t tgid_of(struct launch *l, pid_t tid)
{
	struct tracee *t = find(l, tid);
	struct ids ids;

	if (t)
		return t->tgid;
	if (read_ids(tid, &ids))
		return tid; /* killed */
	joined(l, tid, ids.tgid, ids.ppid);
	return ids.tgid;
}

/* A fork, vfork or clone event of a thread. */
static void forked(struct launch *l, pid_t tid)
{
	pid_t parent = tgid_of(l, tid);
	unsigned long child = 0;
	struct ids ids;

	if (trace(l, PTRACE_GETEVENTMSG, tid, 0, (unsigned long)&child) || !child ||
	    find(l, (pid_t)child))
		return;
	/* Not ours: it stopped, ran and ended before this event came. */
	if (read_ids((pid_t)child, &ids) || ids.tracer != l->tracer)
		return;
	joined(l, (pid_t)child, ids.tgid, parent);
}

/* The thread has taken over its leader's id; its own is gone without a word, and those of the
 * others too soon. Returns whether the process stays. */
static bool execed(struct launch *l, pid_t tid)
{
	pid_t tgid = tgid_of(l, tid);
	unsigned long former = 0;

	if (!trace(l, PTRACE_GETEVENTMSG, tid, 0, (unsigned long)&former) && former &&
	    (pid_t)former != tid)
		del(l, (pid_t)former);
	if (tgid == l->child.pid)
		l->execed = true;
	if (!l->closing)
		l->ops->on_stop(l->ctx, tgid, tid, LAUNCH_EXEC);
	if (l->closing || !l->ops->leaves || !l->ops->leaves(l->ctx, tgid))
		return true;
	trace(l, PTRACE_DETACH, tid, 0, 0);
	del(l, tid);
	return false;
}

/* ---- stops ---- */

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static void stopped(struct launch *l, pid_t tid, int status)
{
	int sig = WSTOPSIG(status), deliver = 0, go_on = PTRACE_CONT, why;

	/* A process that came of clone(2), whose events are those of new threads: it has just
	 * been born, and is let go. */
	if (tgid_of(l, tid) != l->child.pid && !l->follow) {
		trace(l, PTRACE_DETACH, tid, 0, 0);
		del(l, tid);
		return;
	}
	switch (status >> 16) {
	case 0: deliver = sig; break;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE: forked(l, tid); break;
	case PTRACE_EVENT_EXEC:
		if (!execed(l, tid))
			return;
		break;
	case PTRACE_EVENT_STOP:
		why = end_asking(l, tid);
		if (why && !l->closing)
			l->ops->on_stop(l->ctx, tgid_of(l, tid), tid, why);
		/* The process is stopped, as it would be without us; SIGCONT makes another such
		 * event, with SIGTRAP. */
		if (is_stop_signal(sig))
			go_on = PTRACE_LISTEN;
		break;
	}
	trace(l, go_on, tid, 0, (unsigned long)deliver);
}

static void gone(struct launch *l, pid_t tid, int status)
{
	int err;

	del(l, tid);
	child_took(tid, status); /* we wait for any child, also for those of others */
	if (tid != l->child.pid || l->exited)
		return;
	l->exited = true;
	l->status = status;
	err = l->execed ? 0 : launch_child_exec_error(&l->child);
	if (err)
		msg_error("cannot run '%s': %s", l->name, strerror(err));
}

/* ---- the interface ---- */

int launch_open(struct launch **out, char *const cmd[], const char *user, char *const env[],
		bool follow, const struct launch_ops *ops, void *ctx)
{
	struct launch *l = calloc(1, sizeof(*l));
	struct sigaction sa;
	int err;

	*out = NULL;
	if (!l)
		return -ENOMEM;
	l->ops = ops;
	l->ctx = ctx;
	l->follow = follow;
	l->child.fd = -1;
	l->asked = -1;
	err = launch_child_fork(&l->child, cmd, user, env);
	if (err) {
		l->child.pid = 0;
		goto out;
	}
	err = ops->on_forked ? ops->on_forked(ctx) : 0;
	if (err)
		goto out;
	/* Inherited from who started us it would hide every end from wait(2). */
	if (!sigaction(SIGCHLD, NULL, &sa) && sa.sa_handler == SIG_IGN)
		signal(SIGCHLD, SIG_DFL);
	l->name = strdup(cmd[0]);
	keyed_open_of(&l->tracees, struct tracee, tid, SIZE_MAX);
	err = l->name ? 0 : -ENOMEM;
	if (!err)
		err = tracer_open(l);
	if (!err)
		err = trace(l, PTRACE_SEIZE, l->child.pid, 0, follow ? ITS_TREE : ONE_PROCESS);
	if (err) {
		msg_error("'%s' cannot be traced (%s): run cudatrace as root", cmd[0],
			  strerror(-err));
		goto out;
	}
	add(l, l->child.pid, l->child.pid);
	*out = l;
	return 0;
out:
	launch_close(l);
	return err;
}

pid_t launch_pid(const struct launch *l)
{
	return l->child.pid;
}

int launch_start(struct launch *l)
{
	int err = launch_child_go(&l->child);

	if (err)
		msg_error("'%s' ended before it was started: %s", l->name, strerror(-err));
	else
		l->started = true;
	return err;
}

int launch_poll(struct launch *l)
{
	int status;
	pid_t tid;

	for (int n = 0; n < EVENTS_MAX && !l->ended; n++) {
		tid = waitpid(-1, &status, __WALL | WNOHANG);
		if (!tid) {
			/* Another child of ours (the counters' helper) may live on. */
			l->ended = l->exited && !l->tracees.n;
			break;
		}
		if (tid < 0 && errno == EINTR)
			continue;
		if (tid < 0)
			l->ended = true; /* no child is left, and no tracee */
		else if (WIFSTOPPED(status))
			stopped(l, tid, status);
		else
			gone(l, tid, status);
	}
	return l->ended;
}

int launch_status(const struct launch *l)
{
	return l->status;
}

void launch_signal(struct launch *l, int sig)
{
	if (!l->exited)
		kill(l->child.pid, sig);
}

void launch_close(struct launch *l)
{
	int status;

	if (!l)
		return;
	l->closing = true;
	if (l->child.pid && !l->started && !l->exited) {
		kill(l->child.pid, SIGKILL);
		while (waitpid(l->child.pid, &status, __WALL) < 0 ? errno == EINTR
								  : WIFSTOPPED(status))
			;
	} else if (l->started && !l->ended) {
		/* What stopped before now has its signal delivered, as it should. */
		launch_poll(l);
	}
	tracer_close(l);
	launch_child_close(&l->child);
	keyed_close(&l->tracees);
	free(l->name);
	free(l);
}
