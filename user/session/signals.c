/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signals.c - see signals.h. The handler writes to a pipe. libevent's own signal events do not say
 * where a signal came from, and a SIGINT typed at the terminal must not be passed on to a program
 * that already got it. SA_RESTART is not set, so that a signal interrupts a write that is blocked
 * by a stalled reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "signals.h"

static int pipe_fds[2] = { -1, -1 };
volatile int signals_pending;
static volatile int last;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	/* one byte for each signal, so that a write is never partial */
	unsigned char byte = (unsigned char)(sig | (info->si_code > 0 ? 0x80 : 0));
	int saved = errno;

	(void)context;
	if (sig == SIGPIPE || sig == SIGXFSZ)
		return;
	if (last && (sig == SIGINT || sig == SIGTERM || sig == SIGHUP))
		signals_pending = signals_pending ? 2 : 1;
	else if (sig != SIGCHLD && !signals_pending)
		signals_pending = 1;
	if (write(pipe_fds[1], &byte, 1) < 0) {
		/* the pipe is full: enough signals are waiting to be read */
	}
	errno = saved;
}

int signals_open(void)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE, SIGXFSZ };
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO }, old;

	if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < ARRAY_LEN(sigs); i++) {
		if (sigs[i] == SIGHUP && !sigaction(SIGHUP, NULL, &old) &&
		    old.sa_handler == SIG_IGN)
			continue;
		sigaction(sigs[i], &sa, NULL);
	}
	return pipe_fds[0];
}

void signals_add(int sig)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigemptyset(&sa.sa_mask);
	sigaction(sig, &sa, NULL);
}

void signals_last(void)
{
	last = 1;
}

bool signals_next(struct signals_got *got)
{
	unsigned char byte;

	signals_pending = 0;
	if (read(pipe_fds[0], &byte, 1) != 1)
		return false;
	got->sig = byte & 0x7f;
	got->from_kernel = byte & 0x80;
	return true;
}

void signals_close(void)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGUSR2 };

	for (size_t i = 0; i < ARRAY_LEN(sigs); i++)
		signal(sigs[i], SIG_DFL);
	last = 0;
	for (int i = 0; i < 2; i++) {
		if (pipe_fds[i] >= 0)
			close(pipe_fds[i]);
		pipe_fds[i] = -1;
	}
}
