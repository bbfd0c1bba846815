/* SPDX-License-Identifier: BSD-2-Clause */
/* asked_settle.c - which calls of ranks can end: see asked.h. */
#include "asked_ops.h"

#include <string.h>

#define LOOKS_MAX 50000000ULL /* at calls, of one settling */
#define QUEUES 64	      /* of a process, that are told apart by a look at its calls */

/* Calls of a process that others are behind of. */
struct fronts {
	struct {
		uint64_t queue, batch;
	} list[QUEUES];
	size_t n;
};

/* Is a call behind another one of its queue? If not, those that follow are behind it. */
static bool is_behind(struct fronts *f, const struct asked_op *op)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->list[i].queue == op->queue)
			return f->list[i].batch != op->batch;
	if (f->n == QUEUES)
		return true; /* it is looked at when others have ended */
	f->list[f->n].queue = op->queue;
	f->list[f->n++].batch = op->batch;
	return false;
}

static void begin(const struct asked *a, struct asked_op *op)
{
	struct asked_seat *s = asked_seat_at(a, op->seat);
	struct asked_pair *p;

	op->begun = true;
	if (op->kind == ASKED_COLLECTIVE && op->call.number > s->come)
		s->come = op->call.number;
	asked_comm_at(a, s->comm)->moved = true;
	if (op->kind != ASKED_SEND)
		return;
	op->done = true;
	p = asked_pair_find(a, s->comm, s->rank, op->peer);
	if (p)
		p->sent++;
}

/* Have all ranks that were seen come to a collective? */
static bool all_come(const struct asked *a, const struct asked_op *op, uint64_t *looks)
{
	uint32_t comm = asked_seat_at(a, op->seat)->comm;
	struct asked_comm *m = asked_comm_at(a, comm);
	const struct asked_seat *s;

	if (m->moved) {
		m->come = UINT64_MAX;
		asked_each_seat(a, comm, s) if (s->come < m->come) m->come = s->come;
		m->moved = false;
		*looks += m->nseats;
	}
	return m->come >= op->call.number;
}

static bool received(const struct asked *a, const struct asked_op *op)
{
	const struct asked_seat *s = asked_seat_at(a, op->seat);
	struct asked_pair *p = asked_pair_find(a, s->comm, op->peer, s->rank);
	const struct asked_call *send;

	if (!p || !asked_seat_find(a, s->comm, op->peer))
		return true; /* the other rank is not seen */
	if (p->sent < op->call.number || op->call.number != p->ended + 1)
		return false;
	send = &p->sends[p->first];
	if (!p->odd[0].number &&
	    (send->count != op->call.count || send->datatype != op->call.datatype)) {
		p->odd[0] = *send;
		p->odd[1] = op->call;
	}
	p->ended++;
	p->first++;
	return true;
}

static bool is_over(const struct asked *a, const struct asked_op *op, uint64_t *looks)
{
	return op->kind == ASKED_COLLECTIVE ? all_come(a, op, looks) : received(a, op);
}

/* Returns whether something has changed. */
static bool look(struct asked *a, struct asked_party *p, uint64_t *looks)
{
	struct fronts fronts = { .n = 0 };
	bool changed = false;
	size_t n = 0;

	for (size_t i = 0; i < p->nops; i++) {
		struct asked_op *op = &p->ops[i];

		if (!op->begun && !op->open && !is_behind(&fronts, op)) {
			begin(a, op);
			changed = true;
		} else if (op->begun || op->open) {
			is_behind(&fronts, op);
		}
		if (op->begun && !op->done && is_over(a, op, looks))
			op->done = changed = true;
	}
	for (size_t i = 0; i < p->nops; i++)
		if (!p->ops[i].done)
			p->ops[n++] = p->ops[i];
	a->nops -= p->nops - n;
	p->nops = n;
	return changed;
}

bool asked_settle(struct asked *a)
{
	bool changed = true;
	uint64_t looks = 0;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < a->nparties; i++) {
			looks += a->parties[i].nops + 1;
			if (a->parties[i].nops && look(a, &a->parties[i], &looks))
				changed = true;
		}
		if (looks > LOOKS_MAX)
			return false;
	}
	return true;
}

const struct asked_op *asked_before(const struct asked_party *p, const struct asked_op *op)
{
	for (const struct asked_op *o = p->ops; o < op; o++)
		if (o->queue == op->queue && o->batch != op->batch)
			return o;
	return NULL;
}
