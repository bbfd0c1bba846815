/* SPDX-License-Identifier: BSD-2-Clause */
/* asked_print.c - says what ranks do not ask for alike, and who waits for whom: see asked.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../util/io/json.h"
#include "asked_ops.h"

#define RANGES_MAX 16 /* of a list of ranks */
#define LINES_MAX 64  /* of one kind, about one communicator */
#define LOOKS_MAX 50000000ULL

/* What a rank does, in a row. */
enum does { ASKS, WAITS, ABSENT, SENDS, RECEIVES };

struct printer {
	struct asked *a;
	struct out *out;
	bool json;
	uint64_t now_ns;
	/* of the communicator that is being printed */
	uint32_t comm;
	struct asked_seat **seats; /* by rank */
	bool *chosen;		   /* of these, what a list names */
	size_t nseats;
	/* calls that wait and pairs of ranks, sorted by communicator; those of this one are from
	 * op to ops_end, from pair to pairs_end */
	struct asked_op **ops;
	struct asked_pair **pairs;
	size_t nops, npairs, op, ops_end, pair, pairs_end;
	uint64_t looks; /* at calls, that are left */
	bool head;	/* its first line is there */
	struct json j;
};

/* ---- parts of lines ---- */

static const struct asked_party *party_of(const struct printer *p, const struct asked_seat *s)
{
	return &p->a->parties[s->party];
}

/* The line that names the communicator, if it is not there yet. */
static void put_head(struct printer *p)
{
	const struct asked_comm *m = asked_comm_at(p->a, p->comm);

	if (!p->head && !p->json) {
		out_fmt(p->out, "communicator 0x%" PRIx64 " of %u ranks", m->hash, m->ranks);
		if (m->nseats < m->ranks)
			out_fmt(p->out, ", of which %u %s seen", m->nseats,
				m->nseats == 1 ? "was" : "were");
		out_str(p->out, ":\n");
	}
	p->head = true;
}

static void put_name(struct out *o, const struct asked_call *c)
{
	out_plain(o, c->name, strnlen(c->name, sizeof(c->name)));
}

/* " float32", or " type 99". */
static void put_word(struct out *o, const char *what, uint32_t v, const char *word)
{
	if (v == CT_UNKNOWN)
		return;
	if (word)
		out_fmt(o, " %s", word);
	else
		out_fmt(o, " %s %u", what, v);
}

static void put_values(struct out *o, const struct asked_call *c)
{
	out_fmt(o, "count=%" PRIu64, c->count);
	put_word(o, "type", c->datatype, scope_datatype(c->datatype));
	put_word(o, "op", c->op, scope_op(c->op));
	put_word(o, "root", c->root, NULL);
}

/* "rank 3 (train, PID 12)", "ranks 0-2,5": of those that are chosen. Returns how many they are. */
static size_t put_ranks(struct printer *p)
{
	size_t all = 0, ranges = 0, one = 0;

	for (size_t i = 0; i < p->nseats; i++)
		if (p->chosen[i]) {
			all++;
			one = i;
		}
	if (all == 1) {
		const struct asked_party *who = party_of(p, p->seats[one]);

		out_fmt(p->out, "rank %u (", p->seats[one]->rank);
		out_plain(p->out, who->comm, strnlen(who->comm, sizeof(who->comm)));
		out_fmt(p->out, ", PID %u)", who->shown_pid);
		return 1;
	}
	out_str(p->out, "ranks ");
	for (size_t i = 0; i < p->nseats; i++) {
		size_t end = i;

		if (!p->chosen[i])
			continue;
		while (end + 1 < p->nseats && p->chosen[end + 1] &&
		       p->seats[end + 1]->rank == p->seats[end]->rank + 1)
			end++;
		if (ranges == RANGES_MAX) {
			out_str(p->out, " and others");
			break;
		}
		out_fmt(p->out, "%s%u", ranges++ ? "," : "", p->seats[i]->rank);
		if (end > i)
			out_fmt(p->out, "-%u", p->seats[end]->rank);
		i = end;
	}
	return all;
}

/* ---- JSON ---- */

static void fault_begins(struct printer *p, const char *fault)
{
	const struct asked_comm *m = asked_comm_at(p->a, p->comm);

	if (p->a->ear.fault)
		p->a->ear.fault(p->a->ear.ctx, m->hash, fault);
	p->j = json_to(p->out);
	json_open_object(&p->j, NULL);
	json_put_str(&p->j, "type", "collective_fault");
	json_put_u64(&p->j, "start_ns", p->now_ns);
	json_put_hex(&p->j, "communicator_hash", m->hash);
	json_put_u64(&p->j, "communicator_ranks", m->ranks);
	json_put_str(&p->j, "fault", fault);
	json_open_array(&p->j, "ranks");
}

static void fault_ends(struct printer *p)
{
	json_end(&p->j);
	json_end(&p->j);
	out_char(p->out, '\n');
}

static void json_word(struct json *j, const char *key, uint32_t v, const char *word)
{
	if (v == CT_UNKNOWN)
		return;
	if (word)
		json_put_str(j, key, word);
	else
		json_put_u64(j, key, v);
}

/* A rank; call NULL: it has begun none. peer: CT_UNKNOWN, or its rank. */
static void fault_rank(struct printer *p, const struct asked_seat *s, enum does does,
		       const struct asked_call *c, uint32_t peer)
{
	static const char *const words[] = { "asks", "waits", "absent", "sends", "receives" };
	const struct asked_party *who = party_of(p, s);

	json_open_object(&p->j, NULL);
	json_put_u64(&p->j, "communicator_rank", s->rank);
	json_put_u64(&p->j, "pid", who->shown_pid);
	json_put_bytes(&p->j, "process", who->comm, strnlen(who->comm, sizeof(who->comm)));
	json_put_str(&p->j, "state", words[does]);
	if (c) {
		json_put_bytes(&p->j, "name", c->name, strnlen(c->name, sizeof(c->name)));
		json_put_u64(&p->j, "sequence", c->number);
		json_put_u64(&p->j, "count", c->count);
		json_word(&p->j, "datatype", c->datatype, scope_datatype(c->datatype));
		json_word(&p->j, "op", c->op, scope_op(c->op));
		json_word(&p->j, "root", c->root, NULL);
	}
	json_word(&p->j, "peer", peer, NULL);
	json_end(&p->j);
}

/* ---- what is not the same ---- */

static bool alike(const struct asked_call *x, const struct asked_call *y)
{
	return x->number == y->number && x->count == y->count && x->datatype == y->datatype &&
	       x->op == y->op && x->root == y->root && !strcmp(x->name, y->name);
}

/* A line for each group of ranks that ask for the same. */
static void put_groups(struct printer *p)
{
	size_t lines = 0;

	for (size_t i = 0; i < p->nseats; i++) {
		const struct asked_call *c = &p->seats[i]->odd;
		bool first = c->number != 0;

		for (size_t k = 0; k < i && first; k++)
			first = !alike(&p->seats[k]->odd, c);
		if (!first)
			continue;
		if (lines++ == LINES_MAX) {
			out_str(p->out, "    and others\n");
			return;
		}
		for (size_t k = 0; k < p->nseats; k++)
			p->chosen[k] = alike(&p->seats[k]->odd, c);
		out_str(p->out, "    ");
		put_ranks(p);
		out_str(p->out, ": ");
		put_name(p->out, c);
		out_char(p->out, ' ');
		put_values(p->out, c);
		out_char(p->out, '\n');
	}
}

static void put_odd(struct printer *p)
{
	uint64_t odd = asked_comm_at(p->a, p->comm)->odd;

	if (!odd)
		return;
	put_head(p);
	if (p->json) {
		fault_begins(p, "arguments");
		for (size_t i = 0; i < p->nseats; i++)
			if (p->seats[i]->odd.number)
				fault_rank(p, p->seats[i], ASKS, &p->seats[i]->odd, CT_UNKNOWN);
		fault_ends(p);
		return;
	}
	out_fmt(p->out, "  collective #%" PRIu64 ": the ranks do not ask for the same\n", odd);
	put_groups(p);
}

static void put_sizes(struct printer *p)
{
	size_t lines = 0;

	for (size_t i = p->pair; i < p->pairs_end && lines < LINES_MAX; i++) {
		const struct asked_pair *q = p->pairs[i];
		const struct asked_seat *from, *to;

		if (!q->odd[0].number)
			continue;
		lines++;
		from = asked_seat_find(p->a, q->comm, q->from);
		to = asked_seat_find(p->a, q->comm, q->to);
		put_head(p);
		if (p->json) {
			fault_begins(p, "sizes");
			fault_rank(p, from, SENDS, &q->odd[0], q->to);
			fault_rank(p, to, RECEIVES, &q->odd[1], q->from);
			fault_ends(p);
			continue;
		}
		out_fmt(p->out, "  send #%" PRIu64 " from rank %u to rank %u: rank %u sends ",
			q->odd[0].number, q->from, q->to, q->from);
		put_values(p->out, &q->odd[0]);
		out_fmt(p->out, ", rank %u receives ", q->to);
		put_values(p->out, &q->odd[1]);
		out_char(p->out, '\n');
	}
}

/* ---- who waits ---- */

static const struct asked_seat *seat_of(const struct printer *p, const struct asked_op *op)
{
	return asked_seat_at(p->a, op->seat);
}

/* Chooses the ranks that wait in a collective, or those that have not come to it. Returns how many. */
static size_t choose(struct printer *p, uint64_t number, bool come)
{
	size_t n = 0;

	for (size_t i = 0; i < p->nseats; i++)
		n += p->chosen[i] = (p->seats[i]->come >= number) == come;
	return n;
}

static void put_collective(struct printer *p, const struct asked_call *c)
{
	size_t n;

	put_head(p);
	if (p->json) {
		fault_begins(p, "absent");
		for (size_t i = 0; i < p->nseats; i++)
			fault_rank(p, p->seats[i], p->seats[i]->come >= c->number ? WAITS : ABSENT,
				   p->seats[i]->come >= c->number ? c : NULL, CT_UNKNOWN);
		fault_ends(p);
		return;
	}
	out_str(p->out, "  ");
	put_name(p->out, c);
	out_fmt(p->out, " #%" PRIu64 " (", c->number);
	put_values(p->out, c);
	out_str(p->out, "): ");
	n = choose(p, c->number, true);
	put_ranks(p);
	out_str(p->out, n == 1 ? " waits in it, " : " wait in it, ");
	n = choose(p, c->number, false);
	put_ranks(p);
	out_str(p->out, n == 1 ? " has not come to it\n" : " have not come to it\n");
}

/* The collectives in which ranks wait, the first ones first. */
static void put_collectives(struct printer *p)
{
	uint64_t last = 0;
	size_t lines = 0;

	for (size_t i = p->op; i < p->ops_end && lines < LINES_MAX; i++) {
		if (p->ops[i]->kind != ASKED_COLLECTIVE || p->ops[i]->call.number == last)
			continue;
		last = p->ops[i]->call.number;
		put_collective(p, &p->ops[i]->call);
		lines++;
	}
}

/* The send that a receive waits for, or what it is that a rank is called for; NULL: not called yet. */
static const struct asked_op *wanted(struct printer *p, const struct asked_op *op,
				     const struct asked_seat *other)
{
	const struct asked_party *who = party_of(p, other);
	const struct asked_seat *mine = seat_of(p, op);

	for (size_t i = 0; i < who->nops && p->looks; i++) {
		const struct asked_op *o = &who->ops[i];

		p->looks--;
		if (seat_of(p, o) != other || o->call.number != op->call.number)
			continue;
		if (op->kind == ASKED_COLLECTIVE ? o->kind == ASKED_COLLECTIVE
						 : o->kind == ASKED_SEND && o->peer == mine->rank)
			return o;
	}
	return NULL;
}

static void put_receive(struct printer *p, const struct asked_op *op)
{
	const struct asked_seat *s = seat_of(p, op);
	const struct asked_seat *from = asked_seat_find(p->a, p->comm, op->peer);
	const struct asked_op *send = from ? wanted(p, op, from) : NULL;
	const struct asked_op *before = send ? asked_before(party_of(p, from), send) : NULL;

	put_head(p);
	if (p->json) {
		fault_begins(p, "receive");
		fault_rank(p, s, WAITS, &op->call, op->peer);
		if (from)
			fault_rank(p, from, ABSENT, NULL, CT_UNKNOWN);
		fault_ends(p);
		return;
	}
	out_fmt(p->out, "  rank %u waits in receive #%" PRIu64 " from rank %u (", s->rank,
		op->call.number, op->peer);
	put_values(p->out, &op->call);
	out_fmt(p->out, "): rank %u ", op->peer);
	if (!send) {
		out_str(p->out, "has begun no send that matches it\n");
		return;
	}
	out_str(p->out, "has called the send that matches it, but it waits behind ");
	if (before) {
		put_name(p->out, &before->call);
		out_fmt(p->out, " #%" PRIu64 "\n", before->call.number);
	} else {
		out_str(p->out, "other calls\n");
	}
}

static void put_receives(struct printer *p)
{
	size_t lines = 0;

	for (size_t i = p->op; i < p->ops_end && lines < LINES_MAX; i++) {
		if (p->ops[i]->kind != ASKED_RECEIVE)
			continue;
		put_receive(p, p->ops[i]);
		lines++;
	}
}

/* Sends that no receive was called for. */
static void put_sends(struct printer *p)
{
	size_t lines = 0;

	for (size_t i = p->pair; i < p->pairs_end && lines < LINES_MAX; i++) {
		const struct asked_pair *q = p->pairs[i];
		const struct asked_seat *from, *to;

		if (q->called <= q->received)
			continue;
		from = asked_seat_find(p->a, q->comm, q->from);
		to = asked_seat_find(p->a, q->comm, q->to);
		if (!from || !to)
			continue; /* the other rank is not seen */
		lines++;
		put_head(p);
		if (p->json) {
			fault_begins(p, "send");
			fault_rank(p, from, SENDS, NULL, q->to);
			fault_rank(p, to, ABSENT, NULL, q->from);
			fault_ends(p);
			continue;
		}
		out_fmt(p->out,
			"  rank %u has called %" PRIu64 " send%s to rank %u, which has called "
			"%" PRIu64 " receive%s from it\n",
			q->from, q->called, q->called == 1 ? "" : "s", q->to, q->received,
			q->received == 1 ? "" : "s");
	}
}

/* ---- circles ---- */

static struct asked_op *first_waiting(const struct asked_party *who)
{
	for (size_t i = 0; i < who->nops; i++)
		if (who->ops[i].begun && !who->ops[i].done)
			return &who->ops[i];
	return NULL;
}

/* The call that has to end before what `op` waits for can begin at `other`. */
static struct asked_op *blocker(struct printer *p, const struct asked_op *op,
				const struct asked_seat *other)
{
	const struct asked_party *who = party_of(p, other);
	const struct asked_op *want = wanted(p, op, other), *before;

	if (!want)
		return first_waiting(who);
	before = asked_before(who, want);
	return before && before->begun ? &who->ops[before - who->ops] : NULL;
}

/* What a call that waits is kept up by, at the first rank that keeps it up; NULL: not known. */
static struct asked_op *kept_up_by(struct printer *p, const struct asked_op *op)
{
	const struct asked_seat *s = seat_of(p, op), *other;
	struct asked_op *first = NULL, *by;

	if (op->kind == ASKED_RECEIVE) {
		other = asked_seat_find(p->a, s->comm, op->peer);
		return other ? blocker(p, op, other) : NULL;
	}
	asked_each_seat(p->a, s->comm, other)
	{
		p->looks -= p->looks > 0;
		if (other->come >= op->call.number ||
		    (first && seat_of(p, first)->rank < other->rank))
			continue;
		by = blocker(p, op, other);
		if (by)
			first = by;
	}
	return first;
}

static void put_in_circle(struct printer *p, const struct asked_op *op, const struct asked_op *next)
{
	const struct asked_seat *s = seat_of(p, op), *other = seat_of(p, next);

	if (p->json) {
		fault_rank(p, s, WAITS, &op->call,
			   op->kind == ASKED_RECEIVE ? op->peer : CT_UNKNOWN);
		return;
	}
	out_fmt(p->out, "rank %u waits in ", s->rank);
	put_name(p->out, &op->call);
	out_fmt(p->out, " #%" PRIu64, op->call.number);
	if (s->comm != p->comm)
		out_fmt(p->out, " of communicator 0x%" PRIx64, asked_comm_at(p->a, s->comm)->hash);
	out_fmt(p->out, " for rank %u", op->kind == ASKED_RECEIVE ? op->peer : other->rank);
}

/* Calls that wait for each other in a circle: it goes on from `op` until it comes back. */
static void put_circle(struct printer *p, const struct asked_op *op)
{
	const struct asked_op *at = op, *next;
	size_t lines = 0;
	bool receives = true;

	do
		receives &= at->kind == ASKED_RECEIVE;
	while ((at = kept_up_by(p, at)) && at != op);
	if (!at)
		return; /* no more looks */
	put_head(p);
	if (p->json)
		fault_begins(p, "circle");
	else
		out_str(p->out, receives ? "  a hang, a circle of receives: "
					 : "  a hang, a circle of waiting calls: ");
	do {
		next = kept_up_by(p, at);
		if (!next)
			break;
		if (lines && !p->json)
			out_str(p->out, ", ");
		put_in_circle(p, at, next);
		at = next;
	} while (at != op && ++lines < LINES_MAX);
	if (p->json)
		fault_ends(p);
	else
		out_char(p->out, '\n');
}

/* The circles that are found from this communicator's calls, each once. */
static void put_circles(struct printer *p, uint32_t *mark)
{
	for (size_t i = p->op; i < p->ops_end; i++) {
		struct asked_op *op = p->ops[i];

		if (op->mark)
			continue;
		for (++*mark; op && !op->mark; op = kept_up_by(p, op))
			op->mark = *mark;
		if (op && op->mark == *mark)
			put_circle(p, op);
	}
}

/* ---- all ---- */

static int by_rank(const void *x, const void *y)
{
	const struct asked_seat *a = *(struct asked_seat *const *)x,
				*b = *(struct asked_seat *const *)y;

	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static bool is_still(const struct printer *p, uint64_t over_ns)
{
	for (size_t i = 0; i < p->nseats; i++) {
		uint64_t ended = party_of(p, p->seats[i])->ended_ns;
		uint64_t end = ended ? ended : p->now_ns;

		if (end < p->seats[i]->last_ns || end - p->seats[i]->last_ns < over_ns)
			return false;
	}
	return true;
}

static const struct asked *sorted_of; /* for by_call */

/* By communicator, kind, number, rank. */
static int by_call(const void *x, const void *y)
{
	const struct asked_op *a = *(struct asked_op *const *)x, *b = *(struct asked_op *const *)y;
	const struct asked_seat *s = asked_seat_at(sorted_of, a->seat),
				*t = asked_seat_at(sorted_of, b->seat);

	if (s->comm != t->comm)
		return s->comm < t->comm ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->call.number != b->call.number)
		return a->call.number < b->call.number ? -1 : 1;
	return s->rank < t->rank ? -1 : s->rank > t->rank;
}

static int by_pair(const void *x, const void *y)
{
	const struct asked_pair *a = *(struct asked_pair *const *)x,
				*b = *(struct asked_pair *const *)y;

	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->to < b->to ? -1 : a->to > b->to;
}

/* Makes the lists. False: no memory. */
static bool sort_all(struct printer *p)
{
	struct asked *a = p->a;

	p->seats = calloc(a->seats.n + 1, sizeof(struct asked_seat *));
	p->chosen = calloc(a->seats.n + 1, sizeof(*p->chosen));
	p->ops = calloc(a->nops + 1, sizeof(struct asked_op *));
	p->pairs = calloc(a->pairs.n + 1, sizeof(struct asked_pair *));
	if (!p->seats || !p->chosen || !p->ops || !p->pairs)
		return false;
	for (size_t i = 0; i < a->nparties; i++)
		for (size_t k = 0; k < a->parties[i].nops; k++) {
			struct asked_op *op = &a->parties[i].ops[k];

			op->mark = 0;
			if (op->begun && !op->done)
				p->ops[p->nops++] = op;
		}
	for (size_t i = 0; i < a->pairs.n; i++)
		p->pairs[p->npairs++] = hash_map_at(&a->pairs, i);
	sorted_of = a;
	qsort(p->ops, p->nops, sizeof(*p->ops), by_call);
	qsort(p->pairs, p->npairs, sizeof(*p->pairs), by_pair);
	return true;
}

static void take_comm(struct printer *p, uint32_t comm)
{
	struct asked_seat *s;

	p->comm = comm;
	p->head = false;
	p->nseats = 0;
	asked_each_seat(p->a, comm, s) p->seats[p->nseats++] = s;
	qsort(p->seats, p->nseats, sizeof(*p->seats), by_rank);
	for (p->op = p->ops_end;
	     p->ops_end < p->nops && seat_of(p, p->ops[p->ops_end])->comm == comm;)
		p->ops_end++;
	for (p->pair = p->pairs_end;
	     p->pairs_end < p->npairs && p->pairs[p->pairs_end]->comm == comm;)
		p->pairs_end++;
}

static void put_comm(struct printer *p, bool settled, uint64_t over_ns, uint32_t *mark)
{
	const struct asked_comm *m = asked_comm_at(p->a, p->comm);

	put_odd(p);
	put_sizes(p);
	if (!settled || m->disagree || !is_still(p, over_ns))
		return;
	put_collectives(p);
	put_receives(p);
	if (m->whole)
		put_sends(p);
	put_circles(p, mark);
}

void asked_listen(struct asked *a, const struct asked_ear *ear)
{
	a->ear = *ear;
}

int asked_print(struct asked *a, uint64_t now_ns, uint64_t over_ns, bool json, struct out *o)
{
	struct printer p = { .a = a, .out = o, .json = json, .looks = LOOKS_MAX };
	bool settled = asked_settle(a);
	uint32_t mark = 0;
	int shown = sort_all(&p) ? 0 : -ENOMEM;

	p.now_ns = now_ns > a->last_ns ? now_ns : a->last_ns;
	for (uint32_t i = 0; shown >= 0 && i < a->comms.n; i++) {
		take_comm(&p, i);
		if (a->ear.only && !a->ear.only(a->ear.ctx, asked_comm_at(a, i)->hash))
			continue;
		put_comm(&p, settled, over_ns, &mark);
		shown += p.head;
	}
	free(p.seats);
	free(p.chosen);
	free(p.ops);
	free(p.pairs);
	return shown;
}
