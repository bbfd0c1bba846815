/* SPDX-License-Identifier: BSD-2-Clause */
/* out_command.c - see the end of out.h. Knows nothing of what is written. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "out.h"

#define LOOK_MS 100 /* between two looks at `stop` */
/* a shell's exit status for a command that a closed pipe ended */
#define SHELL_SIGPIPE (128 + SIGPIPE)

extern char **environ;

/* Our handlers must not run in the command, and it shall not ignore what we ignore. SIGHUP stays
 * as it is: only nohup(1) ignores it. */
static void set_signals(void)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sig != SIGHUP)
			sigaction(sig, &sa, NULL);
	sa.sa_handler = SIG_IGN;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGQUIT, &sa, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* This runs in the child, where only system calls are allowed. */
static void __attribute__((noreturn)) child(char *const argv[], int in)
{
	set_signals();
	/* dup2(2) of a descriptor to itself would leave it to be closed at the exec */
	if (in == STDIN_FILENO ? fcntl(in, F_SETFD, 0) : dup2(in, STDIN_FILENO) < 0)
		_exit(126);
	/* the group first: without root it could not be changed any more. Without privileges this changes nothing. */
	if (syscall(SYS_setgid, getgid()) || syscall(SYS_setuid, getuid()))
		_exit(126);
	execve(argv[0], argv, environ);
	_exit(127);
}

int out_command_open(const char *command, pid_t *pid)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)command, NULL };
	sigset_t all, old;
	int fds[2], err = 0;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	*pid = fork();
	if (!*pid)
		child(argv, fds[0]);
	if (*pid < 0)
		err = -errno;
	else
		child_expect(*pid);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(fds[0]);
	if (!err)
		return fds[1];
	*pid = 0;
	close(fds[1]);
	return err;
}

int out_command_wait(pid_t pid, const volatile int *stop, int *status)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	bool ended;

	while (!(ended = child_ended(pid, status)) && !(stop && *stop > 1))
		poll(&pfd, 1, LOOK_MS);
	if (fd >= 0)
		close(fd);
	if (!ended)
		return -EBUSY;
	if (*status == -1 || *status == 0)
		return 0;
	if (WIFSIGNALED(*status) ? WTERMSIG(*status) == SIGPIPE
				 : WEXITSTATUS(*status) == SHELL_SIGPIPE)
		return -EPIPE;
	return -ECHILD;
}
