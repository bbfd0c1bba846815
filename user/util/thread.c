/* SPDX-License-Identifier: BSD-2-Clause */
/* thread.c - see thread.h. A thread names itself: to name another one takes a file of /proc. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "thread.h"

struct start {
	const char *name;
	void *(*fn)(void *);
	void *arg;
};

static void *thread_begin(void *arg)
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
		err = err ? err : pthread_create(&made, &attr, thread_begin, s);
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

/* ---- a worker ---- */

struct worker {
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* of the rest */
	pthread_cond_t changed;
	int (*fn)(void *); /* the job that is to be done or under way; NULL: none */
	void *arg;
	int err;
	bool over;
};

static void *thread_work(void *arg)
{
	struct worker *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		while (!w->fn && !w->over)
			pthread_cond_wait(&w->changed, &w->lock);
		if (!w->fn)
			break;
		pthread_mutex_unlock(&w->lock);
		int err = w->fn(w->arg);

		pthread_mutex_lock(&w->lock);
		w->err = w->err ? w->err : err;
		w->fn = NULL;
		pthread_cond_broadcast(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

struct worker *worker_open(const char *name)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	w->started = !thread_start(&w->thread, name, 0, thread_work, w);
	return w;
}

int worker_wait(struct worker *w)
{
	int err;

	pthread_mutex_lock(&w->lock);
	while (w->fn)
		pthread_cond_wait(&w->changed, &w->lock);
	err = w->err;
	w->err = 0;
	pthread_mutex_unlock(&w->lock);
	return err;
}

int worker_begin(struct worker *w, int (*fn)(void *), void *arg)
{
	int err = worker_wait(w);

	if (err)
		return err;
	if (!w->started) {
		w->err = fn(arg);
		return 0;
	}
	pthread_mutex_lock(&w->lock);
	w->arg = arg;
	w->fn = fn;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

void worker_close(struct worker *w)
{
	if (!w)
		return;
	if (w->started) {
		pthread_mutex_lock(&w->lock);
		w->over = true;
		pthread_cond_broadcast(&w->changed);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
	}
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
