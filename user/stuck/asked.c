/* SPDX-License-Identifier: BSD-2-Clause */
/* asked.c - see asked.h: what calls say. */
#include "asked_ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../util/table/array.h"

#define COMMS_MAX 16384
#define SEATS_MAX 16384
#define PARTIES_MAX 65536
#define PAIRS_MAX 65536
#define THREADS_MAX 65536
#define OPS_MAX 262144	 /* of all processes, that have not ended */
#define SENDS_MAX 65536	 /* of a pair of ranks, that have not been received */
#define SETTLE_FIRST 256 /* calls of a process that have not ended, until it is looked at */

struct seen_pid {
	struct registered r;
	uint32_t party; /* + 1; 0: none yet */
};

/* A thread with an open group. */
struct thread {
	uint32_t pid, tid;
	uint64_t batch; /* 0: no group is open */
};

/* The process has ended, or is another program now: what has its number from now on is another one. */
static void ends(void *ctx, void *item, const struct ct_hdr *h)
{
	struct asked *a = ctx;
	struct seen_pid *s = item;

	if (h && s->party)
		a->parties[s->party - 1].ended_ns = h->start_ns;
	s->party = 0;
}

static const struct registry_rules rules = {
	.size = sizeof(struct seen_pid), .most = PARTIES_MAX, .exec = ends, .gone = ends
};

struct asked *asked_open(void)
{
	struct asked *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	hash_map_open_of(&a->comms, struct asked_comm, hash, COMMS_MAX);
	hash_map_open_of(&a->seats, struct asked_seat, rank, SEATS_MAX);
	hash_map_open_of(&a->pairs, struct asked_pair, to, PAIRS_MAX);
	registry_open(&a->pids, &rules, a);
	hash_map_open_of(&a->threads, struct thread, tid, THREADS_MAX);
	return a;
}

void asked_close(struct asked *a)
{
	struct asked_pair *p;

	if (!a)
		return;
	hash_map_each(&a->pairs, p) free(p->sends);
	for (size_t i = 0; i < a->nparties; i++)
		free(a->parties[i].ops);
	free(a->parties);
	hash_map_close(&a->comms);
	hash_map_close(&a->seats);
	hash_map_close(&a->pairs);
	registry_close(&a->pids);
	hash_map_close(&a->threads);
	free(a);
}

void asked_seen(const struct asked *a, struct asked_seen *out)
{
	*out = (struct asked_seen){ a->comms.n, a->nameless, a->cut };
}

bool asked_has(const struct asked *a, uint64_t hash)
{
	const struct asked_comm *m = hash_map_find(&a->comms, &hash);

	for (size_t i = 0; m && i < ASKED_KEPT; i++)
		if (m->kept[i].number)
			return true;
	return false;
}

/* ---- processes, communicators, ranks ---- */

static uint32_t place(const struct hash_map *k, const void *item)
{
	return (uint32_t)((size_t)((const char *)item - k->items) / k->size);
}

/* Its place; ASKED_NONE: there is no room. */
static uint32_t party_of(struct asked *a, const struct process *proc)
{
	struct seen_pid *s = registry_of(&a->pids, proc);

	if (!s || s->party)
		return s ? s->party - 1 : ASKED_NONE;
	if (a->nparties == PARTIES_MAX || !array_room(a->parties, a->nparties))
		return ASKED_NONE;
	a->parties[a->nparties] =
		(struct asked_party){ .shown_pid = proc->shown_pid, .settle_at = SETTLE_FIRST };
	memcpy(a->parties[a->nparties].comm, proc->comm, sizeof(proc->comm));
	s->party = (uint32_t)++a->nparties;
	return s->party - 1;
}

static struct asked_seat *seat_of(struct asked *a, const struct event *ev,
				  const struct ct_collective *c)
{
	struct asked_seat key = { .rank = c->rank }, *seat;
	uint32_t party = party_of(a, ev->proc);
	struct asked_comm *m;
	bool made;

	m = party == ASKED_NONE ? NULL : hash_map_get(&a->comms, &c->hash, &made);
	if (!m)
		goto full;
	if (made) {
		m->ranks = c->ranks;
		m->whole = !a->gaps;
		m->first_seat = ASKED_NONE;
	}
	m->disagree |= m->ranks != c->ranks;
	key.comm = place(&a->comms, m);
	seat = hash_map_get(&a->seats, &key, &made);
	if (!seat)
		goto full;
	if (made) {
		seat->next = m->first_seat;
		m->first_seat = place(&a->seats, seat);
		m->nseats++;
		m->moved = true;
	}
	seat->party = party;
	/* the first that is seen of it at a rank has to be its making */
	if (made && ((const struct ct_scope *)ev->rec)->kind != CT_SCOPE_COMMUNICATOR)
		m->whole = false;
	return seat;
full:
	a->cut = true;
	return NULL;
}

struct asked_seat *asked_seat_find(const struct asked *a, uint32_t comm, uint32_t rank)
{
	const struct asked_seat key = { .comm = comm, .rank = rank };

	return hash_map_find(&a->seats, &key);
}

struct asked_pair *asked_pair_find(const struct asked *a, uint32_t comm, uint32_t from, uint32_t to)
{
	const struct asked_pair key = { .comm = comm, .from = from, .to = to };

	return hash_map_find(&a->pairs, &key);
}

/* ---- collectives ---- */

static bool same(const struct asked_call *x, const struct asked_call *y)
{
	return x->count == y->count && x->datatype == y->datatype && x->op == y->op &&
	       x->root == y->root && !strcmp(x->name, y->name);
}

/* The collective `number` is not the same at all ranks: what each asks for in it is kept. */
static void keep_odd(struct asked *a, uint32_t comm, uint64_t number)
{
	struct asked_seat *s;

	asked_comm_at(a, comm)->odd = number;
	asked_each_seat(a, comm, s)
	{
		s->odd = (struct asked_call){ 0 };
		if (s->kept[number % ASKED_KEPT].number == number)
			s->odd = s->kept[number % ASKED_KEPT];
	}
}

static void compare(struct asked *a, struct asked_seat *seat, const struct asked_call *call)
{
	struct asked_comm *m = asked_comm_at(a, seat->comm);
	struct asked_call *first = &m->kept[call->number % ASKED_KEPT];

	seat->kept[call->number % ASKED_KEPT] = *call;
	if (m->odd == call->number)
		seat->odd = *call;
	if (first->number < call->number)
		*first = *call;
	else if (first->number == call->number && !same(first, call) &&
		 (!m->odd || m->odd > call->number))
		keep_odd(a, seat->comm, call->number);
}

/* ---- calls ---- */

/* What the thread's calls begin together with. */
static struct thread *thread_of(struct asked *a, const struct ct_hdr *h, bool make)
{
	const struct thread key = { .pid = h->pid, .tid = h->tid };
	bool made;

	return make ? hash_map_get(&a->threads, &key, &made) : hash_map_find(&a->threads, &key);
}

/* The outermost group of the thread has ended: its calls begin. */
static void end_group(struct asked *a, const struct ct_hdr *h)
{
	const struct seen_pid *pid = registry_find(&a->pids, h->pid);
	struct thread *t = thread_of(a, h, false);
	struct asked_party *p;

	if (!t)
		return;
	p = pid && pid->party ? &a->parties[pid->party - 1] : NULL;
	for (size_t i = p ? p->nops : 0; i-- > 0;)
		if (p->ops[i].batch == t->batch)
			p->ops[i].open = false;
	hash_map_remove(&a->threads, t);
}

static struct asked_pair *pair_of(struct asked *a, uint32_t comm, uint32_t from, uint32_t to)
{
	const struct asked_pair key = { .comm = comm, .from = from, .to = to };
	bool made;

	return hash_map_get(&a->pairs, &key, &made);
}

/* Numbers a send or a receive. False: there is no room. */
static bool number_peer(struct asked *a, const struct asked_seat *s, struct asked_op *op)
{
	bool sends = op->kind == ASKED_SEND;
	struct asked_pair *p = sends ? pair_of(a, s->comm, s->rank, op->peer)
				     : pair_of(a, s->comm, op->peer, s->rank);

	if (!p)
		return false;
	op->call.number = sends ? ++p->called : ++p->received;
	if (!sends)
		return true;
	if (p->first && p->first * 2 >= p->nsends) {
		p->nsends -= p->first;
		memmove(p->sends, p->sends + p->first, p->nsends * sizeof(*p->sends));
		p->first = 0;
	}
	if (p->nsends == SENDS_MAX || !array_fit(p->sends, p->room, p->nsends + 1))
		return false;
	p->sends[p->nsends++] = op->call;
	return true;
}

static void add_op(struct asked *a, struct asked_seat *s, const struct ct_hdr *h,
		   const struct ct_collective *c, struct asked_op *op)
{
	struct asked_party *p = &a->parties[s->party];
	struct thread *t = NULL;

	op->seat = place(&a->seats, s);
	op->batch = ++a->batches;
	if (c->flags & CT_COLLECTIVE_GROUPED) {
		t = thread_of(a, h, true);
		op->open = t != NULL;
		if (t && t->batch)
			op->batch = t->batch;
		else if (t)
			t->batch = op->batch;
	}
	/* streams of several devices have the number 0 */
	op->queue = c->stream ? c->stream : c->comm;
	if (a->nops == OPS_MAX || !array_fit(p->ops, p->room, p->nops + 1)) {
		a->cut = true;
		asked_comm_at(a, s->comm)->whole = false;
		return;
	}
	p->ops[p->nops++] = *op;
	a->nops++;
	if (p->nops < p->settle_at)
		return;
	asked_settle(a);
	p->settle_at = p->nops < SETTLE_FIRST / 2 ? SETTLE_FIRST : 2 * p->nops;
}

static void take_name(char *name, const struct ct_scope *s)
{
	size_t n = s->text_len < ASKED_NAME ? s->text_len : ASKED_NAME - 1;

	memcpy(name, s->text, n);
	name[n] = '\0';
	/* the older function of the same collective */
	if (!strcmp(name, "ncclBcast"))
		strcpy(name, "ncclBroadcast");
}

/* A collective, a send or a receive that did not fail. */
static void call(struct asked *a, const struct event *ev, const struct ct_collective *c)
{
	const struct ct_scope *s = (const struct ct_scope *)ev->rec;
	struct asked_op op = { .peer = c->peer,
			       .call = { .number = c->sequence,
					 .count = c->count,
					 .datatype = c->datatype,
					 .op = c->op,
					 .root = c->root } };
	struct asked_seat *seat = seat_of(a, ev, c);

	if (!seat)
		return;
	take_name(op.call.name, s);
	if (s->h.start_ns > seat->last_ns)
		seat->last_ns = s->h.start_ns;
	if (c->how == CT_COLLECTIVE_PEER) {
		op.kind = strstr(op.call.name, "Send") ? ASKED_SEND : ASKED_RECEIVE;
		if (!asked_comm_at(a, seat->comm)->whole || c->peer >= c->ranks)
			return;
		if (!number_peer(a, seat, &op)) {
			a->cut = true;
			asked_comm_at(a, seat->comm)->whole = false;
			return;
		}
	} else if (!c->sequence) {
		return;
	} else {
		compare(a, seat, &op.call);
	}
	add_op(a, seat, &s->h, c, &op);
}

static void scope(struct asked *a, const struct event *ev)
{
	const struct ct_scope *s = (const struct ct_scope *)ev->rec;
	const struct ct_collective *c = scope_collective(s);

	if (!c || scope_failed(s) || c->flags & CT_COLLECTIVE_INNER)
		return;
	if (c->members)
		end_group(a, &s->h);
	if (!(c->flags & CT_COLLECTIVE_COUNT) && s->kind == CT_SCOPE_COLLECTIVE)
		return;
	if (!c->hash || c->rank == CT_UNKNOWN || c->ranks == CT_UNKNOWN || c->rank >= c->ranks) {
		a->nameless += c->comm && s->kind == CT_SCOPE_COLLECTIVE;
		return;
	}
	if (s->kind == CT_SCOPE_COMMUNICATOR)
		seat_of(a, ev, c);
	else
		call(a, ev, c);
}

/* Something was lost: numbers of sends and receives are not sure any more. */
static void lose(struct asked *a)
{
	struct asked_comm *m;

	a->gaps = true;
	hash_map_each(&a->comms, m) m->whole = false;
}

int asked_event(struct asked *a, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	if (h->end_ns > a->last_ns && h->kind == CT_SCOPE_END)
		a->last_ns = h->end_ns;
	switch (h->kind) {
	case CT_SCOPE_END: scope(a, ev); break;
	case CT_LOST: lose(a); break;
	default: registry_record(&a->pids, h);
	}
	return 0;
}
