/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launch.c - see launch.h.
 *
 * A thread of ours is the tracer: it makes the ptrace(2) calls that launch_poll() asks for and does
 * nothing else. To detach, it ends: the kernel then lets every tracee go where it is. PTRACE_DETACH
 * would need each of them stopped first, and a stop makes epoll_wait(2), and recv(2) with a
 * time-out, fail with EINTR in the program. wait(2) works for the whole process, so the callbacks
 * run on the caller's thread.
 *
 * A table of threads tells new processes from known ones: a child's first stop and its parent's
 * fork event come in either order. Knows nothing of BPF or of CUDA.
 */
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	sem_t asked, answered;
	pid_t tracer; /* its tid */
	int request;  /* -1: end */
	pid_t tid;
	unsigned long addr, data;
	int err;
};

/* ---- the tracer thread ---- */

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) < 0 && errno == EINTR)
		;
}

static void *tracer_main(void *arg)
{
	struct launch *l = arg;

	/* With a working directory of its own it does not keep the others from setns(2). */
	unshare(CLONE_FS);
	l->tracer = gettid();
	for (;;) {
		sem_post(&l->answered);
		wait_for(&l->asked);
		if (l->request < 0)
			return NULL;
		l->err = ptrace((enum __ptrace_request)l->request, l->tid, l->addr, l->data) < 0
				 ? -errno
				 : 0;
	}
}

static int tracer_open(struct launch *l)
{
	int err;

	sem_init(&l->asked, 0, 0);
	sem_init(&l->answered, 0, 0);
	err = thread_start(&l->thread, "ct-tracer", 0, tracer_main, l);
	if (err)
		return err;
	l->threaded = true;
	wait_for(&l->answered);
	return 0;
}

static void tracer_close(struct launch *l)
{
	if (!l->threaded)
		return;
	l->request = -1;
	sem_post(&l->asked);
	pthread_join(l->thread, NULL);
	l->threaded = false;
}

/* ptrace(2). -ESRCH is no error for the callers: the tracee was killed meanwhile, and wait(2)
 * will say so. */
static int trace(struct launch *l, int request, pid_t tid, unsigned long addr, unsigned long data)
{
	l->request = request;
	l->tid = tid;
	l->addr = addr;
	l->data = data;
	sem_post(&l->asked);
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
 * others too soon. */
static void execed(struct launch *l, pid_t tid)
{
	pid_t tgid = tgid_of(l, tid);
	unsigned long former = 0;

	if (!trace(l, PTRACE_GETEVENTMSG, tid, 0, (unsigned long)&former) && former &&
	    (pid_t)former != tid)
		del(l, (pid_t)former);
	if (tgid == l->child.pid)
		l->execed = true;
	if (!l->closing)
		l->ops->on_stop(l->ctx, tgid, tid, true);
}

/* ---- stops ---- */

static unsigned long ld_so_base(pid_t pid)
{
	Elf64_auxv_t aux;
	unsigned long base = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fread(&aux, sizeof(aux), 1, f) == 1 && aux.a_type != AT_NULL)
		if (aux.a_type == AT_BASE)
			base = aux.a_un.a_val;
	fclose(f);
	return base;
}

/* Whether ip is known to be in another file than the one that starts at base. */
static bool elsewhere(pid_t pid, unsigned long base, unsigned long ip)
{
	unsigned long start, end, inode, major, minor, base_file[3] = {}, ip_file[3] = {};
	bool have_base = false, have_ip = false;
	char line[4608];
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/maps", pid);
	f = fopen(line, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %*7s %*x %lx:%lx %lu", &start, &end, &major, &minor,
			   &inode) != 5)
			continue;
		if (start == base) {
			have_base = true;
			memcpy(base_file, (unsigned long[]){ major, minor, inode },
			       sizeof(base_file));
		}
		if (start <= ip && ip < end) {
			have_ip = true;
			memcpy(ip_file, (unsigned long[]){ major, minor, inode }, sizeof(ip_file));
		}
	}
	fclose(f);
	return have_base && have_ip && memcmp(base_file, ip_file, sizeof(base_file));
}

/* Whether this SIGURG is ct_dl_state's. The kernel sends one too when urgent data comes to a
 * socket that the program owns (F_SETOWN), and nothing in the siginfo tells the two apart; but
 * ours comes inside ld.so. */
static bool is_ours(struct launch *l, pid_t tid)
{
	struct __ptrace_syscall_info info = {};
	unsigned long base;
	siginfo_t si;

	if (trace(l, PTRACE_GETSIGINFO, tid, 0, (unsigned long)&si) || si.si_code != SI_KERNEL)
		return false;
	if (trace(l, PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), (unsigned long)&info))
		return true;
	base = ld_so_base(tid);
	return !base || !elsewhere(tid, base, info.instruction_pointer);
}

/* Returns the signal to go on with. */
static int signalled(struct launch *l, pid_t tid, int sig)
{
	if (sig == SIGURG && l->ops->on_held && l->ops->on_held(l->ctx, tid))
		return 0;
	if (sig != SIGURG || !is_ours(l, tid))
		return sig;
	if (!l->closing)
		l->ops->on_stop(l->ctx, tgid_of(l, tid), tid, false);
	return 0;
}

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static void stopped(struct launch *l, pid_t tid, int status)
{
	int sig = WSTOPSIG(status), deliver = 0, request = PTRACE_CONT;

	/* A process that came of clone(2), whose events are those of new threads: it has just
	 * been born, and is let go. */
	if (tgid_of(l, tid) != l->child.pid && !l->follow) {
		trace(l, PTRACE_DETACH, tid, 0, 0);
		del(l, tid);
		return;
	}
	switch (status >> 16) {
	case 0: deliver = signalled(l, tid, sig); break;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE: forked(l, tid); break;
	case PTRACE_EVENT_EXEC: execed(l, tid); break;
	case PTRACE_EVENT_STOP:
		/* The process is stopped, as it would be without us; SIGCONT makes another such
		 * event, with SIGTRAP. */
		if (is_stop_signal(sig))
			request = PTRACE_LISTEN;
		break;
	}
	trace(l, request, tid, 0, (unsigned long)deliver);
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
		/* What stopped before now has its signal swallowed, or delivered, as it should. */
		launch_poll(l);
	}
	tracer_close(l);
	launch_child_close(&l->child);
	keyed_close(&l->tracees);
	free(l->name);
	free(l);
}
