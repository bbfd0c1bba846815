/* SPDX-License-Identifier: BSD-2-Clause */
/* worker.c - see worker.h. */
#include <stdbool.h>
#include <stdlib.h>

#include "thread.h"
#include "worker.h"

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

static void *work(void *arg)
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
	w->started = !thread_start(&w->thread, name, 0, work, w);
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
