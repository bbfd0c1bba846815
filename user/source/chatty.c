/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chatty.c - the governor of chatty queries. See chatty.h.
 *
 * A small table of (process, function) -> calls in the current window, open addressing, emptied at each window's end.
 * When it is full further pairs go uncounted until the next window: only the busiest matter, and they come early.
 */
#include <stdlib.h>
#include <string.h>

#include "../api/api.h"
#include "chatty.h"

#define SLOTS 1024

struct slot {
	uint32_t pid, func, calls;
};

struct chatty {
	bool query[CT_MAX_FUNCS]; /* may be muted */
	struct slot slots[SLOTS];
	int used;
	uint64_t window_start_ns, rate;
};

struct chatty *chatty_open(const struct capture_plan *plan)
{
	struct chatty *c = calloc(1, sizeof(*c));
	int i;

	if (!c)
		return NULL;
	for (i = 0; i < api_nfuncs; i++)
		c->query[i] = api_funcs[i].class == API_QUERY && plan_has(plan->shown, i) &&
			      !plan_has(plan->named, i) && !plan->keep_chatty && !plan->failed_only;
	return c;
}

bool chatty_call(struct chatty *c, const struct ct_call *call)
{
	uint64_t now = call->h.end_ns;
	uint32_t h;
	struct slot *s;

	if (call->func >= CT_MAX_FUNCS || !c->query[call->func])
		return false;
	if (now - c->window_start_ns > CHATTY_WINDOW_NS && now > c->window_start_ns) {
		c->window_start_ns = now;
		memset(c->slots, 0, sizeof(c->slots));
		c->used = 0;
	}
	for (h = call->h.pid * 31 + call->func;; h++) {
		s = &c->slots[h % SLOTS];
		if (s->pid == call->h.pid && s->func == call->func)
			break;
		if (s->pid)
			continue;
		if (c->used > SLOTS / 2)
			return false;
		c->used++;
		s->pid = call->h.pid;
		s->func = call->func;
		break;
	}
	if (++s->calls != CHATTY_RATE / (1000000000 / CHATTY_WINDOW_NS))
		return false;
	c->query[call->func] = false;
	/* Calls arrive in the order of their return on each CPU only: this one may be older than the window. */
	c->rate = now > c->window_start_ns ? s->calls * 1000000000ULL / (now - c->window_start_ns) : CHATTY_RATE;
	return true;
}

uint64_t chatty_rate(const struct chatty *c)
{
	return c->rate;
}

void chatty_close(struct chatty *c)
{
	free(c);
}
