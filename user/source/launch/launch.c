/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launch.c - see launch.h.
 *
 * The tracer is a task of its own (launch_tracer.h), which hands out what happens. What a stop is for is done
 * here, on the caller's thread.
 *
 * A table of threads tells new processes from known ones: a child's first stop and its parent's
 * fork event come in either order. Knows nothing of BPF or of CUDA.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/io/child.h"
#include "../../util/msg.h"
#include "../../util/table/hash_map.h"
#include "launch.h"
#include "launch_child.h"
#include "launch_tracer.h"

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
	struct hash_map tracees;
	struct tracer *tracer;
};

/* ---- the table ---- */

static struct tracee *launch_find(const struct launch *l, pid_t tid)
{
	return hash_map_find(&l->tracees, &tid);
}

/* Without memory children may be reported twice, or late. */
static void launch_add(struct launch *l, pid_t tid, pid_t tgid)
{
	struct tracee *t = hash_map_get(&l->tracees, &tid, &(bool){ false });

	if (t)
		t->tgid = tgid;
}

static void del(struct launch *l, pid_t tid)
{
	struct tracee *t = launch_find(l, tid);

	if (t)
		hash_map_remove(&l->tracees, t);
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
	launch_add(l, tid, tgid);
	if (tid == tgid && l->follow && !l->closing)
		l->ops->on_fork(l->ctx, parent, tid);
}

/* The thread group of a thread that stopped; one that nobody announced is new. */
static pid_t tgid_of(struct launch *l, pid_t tid)
{
	struct tracee *t = launch_find(l, tid);
	struct ids ids;

	if (t)
		return t->tgid;
	if (read_ids(tid, &ids))
		return tid; /* killed */
	joined(l, tid, ids.tgid, ids.ppid);
	return ids.tgid;
}

/* Is it still there, and traced by us? One that is not has stopped, run and ended. */
static bool launch_is_ours(const struct launch *l, pid_t tid, struct ids *ids)
{
	struct ids tracer;

	return !read_ids(tid, ids) && ids->tracer && !read_ids(ids->tracer, &tracer) &&
	       tracer.tgid == tracer_pid(l->tracer);
}

/* A fork, vfork or clone event of a thread. */
static void launch_forked(struct launch *l, const struct tracer_event *e)
{
	struct ids ids;
	pid_t parent = tgid_of(l, e->tid), child = (pid_t)e->msg;

	if (!child || launch_find(l, child) || !launch_is_ours(l, child, &ids))
		return;
	joined(l, child, ids.tgid, parent);
}

/* A thread is stopped for us, or was let go since we were stopped ourselves: then it may have run. */
static void stop_is_for(struct launch *l, const struct tracer_event *e, pid_t tgid, int why)
{
	if (l->closing)
		return;
	if (tracer_let_go(l->tracer, e) && l->ops->let_go)
		l->ops->let_go(l->ctx, tgid);
	l->ops->on_stop(l->ctx, tgid, e->tid, why);
}

/* The thread has taken over its leader's id; its own is gone without a word, and those of the
 * others too soon. Returns whether the process stays. */
static bool execed(struct launch *l, const struct tracer_event *e)
{
	pid_t tid = e->tid, tgid = tgid_of(l, tid);

	if (e->msg && (pid_t)e->msg != tid)
		del(l, (pid_t)e->msg);
	if (tgid == l->child.pid)
		l->execed = true;
	stop_is_for(l, e, tgid, LAUNCH_EXEC);
	if (l->closing || !l->ops->leaves || !l->ops->leaves(l->ctx, tgid))
		return true;
	if (!tracer_done(l->tracer, e, PTRACE_DETACH, 0))
		del(l, tid);
	return false;
}

/* ---- stops ---- */

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static void stopped(struct launch *l, const struct tracer_event *e)
{
	int sig = WSTOPSIG(e->status), deliver = 0, go_on = PTRACE_CONT;
	pid_t tid = e->tid;

	/* A process that came of clone(2), whose events are those of new threads: it has just
	 * been born, and is let go. */
	if (tgid_of(l, tid) != l->child.pid && !l->follow) {
		tracer_done(l->tracer, e, PTRACE_DETACH, 0);
		del(l, tid);
		return;
	}
	switch (e->status >> 16) {
	case 0: deliver = sig; break;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE: launch_forked(l, e); break;
	case PTRACE_EVENT_EXEC:
		if (!execed(l, e))
			return;
		break;
	case PTRACE_EVENT_STOP:
		if (e->why)
			stop_is_for(l, e, tgid_of(l, tid), e->why);
		/* The process is stopped, as it would be without us; SIGCONT makes another such
		 * event, with SIGTRAP. */
		if (is_stop_signal(sig))
			go_on = PTRACE_LISTEN;
		break;
	}
	tracer_done(l->tracer, e, go_on, (unsigned long)deliver);
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

/* process: by one of its own. */
static int seize(struct launch *l, bool process)
{
	int err;

	l->tracer = tracer_open(l->ops, l->ctx, process);
	err = l->tracer ? tracer_call(l->tracer, PTRACE_SEIZE, l->child.pid, 0,
				      l->follow ? ITS_TREE : ONE_PROCESS)
			: -EAGAIN;
	if (err) {
		tracer_close(l->tracer);
		l->tracer = NULL;
	}
	return err;
}

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
	hash_map_open_of(&l->tracees, struct tracee, tid, SIZE_MAX);
	err = l->name ? 0 : -ENOMEM;
	if (!err)
		err = seize(l, true);
	/* a kernel may let nobody but ancestors trace */
	if (err)
		err = seize(l, false);
	if (err) {
		msg_error("'%s' cannot be traced (%s): run cudatrace as root", cmd[0],
			  strerror(-err));
		goto out;
	}
	launch_add(l, l->child.pid, l->child.pid);
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

pid_t launch_tracer(const struct launch *l)
{
	return tracer_pid(l->tracer);
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

/* The ends of some threads may not have been handed out. */
static void drop_gone(struct launch *l)
{
	struct tracee *t;
	struct ids ids;

	hash_map_each(&l->tracees, t) if (!launch_is_ours(l, t->tid, &ids)) del(l, t->tid);
}

int launch_poll(struct launch *l)
{
	struct tracer_event e;
	bool over = false;

	for (int n = 0; n < EVENTS_MAX && !l->ended; n++) {
		if (!tracer_next(l->tracer, &e, &over)) {
			if (tracer_overflowed(l->tracer)) {
				drop_gone(l);
				if (l->ops->let_go && !l->closing)
					l->ops->let_go(l->ctx, 0);
			}
			/* Another child of ours (the counters' helper) may live on. */
			l->ended = over || (l->exited && !l->tracees.n) ||
				   (l->exited && tracer_pid(l->tracer) < 0);
			break;
		}
		if (WIFSTOPPED(e.status))
			stopped(l, &e);
		else
			gone(l, e.tid, e.status);
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
	tracer_close(l->tracer);
	launch_child_close(&l->child);
	hash_map_close(&l->tracees);
	free(l->name);
	free(l);
}
