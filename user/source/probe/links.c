/* SPDX-License-Identifier: BSD-2-Clause */
/* links.c - see links.h: a set of links of whichever kind is made and closed. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../util/now.h"
#include "../../util/thread.h"
#include "links.h"

#define CLOSERS 64 /* threads: each waits for the kernel's grace periods */
#define CLOSER_STACK (256 * 1024)

int links_make(enum attach_kind kind, const struct attach_progs *progs, const struct link_target *t,
	       struct link_set *set, int *bad)
{
	switch (kind) {
	case ATTACH_SESSION: return links_session(progs, t, set, bad);
	case ATTACH_MULTI: return links_multi(progs, t, set, bad);
	case ATTACH_TRACEFS: return links_tracefs(progs, t, set, bad);
	case ATTACH_PERF: return links_perf(progs, t, set, bad);
	default: return -EINVAL;
	}
}

void links_close(struct link_set *set)
{
	while (set->nfds)
		close(set->fds[--set->nfds]);
	links_removed(set);
}

/* ---- on the side ---- */

struct later {
	struct later *next;
	struct link_set set;
	uint64_t due_ns;
};

/* Sets that wait to be closed, the next due first, and the threads that close them: these end
 * when nothing waits. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct later *first, *last;
	int threads;
	unsigned fds; /* that are not closed yet */
	bool hurry;
} closer = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void wait_until_due(const struct later *l)
{
	struct timespec until;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), ns;

	if (l->due_ns <= now)
		return;
	ns = clock_ns(CLOCK_REALTIME) + (l->due_ns - now);
	until = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				   .tv_nsec = (long)(ns % 1000000000) };
	pthread_cond_timedwait(&closer.changed, &closer.lock, &until);
}

static void *close_later(void *arg)
{
	struct later *l;
	unsigned n;

	(void)arg;
	pthread_mutex_lock(&closer.lock);
	while ((l = closer.first)) {
		if (!closer.hurry && l->due_ns > clock_ns(CLOCK_MONOTONIC)) {
			wait_until_due(l);
			continue;
		}
		closer.first = l->next;
		closer.last = closer.first ? closer.last : NULL;
		pthread_mutex_unlock(&closer.lock);
		n = (unsigned)l->set.nfds;
		links_close(&l->set);
		free(l);
		pthread_mutex_lock(&closer.lock);
		closer.fds -= n;
		pthread_cond_broadcast(&closer.changed);
	}
	closer.threads--;
	pthread_cond_broadcast(&closer.changed);
	pthread_mutex_unlock(&closer.lock);
	return NULL;
}

/* The lock is held. False: nobody is there to close anything. */
static bool have_closer(void)
{
	if (closer.threads == CLOSERS)
		return true;
	if (!thread_start(NULL, "ct-closer", CLOSER_STACK, close_later, NULL))
		closer.threads++;
	return closer.threads != 0;
}

void links_close_later(const struct link_set *set, unsigned delay_us)
{
	struct later *l = malloc(sizeof(*l)), **at;
	struct link_set here = *set;

	if (!l) {
		links_close(&here);
		return;
	}
	*l = (struct later){ .set = *set,
			     .due_ns = clock_ns(CLOCK_MONOTONIC) + delay_us * 1000ULL };
	pthread_mutex_lock(&closer.lock);
	if (!have_closer()) {
		pthread_mutex_unlock(&closer.lock);
		free(l);
		links_close(&here);
		return;
	}
	at = closer.last && closer.last->due_ns <= l->due_ns ? &closer.last->next : &closer.first;
	while (*at && (*at)->due_ns <= l->due_ns)
		at = &(*at)->next;
	l->next = *at;
	*at = l;
	closer.last = l->next ? closer.last : l;
	closer.fds += (unsigned)set->nfds;
	pthread_cond_broadcast(&closer.changed);
	pthread_mutex_unlock(&closer.lock);
}

unsigned links_closing(void)
{
	unsigned n;

	pthread_mutex_lock(&closer.lock);
	n = closer.fds;
	pthread_mutex_unlock(&closer.lock);
	return n;
}

void links_close_now(void)
{
	pthread_mutex_lock(&closer.lock);
	closer.hurry = true;
	pthread_cond_broadcast(&closer.changed);
	while (closer.threads)
		pthread_cond_wait(&closer.changed, &closer.lock);
	closer.hurry = false;
	pthread_mutex_unlock(&closer.lock);
}
