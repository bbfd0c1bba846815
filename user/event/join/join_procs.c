/* SPDX-License-Identifier: BSD-2-Clause */
/* join_procs.c - see join_procs.h. */
#include <stdlib.h>
#include <string.h>

#include "join_procs.h"

struct join_procs {
	struct registry procs; /* of struct join_proc */
	uint32_t ids;
	uint64_t unheard; /* unheard processes that were forgotten */
	uint32_t one_unheard;
	uint64_t launched; /* launches without a device record of processes that were forgotten */
};

static void renewed(void *ctx, void *item, const struct ct_hdr *h);
static void forgotten(void *ctx, void *item, const struct ct_hdr *h);

static const struct registry_rules rules = {
	.size = sizeof(struct join_proc),
	.most = REGISTRY_MOST,
	.stays_ns = JOIN_PROCS_NS,
	.forgets = true,
	.exec = renewed,
	.gone = forgotten,
};

struct join_procs *join_procs_open(void)
{
	struct join_procs *j = calloc(1, sizeof(*j));

	if (j)
		registry_open(&j->procs, &rules, j);
	return j;
}

void join_procs_close(struct join_procs *j)
{
	if (!j)
		return;
	registry_close(&j->procs);
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

	registry_each(&j->procs, p) err = err ? err : each(ctx, p);
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
	j->one_unheard = p->r.pid;
}

uint64_t join_procs_unheard(const struct join_procs *j, uint32_t *first)
{
	struct join_procs sum = { .unheard = j->unheard, .one_unheard = j->one_unheard };
	const struct join_proc *p;

	registry_each(&j->procs, p) count_unheard(&sum, p);
	*first = sum.one_unheard;
	return sum.unheard;
}

static void forgotten(void *ctx, void *item, const struct ct_hdr *h)
{
	struct join_proc *p = item;

	(void)h;
	count_unheard(ctx, p);
	count_missing(ctx, p);
	free(p->launches);
}

struct join_proc *join_procs_get(struct join_procs *j, uint32_t pid)
{
	struct join_proc *p = registry_get(&j->procs, pid);

	if (p && !p->id)
		p->id = ++j->ids;
	return p;
}

/* It is another program, or another process, now. */
static void renewed(void *ctx, void *item, const struct ct_hdr *h)
{
	struct join_procs *j = ctx;
	struct join_proc *p = item;

	p->was_id = p->id;
	p->renewed_ns = h->start_ns;
	p->id = ++j->ids;
	p->nlaunches = 0;
	memset(p->capturing, 0, sizeof(p->capturing));
	if (!registry_other(p->r.start_boottime_ns, p->r.exited, (const struct ct_process *)h))
		return;
	count_unheard(j, p);
	count_missing(j, p);
	p->asked = p->heard = false;
	p->launched = p->kernels = p->reported = 0;
	p->taken_ns = p->taken_until_ns = 0;
	p->left = false;
	p->number = 0;
}

void join_procs_record(struct join_procs *j, const struct ct_hdr *h)
{
	registry_record(&j->procs, h);
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

	registry_each(&j->procs, p)
	{
		if (!p->r.held)
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
	size_t bytes = registry_bytes(&j->procs);

	registry_each(&j->procs, p) bytes += p->launches ? JOIN_LAUNCHES * sizeof(*p->launches) : 0;
	return bytes;
}
