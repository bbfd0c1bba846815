/* SPDX-License-Identifier: BSD-2-Clause */
/* stuck_look.c - see stuck_look.h. */
#include "stuck_look.h"
#include "../util/table/array.h"
#include "../util/now.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../source/bpf/snapshot.h"
#include "stuck_call.h"
#include "stuck_stack.h"
#include "../util/msg.h"

/* A call in the store. */
struct inflight {
	struct ct_call *call;
	struct ct_user_stack *stack; /* NULL: the source gives none */
};

struct inflights {
	struct inflight *list;
	size_t n;
	struct ct_user_stack *stack; /* of the call that comes next */
};

struct stuck_look {
	struct source *source;
	const uint64_t *probed; /* functions with probes; NULL: all */
	struct stuck_stacks *stacks;
	struct stuck_row *rows;
	size_t nrows;
	struct stuck_undecided *undecided;
	size_t nundecided;
};

/* What the look before found. */
struct earlier {
	struct stuck_row *rows;
	size_t nrows;
	struct stuck_undecided *undecided;
	size_t nundecided;
};

int stuck_look_open(struct stuck_look **out, struct source *source, struct objects *objects)
{
	struct stuck_look *l = calloc(1, sizeof(*l));

	*out = l;
	if (!l)
		return -ENOMEM;
	l->source = source;
	l->stacks = stuck_stacks_open(objects);
	return l->stacks ? 0 : -ENOMEM;
}

static void free_row(struct stuck_row *r)
{
	free(r->call);
	free(r->stack);
}

void stuck_look_anew(struct stuck_look *l, const uint64_t *probed)
{
	for (size_t i = 0; i < l->nrows; i++)
		free_row(&l->rows[i]);
	free(l->rows);
	free(l->undecided);
	l->rows = NULL;
	l->undecided = NULL;
	l->nrows = l->nundecided = 0;
	l->probed = probed;
}

void stuck_look_close(struct stuck_look *l)
{
	if (!l)
		return;
	stuck_look_anew(l, NULL);
	stuck_stacks_close(l->stacks);
	free(l);
}

/* ---- what the probes know ---- */

static void *copy_record(const struct ct_hdr *rec)
{
	void *copy = malloc(rec->size);

	return copy ? memcpy(copy, rec, rec->size) : NULL;
}

static int on_inflight(void *ctx, const struct ct_hdr *rec)
{
	struct inflights *in = ctx;

	if (rec->kind == CT_USER_STACK) {
		free(in->stack);
		in->stack = copy_record(rec);
		return in->stack ? 0 : -ENOMEM;
	}
	if (rec->kind != CT_CALL)
		return 0;
	if (!array_room(in->list, in->n))
		return -ENOMEM;
	in->list[in->n].call = copy_record(rec);
	if (!in->list[in->n].call)
		return -ENOMEM;
	if (in->stack && in->stack->h.tid != rec->tid) {
		free(in->stack);
		in->stack = NULL;
	}
	in->list[in->n++].stack = in->stack;
	in->stack = NULL;
	return 0;
}

static void free_inflights(struct inflights *in)
{
	for (size_t i = 0; i < in->n; i++) {
		free(in->list[i].call);
		free(in->list[i].stack);
	}
	free(in->list);
	free(in->stack);
	*in = (struct inflights){ 0 };
}

/* When did the call begin that the thread's stack shows? */
static enum snapshot_began began(const struct snapshot_thread *t, const struct stuck_call *c)
{
	enum snapshot_began b = snapshot_began(t, c->sp, c->ip != 0);

#if defined(__aarch64__)
	/* a return address is stored anywhere in the frame of the function that was called: calls further
	 * out than that may still be inside this one */
	if (!c->ip && c->by_scan && b == SNAPSHOT_SINCE)
		return SNAPSHOT_UNKNOWN;
#endif
	return b;
}

/* ---- rows ---- */

static bool is_before(const struct stuck_row *r)
{
	return r->call->h.flags & CT_F_BEFORE;
}

static struct stuck_row *row_of(struct stuck_row *rows, size_t n, uint32_t tid)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].call && !rows[i].gone && rows[i].call->h.tid == tid)
			return &rows[i];
	return NULL;
}

static void describe(struct stuck_row *r, const struct snapshot_thread *t)
{
	r->about = t->process->about;
	r->shown_pid = t->process->pid;
	r->shown_tid = t->shown_tid;
}

/* ---- undecided threads ---- */

static const struct stuck_undecided *undecided_of(const struct stuck_undecided *list, size_t n,
						  uint32_t tid)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].tid == tid)
			return &list[i];
	return NULL;
}

/* The thread may be inside a call from before the probes; or an earlier look saw it inside one, and it may
 * still be there. */
static int add_undecided(struct stuck_look *l, const struct snapshot_thread *t,
			 const struct stuck_row *row, const struct earlier *before, uint64_t now)
{
	const struct stuck_undecided *old =
		undecided_of(before->undecided, before->nundecided, t->tid);

	if (!array_room(l->undecided, l->nundecided))
		return -ENOMEM;
	l->undecided[l->nundecided++] = (struct stuck_undecided){
		.about = t->process->about,
		.shown_pid = t->process->pid,
		.shown_tid = t->shown_tid,
		.pid = t->process->about.h.pid,
		.tid = t->tid,
		.since_ns = row	  ? row->call->h.start_ns
			    : old ? old->since_ns
				  : now,
		.at_ns = now,
		.func = row ? row->call->func : CT_NO_FUNC,
		.leaving = !t->missed,
	};
	return 0;
}

/* A thread is not undecided if it was for all that time inside a call whose begin a probe saw: then that call
 * is reported, whether there is an older one around it or not. */
static void drop_decided(struct stuck_look *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->nundecided; i++) {
		const struct stuck_undecided *u = &l->undecided[i];
		const struct stuck_row *r = row_of(l->rows, l->nrows, u->tid);

		if (!r || is_before(r) || r->call->h.start_ns > u->since_ns)
			l->undecided[n++] = *u;
	}
	l->nundecided = n;
}

int stuck_look_undecided(const struct stuck_look *l, const struct stuck_undecided **list)
{
	*list = l->undecided;
	return (int)l->nundecided;
}

/* ---- what the stacks show ---- */

/* A call that began before. since_ns: it began then or earlier. */
static int add_before(struct stuck_look *l, const struct snapshot_thread *t,
		      const struct stuck_call *c, const struct ct_user_stack *stack,
		      const struct stuck_row *old, uint64_t since_ns, uint64_t now)
{
	struct stuck_row *r = array_add(l->rows, l->nrows);
	struct ct_call *call;

	if (!r)
		return -ENOMEM;
	call = r->call = calloc(1, sizeof(*call));
	if (!call)
		return -ENOMEM;
	call->h = (struct ct_hdr){
		.size = sizeof(*call),
		.kind = CT_CALL,
		.flags = CT_F_UNFINISHED | CT_F_PENDING | CT_F_BEFORE |
			 (c->per_thread ? CT_F_PER_THREAD : 0) | (c->by_scan ? CT_F_BY_SCAN : 0),
		.pid = t->process->about.h.pid,
		.tid = t->tid,
		.start_ns = since_ns,
		.end_ns = now,
	};
	call->func = c->func;
	describe(r, t);
	r->sp = c->sp;
	r->sp_exact = c->ip != 0;
	r->switches = t->sampled ? 0 : t->switches;
	r->shown = old && old->shown;
	if (!stack->h.size)
		return 0;
	r->stack = copy_record(&stack->h);
	if (!r->stack)
		return -ENOMEM;
	r->stack->h.pid = call->h.pid;
	r->stack->h.tid = call->h.tid;
	r->stack->h.start_ns = call->h.start_ns;
	r->stack->h.end_ns = now;
	return 0;
}

/* Keeps a row of the last look unchanged. */
static int keep_row(struct stuck_look *l, struct stuck_row *old, uint64_t now)
{
	struct stuck_row *r = array_add(l->rows, l->nrows);

	if (!r)
		return -ENOMEM;
	*r = *old;
	old->call = NULL;
	old->stack = NULL;
	r->unsure = false;
	r->call->h.end_ns = now;
	if (r->stack)
		r->stack->h.end_ns = now;
	return 0;
}

/* The thread's row of the last look, if that is about the same call. */
static struct stuck_row *same_call(struct stuck_row *old, const struct stuck_call *c)
{
	return old && is_before(old) && old->call->func == c->func && old->sp == c->sp ? old : NULL;
}

/* The call of one thread whose begin no probe saw. */
static int from_stack(struct stuck_look *l, const struct snapshot_thread *t,
		      const struct earlier *before, uint64_t now)
{
	const struct stuck_undecided *u =
		undecided_of(before->undecided, before->nundecided, t->tid);
	struct stuck_row *o = row_of(before->rows, before->nrows, t->tid), *same;
	struct ct_user_stack stack;
	enum snapshot_began since;
	struct stuck_call c;
	int found, err = 0;

	if (o && !is_before(o))
		o = NULL;
	/* it has ended, and none was around it */
	if (o && snapshot_began(t, o->sp, o->sp_exact) == SNAPSHOT_SINCE)
		return 0;
	if (o && !t->missed && !t->sampled && t->switches == o->switches)
		return keep_row(l, o, now);
	found = t->missed ? -EAGAIN : stuck_stacks_call(l->stacks, t, &c, &stack);
	since = found > 0 ? began(t, &c) : SNAPSHOT_BEFORE;
	/* a function without a probe may have been called again meanwhile */
	if (since == SNAPSHOT_UNKNOWN ||
	    (found > 0 && since == SNAPSHOT_BEFORE && (u || same_call(o, &c)) && l->probed &&
	     !plan_has(l->probed, c.func)))
		found = -EAGAIN;
	if (found == -EAGAIN && o) {
		err = keep_row(l, o, now);
		if (err)
			return err;
		o = &l->rows[l->nrows - 1];
		o->unsure = true;
	}
	if (found == -EAGAIN)
		return add_undecided(l, t, o, before, now);
	if (found <= 0 || since == SNAPSHOT_SINCE)
		return 0;
	same = same_call(o, &c);
	/* the call began before the probes, so also before the look that could not decide */
	return add_before(l, t, &c, &stack, same,
			  same ? same->call->h.start_ns
			  : u  ? u->since_ns
			       : now,
			  now);
}

static int from_stacks(struct stuck_look *l, const struct snapshot *snap,
		       const struct earlier *before)
{
	int err = 0;

	for (size_t i = 0; i < snap->nthreads && !err; i++)
		err = from_stack(l, &snap->threads[i], before, snap->at_ns);
	return err;
}

/* Of two calls that a thread is inside, the outer one; one of class internal only if there is no
 * other. */
static bool outweighs(const struct ct_call *a, const struct ct_call *b)
{
	bool a_internal = api_funcs[a->func].class == API_INTERNAL,
	     b_internal = api_funcs[b->func].class == API_INTERNAL;

	return a_internal != b_internal ? b_internal : a->h.start_ns < b->h.start_ns;
}

/* The calls whose begin a probe saw, of threads that are not inside an older one. */
static int from_store(struct stuck_look *l, const struct snapshot *snap, struct inflights *in,
		      struct stuck_row *old, size_t nold, uint64_t now)
{
	size_t from = l->nrows;

	for (size_t i = 0; i < in->n; i++) {
		struct inflight *f = &in->list[i];
		struct stuck_row *r = row_of(l->rows, l->nrows, f->call->h.tid), *o;

		if (r && (is_before(r) || !outweighs(f->call, r->call)))
			continue;
		if (r)
			free_row(r);
		else
			r = array_add(l->rows, l->nrows);
		if (!r)
			return -ENOMEM;
		*r = (struct stuck_row){ .call = f->call, .stack = f->stack };
		f->call = NULL;
		f->stack = NULL;
		r->call->h.end_ns = now;
		/* the flags of the source do not matter: here it is the thread's call */
		r->call->h.flags &= (uint16_t)~CT_F_HIDDEN;
		o = row_of(old, nold, r->call->h.tid);
		r->shown = o && o->shown && !is_before(o) &&
			   o->call->h.start_ns == r->call->h.start_ns &&
			   o->call->func == r->call->func;
	}
	for (size_t i = 0; i < snap->nthreads; i++) {
		struct stuck_row *r = row_of(l->rows + from, l->nrows - from, snap->threads[i].tid);

		if (r)
			describe(r, &snap->threads[i]);
	}
	return 0;
}

/* The rows that the last look had and this one does not have. */
static int add_gone(struct stuck_look *l, struct stuck_row *old, size_t nold, uint64_t now)
{
	size_t n = l->nrows;

	for (size_t i = 0; i < nold; i++) {
		const struct stuck_row *r = old[i].call ? row_of(l->rows, n, old[i].call->h.tid)
							: NULL;
		int err;

		if (!old[i].call || old[i].gone ||
		    (r && is_before(r) == is_before(&old[i]) &&
		     r->call->func == old[i].call->func &&
		     (is_before(r) ? r->sp == old[i].sp
				   : r->call->h.start_ns == old[i].call->h.start_ns)))
			continue;
		err = keep_row(l, &old[i], now);
		if (err)
			return err;
		l->rows[l->nrows - 1].gone = true;
	}
	return 0;
}

static void say(const struct snapshot *snap, const struct stuck_look *l)
{
	size_t missed = 0, before = 0;

	for (size_t i = 0; i < snap->nthreads; i++)
		missed += snap->threads[i].missed;
	for (size_t i = 0; i < l->nrows; i++)
		before += is_before(&l->rows[i]);
	msg_verb("%zu processes with CUDA, %zu threads with a sign of it (%zu could not be told), "
		 "%zu calls, %zu of them from before",
		 snap->nprocs, snap->nthreads, missed, l->nrows, before);
}

int stuck_look_now(struct stuck_look *l, struct stuck_row **rows)
{
	struct inflights in = { 0 };
	struct earlier old = { l->rows, l->nrows, l->undecided, l->nundecided };
	struct snapshot snap;
	int err;

	l->rows = NULL;
	l->nrows = 0;
	l->undecided = NULL;
	l->nundecided = 0;
	memset(&snap, 0, sizeof(snap));
	err = l->source->ops->threads(l->source, &snap);
	if (!err)
		err = l->source->ops->pending(l->source, 0, on_inflight, &in);
	if (!err)
		err = from_stacks(l, &snap, &old);
	if (!err)
		err = from_store(l, &snap, &in, old.rows, old.nrows, now_ns());
	if (!err)
		drop_decided(l);
	if (!err)
		say(&snap, l);
	if (!err)
		err = add_gone(l, old.rows, old.nrows, snap.at_ns);
	for (size_t i = 0; i < old.nrows; i++)
		free_row(&old.rows[i]);
	free(old.rows);
	free(old.undecided);
	free_inflights(&in);
	snapshot_free(&snap);
	*rows = l->rows;
	return err ? err : (int)l->nrows;
}

struct stuck_row *stuck_look_returned(struct stuck_look *l, const struct ct_call *c)
{
	for (size_t i = 0; i < l->nrows; i++) {
		struct stuck_row *r = &l->rows[i];

		if (!r->call || r->call->h.tid != c->h.tid || is_before(r) ||
		    r->call->func != c->func || r->call->h.start_ns != c->h.start_ns)
			continue;
		r->gone = true;
		return r;
	}
	return NULL;
}
