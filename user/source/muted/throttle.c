/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * throttle.c - the governor of throttled queries. See throttle.h.
 *
 * A small table of (process, function) -> calls in the current window, open addressing, emptied
 * at each window's end. When it is full further pairs go uncounted until the next window: only
 * the busiest matter, and they come early.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "throttle.h"

#define BUCKETS 1024

struct bucket {
	uint32_t pid, func, calls;
};

struct throttle {
	struct bucket buckets[BUCKETS];
	int used;
	uint64_t least, window_start_ns;
	char text[64];
};

struct throttle *throttle_open(uint64_t rate)
{
	struct throttle *c = calloc(1, sizeof(*c));

	if (c)
		c->least = rate;
	return c;
}

bool throttle_calls(struct throttle *c, uint32_t pid, uint32_t func, uint64_t calls, uint64_t now)
{
	uint32_t h;
	struct bucket *s;

	if (now - c->window_start_ns > THROTTLE_WINDOW_NS && now > c->window_start_ns) {
		c->window_start_ns = now;
		memset(c->buckets, 0, sizeof(c->buckets));
		c->used = 0;
	}
	for (h = pid * 31 + func;; h++) {
		s = &c->buckets[h % BUCKETS];
		if (s->pid == pid && s->func == func)
			break;
		if (s->pid)
			continue;
		if (c->used > BUCKETS / 2)
			return false;
		c->used++;
		s->pid = pid;
		s->func = func;
		break;
	}
	s->calls += calls < UINT32_MAX / 2 ? (uint32_t)calls : UINT32_MAX / 2;
	if (s->calls < c->least / (1000000000 / THROTTLE_WINDOW_NS))
		return false;
	/* Calls arrive in the order of their return on each CPU only: this one may be older than
	 * the window. */
	throttle_is(c, now > c->window_start_ns
			       ? s->calls * 1000000000ULL / (now - c->window_start_ns)
			       : 0);
	return true;
}

void throttle_least(struct throttle *c, uint64_t rate)
{
	c->least = rate;
}

void throttle_is(struct throttle *c, uint64_t rate)
{
	bool more = rate <= c->least;

	snprintf(c->text, sizeof(c->text), "%s%llu times a second", more ? "more than " : "",
		 (unsigned long long)(more ? c->least : rate));
}

const char *throttle_text(const struct throttle *c)
{
	return c->text;
}

void throttle_close(struct throttle *c)
{
	free(c);
}
