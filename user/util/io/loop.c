/* SPDX-License-Identifier: BSD-2-Clause */
/* loop.c - see loop.h. Knows nothing but libevent. */
#include <event2/event.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loop.h"

#define MAX_WATCHES 24
#define BASE_FILES 6 /* more than libevent opens for a base */

struct loop_watch {
	struct event *ev;
	loop_fn fn;
	void *ctx;
};

struct loop {
	struct event_base *base;
	struct loop_watch watches[MAX_WATCHES];
	int n;
};

/* Whether libevent can open the descriptors that it needs. Without them it prints a message of
 * its own, and may end the program. */
static bool files_left(void)
{
	int fds[BASE_FILES], n = 0;

	while (n < BASE_FILES && (fds[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
		n++;
	for (int i = 0; i < n; i++)
		close(fds[i]);
	return n == BASE_FILES;
}

struct loop *loop_open(void)
{
	struct loop *l = files_left() ? calloc(1, sizeof(*l)) : NULL;

	if (!l)
		return NULL;
	l->base = event_base_new();
	if (!l->base) {
		free(l);
		return NULL;
	}
	return l;
}

void loop_close(struct loop *l)
{
	if (!l)
		return;
	for (int i = 0; i < l->n; i++)
		event_free(l->watches[i].ev);
	event_base_free(l->base);
	free(l);
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

static void fired(evutil_socket_t fd, short what, void *arg)
{
	struct loop_watch *w = arg;

	(void)fd, (void)what;
	w->fn(w->ctx);
}

static struct loop_watch *watch(struct loop *l, int fd, short what, loop_fn fn, void *ctx)
{
	struct loop_watch *w = &l->watches[l->n];

	if (l->n == MAX_WATCHES)
		return NULL;
	w->fn = fn;
	w->ctx = ctx;
	w->ev = event_new(l->base, fd, what, fired, w);
	if (!w->ev)
		return NULL;
	l->n++;
	return w;
}

struct loop_watch *loop_fd(struct loop *l, int fd, loop_fn fn, void *ctx)
{
	struct loop_watch *w = watch(l, fd, EV_READ | EV_PERSIST, fn, ctx);

	return w && !event_add(w->ev, NULL) ? w : NULL;
}

struct loop_watch *loop_timer(struct loop *l, loop_fn fn, void *ctx)
{
	return watch(l, -1, 0, fn, ctx);
}

void loop_pause(struct loop_watch *w)
{
	event_del(w->ev);
}

void loop_resume(struct loop_watch *w)
{
	event_add(w->ev, NULL);
}

void loop_timer_set(struct loop_watch *w, uint64_t ns)
{
	struct timeval tv = { .tv_sec = (time_t)(ns / 1000000000),
			      .tv_usec = (suseconds_t)(ns % 1000000000 / 1000) };

	event_add(w->ev, &tv);
}

int loop_run(struct loop *l)
{
	return event_base_dispatch(l->base) < 0 ? -EIO : 0;
}

void loop_stop(struct loop *l)
{
	event_base_loopbreak(l->base);
}
