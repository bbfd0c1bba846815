/* SPDX-License-Identifier: BSD-2-Clause */
/* targets.c - see targets.h. At most MOST are open: the one that was not needed for the longest
 * time is closed to make room. */
#include <stdlib.h>
#include <string.h>

#include "targets.h"

#define MOST 256
/* how long until a process that could not be opened is tried again */
#define AGAIN_NS 1000000000ULL
#define EXITED_NS 2000000000ULL /* how long a process stays open after it ended */

struct kept_target {
	uint32_t pid;
	struct target *target; /* NULL: it could not be opened */
	/* how long a failure, or a process that ended, is kept; 0: for ever */
	uint64_t until_ns;
	uint64_t used, start_boottime_ns;
};

struct targets {
	struct process_table *procs;
	void (*closing)(void *ctx, uint32_t pid);
	void *ctx;
	uint64_t clock;
	int n, last;
	struct kept_target entries[MOST];
};

struct targets *targets_open(struct process_table *procs, void (*closing)(void *ctx, uint32_t pid),
			     void *ctx)
{
	struct targets *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->procs = procs;
	t->closing = closing;
	t->ctx = ctx;
	return t;
}

void targets_close(struct targets *t)
{
	if (!t)
		return;
	for (int i = 0; i < t->n; i++)
		target_close(t->entries[i].target);
	free(t);
}

static void drop(struct targets *t, int i)
{
	struct kept_target s = t->entries[i];

	if (s.target) {
		t->closing(t->ctx, s.pid);
		target_close(s.target);
	}
	t->entries[i] = t->entries[--t->n];
}

static int find(struct targets *t, uint32_t pid)
{
	if (t->last < t->n && t->entries[t->last].pid == pid)
		return t->last;
	for (int i = 0; i < t->n; i++)
		if (t->entries[i].pid == pid)
			return t->last = i;
	return -1;
}

void targets_tidy(struct targets *t, uint64_t now_ns)
{
	for (int i = t->n - 1; i >= 0; i--)
		if (t->entries[i].until_ns && t->entries[i].until_ns < now_ns)
			drop(t, i);
}

static void make_room(struct targets *t, uint64_t now_ns)
{
	int oldest = 0;

	targets_tidy(t, now_ns);
	if (t->n < MOST)
		return;
	for (int i = 1; i < t->n; i++)
		if (t->entries[i].used < t->entries[oldest].used)
			oldest = i;
	drop(t, oldest);
}

struct target *targets_get(struct targets *t, uint32_t pid, uint64_t now_ns)
{
	const struct process *p;
	struct kept_target *s;
	int i = find(t, pid);

	if (i >= 0 && (t->entries[i].target || t->entries[i].until_ns > now_ns)) {
		t->entries[i].used = ++t->clock;
		return t->entries[i].target;
	}
	if (i >= 0)
		drop(t, i);
	/* If the start time is not known, any process may have this number. */
	p = process_table_find(t->procs, pid);
	if (!p || !p->start_boottime_ns || !p->shown_pid)
		return NULL;
	make_room(t, now_ns);
	s = &t->entries[t->n++];
	*s = (struct kept_target){ .pid = pid,
				   .used = ++t->clock,
				   .start_boottime_ns = p->start_boottime_ns };
	if (target_open(&s->target, (pid_t)p->shown_pid, p->start_boottime_ns)) {
		s->target = NULL;
		s->until_ns = now_ns + AGAIN_NS;
	}
	return s->target;
}

bool targets_same(struct targets *t, const struct ct_process *r)
{
	int i = find(t, r->h.pid);

	return i < 0 || t->entries[i].start_boottime_ns == r->start_boottime_ns;
}

void targets_drop(struct targets *t, uint32_t pid)
{
	int i = find(t, pid);

	if (i >= 0)
		drop(t, i);
}

void targets_exited(struct targets *t, uint32_t pid, uint64_t now_ns)
{
	int i = find(t, pid);

	if (i >= 0)
		t->entries[i].until_ns = now_ns + EXITED_NS;
}
