/* SPDX-License-Identifier: BSD-2-Clause */
/* thread.c - see thread.h. A thread names itself: to name another one takes a file of /proc. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "thread.h"

struct start {
	const char *name;
	void *(*fn)(void *);
	void *arg;
};

static void *begin(void *arg)
{
	struct start s = *(struct start *)arg;

	free(arg);
	prctl(PR_SET_NAME, s.name);
	return s.fn(s.arg);
}

int thread_start(pthread_t *thread, const char *name, size_t stack, void *(*fn)(void *), void *arg)
{
	struct start *s = malloc(sizeof(*s));
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t made;
	int err;

	if (!s)
		return -ENOMEM;
	*s = (struct start){ name, fn, arg };
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_attr_init(&attr);
	if (!err) {
		if (stack)
			err = pthread_attr_setstacksize(&attr, stack);
		err = err ? err : pthread_create(&made, &attr, begin, s);
		pthread_attr_destroy(&attr);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		free(s);
		return -err;
	}
	if (thread)
		*thread = made;
	else
		pthread_detach(made);
	return 0;
}
