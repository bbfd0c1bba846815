/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launch.h - starts a program and its descendants under ptrace so that no call is missed: a thread
 * that maps a new library is stopped before any of that library's code has run, until its functions
 * are probed.
 *
 * How it works. The tree is seized (exec, clone and, unless only the program itself is wanted,
 * fork and vfork events). A thread of the tree asks to be stopped, as ld.so's _dl_debug_state is
 * probed and the kernel side puts a question into a ring (bpf/halt.bpf.h). The tracer
 * interrupts it at once and says so; the thread then stops, on_stop() is called, and it goes on. No
 * signal is sent. If cudatrace dies the tree runs on, and so it does if cudatrace is stopped.
 */
#ifndef CT_LAUNCH_H
#define CT_LAUNCH_H

#include "../../util/types.h"

struct launch;

/* Why a thread is stopped. */
enum launch_why {
	LAUNCH_EXEC, /* at exec: the image is mapped, ld.so has not run */
	LAUNCH_ASKED /* and each larger number: it asked for this */
};

struct launch_ask {
	pid_t tid;	 /* in our namespace */
	int why;	 /* LAUNCH_ASKED or larger */
	uint64_t number; /* for interrupted() */
};

struct launch_ops {
	/* The program has been forked, and has the privileges with which we were started: ours may be given up. No thread has been made. May be NULL. Returns 0, or -errno after one
	 * message: the program is not run then. */
	int (*on_forked)(void *ctx);
	/* A thread of the tree is stopped: at exec, or as it asked for. pid is the thread group, in
	 * our namespace. */
	void (*on_stop)(void *ctx, pid_t pid, pid_t tid, int why);
	/* The questions of threads, which wait meanwhile: a descriptor that becomes readable, and
	 * the next one; false: there is none. They are called on the tracer, which does nothing else, takes
	 * no lock and allocates nothing; the first one once, at its start. May be NULL, all three. */
	int (*ask_fd)(void *ctx);
	bool (*next_ask)(void *ctx, struct launch_ask *);
	/* A thread was stopped, and was let go before on_stop(), since we were stopped (SIGSTOP). pid 0: it is not
	 * known of which process. May be NULL. */
	void (*let_go)(void *ctx, pid_t pid);
	/* The thread of this question will stop before its next instruction. */
	void (*interrupted)(void *ctx, const struct launch_ask *);
	/* Behind on_stop() at exec: is the process to be left alone by us from here on, and what it
	 * starts? It then belongs to the tree no more. May be NULL. */
	bool (*leaves)(void *ctx, pid_t pid);
	/* A new process joined the tree. */
	void (*on_fork)(void *ctx, pid_t parent, pid_t child);
};

/* Forks, changes user (name or uid; NULL: stays), changes the environment, and stops before
 * execve(2). follow: its descendants belong to it; else they run as if they were not traced, and only the program itself ends. Returns 0, or -errno after one message (no such user, command not found). */
int launch_open(struct launch **, char *const cmd[], const char *user, char *const env[],
		bool follow, const struct launch_ops *, void *ctx);
pid_t launch_pid(const struct launch *);
/* The process that is its tracer. */
pid_t launch_tracer(const struct launch *);
/* Lets the program exec. */
int launch_start(struct launch *);
/* Handles all ptrace events that are there (call on SIGCHLD). Returns 0 while the command runs,
 * 1 when it has ended. */
int launch_poll(struct launch *);
/* The command's wait(2) status, once launch_poll() returned 1. */
int launch_status(const struct launch *);
void launch_signal(struct launch *, int sig);
/* Detaches from every process that still runs. */
void launch_close(struct launch *);

#endif
