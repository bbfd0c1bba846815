/* SPDX-License-Identifier: BSD-2-Clause */
/* change.c - see change.h. */
#include "../common/compat.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "../common/sys.h"
#include "change.h"

/*
 * 1 while the engine is being changed, or while a thread is in fork(), because the child must not
 * get an engine that is half changed. This is not a mutex of libc, because the child would not be
 * its owner.
 */
static int changing;

bool change_try(void)
{
	return !__atomic_exchange_n(&changing, 1, __ATOMIC_ACQUIRE);
}

void change_ends(void)
{
	__atomic_store_n(&changing, 0, __ATOMIC_RELEASE);
}

void change_nap(void)
{
	sys_call(SYS_nanosleep, (long)&(struct timespec){ .tv_nsec = 50000 }, 0, 0, 0, 0, 0);
}

void change_begins(void)
{
	while (!change_try())
		change_nap();
}

void quiet_begins(struct quiet *q)
{
	sigset_t all;

	q->errno_was = errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &q->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &q->cancel);
}

void quiet_ends(const struct quiet *q)
{
	pthread_setcancelstate(q->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &q->signals, NULL);
	errno = q->errno_was;
}

pid_t hooks_pid;

bool is_own_process(void)
{
	return sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0) == hooks_pid;
}
