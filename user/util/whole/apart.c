/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apart.c - see apart.h. All signals that matter are blocked in the parent and taken in turn with the
 * child's end, by one thread, so that the child's number is its own whenever something is sent to it.
 *
 * A signal that was typed at a terminal reaches both, if both exist: where one waits right after the fork,
 * it cannot be told whom it has reached, and the child is ended before it has begun.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apart.h"

static const int ends[] = { SIGINT, SIGTERM, SIGHUP };

struct apart_shared {
	atomic_bool cut; /* the result of the function */
};

static bool one_waits(const struct apart *a)
{
	sigset_t waiting;

	if (sigpending(&waiting))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (sigismember(&a->ours, ends[i]) && sigismember(&waiting, ends[i]))
			return true;
	return false;
}

int apart_open(struct apart *a)
{
	struct sigaction old;

	a->shared = mmap(NULL, sizeof(*a->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (a->shared == MAP_FAILED)
		return -errno;
	sigemptyset(&a->ours);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		/* after nohup(1) it is ignored */
		if (ends[i] == SIGHUP && !sigaction(SIGHUP, NULL, &old) &&
		    old.sa_handler == SIG_IGN)
			continue;
		sigaddset(&a->ours, ends[i]);
	}
	/* while it is ignored, no child can be waited for */
	signal(SIGCHLD, SIG_DFL);
	sigaddset(&a->ours, SIGCHLD);
	sigprocmask(SIG_BLOCK, &a->ours, &a->mask);
	return 0;
}

/* ---- in the child ---- */

static void child(const struct apart *a, int go, apart_fn *fn, void *ctx)
{
	bool cut = false;
	int status;
	char byte;

	/* the end of our parent ends this trace */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go, &byte, 1) != 1)
		_exit(1);
	close(go);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (sigismember(&a->ours, ends[i]))
			signal(ends[i], SIG_DFL);
	sigprocmask(SIG_SETMASK, &a->mask, NULL);
	status = fn(ctx, &cut);
	atomic_store(&a->shared->cut, cut);
	exit(status);
}

/* ---- the parent's side ---- */

static int status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Passes signals on until the child has ended. Returns its wait(2) status. *cut: one came. */
static int wait_for(const struct apart *a, pid_t pid, bool *cut)
{
	siginfo_t info;
	int status, sig;
	pid_t ended;

	for (;;) {
		ended = waitpid(pid, &status, WNOHANG);
		if (ended == pid)
			return status;
		sig = sigwaitinfo(&a->ours, &info);
		if (sig <= 0 || sig == SIGCHLD)
			continue;
		/* what was typed at the terminal has reached the whole process group */
		if (info.si_code <= 0)
			kill(pid, sig);
		*cut = true;
	}
}

int apart_run(struct apart *a, apart_fn *fn, void *ctx, bool *cut)
{
	int go[2], status, err;
	pid_t pid;

	*cut = one_waits(a);
	if (*cut)
		return 0;
	atomic_store(&a->shared->cut, false);
	if (pipe(go))
		return -errno;
	pid = fork();
	err = errno;
	if (!pid) {
		close(go[1]);
		child(a, go[0], fn, ctx);
	}
	close(go[0]);
	if (pid > 0 && one_waits(a))
		*cut = true;
	else if (pid > 0 && write(go[1], "", 1) != 1)
		kill(pid, SIGKILL);
	close(go[1]);
	if (pid < 0)
		return -err;
	/* without the byte it ends by itself */
	status = wait_for(a, pid, cut);
	*cut |= atomic_load(&a->shared->cut) || one_waits(a);
	return status_of(status);
}

void apart_close(struct apart *a)
{
	munmap(a->shared, sizeof(*a->shared));
	sigprocmask(SIG_SETMASK, &a->mask, NULL);
}
