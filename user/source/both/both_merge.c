/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * both_merge.c - see both_merge.h. A call is inside another one of its thread if it began later and ended earlier. Probes say when a
 * call begins (CT_ENTER), so it is known of each call of the hooks whether one of the probes is around it. A call of the probes waits
 * until the hooks have handed out all that ended before a moment at which it was asked what is under way in them: so what is around
 * it is among the records that wait, or among what was under way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../api/api.h"
#include "../../util/table/array.h"
#include "../../util/table/hash_map.h"
#include "both_merge.h"

#define LATE_NS 1000000000ULL
#define THREADS_MAX 65536
#define CLOCK_NS 1000 /* by which two conversions of one time may differ */

struct queue {
	struct ct_hdr **recs;
	size_t from, n, room;
};

/* A call that has begun, and of which it is not known that it has ended. */
struct under_way {
	uint32_t pid, tid;
	uint64_t start_ns;
	uint16_t func;
};

struct ways {
	struct under_way *at;
	size_t n, room;
};

/* The number of the scope that is open in a thread, as its hooks count them. */
struct scope {
	uint32_t pid, tid;
	uint32_t serial;
};

struct both_merge {
	const struct capture_plan *plan;
	struct queue hooks, probes;
	struct ways of_probes, of_hooks;
	/* of_hooks was looked at between these two moments; 0: never */
	uint64_t asked_ns, answered_ns;
	/* stacks, whose call comes next */
	struct queue stacks[2];
	struct hash_map scopes;
	uint8_t flags[CT_MAX_FUNCS];
	uint64_t folded;
	uint64_t lost; /* before records that were not handed out: it is said with the next one */
};

static int specs_flags(int func, uint8_t *flags, const struct capture_plan *plan)
{
	struct ct_spec spec;
	int err = api_spec(func, API_ARCH_HERE, plan_has(plan->shown, func), &spec);

	*flags = err ? 0 : spec.flags;
	if (plan_has(plan->awaited, func))
		*flags |= CT_S_ALWAYS;
	return err;
}

bool both_merge_suits(const struct capture_plan *plan)
{
	uint8_t flags;

	for (int i = 0; i < api_nfuncs && i < CT_MAX_FUNCS; i++)
		if (plan_has(plan->capture, i) && !api_funcs[i].layer &&
		    (specs_flags(i, &flags, plan) || !(flags & (CT_S_SHOWN | CT_S_ALWAYS))))
			return false;
	return !plan->count && !plan->filter.failed_only && !plan->filter.succeeded_only &&
	       !plan->filter.min_duration_ns;
}

struct both_merge *both_merge_open(const struct capture_plan *plan)
{
	struct both_merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->plan = plan;
	hash_map_open_of(&m->scopes, struct scope, tid, THREADS_MAX);
	for (int i = 0; i < api_nfuncs && i < CT_MAX_FUNCS; i++)
		if (plan_has(plan->capture, i))
			specs_flags(i, &m->flags[i], plan);
	return m;
}

/* ---- queues ---- */

static struct ct_hdr *head(const struct queue *q)
{
	return q->from < q->n ? q->recs[q->from] : NULL;
}

static int push(struct queue *q, const struct ct_hdr *rec)
{
	struct ct_hdr *copy;

	if (q->from && q->from == q->n)
		q->from = q->n = 0;
	if (q->from > q->n / 2 && q->from > 1024) {
		q->n -= q->from;
		memmove(q->recs, q->recs + q->from, q->n * sizeof(*q->recs));
		q->from = 0;
	}
	if (!array_fit(q->recs, q->room, q->n + 1))
		return -ENOMEM;
	copy = malloc(rec->size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, rec, rec->size);
	q->recs[q->n++] = copy;
	return 0;
}

static void pop(struct queue *q)
{
	free(q->recs[q->from++]);
}

static void empty(struct queue *q)
{
	while (head(q))
		pop(q);
	free(q->recs);
}

void both_merge_close(struct both_merge *m)
{
	if (!m)
		return;
	empty(&m->hooks);
	empty(&m->probes);
	empty(&m->stacks[0]);
	empty(&m->stacks[1]);
	hash_map_close(&m->scopes);
	free(m->of_probes.at);
	free(m->of_hooks.at);
	free(m);
}

static bool is_call(const struct ct_hdr *rec)
{
	return rec->kind == CT_CALL || rec->kind == CT_ENTER;
}

int both_merge_put(struct both_merge *m, const struct ct_hdr *rec, bool probes)
{
	if (probes && (rec->kind == CT_PROCESS || rec->kind == CT_EXEC || rec->kind == CT_EXIT ||
		       rec->kind == CT_FORK)) {
		m->lost += rec->lost;
		return 0;
	}
	return push(probes ? &m->probes : &m->hooks, rec);
}

/* ---- what is around a call ---- */

static bool is_around(uint32_t pid, uint32_t tid, uint64_t start_ns, const struct ct_hdr *rec)
{
	return pid == rec->pid && tid == rec->tid && start_ns <= rec->start_ns;
}

static int add_way(struct ways *w, const struct ct_call *c)
{
	if (!array_fit(w->at, w->room, w->n + 1))
		return -ENOMEM;
	w->at[w->n++] = (struct under_way){ c->h.pid, c->h.tid, c->h.start_ns, c->func };
	return 0;
}

/* Of the record's thread, those that began then or later. */
static void remove_ways(struct ways *w, const struct ct_hdr *rec, uint64_t from_ns)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->at[i].pid == rec->pid && w->at[i].tid == rec->tid &&
		    w->at[i].start_ns >= from_ns)
			w->at[i--] = w->at[--w->n];
}

/* What is around a call. `same`: that is the same call, seen by a hook in a slot and by a probe. */
struct around {
	unsigned int calls;
	bool same;
};

static void count_way(const struct ways *w, const struct ct_call *c, struct around *out)
{
	for (size_t i = 0; i < w->n; i++)
		if (is_around(w->at[i].pid, w->at[i].tid, w->at[i].start_ns, &c->h)) {
			out->calls++;
			out->same |= w->at[i].func == c->func;
		}
}

/* A call that was under way has ended since then, and its record waits here. The two times come from two conversions. */
static bool is_recorded(const struct both_merge *m, const struct under_way *w)
{
	for (size_t i = m->hooks.from; i < m->hooks.n; i++) {
		const struct ct_hdr *h = m->hooks.recs[i];

		if (h->kind == CT_CALL && h->pid == w->pid && h->tid == w->tid &&
		    ((const struct ct_call *)h)->func == w->func &&
		    h->start_ns + CLOCK_NS >= w->start_ns && w->start_ns + CLOCK_NS >= h->start_ns)
			return true;
	}
	return false;
}

/* Calls of the hooks around one of the probes: those that wait here end later than it. */
static struct around around_probed(struct both_merge *m, const struct ct_call *c)
{
	struct around a = { 0 };

	for (size_t i = m->hooks.from; i < m->hooks.n; i++) {
		const struct ct_hdr *h = m->hooks.recs[i];

		if (h->kind == CT_CALL && h->end_ns >= c->h.end_ns &&
		    is_around(h->pid, h->tid, h->start_ns, &c->h)) {
			a.calls++;
			a.same |= ((const struct ct_call *)h)->func == c->func;
		}
	}
	for (size_t i = m->of_hooks.n; i > 0; i--)
		if (is_recorded(m, &m->of_hooks.at[i - 1]))
			m->of_hooks.at[i - 1] = m->of_hooks.at[--m->of_hooks.n];
	count_way(&m->of_hooks, c, &a);
	return a;
}

static int note_under_way(void *ctx, const struct ct_hdr *rec)
{
	struct both_merge *m = ctx;

	return rec->kind == CT_CALL ? add_way(&m->of_hooks, (const struct ct_call *)rec) : 0;
}

/* Is it known what is around this call of the probes? If not, it is asked now, for a later flush. 1, 0 or -errno. */
static int is_decided(struct both_merge *m, const struct ct_hdr *rec,
		      const struct both_merge_until *u)
{
	int err;

	if (u->last)
		return 1;
	/* what ended while it was looked at is in no list, but among the records */
	if (m->asked_ns && rec->end_ns <= m->asked_ns)
		return u->hooks_ns >= m->answered_ns || u->now_ns > rec->end_ns + LATE_NS;
	m->of_hooks.n = 0;
	err = u->under_way(u->ctx, note_under_way, m);
	m->asked_ns = u->now_ns;
	m->answered_ns = u->clock ? u->clock() : u->now_ns;
	return err;
}

/* ---- scopes: only hooks know them ---- */

/* A scope was opened or closed: its number, and the one around it, are the record's last word. */
static void note_scope(struct both_merge *m, const struct ct_hdr *rec)
{
	uint32_t key[2] = { rec->pid, rec->tid }, word[2];
	struct scope *s;
	bool made;

	memcpy(word, (const char *)rec + rec->size - sizeof(word), sizeof(word));
	s = hash_map_get(&m->scopes, key, &made);
	if (s && rec->kind == CT_LAYER_END)
		s->serial = word[1];
	else if (s && word[0])
		s->serial = word[0];
	if (s && !s->serial)
		hash_map_remove(&m->scopes, s);
}

static void forget_stacks(struct both_merge *m, struct queue *q, uint32_t pid)
{
	size_t kept = q->from;

	for (size_t i = q->from; i < q->n; i++) {
		struct ct_hdr *s = q->recs[i];

		if (s->pid != pid) {
			q->recs[kept++] = s;
			continue;
		}
		m->lost += s->lost;
		free(s);
	}
	q->n = kept;
}

/* The process has ended, or is another program: what its threads were inside of is no more. */
static void forget_process(struct both_merge *m, uint32_t pid)
{
	struct scope *s;

	for (size_t i = 0; i < m->of_probes.n; i++)
		if (m->of_probes.at[i].pid == pid)
			m->of_probes.at[i--] = m->of_probes.at[--m->of_probes.n];
	hash_map_each(&m->scopes, s)
	{
		if (s->pid == pid)
			hash_map_remove(&m->scopes, s);
	}
	forget_stacks(m, &m->stacks[0], pid);
	forget_stacks(m, &m->stacks[1], pid);
}

void both_merge_pass(struct both_merge *m, const struct ct_hdr *rec)
{
	if (rec->kind == CT_LAYER_BEGIN || rec->kind == CT_LAYER_END)
		note_scope(m, rec);
	else if (rec->kind == CT_EXEC || rec->kind == CT_EXIT)
		forget_process(m, rec->pid);
}

/* A call of the probes gets the number of the scope around it. */
static void put_scope(const struct both_merge *m, struct ct_hdr *rec)
{
	uint32_t key[2] = { rec->pid, rec->tid }, at = rec->flags & CT_F_STACK ? 16 : 8;
	const struct scope *s = hash_map_find(&m->scopes, key);
	uint64_t word = s ? s->serial : 0;

	if (rec->flags & CT_F_SCOPE && rec->size >= sizeof(struct ct_call) + at)
		memcpy((char *)rec + rec->size - at, &word, sizeof(word));
}

/* ---- out ---- */

struct out {
	struct both_merge *m;
	const struct both_merge_until *u;
	emit_fn emit;
	void *ctx;
};

static int give(const struct out *o, struct ct_hdr *rec)
{
	uint64_t room = UINT16_MAX - rec->lost, more = o->m->lost < room ? o->m->lost : room;

	rec->lost = (uint16_t)(rec->lost + more);
	o->m->lost -= more;
	return o->emit(o->ctx, rec);
}

int both_merge_lost(const struct ct_hdr *rec, uint64_t count, emit_fn emit, void *ctx)
{
	struct ct_lost lost = {
		.h = { .size = sizeof(lost),
		       .kind = CT_LOST,
		       .start_ns = rec->start_ns,
		       .end_ns = rec->end_ns },
		.cause = CT_LOSS_RING,
		.cpu = ~0u,
		.count = count,
	};

	return count ? emit(ctx, &lost.h) : 0;
}

/* At the end there may be no next record. */
static int give_lost(const struct out *o)
{
	const struct ct_hdr at = { .start_ns = o->u->now_ns, .end_ns = o->u->now_ns };
	uint64_t lost = o->u->last ? o->m->lost : 0;

	o->m->lost -= lost;
	return both_merge_lost(&at, lost, o->emit, o->ctx);
}

static bool is_stack(const struct ct_hdr *rec)
{
	return rec->kind == CT_USER_STACK || rec->kind == CT_PY_STACK;
}

/* The stacks that came before the call of their thread: with it, or nowhere. */
static int give_stacks(const struct out *o, const struct ct_hdr *call, bool probes, bool wanted)
{
	struct queue *q = &o->m->stacks[probes];
	size_t kept = q->from;
	int err = 0;

	for (size_t i = q->from; i < q->n; i++) {
		struct ct_hdr *s = q->recs[i];

		if (s->pid != call->pid || s->tid != call->tid) {
			q->recs[kept++] = s;
			continue;
		}
		if (wanted && !err)
			err = give(o, s);
		else
			o->m->lost += s->lost;
		free(s);
	}
	q->n = kept;
	return err;
}

/* A call that has so many others around it. */
static int give_call(const struct out *o, struct ct_call *c, bool probes, struct around a)
{
	struct both_merge *m = o->m;
	uint8_t flags = c->func < CT_MAX_FUNCS ? m->flags[c->func] : 0;
	bool kept = !a.calls || m->plan->nested || flags & CT_S_ALWAYS ||
		    (flags & CT_S_NESTED && o->u->nested);
	int err;

	/* a mark for us alone; or the hook's own row is there. The stack of a call whose return is not waited for comes
	 * before its mark, and belongs to the record behind that. */
	if ((probes && c->h.kind == CT_ENTER && !m->plan->enter) || a.same) {
		m->lost += c->h.lost;
		return c->h.kind == CT_ENTER ? 0 : give_stacks(o, &c->h, probes, false);
	}
	if (a.calls && !m->plan->nested) {
		c->h.flags |= CT_F_HIDDEN;
		m->folded += !kept && c->h.kind == CT_CALL;
	}
	if (!kept)
		m->lost += c->h.lost;
	c->depth = (uint8_t)(c->depth + a.calls);
	err = give_stacks(o, &c->h, probes, kept);
	return err || !kept ? err : give(o, &c->h);
}

/* 1: it waits. */
static int give_probed(const struct out *o)
{
	struct both_merge *m = o->m;
	struct ct_hdr *rec = head(&m->probes);
	struct ct_call *c = (struct ct_call *)rec;
	int err;

	/* what was lost may have been the end of a call */
	if (rec->lost)
		m->of_probes.n = 0;
	if (is_stack(rec))
		return push(&m->stacks[1], rec);
	if (!is_call(rec))
		return give(o, rec);
	/* a mark is no row, unless entries have some */
	err = rec->kind == CT_CALL || m->plan->enter ? is_decided(m, rec, o->u) : 1;
	if (err <= 0)
		return err < 0 ? err : 1;
	put_scope(m, rec);
	/* of a call that an exception or longjmp(3) has left, no end is recorded: it is not around one that the kernel
	 * side knows to be inside of none */
	remove_ways(&m->of_probes, rec, rec->kind == CT_ENTER && !c->depth ? 0 : rec->start_ns);
	if (rec->kind == CT_ENTER)
		err = add_way(&m->of_probes, c);
	return err < 0 ? err : give_call(o, c, true, around_probed(m, c));
}

static int give_hooked(const struct out *o)
{
	struct both_merge *m = o->m;
	struct ct_hdr *rec = head(&m->hooks);
	struct around a = { 0 };

	if (is_stack(rec))
		return push(&m->stacks[0], rec);
	both_merge_pass(m, rec);
	if (!is_call(rec))
		return give(o, rec);
	count_way(&m->of_probes, (const struct ct_call *)rec, &a);
	a.same = false;
	return give_call(o, (struct ct_call *)rec, false, a);
}

int both_merge_flush(struct both_merge *m, const struct both_merge_until *u, emit_fn emit,
		     void *ctx)
{
	const struct out o = { m, u, emit, ctx };
	uint64_t until = u->hooks_ns < u->probes_ns ? u->hooks_ns : u->probes_ns;
	int err = 0;

	if (until + LATE_NS < u->now_ns)
		until = u->now_ns - LATE_NS;
	while (!err) {
		const struct ct_hdr *h = head(&m->hooks), *p = head(&m->probes);
		bool probed = p && (!h || p->end_ns <= h->end_ns);
		const struct ct_hdr *first = probed ? p : h;

		if (!first || (!u->last && first->end_ns > until))
			return give_lost(&o);
		err = probed ? give_probed(&o) : give_hooked(&o);
		if (err == 1)
			return 0;
		pop(probed ? &m->probes : &m->hooks);
		if (!err && u->paused && *u->paused)
			err = 1;
	}
	return err;
}

uint64_t both_merge_complete(const struct both_merge *m, uint64_t ns)
{
	const struct ct_hdr *h = head(&m->hooks), *p = head(&m->probes);

	if (h && h->end_ns < ns)
		ns = h->end_ns;
	return p && p->end_ns < ns ? p->end_ns : ns;
}

uint64_t both_merge_folded(const struct both_merge *m)
{
	return m->folded;
}
