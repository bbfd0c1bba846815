/* SPDX-License-Identifier: BSD-2-Clause */
/* endings.c - see endings.h. */
#include "endings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/table/array.h"

#define PROCESSES_MAX 256
#define BYTES_MAX (64u << 20) /* of stacks */
/* a process that has lived on for so long after a signal was not ended by it */
#define LIVES_NS 2000000000ULL
/* an incident is complete when nothing has come for so long, or since its begin */
#define QUIET_NS 1000000000ULL
#define MOST_NS 3000000000ULL
#define GOES_ON_NS 60000000000ULL /* it goes on within this time */

struct ended {
	struct ended_process *list;
	size_t n, told; /* told: the first ones are an incident that is being told */
	size_t bytes;
	bool looked;
	struct ended_process last; /* the first of what was told last; sent_ns: of its last one */
};

struct ended *ended_open(void)
{
	return calloc(1, sizeof(struct ended));
}

static void free_process(struct ended *e, struct ended_process *p)
{
	for (size_t i = 0; i < p->nthreads; i++) {
		e->bytes -= p->threads[i]->h.size;
		free(p->threads[i]);
	}
	free(p->threads);
}

void ended_close(struct ended *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n; i++)
		free_process(e, &e->list[i]);
	free(e->list);
	free(e);
}

/* ---- records ---- */

static struct ended_process *find(struct ended *e, uint32_t tgid)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->list[i].tgid == tgid)
			return &e->list[i];
	return NULL;
}

/* Which signal it was: the first of several that are the same, as a handler sends it again. */
static void take_sent(struct ended_process *p, const struct ct_signal *s)
{
	bool again = p->signal == s->signal;

	p->handled = s->handled;
	if (again || p->doomed || p->ended_ns)
		return;
	p->signal = s->signal;
	p->by = s->by;
	p->address = s->address;
	p->sender = s->shown_sender;
	p->sender_tgid = s->sender;
	p->sent_ns = s->h.start_ns;
	memcpy(p->sender_name, s->by_comm, CT_COMM_LEN);
}

static int sent(struct ended *e, const struct ct_signal *s, struct ended_process **fresh)
{
	struct ended_process *p = find(e, s->tgid);

	if (!p && e->n == PROCESSES_MAX)
		return -ENOSPC;
	if (!p) {
		if (!array_room(e->list, e->n))
			return -ENOMEM;
		p = &e->list[e->n++];
		*p = (struct ended_process){ .pid = s->shown_tgid ? s->shown_tgid : s->tgid,
					     .tgid = s->tgid,
					     .parent = s->parent,
					     .begun_ns = s->begun_ns,
					     .status = -1,
					     .rank = -1 };
		memcpy(p->name, s->comm, CT_COMM_LEN);
		*fresh = p;
	}
	take_sent(p, s);
	return 0;
}

static int ends_thread(struct ended *e, const struct ct_signal *s)
{
	struct ended_process *p = find(e, s->tgid);
	struct ct_signal *copy;

	if (!p)
		return 0;
	/* of a handled signal it is SIGKILL, when the handler ends the process */
	p->doomed |= !p->handled;
	if (e->bytes + s->h.size > BYTES_MAX) {
		p->left_out++;
		return 0;
	}
	copy = malloc(s->h.size);
	if (!copy || !array_room(p->threads, p->nthreads)) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, s, s->h.size);
	p->threads[p->nthreads++] = copy;
	e->bytes += s->h.size;
	return 0;
}

int ended_record(struct ended *e, const struct ct_signal *s, struct ended_process **fresh)
{
	struct ended_process *p;

	*fresh = NULL;
	switch (s->what) {
	case CT_SIGNAL_SENT: return sent(e, s, fresh);
	case CT_SIGNAL_THREAD: return ends_thread(e, s);
	case CT_SIGNAL_EXIT:
		p = find(e, s->tgid);
		if (p) {
			p->ended_ns = s->h.start_ns;
			p->status = s->status;
		}
		return 0;
	}
	return 0;
}

/* ---- incidents ---- */

bool ended_by_signal(const struct ended_process *p)
{
	return p->status >= 0 ? (p->status & 0x7f) != 0 : p->doomed;
}

static bool is_over(const struct ended_process *p)
{
	return p->doomed || p->ended_ns;
}

static uint64_t since(uint64_t from, uint64_t now)
{
	return now > from ? now - from : 0;
}

/* Those that live on, and those that do not matter, once nothing can change that any more. */
static void drop(struct ended *e, uint64_t now,
		 bool (*watched)(void *, const struct ended_process *), void *ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < e->n; i++) {
		struct ended_process *p = &e->list[i];

		if (since(p->sent_ns, now) < LIVES_NS || (is_over(p) && watched(ctx, p)))
			e->list[kept++] = *p;
		else
			free_process(e, p);
	}
	e->n = kept;
}

static bool is_related(const struct ended_process *a, const struct ended_process *b)
{
	return (a->parent > 1 && a->parent == b->parent) || (a->hash && a->hash == b->hash) ||
	       (a->sender_tgid && a->sender_tgid == b->sender_tgid) || a->sender_tgid == b->tgid ||
	       b->sender_tgid == a->tgid;
}

static void swap(struct ended_process *a, struct ended_process *b)
{
	struct ended_process c = *a;

	*a = *b;
	*b = c;
}

/* Puts the first one that matters before the others, and those that belong to it behind it. */
static void gather(struct ended *e, bool (*watched)(void *, const struct ended_process *),
		   void *ctx)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n; i++) {
		struct ended_process *p = &e->list[i];

		if (!is_over(p) || !watched(ctx, p))
			continue;
		if (!n || p->sent_ns < e->list[0].sent_ns) {
			swap(&e->list[0], p);
			n = 1;
		}
	}
	for (size_t i = n; i < e->n; i++)
		if (is_over(&e->list[i]) && watched(ctx, &e->list[i]) &&
		    is_related(&e->list[0], &e->list[i]))
			swap(&e->list[n++], &e->list[i]);
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k > 1 && e->list[k].sent_ns < e->list[k - 1].sent_ns; k--)
			swap(&e->list[k], &e->list[k - 1]);
	e->told = n;
}

enum ended_due ended_due(struct ended *e, uint64_t now, bool last,
			 bool (*watched)(void *ctx, const struct ended_process *), void *ctx)
{
	uint64_t first = UINT64_MAX, latest = 0;

	drop(e, now, watched, ctx);
	for (size_t i = 0; i < e->n; i++) {
		const struct ended_process *p = &e->list[i];
		uint64_t at = p->ended_ns > p->sent_ns ? p->ended_ns : p->sent_ns;

		if (!is_over(p) || !watched(ctx, p))
			continue;
		first = p->sent_ns < first ? p->sent_ns : first;
		latest = at > latest ? at : latest;
	}
	if (!latest)
		return ENDED_NOTHING;
	if (!e->looked && !last) {
		e->looked = true;
		gather(e, watched, ctx);
		e->told = 0;
		return ENDED_LOOK;
	}
	if (!last && since(latest, now) < QUIET_NS && since(first, now) < MOST_NS)
		return ENDED_NOTHING;
	gather(e, watched, ctx);
	return ENDED_TELL;
}

size_t ended_list(const struct ended *e, const struct ended_process **list)
{
	*list = e->list;
	return e->told;
}

const struct ended_process *ended_first(const struct ended *e)
{
	return &e->list[0];
}

bool ended_has(const struct ended *e, uint32_t pid)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->list[i].pid == pid && is_over(&e->list[i]))
			return true;
	return false;
}

bool ended_goes_on(const struct ended *e)
{
	const struct ended_process *p = &e->list[0];

	/* one that began later is of another run of the job */
	return e->last.sent_ns && is_related(&e->last, p) && p->begun_ns < e->last.sent_ns &&
	       since(e->last.sent_ns, p->sent_ns) < GOES_ON_NS;
}

void ended_forget(struct ended *e)
{
	bool goes_on = ended_goes_on(e);

	if (!goes_on)
		e->last = e->list[0];
	e->last.sent_ns = e->list[e->told - 1].sent_ns;
	for (size_t i = 0; i < e->told; i++)
		free_process(e, &e->list[i]);
	e->n -= e->told;
	memmove(e->list, e->list + e->told, e->n * sizeof(*e->list));
	e->told = 0;
	e->looked = false;
}
