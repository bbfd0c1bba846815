/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join_procs.c - see join_procs.h. An open-addressed hash by pid. Processes that exited stay until
 * room is needed, because their last work may still be on the way.
 */
#include <stdlib.h>
#include <string.h>

#include "join_procs.h"

#define FIRST_SLOTS 64	 /* a power of two */
#define SLOTS_MAX 131072 /* half of them are used: beyond, all are forgotten */

struct join_procs {
	struct join_proc *slots;
	struct join_proc *last;
	uint32_t nslots, n, ids;
	uint64_t unheard; /* unheard processes that are no longer in the slots */
	uint32_t one_unheard;
};

struct join_procs *join_procs_open(void)
{
	struct join_procs *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->nslots = FIRST_SLOTS;
	j->slots = calloc(j->nslots, sizeof(*j->slots));
	if (j->slots)
		return j;
	free(j);
	return NULL;
}

void join_procs_close(struct join_procs *j)
{
	if (!j)
		return;
	for (uint32_t i = 0; i < j->nslots; i++)
		free(j->slots[i].launches);
	free(j->slots);
	free(j);
}

static struct join_proc *slot_of(struct join_proc *slots, uint32_t nslots, uint32_t pid)
{
	uint32_t i = (pid * 2654435761u >> 8) & (nslots - 1);

	while (slots[i].pid && slots[i].pid != pid)
		i = (i + 1) & (nslots - 1);
	return &slots[i];
}

/* Call it when a process is forgotten. */
static void count_unheard(struct join_procs *j, const struct join_proc *p)
{
	if (!p->asked || p->heard)
		return;
	j->unheard++;
	j->one_unheard = p->pid;
}

uint64_t join_procs_unheard(const struct join_procs *j, uint32_t *first)
{
	struct join_procs sum = { .unheard = j->unheard, .one_unheard = j->one_unheard };

	for (uint32_t i = 0; i < j->nslots; i++)
		count_unheard(&sum, &j->slots[i]);
	*first = sum.one_unheard;
	return sum.unheard;
}

/* Makes room for one more: drops the exited processes, and doubles the table if the living ones
 * alone fill a quarter of it. */
static bool make_room(struct join_procs *j)
{
	uint32_t living = 0, nslots = j->nslots;
	struct join_proc *slots;

	for (uint32_t i = 0; i < j->nslots; i++)
		living += j->slots[i].pid && (!j->slots[i].exited || j->slots[i].tail.pending);
	while (living >= nslots / 4 && nslots < SLOTS_MAX)
		nslots *= 2;
	slots = calloc(nslots, sizeof(*slots));
	if (!slots)
		return false;
	j->n = 0;
	for (uint32_t i = 0; i < j->nslots; i++) {
		struct join_proc *p = &j->slots[i];

		if (p->pid && (!p->exited || p->tail.pending) && living < nslots / 2) {
			*slot_of(slots, nslots, p->pid) = *p;
			j->n++;
		} else {
			count_unheard(j, p);
			free(p->launches);
		}
	}
	free(j->slots);
	j->slots = slots;
	j->nslots = nslots;
	j->last = NULL;
	return true;
}

/* pid 0, which marks a free slot, gets a number like any other. */
struct join_proc *join_procs_get(struct join_procs *j, uint32_t pid)
{
	struct join_proc *p;

	pid = pid ? pid : UINT32_MAX;
	if (j->last && j->last->pid == pid)
		return j->last;
	p = slot_of(j->slots, j->nslots, pid);
	if (!p->pid) {
		if (j->n >= j->nslots / 2) {
			if (!make_room(j))
				return NULL;
			p = slot_of(j->slots, j->nslots, pid);
		}
		*p = (struct join_proc){ .pid = pid, .id = ++j->ids };
		j->n++;
	}
	return j->last = p;
}

/* A later file of the same recorder reports a process that has ended once more, because its last
 * records may be in that file. */
static bool is_other(const struct join_proc *p, const struct ct_process *r)
{
	return p->start_boottime_ns && r->start_boottime_ns
		       ? p->start_boottime_ns != r->start_boottime_ns
		       : p->exited;
}

bool join_procs_renews(const struct join_proc *p, const struct ct_process *r)
{
	return r->h.kind == CT_EXEC || is_other(p, r);
}

void join_procs_record(struct join_procs *j, struct join_proc *p, const struct ct_process *r)
{
	bool other = is_other(p, r);

	if (join_procs_renews(p, r)) {
		p->was_id = p->id;
		p->renewed_ns = r->h.start_ns;
		p->id = ++j->ids;
		p->nlaunches = 0;
		memset(p->capturing, 0, sizeof(p->capturing));
	}
	if (other) {
		count_unheard(j, p);
		p->asked = p->heard = false;
		p->number = 0;
	}
	p->exited = false;
	if (other || r->start_boottime_ns)
		p->start_boottime_ns = r->start_boottime_ns;
}

void join_procs_capture(struct join_proc *p, uint32_t tid, bool begins)
{
	uint32_t *room = NULL;

	for (int i = 0; i < JOIN_CAPTURES; i++) {
		if (p->capturing[i] == tid)
			p->capturing[i] = 0;
		if (!p->capturing[i])
			room = &p->capturing[i];
	}
	if (begins && room)
		*room = tid;
}

bool join_procs_captures(const struct join_proc *p, uint32_t tid)
{
	for (int i = 0; i < JOIN_CAPTURES; i++)
		if (p->capturing[i] == tid)
			return true;
	return false;
}

struct join_proc *join_procs_due(struct join_procs *j, uint64_t now_ns, uint64_t wait_ns)
{
	for (uint32_t i = 0; i < j->nslots; i++) {
		struct join_proc *p = &j->slots[i];

		if (!p->pid || !p->tail.pending)
			continue;
		if (!p->tail.due_ns && now_ns != UINT64_MAX)
			p->tail.due_ns = now_ns + wait_ns;
		else if (p->tail.due_ns <= now_ns)
			return p;
	}
	return NULL;
}

void join_procs_launch(struct join_proc *p, const struct join_launch *l)
{
	if (!p->launches)
		p->launches = calloc(JOIN_LAUNCHES, sizeof(*p->launches));
	if (p->launches)
		p->launches[p->nlaunches++ & (JOIN_LAUNCHES - 1)] = *l;
}

const struct join_launch *join_procs_launched(const struct join_proc *p, const struct ct_work *w)
{
	const struct join_launch *found = NULL;
	uint32_t n = p->nlaunches < JOIN_LAUNCHES ? p->nlaunches : JOIN_LAUNCHES;

	for (uint32_t i = 0; p->launches && i < n; i++) {
		const struct join_launch *l = &p->launches[i];

		if (l->call.start_ns > w->h.start_ns ||
		    (found && found->call.start_ns >= l->call.start_ns))
			continue;
		if (l->stream == w->stream || l->stream == CT_UNKNOWN || w->stream == CT_UNKNOWN)
			found = l;
	}
	return found;
}

size_t join_procs_bytes(const struct join_procs *j)
{
	return j->nslots * sizeof(*j->slots) + j->n * JOIN_LAUNCHES * sizeof(struct join_launch);
}
