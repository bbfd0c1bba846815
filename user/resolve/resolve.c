/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolve.c - see resolve.h. Passes each record to the parts that need it: to what learns names
 * from calls (names), to what finds names of programs that ran before the trace (known), and to the
 * stacks (stacks). It also keeps the processes that these parts read, each opened once.
 *
 * The process is read when its records are handled, which is up to some milliseconds after the
 * call. Two counters show whether code was unloaded in between: how many unloading calls have
 * begun, as the source counts them, and how many of them have arrived as records. While they are
 * equal, nothing is being unloaded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../nccl/nccl_find.h"
#include "../util/now.h"
#include "absent.h"
#include "info.h"
#include "names/known.h"
#include "names/names.h"
#include "resolve.h"
#include "stacks/stacks.h"
#include "targets.h"

/* a record from before a loss that has not come within this time was lost */
#define LATE_NS 1000000000ULL
#define LAYOUT_WAIT_MS 300 /* for the debug information of a library */

struct resolve {
	struct resolve_opts opts;
	emit_fn out;
	void *ctx;
	struct targets *targets;
	struct names *names;   /* NULL: not wanted */
	struct known *known;   /* NULL: not wanted */
	struct stacks *stacks; /* NULL: not wanted */
	struct absent *absent; /* NULL: not wanted */
	struct nccl_finder *nccl;
	uint64_t now_ns;  /* time of the newest record */
	uint64_t unloads; /* number of calls that unload kernels, so far */
	/* when records were lost; 0: none were, or the loss has been handled */
	uint64_t lost_ns;
	uint64_t begun_at_loss; /* the source's count of begun unloading calls at that time */
	union {
		struct ct_call call;
		char room[sizeof(struct ct_call) + CT_DATA_MAX + 8];
	};
};

static const char *ask(void *ctx, uint32_t pid, uint64_t handle, bool driver,
		       enum ct_name_source *source, uint32_t *len)
{
	struct resolve *r = ctx;
	struct target *t = targets_get(r->targets, pid, r->now_ns);

	return t ? known_find(r->known, t, pid, handle, driver, source, len) : NULL;
}

static void teach(void *ctx, uint32_t pid, uint64_t handle, const char *name, uint32_t len)
{
	struct resolve *r = ctx;
	struct target *t = targets_get(r->targets, pid, r->now_ns);

	if (t)
		known_teach(r->known, t, pid, handle, name, len);
}

static void forget(void *ctx, uint32_t pid)
{
	known_forget(((struct resolve *)ctx)->known, pid);
}

static int emit(void *ctx, const struct ct_hdr *rec)
{
	struct resolve *r = ctx;

	return r->out(r->ctx, rec);
}

static int more(void *ctx, const struct ct_hdr *rec)
{
	struct resolve *r = ctx;

	return r->names ? names_record(r->names, rec) : 0;
}

static void closing(void *ctx, uint32_t pid)
{
	struct resolve *r = ctx;

	if (r->known)
		known_forget(r->known, pid);
}

struct resolve *resolve_open(const struct resolve_opts *opts, struct process_table *procs,
			     emit_fn out, void *ctx)
{
	static const struct names_ops ops = {
		.out = emit, .ask = ask, .teach = teach, .forget = forget
	};
	struct resolve *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->opts = *opts;
	r->out = out;
	r->ctx = ctx;
	r->targets = targets_open(procs, closing, r);
	if (opts->absent)
		r->absent = absent_open(more, r, opts->recent, opts->forgets_ctx);
	if (opts->names) {
		r->names = names_open(&ops, r, opts->nested);
		r->known = known_open(opts->forgets, opts->forgets_ctx);
	}
	if (opts->stacks)
		r->stacks = stacks_open(emit, r, opts->objects, opts->impatient);
	if (!r->targets || (opts->absent && !r->absent) ||
	    (opts->names && (!r->names || !r->known)) || (opts->stacks && !r->stacks)) {
		resolve_close(r);
		return NULL;
	}
	return r;
}

void resolve_close(struct resolve *r)
{
	if (!r)
		return;
	names_close(r->names);
	known_close(r->known);
	stacks_close(r->stacks);
	absent_close(r->absent);
	nccl_finder_close(r->nccl);
	targets_close(r->targets);
	free(r);
}

/* Handles a loss of records: finds out whether a call that unloads kernels was among them. */
static int after_loss(struct resolve *r, const struct ct_hdr *rec)
{
	uint64_t begun;

	if (!r->opts.forgets || !r->known)
		return 0;
	if (rec->lost) {
		r->begun_at_loss = r->opts.forgets(r->opts.forgets_ctx);
		r->lost_ns = rec->end_ns ? rec->end_ns : 1;
		return r->begun_at_loss == r->unloads ? 0 : names_doubt(r->names, rec->end_ns);
	}
	if (!r->lost_ns || rec->start_ns < r->lost_ns + LATE_NS)
		return 0;
	r->lost_ns = 0;
	if (r->unloads >= r->begun_at_loss)
		return 0;
	begun = r->begun_at_loss;
	r->unloads = begun;
	known_unloads(r->known, begun);
	return names_doubt(r->names, rec->start_ns);
}

static void count_unload(struct resolve *r, const struct ct_call *c)
{
	uint64_t begun;

	if (c->h.kind != CT_CALL || c->h.flags & (CT_F_PENDING | CT_F_BEFORE) ||
	    !api_forgets(c->func))
		return;
	r->unloads++;
	/* a record that was counted as lost has come after all */
	begun = r->opts.forgets ? r->opts.forgets(r->opts.forgets_ctx) : r->unloads;
	if (r->unloads > begun)
		r->unloads = begun;
	known_unloads(r->known, r->unloads);
}

/* Passes on a call, with the id of its stack if it has one. */
static int pass_call(struct resolve *r, const struct ct_call *c)
{
	struct target *t = NULL;
	uint64_t id;
	int err;

	if (!r->stacks || c->h.flags & CT_F_STACK || c->h.size > sizeof(*c) + CT_DATA_MAX)
		return r->out(r->ctx, &c->h);
	t = targets_get(r->targets, c->h.pid, r->now_ns);
	id = stacks_of_call(r->stacks, t, c);
	err = stacks_error(r->stacks);
	if (err)
		return err;
	if (!id)
		return r->out(r->ctx, &c->h);
	memcpy(r->room, c, c->h.size);
	memcpy(r->room + c->h.size, &id, sizeof(id));
	r->call.h.size = (uint16_t)(c->h.size + sizeof(id));
	r->call.h.flags |= CT_F_STACK;
	return r->out(r->ctx, &r->call.h);
}

/* Passes on where a thread was, with the id of its stack if it has one. */
static int pass_segment(struct resolve *r, const struct ct_host_segment *h)
{
	struct ct_host_segment s = *h;
	const struct ct_call as_call = { .h = h->h };
	int err;

	if (!r->stacks || s.stack)
		return r->out(r->ctx, &h->h);
	s.stack = stacks_of_call(r->stacks, targets_get(r->targets, s.h.pid, r->now_ns), &as_call);
	err = stacks_error(r->stacks);
	return err ? err : r->out(r->ctx, &s.h);
}

/* A process began, became another program, forked, ended, or maps other files. */
static void process(struct resolve *r, const struct ct_hdr *h)
{
	struct target *t;

	if (h->kind == CT_EXEC)
		targets_drop(r->targets, h->pid);
	t = r->stacks || h->kind == CT_MAP ? targets_get(r->targets, h->pid, r->now_ns) : NULL;
	if (t && h->kind == CT_MAP)
		target_refresh(t);
	if (r->stacks)
		stacks_process(r->stacks, t, h);
	if (h->kind == CT_EXIT)
		targets_exited(r->targets, h->pid, h->end_ns);
}

int resolve_record(struct resolve *r, const struct ct_hdr *h)
{
	int err = 0, e;

	if (h->end_ns > r->now_ns)
		r->now_ns = h->end_ns;
	if (r->known)
		err = after_loss(r, h);
	if (h->lost && r->absent)
		absent_drop(r->absent);
	switch (h->kind) {
	case CT_ABSENT:
		if (r->absent)
			absent_add(r->absent, targets_get(r->targets, h->pid, r->now_ns),
				   (const struct ct_absent *)h);
		return err;
	case CT_USER_STACK:
	case CT_PY_STACK:
	case CT_PY_CODE:
		e = r->stacks ? stacks_record(r->stacks, targets_get(r->targets, h->pid, r->now_ns),
					      h)
			      : 0;
		return e == -EBADMSG ? err : e ? e : err;
	case CT_LAYER_BEGIN:
	case CT_LAYER_END:
		if (r->absent && absent_has(r->absent, (const struct ct_call *)h))
			h = &absent_fill(r->absent, targets_get(r->targets, h->pid, r->now_ns),
					 (const struct ct_call *)h)
				     ->h;
		break;
	case CT_CALL:
	case CT_ENTER:
		if (r->absent && absent_has(r->absent, (const struct ct_call *)h))
			h = &absent_fill(r->absent, targets_get(r->targets, h->pid, r->now_ns),
					 (const struct ct_call *)h)
				     ->h;
		if (r->known)
			count_unload(r, (const struct ct_call *)h);
		break;
	case CT_PROCESS:
		/* another process has the number of one that ended */
		if (!targets_same(r->targets, (const struct ct_process *)h))
			targets_drop(r->targets, h->pid);
		process(r, h);
		break;
	case CT_EXEC:
	case CT_FORK:
	case CT_EXIT:
	case CT_MAP:
		process(r, h);
		if (r->absent)
			absent_idle(r->absent);
		break;
	}
	if (r->names && !err)
		err = names_record(r->names, h);
	if (err || h->kind == CT_MORE || h->kind == CT_MAP)
		return err;
	if (h->kind == CT_CALL || h->kind == CT_ENTER)
		err = pass_call(r, (const struct ct_call *)h);
	else if (h->kind == CT_HOST_SEGMENT)
		err = pass_segment(r, (const struct ct_host_segment *)h);
	else
		err = r->out(r->ctx, h);
	if (r->opts.info && !err && (h->kind == CT_PROCESS || h->kind == CT_EXEC))
		err = info_of_process(targets_get(r->targets, h->pid, r->now_ns), h, r->out,
				      r->ctx);
	return err;
}

void resolve_idle(struct resolve *r, uint64_t now_ns)
{
	targets_tidy(r->targets, now_ns);
}

bool resolve_communicator(struct resolve *r, uint32_t pid, uint64_t handle,
			  struct communicator_is *is)
{
	struct target *t = r->absent ? targets_get(r->targets, pid, r->now_ns) : NULL;
	struct nccl_comm c;
	uint64_t from_ns = now_ns();

	if (t && !r->nccl)
		r->nccl = nccl_finder_open();
	if (!t || !r->nccl || nccl_find_at(r->nccl, t, handle, LAYOUT_WAIT_MS, &c))
		return false;
	is->hash = c.hash;
	is->rank = c.rank < 0 ? CT_UNKNOWN : (uint32_t)c.rank;
	is->ranks = c.nranks < 0 ? CT_UNKNOWN : (uint32_t)c.nranks;
	is->counted = c.ncounts > 0;
	is->begun = 0;
	for (int i = 0; i < c.ncounts; i++)
		is->begun += c.counts[i].n;
	is->from_ns = from_ns;
	is->until_ns = now_ns();
	return true;
}

bool resolve_wants_nested(struct resolve *r)
{
	return r->names && names_wants_nested(r->names);
}

void resolve_totals(const struct resolve *r, struct resolve_totals *t)
{
	*t = (struct resolve_totals){ 0 };
	if (r->absent)
		absent_totals(r->absent, &t->absent, &t->filled, &t->unshown);
	if (r->names)
		names_totals(r->names, &t->launches, &t->named);
	if (r->stacks)
		stacks_totals(r->stacks, &t->stacks, &t->broken);
}
