/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * join.c - see join.h.
 *
 * Records come in any order: the record of a copy may come before the copying call has returned, a
 * cause some tenths of a second after its call. Work whose cause and call are known is handed on at
 * once. The rest waits in one of a few queues, each with a longer delay than the one before, so
 * that looking again costs little however much work waits. All memory is bounded. Knows the wire;
 * no source, no sink.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../holes/holes.h"
#include "join.h"
#include "join_calls.h"
#include "join_causes.h"
#include "join_procs.h"
#include "contexts.h"
#include "../../util/msg.h"

#define HELD_MAX ((size_t)64 << 20) /* bytes of work held */
#define STEPS 6

/* How long work waits in each queue; the sum is JOIN_HOLD_NS. */
static const uint64_t step_ns[STEPS] = { 20000000,  40000000,  80000000,
					 160000000, 320000000, 380000000 };

struct held {
	struct held *next;
	uint64_t due_ns; /* when to look again; 0: not known yet */
	uint64_t room[]; /* the record */
};

struct queue {
	struct held *head, *tail;
};

/* What is known about the cause of device work. */
struct found {
	struct cause cause;
	uint32_t number, stack;
	uint32_t scope; /* around the call */
	bool any;	/* there is a cause */
	bool called;	/* there is the record of its call */
	bool final;	/* no better answer will come */
	bool inferred;
	bool before;	   /* the cause belongs to the program that the process ran before */
	uint64_t until_ns; /* waiting is useless from then on; 0: not known */
};

struct join {
	struct join_opts opts;
	event_fn next;
	void *ctx;
	struct join_calls *calls;
	struct join_causes *causes;
	struct contexts *contexts;
	struct join_procs *procs;
	struct queue queues[STEPS];
	size_t held_bytes;
	uint64_t now_ns; /* of the last flush; 0: there was none */
	/* calls that began before the first moment, or from the second on, were not seen; 0,
	 * UINT64_MAX: there is no such moment */
	uint64_t began_ns, stopped_ns;
	const uint64_t *captured; /* rows whose calls are seen; NULL: not known */
	struct join_counts counts;
	uint64_t causing[CT_MAX_FUNCS / 64]; /* rows whose calls are remembered */
	uint8_t expects[CT_MAX_FUNCS];	     /* by row: JOIN_EXPECTS_* */
	unsigned int ntails;		     /* number of processes whose tail is to be counted */
	union {
		struct ct_work work;
		uint64_t room[UINT16_MAX / 8 + 1];
	} copy; /* copy of the record of the work that is handed on */
};

/* Functions of these classes are known to cause device work. Another function is known to when a
 * CT_CAUSE names it. */
static bool class_causes(uint8_t class)
{
	switch (class) {
	case API_MEMORY:
	case API_COPY:
	case API_SET:
	case API_LAUNCH:
	case API_GRAPH:
	case API_MODULE: return true;
	default: return false;
	}
}

/* The kinds of device records that a call of the row always has. */
static uint8_t row_expects(const struct api_func *f, int row)
{
	if (f->flags & API_GRAPH_LAUNCH)
		return JOIN_EXPECTS_KERNEL; /* whatever its nodes are */
	if (f->flags & API_NO_RECORD)
		return 0;
	switch (f->class) {
	case API_LAUNCH: /* old launches, made of several calls, have no stream: see expects() */
		return api_has_kernel(row) ? JOIN_EXPECTS_KERNEL : 0;
	case API_COPY: return JOIN_EXPECTS_COPY;
	case API_SET: return JOIN_EXPECTS_SET;
	default: return 0;
	}
}

struct join *join_open(const struct join_opts *opts, event_fn next, void *ctx)
{
	struct join *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->opts = *opts;
	j->stopped_ns = UINT64_MAX;
	j->next = next;
	j->ctx = ctx;
	j->procs = join_procs_open();
	j->calls = join_calls_open();
	j->causes = join_causes_open();
	j->contexts = contexts_open();
	for (int i = 0; i < api_nfuncs && i < CT_MAX_FUNCS; i++) {
		j->expects[i] = row_expects(&api_funcs[i], i);
		if (class_causes(api_funcs[i].class))
			j->causing[i / 64] |= 1ULL << (i % 64);
	}
	if (j->procs && j->calls && j->causes && j->contexts)
		return j;
	join_close(j);
	return NULL;
}

static const struct ct_work *work_of(const struct held *h)
{
	return (const void *)h->room;
}

static struct held *queue_pop(struct queue *q)
{
	struct held *h = q->head;

	q->head = h->next;
	if (!q->head)
		q->tail = NULL;
	return h;
}

static void queue_push(struct queue *q, struct held *h)
{
	/* the first of a queue is the next one to be looked at again */
	INVARIANT(!q->tail || q->tail->due_ns <= h->due_ns);
	h->next = NULL;
	*(q->tail ? &q->tail->next : &q->head) = h;
	q->tail = h;
}

void join_close(struct join *j)
{
	if (!j)
		return;
	for (int i = 0; i < STEPS; i++)
		while (j->queues[i].head)
			free(queue_pop(&j->queues[i]));
	join_procs_close(j->procs);
	join_calls_close(j->calls);
	join_causes_close(j->causes);
	contexts_close(j->contexts);
	free(j);
}

void join_no_calls(struct join *j)
{
	j->opts.no_calls = true;
}

void join_places(struct join *j)
{
	j->opts.places = true;
}

void join_whole(struct join *j)
{
	j->opts.whole = true;
}

void join_scoped(struct join *j)
{
	j->opts.scoped = true;
}

void join_stored(struct join *j)
{
	j->opts.stored = true;
}

void join_kernels(struct join *j)
{
	j->opts.kernels = true;
}

void join_began(struct join *j, uint64_t began_ns, const uint64_t *captured)
{
	j->began_ns = began_ns;
	j->captured = captured;
}

void join_stopped(struct join *j, uint64_t stopped_ns)
{
	if (stopped_ns)
		j->stopped_ns = stopped_ns;
}

struct awaited {
	const struct join *j;
	uint64_t n;
};

/* Of one process: none from which no record will come, or whose records are known to be missing. */
static int add_awaited(void *ctx, const struct join_proc *p)
{
	struct awaited *a = ctx;
	uint64_t from = a->j->stopped_ns > JOIN_HOLD_NS ? a->j->stopped_ns - JOIN_HOLD_NS : 0,
		 to = a->j->stopped_ns;

	if (!p->heard || p->left)
		return 0;
	if (p->taken_ns && p->taken_until_ns == CT_HOLE_OPEN)
		to = p->taken_ns;
	else if (p->taken_until_ns > from)
		from = p->taken_until_ns;
	if (from < to)
		a->n += join_calls_awaited(a->j->calls, p->id, from, to);
	return 0;
}

uint64_t join_awaited(const struct join *j)
{
	struct awaited a = { j, 0 };

	if (j->opts.kernels && !j->opts.stored && !j->opts.no_calls && j->stopped_ns != UINT64_MAX)
		join_procs_each(j->procs, add_awaited, &a);
	return a.n;
}

void join_counts(const struct join *j, struct join_counts *counts)
{
	*counts = j->counts;
	counts->unheard = join_procs_unheard(j->procs, &counts->one_unheard);
}

size_t join_bytes(const struct join *j)
{
	return sizeof(*j) + join_procs_bytes(j->procs) + join_calls_bytes(j->calls) +
	       join_causes_bytes(j->causes) + contexts_bytes(j->contexts) + j->held_bytes;
}

/* ---- looking for the cause ---- */

/* The end of a call that is not shown is not stored, so live tracing does not use it here
 * either. */
static void found_call(struct found *f, uint32_t tid, const struct join_call *c)
{
	f->any = f->called = true;
	f->cause = (struct cause){ c->start_ns, c->number && !c->open_end ? c->end_ns : 0, tid,
				   c->func };
	f->number = c->number;
	f->stack = c->stack;
	f->scope = c->scope;
}

static void look_inferred(struct join *j, const struct join_proc *p, const struct ct_work *w,
			  struct found *f)
{
	const struct join_launch *l = join_procs_launched(p, w);

	f->until_ns = w->h.end_ns + JOIN_CALL_NS;
	if (!l)
		return;
	found_call(f, l->tid, &l->call);
	f->inferred = true;
	join_calls_worked(j->calls, p->id, l->tid, l->call.start_ns, l->call.func);
}

/* The kind of device record that the call of this work has. */
static uint8_t made_by(const struct ct_work *w)
{
	if (w->graph || w->graph_node || w->h.kind == CT_GRAPH || w->h.kind == CT_KERNEL)
		return JOIN_EXPECTS_KERNEL;
	return w->h.kind == CT_COPY  ? JOIN_EXPECTS_COPY
	       : w->h.kind == CT_SET ? JOIN_EXPECTS_SET
				     : 0;
}

/* True if the call began and ended inside the call that CUPTI saw: so it is another one. */
static bool is_part(const struct join_call *c, const struct join_cause *cause)
{
	return !c->open_end && c->start_ns > cause->start_ns && c->end_ns < cause->end_ns;
}

/* The recorded call of a cause. *whole: no better answer will come. */
static const struct join_call *call_of(struct join *j, uint32_t process,
				       const struct join_cause *cause, const struct ct_work *w,
				       bool *whole)
{
	const bool busy = kind_is(w->h.kind, KIND_BUSY);
	const struct join_span span = { cause->start_ns, cause->end_ns, made_by(w) };
	const struct join_call *call, *part;
	struct join_moment m;
	bool all;

	m.at_ns = cause->start_ns + (cause->end_ns - cause->start_ns) / 2;
	/* a call that had not returned when the window ended has that as its end */
	if (m.at_ns >= j->stopped_ns && cause->start_ns < j->stopped_ns)
		m.at_ns = cause->start_ns;
	m.seen = m.at_ns < j->stopped_ns;
	call = join_calls_at(j->calls, process, cause->tid, &m, busy, whole);
	if ((call && !is_part(call, cause)) || !span.kinds)
		return call;
	/* CUPTI saw a call of a function that has no probe, as in a library that is linked with the
	 * runtime: the calls that it made have records, and one of them is the work's */
	part = join_calls_inside(j->calls, process, cause->tid, &span, busy, &all);
	*whole = part ? !part->depth : *whole && all;
	return part ? part : call;
}

static void look_correlated(struct join *j, uint32_t process, const struct ct_work *w,
			    struct found *f)
{
	const struct join_cause *cause = join_causes_find(j->causes, process, w->correlation);
	const struct join_call *call;
	bool whole;

	if (!cause)
		return;
	f->until_ns = cause->end_ns + JOIN_CALL_NS;
	call = call_of(j, process, cause, w, &whole);
	if (call) {
		found_call(f, cause->tid, call);
	} else {
		f->any = true;
		f->cause = (struct cause){ cause->start_ns, 0, cause->tid, cause->func };
	}
	f->final = j->opts.no_calls || whole;
}

/* The call that made a graph's node: the one of its thread at its time. */
static void look_timed(struct join *j, uint32_t process, const struct ct_work *w, struct found *f)
{
	struct join_moment m = { .at_ns = w->h.start_ns, .seen = w->h.start_ns < j->stopped_ns };
	const struct join_call *call;
	bool whole = false;

	f->until_ns = w->h.start_ns + JOIN_CALL_NS;
	call = join_calls_at(j->calls, process, w->h.tid, &m, false, &whole);
	if (call)
		found_call(f, w->h.tid, call);
	f->final = j->opts.no_calls || whole;
}

/* True if the record says that its correlation id cannot be trusted, or if it is a graph's work
 * without one. */
static bool is_inferred(const struct ct_work *w)
{
	return w->h.flags & CT_F_INFERRED ||
	       (!w->correlation && (w->graph || w->h.kind == CT_GRAPH));
}

static void look(struct join *j, const struct ct_work *w, struct found *f)
{
	const struct join_proc *p = join_procs_get(j->procs, w->h.pid);
	const struct join_call *call;

	memset(f, 0, sizeof(*f));
	f->scope = CT_SCOPE_UNKNOWN;
	if (!p) {
		f->final = true;
	} else if (w->call_ns) { /* stored */
		call = join_calls_begun(j->calls, p->id, w->h.tid, w->call_ns, w->func);
		f->any = f->final = true;
		f->cause = (struct cause){ w->call_ns, 0, w->h.tid, w->func };
		if (call)
			found_call(f, w->h.tid, call);
		f->stack = w->stack;
		f->inferred = w->h.flags & CT_F_INFERRED;
	} else if (w->h.kind == CT_NODE) {
		/* a copy has the call of its origin */
		if (w->graph_node && !((const struct ct_node *)w)->origin)
			look_timed(j, join_procs_id(p, w->h.start_ns), w, f);
		else
			f->final = true;
	} else if (is_inferred(w)) {
		look_inferred(j, p, w, f);
	} else if (w->correlation) {
		f->before = join_procs_id(p, w->h.start_ns) != p->id;
		look_correlated(j, join_procs_id(p, w->h.start_ns), w, f);
	} else {
		f->final = true;
	}
	/* the record of a node comes before all work that a replay of its graph does */
	if (p && p->nodes && w->graph_node && w->h.kind != CT_NODE)
		f->final = false;
	f->final |= j->opts.stored;
}

/* ---- the window ---- */

/* One call of each thread may have been under way when the window began: it was entered before that, and CUPTI
 * saw it begin later: a moment later, or when the thread had the processor again. So it is the first one that CUPTI
 * saw of the thread since then, and it ended before the first one that has a record. */
#define ENTRY_NS 1000000000ULL

static bool was_under_way(struct join *j, const struct ct_work *w, const struct cause *c)
{
	const struct join_proc *p = join_procs_get(j->procs, w->h.pid);
	uint32_t id = p ? join_procs_id(p, w->h.start_ns) : 0;

	return p && j->began_ns && c->start_ns - j->began_ns < ENTRY_NS && j->captured &&
	       c->func < CT_MAX_FUNCS && j->captured[c->func / 64] >> (c->func % 64) & 1 &&
	       join_calls_first_caused(j->calls, id, c->tid) == c->start_ns &&
	       join_calls_first(j->calls, id, c->tid) > c->end_ns;
}

/* Says whether the call that asked for this work was not seen because the window had not begun yet, or
 * had ended. */
static bool is_outside(struct join *j, const struct ct_work *w, const struct found *f)
{
	if (j->opts.stored || f->called || w->h.kind == CT_NODE)
		return false;
	/* work was asked for before it began. If an agent leaves during a call, CUPTI may report only the
	 * work of that call */
	if (!f->any)
		return w->h.start_ns && (w->h.start_ns < j->began_ns ||
					 (!w->correlation && w->h.start_ns >= j->stopped_ns));
	return f->cause.start_ns < j->began_ns || f->cause.start_ns >= j->stopped_ns ||
	       (!j->opts.no_calls && was_under_way(j, w, &f->cause));
}

/* ---- handing on ---- */

/* Notes work without a call, of a process whose calls without work are to be counted. */
static void lone(struct join *j, const struct ct_work *w)
{
	struct join_proc *p = join_procs_get(j->procs, w->h.pid);

	if (p && p->r.held)
		p->tail.lone++;
}

static const char *debug_word(const struct ct_work *w)
{
	const char *word = kind_json(w->h.kind);

	return word ? word : "node";
}

/* Kernels are compared with the launches of the window, without those of the time in which there may be no
 * records. */
static void count_kernel(struct join *j, const struct ct_work *w, const struct found *f)
{
	struct join_proc *p =
		w->h.kind == CT_KERNEL && !w->graph ? join_procs_get(j->procs, w->h.pid) : NULL;

	if (p && !(f->any && join_procs_taken(p, f->cause.start_ns)))
		p->kernels++;
}

static int hand_on(struct join *j, const struct ct_work *w, const struct found *f)
{
	struct ct_work *copy = &j->copy.work;
	struct event ev = { .rec = &copy->h, .context = w->context, .stream = w->stream };

	if (is_outside(j, w, f))
		return 0;
	count_kernel(j, w, f);
	memcpy(copy, w, w->h.size);
	/* for a wait CUPTI reports only the context */
	if (w->device == CT_UNKNOWN)
		copy->device = contexts_device_of(j->contexts, w->h.pid, w->context);
	ev.device = copy->device;
	if (f->any) {
		copy->h.tid = f->cause.tid;
		copy->call_ns = f->cause.start_ns;
		copy->func = f->cause.func;
		copy->stack = f->stack;
		ev.cause = &f->cause;
		ev.number = f->number;
	}
	if (!j->opts.stored)
		copy->scope = j->opts.scoped ? f->scope : CT_SCOPE_NONE;
	copy->h.flags =
		(uint16_t)((copy->h.flags & ~CT_F_INFERRED) | (f->inferred ? CT_F_INFERRED : 0));
	if (kind_is(w->h.kind, KIND_BUSY)) {
		j->counts.matched += f->any;
		j->counts.unmatched += !f->any;
		j->counts.inferred += f->inferred;
		j->counts.unscoped += copy->scope == CT_SCOPE_UNKNOWN;
		if (j->ntails && !f->any)
			lone(j, w);
	}
	if (f->any)
		msg_debug(MSG_JOIN,
			  "process %u: %s %u is of the call of thread %u that began at %llu%s%s",
			  w->h.pid, debug_word(w), w->correlation, f->cause.tid,
			  (unsigned long long)f->cause.start_ns,
			  f->inferred ? ", as its stream and time suggest" : "",
			  f->called ? "" : ", of which CUPTI alone told");
	else
		msg_debug(MSG_JOIN, "process %u: %s %u goes on without a call", w->h.pid,
			  debug_word(w), w->correlation);
	/* a kernel runs on the current device of its thread, but a copy may run on any device */
	if (w->h.kind == CT_KERNEL && j->opts.places && f->any && !f->inferred && !f->before) {
		int err =
			contexts_worked(j->contexts, w->h.pid, f->cause.tid, w->device, w->context);

		if (err)
			return err;
	}
	return j->next(j->ctx, &ev);
}

static int let_go(struct join *j, struct held *h)
{
	const struct ct_work *w = work_of(h);
	struct join_proc *p;
	struct found f;
	int err;

	look(j, w, &f);
	p = w->h.kind == CT_NODE ? join_procs_get(j->procs, w->h.pid) : NULL;
	if (p && p->nodes)
		p->nodes--;
	INVARIANT(j->held_bytes >= sizeof(*h) + w->h.size);
	j->held_bytes -= sizeof(*h) + w->h.size;
	err = hand_on(j, w, &f);
	free(h);
	return err;
}

/* Makes room for new work: the work that has waited longest is handed on as it is. */
static int make_room(struct join *j)
{
	for (int i = STEPS - 1; i >= 0; i--)
		if (j->queues[i].head)
			return let_go(j, queue_pop(&j->queues[i]));
	INVARIANT(!j->held_bytes);
	return 0;
}

static int hold(struct join *j, const struct ct_work *w)
{
	struct held *h = malloc(sizeof(*h) + w->h.size);
	struct join_proc *p;
	int err = 0;

	if (!h)
		return -ENOMEM;
	h->due_ns = j->now_ns ? j->now_ns + step_ns[0] : 0;
	memcpy(h->room, w, w->h.size);
	queue_push(&j->queues[0], h);
	p = w->h.kind == CT_NODE ? join_procs_get(j->procs, w->h.pid) : NULL;
	if (p)
		p->nodes++;
	j->held_bytes += sizeof(*h) + w->h.size;
	while (j->held_bytes > HELD_MAX && !err)
		err = make_room(j);
	return err;
}

/* Says whether work is held until the record of its call has come. */
static bool waits(const struct ct_work *w)
{
	return kind_is(w->h.kind, KIND_BUSY) || w->h.kind == CT_NODE;
}

static int work(struct join *j, const struct ct_work *w)
{
	struct join_proc *p = join_procs_get(j->procs, w->h.pid);
	struct found f;

	if (p)
		p->heard = true;
	/* of the time before calls were seen there may be a lot, and it is not held */
	if (w->h.end_ns && w->h.end_ns < j->began_ns && w->h.kind != CT_NODE)
		return 0;
	look(j, w, &f);
	return f.final || !waits(w) ? hand_on(j, w, &f) : hold(j, w);
}

/* ---- calls ---- */

static bool is_numbered(const struct join *j, const struct ct_hdr *h)
{
	if (j->opts.stored)
		return !(h->flags & CT_F_HIDDEN);
	return !j->opts.shown || j->opts.shown(j->opts.ctx, h);
}

static uint32_t stack_of(const struct ct_call *c)
{
	uint64_t id;

	if (!(c->h.flags & CT_F_STACK) || c->h.size < sizeof(*c) + sizeof(id))
		return 0;
	memcpy(&id, (const char *)c + c->h.size - sizeof(id), sizeof(id));
	return (uint32_t)id;
}

/* The kinds of device records that this call will have; 0: perhaps none. */
static uint8_t expects(const struct join *j, const struct join_proc *p, const struct ct_call *c)
{
	uint8_t kinds = c->func < CT_MAX_FUNCS ? j->expects[c->func] : 0;
	uint64_t stream;

	if (!kinds || c->depth || j->opts.stored || c->h.flags & CT_F_UNFINISHED || api_failed(c) ||
	    join_procs_captures(p, c->h.tid) || !api_size(c, API_ARCH_HERE))
		return 0;
	return kinds != JOIN_EXPECTS_KERNEL || api_stream(c, API_ARCH_HERE, &stream) ? kinds : 0;
}

/* Says whether the call will have the record of exactly one kernel. */
static bool launches(const struct ct_call *c, uint8_t expects)
{
	return expects == JOIN_EXPECTS_KERNEL && !(api_funcs[c->func].flags & API_GRAPH_LAUNCH);
}

static int call(struct join *j, const struct ct_call *c)
{
	struct event ev = { .rec = &c->h };
	struct join_proc *p = join_procs_get(j->procs, c->h.pid);
	int err;

	if (!p)
		return -ENOMEM;
	contexts_find(j->contexts, &ev);
	err = j->opts.places ? contexts_record(j->contexts, &c->h) : 0;
	if (err)
		return err;
	if (c->h.kind == CT_CALL && !(c->h.flags & CT_F_PENDING)) {
		struct join_launch l = { .tid = c->h.tid, .stream = ev.stream };

		if (is_numbered(j, &c->h))
			ev.number = ++p->number;
		l.call = (struct join_call){ c->h.start_ns,
					     c->h.end_ns,
					     ev.number,
					     stack_of(c),
					     c->h.flags & CT_F_SCOPE ? call_scope(c)
								     : CT_SCOPE_UNKNOWN,
					     c->func,
					     c->depth,
					     c->h.flags & CT_F_NO_RETURN,
					     expects(j, p, c),
					     false,
					     false,
					     c->func < CT_MAX_FUNCS ? j->expects[c->func] : 0 };
		l.call.launches = launches(c, l.call.expects);
		p->asked |= l.call.expects != 0;
		p->launched += l.call.launches && !join_procs_taken(p, c->h.start_ns);
		j->opts.scoped |= !!(c->h.flags & CT_F_SCOPE);
		if (c->func < api_nfuncs &&
		    api_funcs[c->func].flags & (API_BEGINS_CAPTURE | API_ENDS_CAPTURE) &&
		    !api_failed(c))
			join_procs_capture(p, c->h.tid,
					   api_funcs[c->func].flags & API_BEGINS_CAPTURE);
		if (c->func < CT_MAX_FUNCS && j->causing[c->func / 64] >> (c->func % 64) & 1 &&
		    !(c->h.flags & CT_F_BEFORE))
			err = join_calls_add(j->calls, p->id, c->h.tid, &l.call);
		if (err)
			return err;
		if (!c->depth && api_funcs[c->func].flags & API_GRAPH_LAUNCH)
			join_procs_launch(p, &l);
	}
	return j->next(j->ctx, &ev);
}

static int cause(struct join *j, const struct ct_cause *c)
{
	struct join_proc *p = join_procs_get(j->procs, c->h.pid);

	if (!p)
		return -ENOMEM;
	p->heard = true;
	if (c->h.end_ns < c->h.start_ns)
		return 0;
	if (c->func < api_nfuncs) {
		struct join_launch l = {
			{ .start_ns = c->h.start_ns, .end_ns = c->h.end_ns, .func = c->func },
			c->h.tid,
			CT_UNKNOWN
		};

		j->causing[c->func / 64] |= 1ULL << (c->func % 64);
		if (j->opts.no_calls && api_funcs[c->func].flags & API_GRAPH_LAUNCH)
			join_procs_launch(p, &l);
	}
	if (j->began_ns && c->h.start_ns >= j->began_ns) {
		int err = join_calls_caused(j->calls, join_procs_id(p, c->h.start_ns), c->h.tid,
					    c->h.start_ns);

		if (err)
			return err;
	}
	return c->correlation ? join_causes_add(j->causes, join_procs_id(p, c->h.start_ns), c) : 0;
}

/* ---- what did not come ---- */

/* Counts the tail of a process, and reports it in a record. */
static int count_tail(struct join *j, struct join_proc *p)
{
	const struct join_tail t = p->tail;
	struct ct_lost lost = {
		.h = { .size = sizeof(lost),
		       .kind = CT_LOST,
		       .pid = p->r.pid,
		       .start_ns = t.from_ns,
		       .end_ns = t.to_ns },
		.cause = CT_LOSS_TAIL,
		.cpu = ~0u,
	};
	struct event ev = {
		.rec = &lost.h, .device = CT_UNKNOWN, .context = CT_UNKNOWN, .stream = CT_UNKNOWN
	};

	p->r.held = false;
	j->ntails--;
	lost.count = join_calls_tail(j->calls, t.id, t.expects, t.from_ns, t.to_ns);
	if (lost.count <= t.lone)
		return 0;
	lost.count -= t.lone;
	p->reported += lost.count;
	j->counts.tail += lost.count;
	return j->next(j->ctx, &ev);
}

static int tail(struct join *j, const struct ct_tail *r)
{
	struct join_proc *p = join_procs_get(j->procs, r->h.pid);
	int err;

	if (!p)
		return -ENOMEM;
	err = p->r.held ? count_tail(j, p) : 0;
	p->left = p->r.held = true;
	p->tail = (struct join_tail){
		.expects = (uint8_t)((r->kinds >> CT_KERNEL & 1 ? JOIN_EXPECTS_KERNEL : 0) |
				     (r->kinds >> CT_COPY & 1 ? JOIN_EXPECTS_COPY : 0) |
				     (r->kinds >> CT_SET & 1 ? JOIN_EXPECTS_SET : 0)),
		.id = join_procs_id(p, r->h.start_ns),
		.from_ns = r->h.start_ns,
		.to_ns = r->h.end_ns,
	};
	j->ntails++;
	return err;
}

/* Handles what a file says about calls that are not in it, or that were skipped. No number is
 * assigned twice. */
static int number(struct join *j, const struct ct_number *n)
{
	struct join_proc *p = j->opts.stored ? join_procs_get(j->procs, n->h.pid) : NULL;

	if (j->opts.stored && !p)
		return -ENOMEM;
	if (p && n->number > p->number)
		p->number = n->number;
	return 0;
}

/* The process uses CUPTI itself, or did: launches in that time have no record for that reason, which is stated
 * already. Some of them may have come before this record. */
static void taken(struct join *j, const struct ct_hole *hole)
{
	struct join_proc *p =
		(hole->reason == CT_HOLE_PROFILER || hole->reason == CT_HOLE_AGENT_GONE) &&
				hole->layer == CT_HOLE_DEVICE
			? join_procs_get(j->procs, hole->h.pid)
			: NULL;
	uint64_t n;

	if (!p || j->opts.stored)
		return;
	/* its end: what came since its begin was not counted */
	if (p->taken_ns != hole->h.start_ns) {
		n = join_calls_launched(j->calls, p->id, hole->h.start_ns, hole->until_ns);
		p->launched -= n < p->launched ? n : p->launched;
	}
	p->taken_ns = hole->h.start_ns;
	p->taken_until_ns = hole->until_ns;
}

/* ---- records ---- */

/* Hands on the held work of a process. */
static int flush_process(struct join *j, uint32_t pid)
{
	int err = 0;

	for (int i = 0; i < STEPS; i++) {
		struct queue all = j->queues[i];

		j->queues[i] = (struct queue){ NULL, NULL };
		while (all.head) {
			struct held *h = queue_pop(&all);
			int e = 0;

			if (work_of(h)->h.pid == pid)
				e = let_go(j, h);
			else
				queue_push(&j->queues[i], h);
			err = err ? err : e;
		}
	}
	return err;
}

int join_process(struct join *j, const struct ct_hdr *h)
{
	const struct join_proc *p;

	if (h->kind != CT_EXEC && h->kind != CT_PROCESS)
		return 0;
	p = join_procs_get(j->procs, h->pid);
	return p && registry_renews(&p->r, (const struct ct_process *)h) ? flush_process(j, h->pid)
									 : 0;
}

/* Notes whether a process made calls that have device records, and whether any came from it. */
static void note(struct join *j, const struct ct_hdr *h)
{
	const struct ct_call_count *t = (const struct ct_call_count *)h;
	bool reported = h->pid &&
			(h->kind == CT_DEVICE || h->kind == CT_CONTEXT || h->kind == CT_STREAM);
	bool asked = h->kind == CT_CALL_COUNT && t->func < CT_MAX_FUNCS && j->expects[t->func] &&
		     t->sums.calls > t->sums.failed;
	struct join_proc *p = reported || asked ? join_procs_get(j->procs, h->pid) : NULL;

	if (!p)
		return;
	p->asked |= asked;
	p->heard |= reported;
}

static int pass(struct join *j, const struct ct_hdr *h)
{
	struct event ev = {
		.rec = h, .device = CT_UNKNOWN, .context = CT_UNKNOWN, .stream = CT_UNKNOWN
	};
	int err = contexts_record(j->contexts, h);

	if (err)
		return err;
	note(j, h);
	if (h->kind == CT_HOLE)
		taken(j, (const struct ct_hole *)h);
	if (h->kind == CT_OVERHEAD) {
		ev.device = ((const struct ct_overhead *)h)->device;
		ev.context = ((const struct ct_overhead *)h)->context;
		ev.stream = ((const struct ct_overhead *)h)->stream;
	}
	return j->next(j->ctx, &ev);
}

/* Handles records of processes. Held work belongs to the program that ran before, and what is
 * known about that program ends with it. */
static int process(struct join *j, const struct ct_hdr *h)
{
	struct join_proc *p = join_procs_get(j->procs, h->pid);
	int err;

	if (!p)
		return -ENOMEM;
	if (h->kind != CT_EXIT && registry_renews(&p->r, (const struct ct_process *)h)) {
		err = flush_process(j, h->pid);
		if (err)
			return err;
		contexts_forget(j->contexts, h->pid);
		err = j->opts.places && j->opts.whole && h->kind == CT_EXEC
			      ? contexts_began(j->contexts, h->pid)
			      : 0;
		if (err)
			return err;
	}
	join_procs_record(j->procs, h);
	return pass(j, h);
}

/* True if the lost records may include calls that changed a thread's current device or context. */
static bool lost_calls(const struct ct_hdr *h)
{
	uint32_t cause = h->kind == CT_LOST ? ((const struct ct_lost *)h)->cause : CT_LOSS_END;

	return h->lost || cause == CT_LOSS_RING || cause == CT_LOSS_AGENT || cause == CT_LOSS_FILE;
}

int join_record(struct join *j, const struct ct_hdr *h)
{
	if (lost_calls(h))
		contexts_lost(j->contexts);
	switch (h->kind) {
	case CT_CALL:
	case CT_ENTER: return call(j, (const struct ct_call *)h);
	case CT_CAUSE: return cause(j, (const struct ct_cause *)h);
	case CT_NUMBER: return number(j, (const struct ct_number *)h);
	case CT_TAIL: return tail(j, (const struct ct_tail *)h);
	case CT_PROCESS:
	case CT_EXEC:
	case CT_EXIT: return process(j, h);
	default:
		return kind_is(h->kind, KIND_WORK) ? work(j, (const struct ct_work *)h)
						   : pass(j, h);
	}
}

/* States how many launches of a process have no device record. */
static int state_missing(void *ctx, const struct join_proc *p)
{
	struct ct_hole hole = hole_of(p->r.pid, CT_HOLE_DEVICE, CT_HOLE_LOST,
				      p->heard ? CT_HOLE_NO_RECORD : CT_HOLE_NO_AGENT);
	struct event ev = {
		.rec = &hole.h, .device = CT_UNKNOWN, .context = CT_UNKNOWN, .stream = CT_UNKNOWN
	};
	struct join *j = ctx;

	hole.count = join_procs_missing(p);
	/* kernels without a call of their own may hide some */
	hole.state = CT_HOLE_UNSEEN;
	if (p->heard ? !hole.count : !p->asked)
		return 0;
	return j->next(j->ctx, &ev);
}

int join_end(struct join *j)
{
	return j->opts.kernels && !j->opts.stored ? join_procs_each(j->procs, state_missing, j) : 0;
}

/* The first flush: only now is it known when the waiting of held work began. */
static void begin_waiting(struct join *j, uint64_t now_ns)
{
	for (struct held *h = j->queues[0].head; h; h = h->next)
		h->due_ns = now_ns + step_ns[0];
}

/* Looks again for the cause of the first work of a queue: the work is handed on, or moves into
 * the next queue. */
static int look_again(struct join *j, int step, uint64_t now_ns)
{
	struct held *h = queue_pop(&j->queues[step]);
	struct found f;

	look(j, work_of(h), &f);
	if (step == STEPS - 1 || now_ns == UINT64_MAX || f.final ||
	    (f.until_ns && now_ns >= f.until_ns))
		return let_go(j, h);
	h->due_ns += step_ns[step + 1];
	queue_push(&j->queues[step + 1], h);
	return 0;
}

int join_flush(struct join *j, uint64_t now_ns)
{
	struct join_proc *p;
	int err = 0;

	if (!j->now_ns && now_ns != UINT64_MAX)
		begin_waiting(j, now_ns);
	if (now_ns != UINT64_MAX && now_ns > j->now_ns)
		j->now_ns = now_ns;
	for (int i = STEPS - 1; i >= 0; i--) {
		while (j->queues[i].head && j->queues[i].head->due_ns <= now_ns && !err)
			err = look_again(j, i, now_ns);
	}
	/* by then the work that was on the way has been joined to its calls */
	while (!err && j->ntails &&
	       (p = join_procs_due(j->procs, now_ns, JOIN_HOLD_NS + JOIN_CALL_NS)))
		err = count_tail(j, p);
	INVARIANT(err || now_ns != UINT64_MAX || !j->held_bytes);
	return err;
}
