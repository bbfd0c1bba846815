/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launch.h - starts a program and its descendants under ptrace so that no call is missed: a thread
 * that maps a new library is stopped before any of that library's code has run, until its functions
 * are probed.
 *
 * How it works. The tree is seized (exec, clone and, unless only the program itself is wanted,
 * fork and vfork events). A uprobe on ld.so's _dl_debug_state runs ct_dl_state, which sends
 * SIGURG to the calling thread; the tracer sees the signal-delivery stop, calls on_stop() and
 * lets the thread go on without the signal. If cudatrace dies the tree runs on.
 */
#ifndef CT_LAUNCH_H
#define CT_LAUNCH_H

#include "../../util/types.h"

struct launch;

struct launch_ops {
	/* The program has been forked, and has the privileges with which we were started: ours may be given up. No thread has been made. May be NULL. Returns 0, or -errno after one
	 * message: the program is not run then. */
	int (*on_forked)(void *ctx);
	/* A process of the tree is stopped at exec (its image is mapped, ld.so has not run), or
	 * a thread at _dl_debug_state: look for new files and attach. pid is the thread group,
	 * in our namespace. */
	void (*on_stop)(void *ctx, pid_t pid, pid_t tid, bool exec);
	/* A thread is stopped by SIGURG. True: it was sent for another reason of ours than the
	 * loader's; the signal is dropped. */
	bool (*on_held)(void *ctx, pid_t tid);
	/* A new process joined the tree. */
	void (*on_fork)(void *ctx, pid_t parent, pid_t child);
};

/* Forks, changes user (name or uid; NULL: stays), changes the environment, and stops before
 * execve(2). follow: its descendants belong to it; else they run as if they were not traced, and only the program itself ends. Returns 0, or -errno after one message (no such user, command not found). */
int launch_open(struct launch **, char *const cmd[], const char *user, char *const env[],
		bool follow, const struct launch_ops *, void *ctx);
pid_t launch_pid(const struct launch *);
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
