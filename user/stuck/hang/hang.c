/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hang.c - see hang.h.
 *
 * Each communicator whose counts are still, and in which something is under way, is a case, and so is each
 * process with a thread that is inside a call for too long. Cases with a process in common are one incident,
 * and its verdict is about the rank at which the waiting ends: one that others wait for and that waits in no
 * other communicator itself.
 */
#include "hang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../nccl/nccl_group.h"
#include "../../util/table/array.h"
#include "../../util/table/hash_map.h"

#define PROCS_MAX 65536
#define SEATS_MAX 65536
#define CASES_MAX 1024
/* a process is at work if it used this part of a processor, or moved so many bytes, since the look before */
#define BUSY_PART 5
#define BUSY_BYTES 65536

/* A process that was looked at. */
struct known {
	uint32_t pid;
	uint64_t at_ns;
	struct hang_proc last;
	uint64_t busy_ns; /* when it was seen to be at work last; 0: never */
	enum hang_doing busy;
	uint64_t progress_ns, work_ns; /* when a call returned, and work of its device completed */
	bool seen;		       /* by this look */
};

/* A rank of a communicator that was seen, for when it is gone. */
struct seat {
	uint64_t hash;
	uint32_t rank;
	uint32_t pid;
	char name[16];
	bool present, ended;
};

/* A communicator that stands still. */
struct stand {
	struct nccl_group g;
	size_t incident;
	bool lags; /* some rank has not begun what another has */
};

struct hang {
	uint64_t over_ns;
	struct hash_map procs, seats;
	struct stand *stands; /* of the look */
	size_t nstands;
	struct hang_incident *list, *before, *ended;
	size_t n, nbefore, nended;
	uint64_t numbers;
	const struct hang_look *look;
};

struct hang *hang_open(uint64_t over_ns)
{
	struct hang *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->over_ns = over_ns;
	hash_map_open_of(&h->procs, struct known, pid, PROCS_MAX);
	hash_map_open_of(&h->seats, struct seat, rank, SEATS_MAX);
	return h;
}

void hang_close(struct hang *h)
{
	if (!h)
		return;
	hash_map_close(&h->procs);
	hash_map_close(&h->seats);
	free(h->stands);
	free(h->list);
	free(h->before);
	free(h->ended);
	free(h);
}

void hang_progress(struct hang *h, uint32_t pid, uint64_t at_ns, bool work)
{
	struct known *k = hash_map_find(&h->procs, &pid);
	uint64_t *last = k ? work ? &k->work_ns : &k->progress_ns : NULL;

	if (last && at_ns > *last)
		*last = at_ns;
}

/* ---- what processes do ---- */

static void set_busy(struct known *k, enum hang_doing what, uint64_t now)
{
	k->busy = what;
	k->busy_ns = now;
}

static uint64_t grown(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

/* What it did since the look before. */
static void compare(struct known *k, const struct hang_proc *p, uint64_t now)
{
	uint64_t least = grown(k->at_ns, now) / BUSY_PART;

	if (k->last.state == 'T' || k->last.state == 't') {
		/* what it was stopped for is no time in which it did nothing */
		if (p->state != 'T' && p->state != 't')
			set_busy(k, HANG_COMPUTES, now);
		return;
	}
	/* on a busy machine a thread that could run may get little of a processor */
	if (p->state == 'R' || (least && grown(k->last.cpu_ns, p->cpu_ns) >= least))
		set_busy(k, HANG_COMPUTES, now);
	else if (grown(k->last.io_bytes, p->io_bytes) >= BUSY_BYTES)
		set_busy(k, HANG_FILES, now);
	else if (least && grown(k->last.child_ns, p->child_ns) >= least)
		set_busy(k, HANG_CHILD, now);
}

static int take_proc(struct hang *h, const struct hang_proc *p, uint64_t now)
{
	bool made;
	struct known *k = hash_map_get(&h->procs, &p->pid, &made);

	if (!k)
		return -ENOMEM;
	if (!made && p->state && k->last.began != p->began) {
		*k = (struct known){ .pid = p->pid };
		made = true;
	}
	if (!made && p->state)
		compare(k, p, now);
	k->last = *p;
	k->at_ns = now;
	k->seen = true;
	return 0;
}

/* The process may have ended since its threads were listed. */
static const struct hang_call *call_of(const struct hang *h, uint32_t pid)
{
	const struct known *k = hash_map_find(&h->procs, &pid);
	const struct hang_call *oldest = NULL;

	if (k && !k->last.state)
		return NULL;
	for (size_t i = 0; i < h->look->ncalls; i++) {
		const struct hang_call *c = &h->look->calls[i];

		if (c->pid == pid && grown(c->since_ns, h->look->at_ns) >= h->over_ns &&
		    (!oldest || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	return oldest;
}

static bool lately(const struct hang *h, uint64_t ns)
{
	return ns && grown(ns, h->look->at_ns) < h->over_ns / 2;
}

static bool is_stopped(const struct known *k)
{
	return k && (k->last.state == 'T' || k->last.state == 't');
}

static struct hang_culprit culprit_of(const struct hang *h, uint32_t pid, int rank,
				      const char *name)
{
	const struct known *k = hash_map_find(&h->procs, &pid);
	const struct hang_call *c = call_of(h, pid);
	struct hang_culprit who = { .pid = pid, .rank = rank };

	memcpy(who.name, name, sizeof(who.name));
	if (!k || !k->last.state) {
		who.doing = HANG_ENDED;
		return who;
	}
	memcpy(who.wait, k->last.wait, sizeof(who.wait));
	if (c) {
		who.tid = c->tid;
		memcpy(who.inside, c->name, sizeof(who.inside));
	}
	if (is_stopped(k) && k->last.tracer) {
		who.doing = HANG_DEBUGGED;
		who.tracer = k->last.tracer;
	} else if (is_stopped(k)) {
		/* in a program that we have started it is a stop for its tracer, which is ours */
		who.doing = HANG_STOPPED;
	} else if (c) {
		who.doing = k->last.holder == c->tid ? HANG_LOCK : HANG_INSIDE;
	} else if (lately(h, k->progress_ns) || lately(h, k->work_ns)) {
		who.doing = HANG_OTHER_CALL;
	} else if (lately(h, k->busy_ns)) {
		who.doing = k->busy;
	} else {
		who.doing = HANG_WAITS;
	}
	return who;
}

/* ---- ranks that were seen ---- */

static int take_seats(struct hang *h)
{
	const struct nccl_job *j = h->look->job;
	struct seat *s;

	hash_map_each(&h->seats, s) s->present = false;
	for (size_t i = 0; i < j->n; i++) {
		const struct nccl_member *m = &j->members[i];
		struct seat key = { .hash = m->hash, .rank = (uint32_t)m->rank };
		bool made;

		if (m->rank < 0)
			continue;
		s = hash_map_get(&h->seats, &key, &made);
		if (!s)
			return h->seats.n == SEATS_MAX ? 0 : -ENOMEM;
		s->pid = m->pid;
		memcpy(s->name, m->comm, sizeof(s->name));
		s->present = true;
		s->ended = false;
	}
	return 0;
}

static bool is_gone(const struct hang *h, uint32_t pid)
{
	const struct known *k = hash_map_find(&h->procs, &pid);

	return !k || !k->last.state;
}

static bool has_group(const struct nccl_job *j, uint64_t hash)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->members[i].hash == hash)
			return true;
	return false;
}

/* A communicator of which nobody is left is forgotten, and so are ranks that have left one and live on. */
static void forget_seats(struct hang *h)
{
	struct seat *s;

	hash_map_each(&h->seats, s)
	{
		if (s->present)
			continue;
		s->ended |= is_gone(h, s->pid);
		if (!s->ended || !has_group(h->look->job, s->hash))
			hash_map_remove(&h->seats, s);
	}
}

static size_t count_ended(const struct hang *h, uint64_t hash)
{
	const struct seat *s;
	size_t n = 0;

	hash_map_each(&h->seats, s) n += s->hash == hash && s->ended;
	return n;
}

/* ---- cases ---- */

static const struct nccl_member *first_lag(const struct nccl_group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (nccl_group_lags(g, &g->members[i]))
			return &g->members[i];
	return NULL;
}

static bool has_call(const struct hang *h, const struct nccl_group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (call_of(h, g->members[i].pid))
			return true;
	return false;
}

/* Work of a device completes: it is slow. */
static bool completes(const struct hang *h, const struct nccl_group *g)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct known *k = hash_map_find(&h->procs, &g->members[i].pid);

		if (k && lately(h, k->work_ns))
			return true;
	}
	return false;
}

static bool all_stopped(const struct hang *h, const struct nccl_group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (!is_stopped(hash_map_find(&h->procs, &g->members[i].pid)))
			return false;
	return true;
}

/* Communicators that stand still while something is under way. */
static int find_stands(struct hang *h)
{
	const struct nccl_job *j = h->look->job;

	h->nstands = 0;
	for (size_t at = 0; at < j->n && h->nstands < CASES_MAX;) {
		struct nccl_group g;
		struct stand *s;
		bool lags;

		at = nccl_group_next(j, at, &g);
		lags = g.still && first_lag(&g);
		if (!g.still || (!lags && (!has_call(h, &g) || completes(h, &g))) ||
		    all_stopped(h, &g))
			continue;
		s = array_add(h->stands, h->nstands);
		if (!s)
			return -ENOMEM;
		s->g = g;
		s->lags = lags || count_ended(h, g.members[0].hash);
	}
	return 0;
}

static bool has_pid(const struct hang_incident *a, uint32_t pid)
{
	for (size_t i = 0; i < a->npids; i++)
		if (a->pids[i] == pid)
			return true;
	return false;
}

static void add_pid(struct hang_incident *a, uint32_t pid)
{
	if (a->npids < HANG_PIDS_MAX && !has_pid(a, pid))
		a->pids[a->npids++] = pid;
}

/* The incident that has one of these processes, or a new one. NULL: no memory. */
static struct hang_incident *incident_of(struct hang *h, const uint32_t *pids, size_t n)
{
	struct hang_incident *first = NULL;

	for (size_t i = 0; i < h->n; i++) {
		struct hang_incident *a = &h->list[i];
		bool has = false;

		for (size_t k = 0; k < n && !has; k++)
			has = has_pid(a, pids[k]);
		if (!has)
			continue;
		if (!first) {
			first = a;
			continue;
		}
		/* it joins two: the second one's go to the first */
		for (size_t k = 0; k < a->npids; k++)
			add_pid(first, a->pids[k]);
		for (size_t k = 0; k < h->nstands; k++) {
			if (h->stands[k].incident == i)
				h->stands[k].incident = (size_t)(first - h->list);
			else if (h->stands[k].incident > i && h->stands[k].incident != SIZE_MAX)
				h->stands[k].incident--;
		}
		memmove(a, a + 1, (h->n - i - 1) * sizeof(*a));
		h->n--;
		i--;
	}
	if (!first)
		first = array_add(h->list, h->n);
	for (size_t k = 0; first && k < n; k++)
		add_pid(first, pids[k]);
	return first;
}

static int join_stands(struct hang *h)
{
	uint32_t pids[HANG_PIDS_MAX];

	for (size_t i = 0; i < h->nstands; i++)
		h->stands[i].incident = SIZE_MAX;
	for (size_t i = 0; i < h->nstands; i++) {
		const struct nccl_group *g = &h->stands[i].g;
		struct hang_incident *a;
		size_t n = 0;

		for (size_t k = 0; k < g->n && n < HANG_PIDS_MAX; k++)
			pids[n++] = g->members[k].pid;
		a = incident_of(h, pids, n);
		if (!a)
			return -ENOMEM;
		h->stands[i].incident = (size_t)(a - h->list);
	}
	return 0;
}

/* ---- verdicts ---- */

/* Does a process wait in a communicator of the incident for a rank that has not come? Ranks of another one
 * than `but`. */
static bool waits_elsewhere(const struct hang *h, size_t incident, uint32_t pid,
			    const struct stand *but)
{
	for (size_t i = 0; i < h->nstands; i++) {
		const struct stand *s = &h->stands[i];

		if (s->incident != incident || s == but || !s->lags)
			continue;
		for (size_t k = 0; k < s->g.n; k++)
			if (s->g.members[k].pid == pid && !nccl_group_lags(&s->g, &s->g.members[k]))
				return true;
	}
	return false;
}

static void add_culprit(struct hang_incident *a, const struct hang_culprit *who)
{
	for (size_t i = 0; i < a->nculprits; i++)
		if (a->culprits[i].pid == who->pid)
			return;
	a->culprits_in_all++;
	if (a->nculprits < HANG_CULPRITS_MAX)
		a->culprits[a->nculprits++] = *who;
}

/* The collective that ranks have not begun, or the last one that all have. */
static void name_collective(struct hang_incident *a, const struct nccl_group *g, bool lags)
{
	const struct nccl_kind *best = NULL;

	for (int i = 0; i < g->nkinds; i++) {
		const struct nccl_kind *k = &g->kinds[i];

		if (lags && k->least == k->most)
			continue;
		if (k->most && (!best || k->most > best->most))
			best = k;
	}
	if (!best)
		return;
	strncpy(a->collective, best->name, sizeof(a->collective) - 1);
	a->sequence = lags ? best->least + 1 : best->most;
}

static void take_group(const struct hang *h, struct hang_incident *a, const struct stand *s)
{
	const struct nccl_group *g = &s->g;

	a->hash = g->members[0].hash;
	a->nranks = g->nranks;
	a->seen = (int)g->nseen;
	a->waiting = 0;
	for (size_t i = 0; i < g->n; i++)
		a->waiting += !nccl_group_lags(g, &g->members[i]);
	name_collective(a, g, first_lag(g) != NULL);
	a->since_ns = h->look->at_ns;
	for (size_t i = 0; i < g->n; i++) {
		uint64_t since = grown(g->members[i].still_ns, h->look->at_ns);

		if (since < a->since_ns)
			a->since_ns = since;
	}
}

static void add_ended(const struct hang *h, struct hang_incident *a, uint64_t hash)
{
	const struct seat *s;

	hash_map_each(&h->seats, s) if (s->hash == hash && s->ended)
	{
		struct hang_culprit who = culprit_of(h, s->pid, (int)s->rank, s->name);

		who.doing = HANG_ENDED;
		add_culprit(a, &who);
	}
}

static struct hang_culprit of_member(const struct hang *h, const struct nccl_member *m)
{
	return culprit_of(h, m->pid, m->rank, m->comm);
}

/* Ranks that others wait for and that wait for nobody: the first communicator with one is what it is about. */
static void find_roots(const struct hang *h, size_t incident, struct hang_incident *a)
{
	for (size_t i = 0; i < h->nstands; i++) {
		const struct stand *s = &h->stands[i];
		size_t before = a->nculprits;

		if (s->incident != incident || !s->lags)
			continue;
		add_ended(h, a, s->g.members[0].hash);
		for (size_t k = 0; k < s->g.n; k++) {
			const struct nccl_member *m = &s->g.members[k];
			struct hang_culprit who = of_member(h, m);

			if (nccl_group_lags(&s->g, m) && !waits_elsewhere(h, incident, m->pid, s))
				add_culprit(a, &who);
		}
		if (!before && a->nculprits)
			take_group(h, a, s);
	}
}

/* All have begun it: a rank that is stopped or gone is why it does not end. */
static void find_idle(const struct hang *h, struct hang_incident *a, const struct stand *s)
{
	for (size_t k = 0; k < s->g.n; k++) {
		struct hang_culprit who = of_member(h, &s->g.members[k]);

		if (who.doing == HANG_STOPPED || who.doing == HANG_DEBUGGED ||
		    who.doing == HANG_ENDED)
			add_culprit(a, &who);
	}
}

/* Is each member inside a call, or can do nothing? */
static bool all_inside(const struct hang *h, const struct nccl_group *g)
{
	for (size_t k = 0; k < g->n; k++) {
		uint32_t pid = g->members[k].pid;

		if (!call_of(h, pid) && !is_stopped(hash_map_find(&h->procs, &pid)) &&
		    !is_gone(h, pid))
			return false;
	}
	return true;
}

static void add_inside(const struct hang *h, struct hang_incident *a, const struct stand *s)
{
	a->nculprits = a->culprits_in_all = 0;
	for (size_t k = 0; k < s->g.n; k++) {
		struct hang_culprit who = of_member(h, &s->g.members[k]);

		if (call_of(h, who.pid))
			add_culprit(a, &who);
	}
}

static bool asked(const struct hang *h, bool (*ask)(void *, uint64_t), const struct stand *s)
{
	return ask && ask(h->look->ctx, s->g.members[0].hash);
}

/* All ranks of a circle, or that do not call the same. */
static void add_all(const struct hang *h, struct hang_incident *a, const struct stand *s)
{
	for (size_t k = 0; k < s->g.n; k++) {
		struct hang_culprit who = of_member(h, &s->g.members[k]);

		if (nccl_group_lags(&s->g, &s->g.members[k]) || !s->lags)
			add_culprit(a, &who);
	}
}

static void judge(const struct hang *h, size_t incident, struct hang_incident *a)
{
	const struct stand *differs = NULL, *circle = NULL, *lags = NULL, *any = NULL;

	for (size_t i = 0; i < h->nstands; i++) {
		const struct stand *s = &h->stands[i];

		if (s->incident != incident)
			continue;
		any = any ? any : s;
		if (!differs && (nccl_group_disagrees(&s->g) || asked(h, h->look->differs, s)))
			differs = s;
		if (!circle && asked(h, h->look->circles, s))
			circle = s;
		if (!lags && s->lags)
			lags = s;
	}
	a->kind = HANG_ALL_IN;
	if (differs) {
		a->kind = HANG_DIFFER;
		take_group(h, a, differs);
		add_all(h, a, differs);
		return;
	}
	if (lags)
		find_roots(h, incident, a);
	if (a->nculprits) {
		a->kind = HANG_ABSENT;
		a->at_work = true;
		for (size_t i = 0; i < a->nculprits; i++)
			a->at_work &= a->culprits[i].doing >= HANG_AT_WORK;
		return;
	}
	if (lags || circle) {
		a->kind = HANG_CIRCLE;
		take_group(h, a, lags ? lags : circle);
		add_all(h, a, lags ? lags : circle);
		return;
	}
	take_group(h, a, any);
	find_idle(h, a, any);
	if (!all_inside(h, &any->g)) {
		/* others are elsewhere: it need not be this collective that does not end */
		a->kind = HANG_CALL;
		add_inside(h, a, any);
	}
}

/* Has it a communicator that goes on, or that only is slow? What the call waited for may have come just now. */
static bool goes_on(const struct hang *h, const struct hang_call *c)
{
	const struct nccl_job *j = h->look->job;

	for (size_t at = 0; at < j->n;) {
		struct nccl_group g;
		bool in = false, still = true;

		at = nccl_group_next(j, at, &g);
		for (size_t i = 0; i < g.n; i++) {
			in |= g.members[i].pid == c->pid;
			still &= g.members[i].still_ns != 0;
		}
		if (in && (!still || completes(h, &g)))
			return true;
	}
	return false;
}

/* Threads inside calls, of processes whose communicators say nothing. */
static int find_calls(struct hang *h)
{
	for (size_t i = 0; i < h->look->ncalls; i++) {
		const struct hang_call *c = &h->look->calls[i];
		const struct known *k = hash_map_find(&h->procs, &c->pid);
		struct hang_incident *a;
		struct hang_culprit who;
		size_t before = h->n;

		if (call_of(h, c->pid) != c || !k || !k->last.state || is_stopped(k) ||
		    lately(h, k->work_ns) || goes_on(h, c))
			continue;
		a = incident_of(h, &c->pid, 1);
		if (!a)
			return -ENOMEM;
		if (h->n == before)
			continue;
		who = culprit_of(h, c->pid, -1, k->last.name);
		a->kind = HANG_CALL;
		a->since_ns = c->since_ns;
		a->waiting = 1;
		add_culprit(a, &who);
	}
	return 0;
}

/* ---- from look to look ---- */

static const struct hang_incident *earlier(const struct hang *h, const struct hang_incident *a)
{
	for (size_t i = 0; i < h->nbefore; i++)
		for (size_t k = 0; k < a->npids; k++)
			if (has_pid(&h->before[i], a->pids[k]))
				return &h->before[i];
	return NULL;
}

/* What was one incident stays one, though it has no process in common any more: its number is there before `at`. */
static bool is_told(struct hang *h, size_t at, uint64_t number)
{
	for (size_t k = 0; k < at; k++) {
		if (h->list[k].number != number)
			continue;
		for (size_t p = 0; p < h->list[at].npids; p++)
			add_pid(&h->list[k], h->list[at].pids[p]);
		return true;
	}
	return false;
}

static int settle(struct hang *h)
{
	h->nended = 0;
	for (size_t i = 0; i < h->n; i++) {
		struct hang_incident *a = &h->list[i];
		const struct hang_incident *old = earlier(h, a);

		a->number = old ? old->number : ++h->numbers;
		if (old && is_told(h, i, old->number)) {
			memmove(a, a + 1, (--h->n - i) * sizeof(*a));
			i--;
			continue;
		}
		a->hung = (old && old->hung) || !a->at_work;
		a->fresh = !old || (a->hung && !old->hung);
		if (old && old->since_ns < a->since_ns)
			a->since_ns = old->since_ns;
	}
	for (size_t i = 0; i < h->nbefore; i++) {
		struct hang_incident *e;
		bool found = false;

		for (size_t k = 0; k < h->n; k++)
			found |= h->list[k].number == h->before[i].number;
		if (found)
			continue;
		e = array_add(h->ended, h->nended);
		if (!e)
			return -ENOMEM;
		*e = h->before[i];
	}
	return 0;
}

static void forget_procs(struct hang *h)
{
	struct known *k;

	hash_map_each(&h->procs, k)
	{
		if (!k->seen)
			hash_map_remove(&h->procs, k);
		else
			k->seen = false;
	}
}

int hang_look(struct hang *h, const struct hang_look *look, const struct hang_incident **list)
{
	struct hang_incident *spare = h->before;
	int err = 0;

	h->before = h->list;
	h->nbefore = h->n;
	/* array_add() makes room at powers of two, for a list that it made from its first item on */
	free(spare);
	free(h->ended);
	h->ended = NULL;
	h->list = NULL;
	h->n = h->nended = 0;
	free(h->stands);
	h->stands = NULL;
	h->nstands = 0;
	h->look = look;
	for (size_t i = 0; i < look->nprocs && !err; i++)
		err = take_proc(h, &look->procs[i], look->at_ns);
	if (!err)
		err = take_seats(h);
	if (!err) {
		forget_seats(h);
		err = find_stands(h);
	}
	if (!err)
		err = join_stands(h);
	for (size_t i = 0; i < h->n && !err; i++)
		judge(h, i, &h->list[i]);
	if (!err)
		err = find_calls(h);
	if (!err)
		err = settle(h);
	forget_procs(h);
	h->look = NULL;
	*list = h->list;
	return err ? err : (int)h->n;
}

size_t hang_ended(const struct hang *h, const struct hang_incident **list)
{
	*list = h->ended;
	return h->nended;
}

const struct hang_incident *hang_of(const struct hang *h, uint32_t pid)
{
	for (size_t i = 0; i < h->n; i++)
		if (!h->list[i].at_work && has_pid(&h->list[i], pid))
			return &h->list[i];
	return NULL;
}

uint64_t hang_seat(const struct hang *h, uint32_t pid, int *rank)
{
	const struct seat *s, *best = NULL;

	/* of several communicators that of the smallest number, so that ranks of a job agree */
	hash_map_each(&h->seats, s) if (s->pid == pid && (!best || s->hash < best->hash)) best = s;
	if (!best)
		return 0;
	*rank = (int)best->rank;
	return best->hash;
}

size_t hang_ranks(const struct hang *h, uint64_t hash, uint32_t *pids, size_t most)
{
	const struct seat *s;
	size_t n = 0;

	hash_map_each(&h->seats, s) if (s->hash == hash && n < most) pids[n++] = s->pid;
	return n;
}
