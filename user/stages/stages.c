/* SPDX-License-Identifier: BSD-2-Clause */
/* stages.c - see stages.h. Knows no source. */
#include <errno.h>
#include <string.h>

#include "stages.h"

/* Handles a call or a scope outside the window. A recording stores a call in any case, marked as
 * hidden, if it says which device or context later calls work on: the filter knows which calls do.
 * It stores each scope. Returns false if the record is not processed further. */
static bool outside(struct stages *st, struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	struct ct_hdr *copy;

	if (!st->filter->stores || (h->kind != CT_CALL && h->kind != CT_SCOPE_END) ||
	    h->size > sizeof(st->hidden))
		return false;
	copy = memcpy(st->hidden, h, h->size);
	copy->flags |= CT_F_HIDDEN;
	ev->rec = copy;
	ev->number = 0;
	return true;
}

static void add_counted(struct stages_counted *to, const struct ct_call_count *t)
{
	losses_add(&to->calls, t->sums.calls);
	if (t->sums.calls > t->sums.timed)
		losses_add(&to->untimed, t->sums.calls - t->sums.timed);
	muted_add_unseen(&to->unseen, &t->unseen);
}

void stages_count_anew(struct stages *st)
{
	st->counted = st->counted_ended;
}

/* Is a call left out only because another call made it? */
static bool is_inner(const struct filter *f, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	struct filter all = *f;

	all.nested = true;
	return h->kind == CT_CALL && ((const struct ct_call *)h)->depth && !f->nested &&
	       filter_match(&all, ev);
}

/* ---- the links behind nest: each returns 1 to go on, 0 if the event goes no further, -errno ---- */

static int stages_learn(struct stages *st, struct event *ev)
{
	int err = world_record(st->world, ev);

	return err ? err : 1;
}

/* What the window, or the layers that are asked for, leave out. */
static int pass_window(struct stages *st, struct event *ev)
{
	const struct ct_hdr *rec = ev->rec;

	if (st->window && !window_has(st->window, rec) && !outside(st, ev))
		return 0;
	if (rec->kind == CT_SCOPE_END && st->filter->stores &&
	    !(st->filter->scopes >> ((const struct ct_scope *)rec)->kind & 1) && !outside(st, ev))
		return 0;
	return rec->kind != CT_ENTER || !st->no_entries;
}

static int pass_filter(struct stages *st, struct event *ev)
{
	if (filter_match(st->filter, ev) && filter_match_device(st->filter, ev))
		return 1;
	st->inner_left_out += is_inner(st->filter, ev);
	return 0;
}

/* Sums of what has no row of its own, and what is missing. */
static int stages_add_up(struct stages *st, struct event *ev)
{
	const struct ct_hdr *rec = ev->rec;
	int err;

	if (rec->kind == CT_MUTED)
		muted_add(&st->muted, (const struct ct_muted *)rec);
	if (rec->kind == CT_CALL_COUNT)
		add_counted(&st->counted, (const struct ct_call_count *)rec);
	if (rec->kind == CT_CALL_COUNT && rec->flags & CT_F_LAST)
		add_counted(&st->counted_ended, (const struct ct_call_count *)rec);
	err = holes_record(st->holes, rec, ev->proc);
	return err ? err : 1;
}

static int stages_describe(struct stages *st, struct event *ev)
{
	world_describe(st->world, ev, !st->no_stacks);
	return 1;
}

/* Counts what the sinks made of the event. */
static void count_rows(struct stages *st, const struct ct_hdr *rec, int rows)
{
	bool scope = rec->kind == CT_SCOPE_END, work = kind_is(rec->kind, KIND_DEVICE) && !scope;

	st->shown += (uint64_t)rows;
	if (rows && rec->kind == CT_CALL && rec->flags & CT_F_UNFINISHED &&
	    !(rec->flags & CT_F_PENDING))
		st->unfinished++;
	if (scope)
		st->nscopes += (uint64_t)rows;
	else if (work)
		st->work += (uint64_t)rows;
	if (rows)
		return;
	st->scopes_left_out += scope;
	st->work_left_out += work;
	st->calls_left_out += rec->kind == CT_CALL || rec->kind == CT_FOREIGN;
}

static int give_sinks(struct stages *st, struct event *ev)
{
	int rows = 0;

	for (int i = 0; i < st->nsinks; i++) {
		int n = st->sinks[i].ops->event(&st->sinks[i], ev);

		if (n < 0)
			return n;
		rows |= n;
	}
	if (ev->rec->flags & CT_F_HIDDEN)
		return 0;
	if (rows & SINK_UNWRITTEN)
		return unwritten_add(&st->unwritten, ev);
	count_rows(st, ev->rec, rows);
	return st->most && rows && st->shown >= st->most ? -ECANCELED : 0;
}

static int (*const links[])(struct stages *, struct event *) = {
	stages_learn, pass_window, pass_filter, stages_add_up, stages_describe, give_sinks,
};

/* All that stands behind nest. */
static int show(void *ctx, struct event *ev)
{
	int on = 1;

	for (size_t i = 0; on > 0 && i < ARRAY_LEN(links); i++)
		on = links[i](ctx, ev);
	return on;
}

int stages_show(struct stages *st, const struct ct_hdr *rec)
{
	struct event ev = {
		.rec = rec, .device = CT_UNKNOWN, .context = CT_UNKNOWN, .stream = CT_UNKNOWN
	};

	/* a recording may store it, and its reader checks it as it checks every record */
	INVARIANT((rec->kind == CT_HOLE && rec->flags & CT_F_FINAL) ||
		  !record_check(rec, rec->size));
	return show(st, &ev);
}

static int show_made(void *ctx, const struct ct_hdr *rec)
{
	return stages_show(ctx, rec);
}

int stages_state_unwritten(struct stages *st)
{
	return unwritten_state(&st->unwritten, show_made, st);
}

/* Decides whether a call gets a number. */
static bool is_shown(void *ctx, const struct ct_hdr *call)
{
	struct stages *st = ctx;
	struct event ev = { .rec = call };

	if (call->flags & CT_F_HIDDEN)
		return false;
	ev.proc = process_table_find(world_processes(st->world), call->pid);
	if (st->window && !window_has(st->window, call))
		return false;
	return ev.proc && filter_match(st->filter, &ev);
}

/* Takes what join passes on. A call that has not returned yet is shown at once, because its nested
 * calls may take long. */
static int joined(void *ctx, struct event *ev)
{
	struct stages *st = ctx;

	return st->nest && !(ev->rec->kind == CT_CALL && ev->rec->flags & CT_F_PENDING)
		       ? nest_record(st->nest, ev)
		       : show(st, ev);
}

static int resolved(void *ctx, const struct ct_hdr *rec)
{
	struct stages *st = ctx;
	int err;

	/* the record comes from a recording, or resolve made it: stages_record() leaves both cases
	 * to this function */
	if (rec->kind == CT_PROCESS_INFO) {
		err = world_arrived(st->world, rec);
		if (err)
			return err;
	}
	if (rec->kind == CT_LAYER_BEGIN || rec->kind == CT_LAYER_END)
		return scopes_record(st->scopes, rec);
	err = scopes_record(st->scopes, rec);
	if (err)
		return err;
	rec = scopes_around(st->scopes, rec);
	if (st->window && rec->kind == CT_CALL)
		window_call(st->window, (const struct ct_call *)rec);
	return join_record(st->join, rec);
}

static bool ask_communicator(void *ctx, uint32_t pid, uint64_t handle, struct communicator_is *is)
{
	struct stages *st = ctx;

	return st->resolve && resolve_communicator(st->resolve, pid, handle, is);
}

/* Takes what the scopes stage makes. */
static int scoped(void *ctx, const struct ct_hdr *rec)
{
	struct stages *st = ctx;

	if (st->window)
		window_scope(st->window, (const struct ct_scope *)rec);
	return join_record(st->join, rec);
}

int stages_open(struct stages *st, const struct resolve_opts *resolve, bool nest,
		const struct filter *filter, struct sink *sinks, uint64_t most)
{
	struct join_opts join = { .shown = is_shown, .ctx = st };

	st->world = world_open();
	st->scopes = scopes_open(scoped, ask_communicator, st);
	st->holes = holes_open();
	if (nest)
		st->nest = nest_open(show, st);
	st->join = join_open(&join, joined, st);
	if (st->world)
		st->resolve = resolve_open(resolve, world_processes(st->world), resolved, st);
	st->filter = filter;
	st->sinks = sinks;
	st->most = most;
	return st->resolve && st->join && st->scopes && st->holes && (st->nest || !nest) ? 0
											 : -ENOMEM;
}

void stages_close(struct stages *st)
{
	resolve_close(st->resolve);
	nest_close(st->nest);
	scopes_close(st->scopes);
	holes_close(st->holes);
	unwritten_close(&st->unwritten);
	join_close(st->join);
	world_close(st->world);
	memset(st, 0, sizeof(*st));
}

int stages_record(struct stages *st, const struct ct_hdr *rec)
{
	int err;

	/* the events that are held belong to the previous program, with its name and its kernels */
	err = join_process(st->join, rec);
	if (!err && st->nest && (rec->kind == CT_EXEC || rec->kind == CT_PROCESS))
		err = nest_flush(st->nest, UINT64_MAX);
	if (err)
		return err;
	/* each record is entered once; the description of a process is entered when resolve passes
	 * it on or makes it */
	err = rec->kind == CT_PROCESS_INFO ? 0 : world_arrived(st->world, rec);
	if (!err)
		err = resolve_record(st->resolve, rec);
	return err;
}

int stages_end_scopes(struct stages *st, uint64_t now_ns)
{
	return scopes_flush(st->scopes, now_ns);
}

int stages_end_work(struct stages *st)
{
	return join_end(st->join);
}

int stages_flush(struct stages *st, uint64_t now_ns)
{
	int err = join_flush(st->join, now_ns);

	return err || !st->nest ? err : nest_flush(st->nest, now_ns);
}
