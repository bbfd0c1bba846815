/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join_procs.c - see join_procs.h. Processes that exited stay for some seconds, because their last
 * work may still be on the way, and then until room is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "../../util/table/hashmap.h"
#include "join_procs.h"

#define FIRST_MAX 32	/* processes before those that exited are dropped for the first time */
#define PROCS_MAX 65536 /* beyond, all are forgotten */

struct join_procs {
	struct hashmap procs; /* of struct join_proc, by pid */
	struct join_proc *last;
	uint32_t max, ids;
	uint64_t now_ns;  /* when the last process began or ended */
	uint64_t unheard; /* unheard processes that were forgotten */
	uint32_t one_unheard;
	uint64_t launched; /* launches without a device record of processes that were forgotten */
};

struct join_procs *join_procs_open(void)
{
	struct join_procs *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	hashmap_open_of(&j->procs, struct join_proc, pid, PROCS_MAX);
	j->max = FIRST_MAX;
	return j;
}

void join_procs_close(struct join_procs *j)
{
	struct join_proc *p;

	if (!j)
		return;
	hashmap_each(&j->procs, p) free(p->launches);
	hashmap_close(&j->procs);
	free(j);
}

uint64_t join_procs_missing(const struct join_proc *p)
{
	uint64_t came = p->kernels + p->reported;

	return p->launched > came ? p->launched - came : 0;
}

int join_procs_each(const struct join_procs *j, int (*each)(void *ctx, const struct join_proc *),
		    void *ctx)
{
	const struct join_proc *p;
	int err = 0;

	hashmap_each(&j->procs, p) err = err ? err : each(ctx, p);
	if (!err)
		err = each(ctx, &(struct join_proc){ .heard = true, .launched = j->launched });
	return err ? err : each(ctx, &(struct join_proc){ .asked = j->unheard });
}

/* Call it when a process is forgotten. */
static void count_missing(struct join_procs *j, const struct join_proc *p)
{
	if (p->heard)
		j->launched += join_procs_missing(p);
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
	const struct join_proc *p;

	hashmap_each(&j->procs, p) count_unheard(&sum, p);
	*first = sum.one_unheard;
	return sum.unheard;
}

static void forget(struct join_procs *j, struct join_proc *p)
{
	count_unheard(j, p);
	count_missing(j, p);
	free(p->launches);
	hashmap_remove(&j->procs, p);
}

/* Forgets the processes that exited before a moment. */
static void forget_exited(struct join_procs *j, uint64_t before_ns)
{
	struct join_proc *p;

	hashmap_each(&j->procs, p) if (p->exited && p->exited_ns <= before_ns && !p->tail.pending)
		forget(j, p);
}

/* Makes room for one more process. Processes that exited some time ago are dropped; if there are still
 * too many, all that exited are, and if that is not enough, all. This is done again when there are at
 * least twice as many processes as are left now, so that it costs little for each of them. */
static void make_room(struct join_procs *j)
{
	struct join_proc *p;

	if (j->now_ns > JOIN_PROCS_NS)
		forget_exited(j, j->now_ns - JOIN_PROCS_NS);
	if (j->procs.n >= PROCS_MAX / 2)
		forget_exited(j, UINT64_MAX);
	while (j->procs.n >= j->max / 2 && j->max < PROCS_MAX)
		j->max *= 2;
	if (j->procs.n >= j->max)
		hashmap_each(&j->procs, p) forget(j, p);
	j->last = NULL;
}

struct join_proc *join_procs_get(struct join_procs *j, uint32_t pid)
{
	struct join_proc *p;
	bool made;

	if (j->last && j->last->pid == pid)
		return j->last;
	p = hashmap_find(&j->procs, &pid);
	if (!p) {
		if (j->procs.n >= j->max)
			make_room(j);
		p = hashmap_get(&j->procs, &pid, &made);
		if (!p)
			return NULL;
		p->id = ++j->ids;
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

static void note_time(struct join_procs *j, uint64_t at_ns)
{
	if (at_ns > j->now_ns)
		j->now_ns = at_ns;
}

void join_procs_exit(struct join_procs *j, struct join_proc *p, uint64_t at_ns)
{
	note_time(j, at_ns);
	p->exited = true;
	p->exited_ns = at_ns;
}

void join_procs_record(struct join_procs *j, struct join_proc *p, const struct ct_process *r)
{
	bool other = is_other(p, r);

	note_time(j, r->h.start_ns);
	if (join_procs_renews(p, r)) {
		p->was_id = p->id;
		p->renewed_ns = r->h.start_ns;
		p->id = ++j->ids;
		p->nlaunches = 0;
		memset(p->capturing, 0, sizeof(p->capturing));
	}
	if (other) {
		count_unheard(j, p);
		count_missing(j, p);
		p->asked = p->heard = false;
		p->launched = p->kernels = p->reported = 0;
		p->taken_ns = p->taken_until_ns = 0;
		p->left = false;
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
	struct join_proc *p;

	hashmap_each(&j->procs, p)
	{
		if (!p->tail.pending)
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
	const struct join_proc *p;
	size_t bytes = hashmap_bytes(&j->procs);

	hashmap_each(&j->procs, p) bytes += p->launches ? JOIN_LAUNCHES * sizeof(*p->launches) : 0;
	return bytes;
}
