/* SPDX-License-Identifier: BSD-2-Clause */
/* targets.c - see targets.h. At most MOST are open: those that were not needed for the longest
 * time are closed to make room. */
#include <stdlib.h>

#include "../event/registry.h"
#include "targets.h"

#define MOST 256
/* how long until a process that could not be opened is tried again */
#define AGAIN_NS 1000000000ULL
#define EXITED_NS 2000000000ULL /* how long a process stays open after it ended */

struct kept_target {
	struct registered r;
	struct target *target; /* NULL: it could not be opened */
	/* how long a failure, or a process that ended, is kept; 0: for ever */
	uint64_t until_ns;
};

struct targets {
	struct process_table *procs;
	void (*closing)(void *ctx, uint32_t pid);
	void *ctx;
	struct registry open; /* of struct kept_target */
};

static void forgotten(void *ctx, void *item, const struct ct_hdr *h)
{
	struct targets *t = ctx;
	struct kept_target *k = item;

	(void)h;
	if (k->target && t->closing)
		t->closing(t->ctx, k->r.pid);
	target_close(k->target);
}

static const struct registry_rules rules = { .size = sizeof(struct kept_target),
					     .most = MOST,
					     .stays_ns = UINT64_MAX,
					     .forgets = true,
					     .gone = forgotten };

struct targets *targets_open(struct process_table *procs, void (*closing)(void *ctx, uint32_t pid),
			     void *ctx)
{
	struct targets *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->procs = procs;
	t->closing = closing;
	t->ctx = ctx;
	registry_open(&t->open, &rules, t);
	return t;
}

void targets_close(struct targets *t)
{
	if (!t)
		return;
	t->closing = NULL;
	registry_close(&t->open);
	free(t);
}

void targets_tidy(struct targets *t, uint64_t now_ns)
{
	struct kept_target *k;

	registry_each(&t->open, k) if (k->until_ns && k->until_ns < now_ns)
		registry_forget(&t->open, k);
}

struct target *targets_get(struct targets *t, uint32_t pid, uint64_t now_ns)
{
	struct kept_target *k = registry_find(&t->open, pid);
	const struct process *p;

	if (k && !k->target && k->until_ns <= now_ns) {
		registry_forget(&t->open, k);
		k = NULL;
	}
	if (k) {
		registry_get(&t->open, pid);
		return k->target;
	}
	/* If the start time is not known, any process may have this number. */
	p = process_table_find(t->procs, pid);
	if (!p || !p->start_boottime_ns || !p->shown_pid)
		return NULL;
	targets_tidy(t, now_ns);
	k = registry_of(&t->open, p);
	if (k && target_open(&k->target, (pid_t)p->shown_pid, p->start_boottime_ns)) {
		k->target = NULL;
		k->until_ns = now_ns + AGAIN_NS;
	}
	return k ? k->target : NULL;
}

bool targets_same(struct targets *t, const struct ct_process *r)
{
	const struct kept_target *k = registry_find(&t->open, r->h.pid);

	return !k || k->r.start_boottime_ns == r->start_boottime_ns;
}

void targets_drop(struct targets *t, uint32_t pid)
{
	struct kept_target *k = registry_find(&t->open, pid);

	if (k)
		registry_forget(&t->open, k);
}

void targets_exited(struct targets *t, uint32_t pid, uint64_t now_ns)
{
	struct kept_target *k = registry_find(&t->open, pid);

	if (k)
		k->until_ns = now_ns + EXITED_NS;
}
