/* SPDX-License-Identifier: BSD-2-Clause */
/* actors.c - see actors.h. An open-addressed hash with the last answer remembered: calls come in runs of one thread. */
#include <stdlib.h>
#include <string.h>

#include "actors.h"

#define FIRST 256 /* slots to begin with, a power of two */
#define MAX (256u << 10)

struct actors {
	struct actor **slots;
	uint32_t nslots, used;
	struct actor *last;
};

struct actors *actors_open(void)
{
	struct actors *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->nslots = FIRST;
	t->slots = calloc(t->nslots, sizeof(*t->slots));
	if (!t->slots) {
		free(t);
		return NULL;
	}
	return t;
}

static uint32_t hash_of(uint32_t pid, uint32_t tid, uint64_t start)
{
	uint64_t h = ((uint64_t)pid << 32 | tid) * 0x9e3779b97f4a7c15;

	h = (h ^ h >> 32 ^ start) * 0x9e3779b97f4a7c15;
	return (uint32_t)(h >> 32);
}

/* The actor's slot, or the free one where it belongs. The table is never full. */
static struct actor **slot_of(struct actor **slots, uint32_t nslots, uint32_t pid, uint32_t tid, uint64_t start)
{
	uint32_t at = hash_of(pid, tid, start) & (nslots - 1);

	while (slots[at] && (slots[at]->pid != pid || slots[at]->tid != tid || slots[at]->start_boottime_ns != start))
		at = (at + 1) & (nslots - 1);
	return &slots[at];
}

static bool grow(struct actors *t)
{
	uint32_t nslots = t->nslots * 2;
	struct actor **slots = calloc(nslots, sizeof(*slots));

	if (!slots)
		return false;
	for (uint32_t i = 0; i < t->nslots; i++) {
		struct actor *a = t->slots[i];

		if (a)
			*slot_of(slots, nslots, a->pid, a->tid, a->start_boottime_ns) = a;
	}
	free(t->slots);
	t->slots = slots;
	t->nslots = nslots;
	return true;
}

static struct actor *find(struct actors *t, const struct process *p, uint32_t tid)
{
	struct actor **slot = slot_of(t->slots, t->nslots, p->pid, tid, p->start_boottime_ns);
	struct actor *a = *slot;

	if (a)
		return a;
	if (t->used >= t->nslots / 2) {
		if (!grow(t))
			return NULL;
		slot = slot_of(t->slots, t->nslots, p->pid, tid, p->start_boottime_ns);
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->pid = p->pid;
	a->tid = tid;
	a->shown_pid = p->shown_pid;
	/* outside the initial pid namespace the leader's thread id is known, others' are not translated */
	a->shown_tid = tid == p->pid ? p->shown_pid : tid;
	a->start_boottime_ns = p->start_boottime_ns;
	memcpy(a->comm, p->comm, strnlen(p->comm, CT_COMM_LEN));
	*slot = a;
	t->used++;
	return a;
}

struct actor *actors_of(struct actors *t, const struct event *ev)
{
	uint32_t tid = ev->rec->tid ? ev->rec->tid : ev->proc->pid;
	struct actor *a = t->last;

	if (!a || a->tid != tid || a->pid != ev->proc->pid || a->start_boottime_ns != ev->proc->start_boottime_ns) {
		a = find(t, ev->proc, tid);
		if (!a)
			return NULL;
		if (!a->process)
			a->process = find(t, ev->proc, 0);
		if (!a->process)
			return NULL;
		t->last = a;
	}
	if (strncmp(a->process->comm, ev->proc->comm, CT_COMM_LEN)) {
		memset(a->process->comm, 0, sizeof(a->process->comm));
		memcpy(a->process->comm, ev->proc->comm, strnlen(ev->proc->comm, CT_COMM_LEN));
		a->process->introduced = false;
	}
	return a;
}

int actors_each(struct actors *t, int (*fn)(void *ctx, struct actor *), void *ctx)
{
	int err = 0;

	for (uint32_t i = 0; i < t->nslots && !err; i++)
		if (t->slots[i])
			err = fn(ctx, t->slots[i]);
	return err;
}

bool actors_is_full(const struct actors *t)
{
	return t->used >= MAX;
}

void actors_forget(struct actors *t, void (*drop)(struct actor *))
{
	for (uint32_t i = 0; i < t->nslots; i++) {
		if (t->slots[i] && drop)
			drop(t->slots[i]);
		free(t->slots[i]);
		t->slots[i] = NULL;
	}
	t->used = 0;
	t->last = NULL;
}

void actors_close(struct actors *t, void (*drop)(struct actor *))
{
	if (!t)
		return;
	actors_forget(t, drop);
	free(t->slots);
	free(t);
}
