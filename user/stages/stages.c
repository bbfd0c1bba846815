/* SPDX-License-Identifier: BSD-2-Clause */
/* stages.c - see stages.h. Knows no source. */
#include <errno.h>
#include <string.h>

#include "../event/device.h"
#include "../event/gpus.h"
#include "../event/kernel_counters.h"
#include "../event/scopes/moved.h"
#include "stages.h"

/* The call that was captured, of what a graph's replay did. */
static void add_capture(struct stages *st, struct event *ev)
{
	const struct ct_work *w = (const struct ct_work *)ev->rec;
	const struct scope_line *line;

	ev->capture = captures_find(st->captures, w->h.pid, w->graph_node);
	if (!ev->capture)
		return;
	line = lineage_find(st->lineage, w->h.pid, ev->capture->scope);
	ev->captured_in = line ? line->name : NULL;
	if (!st->no_stacks)
		ev->captured_stack = stack_table_get(st->stacks, ev->capture->stack);
	if (!ev->captured_stack)
		return;
	/* the nodes of a graph are often of one place after the other */
	if (st->captured_stack != ev->capture->stack) {
		st->captured_at[0] = '\0';
		stack_place(ev->captured_stack, st->captured_at, sizeof(st->captured_at));
		st->captured_stack = ev->capture->stack;
	}
	ev->captured_at = st->captured_at[0] ? st->captured_at : NULL;
}

/* The innermost scope of a kind around the launch of a kernel, or around its capture. NULL: none. */
static const struct scope_line *around_kernel(const struct event *ev, enum ct_scope_kind kind)
{
	const uint32_t kinds = 1u << kind;

	return lineage_of_kind(ev->lineage, ev->rec->pid, lineage_from(ev, kinds), kinds,
			       &(bool){ false });
}

/* The product that a kernel computes, or is a part of. */
static void add_product(struct stages *st, struct event *ev)
{
	const struct ct_work *w = (const struct ct_work *)ev->rec;

	ev->product = around_kernel(ev, CT_SCOPE_GEMM);
	if (ev->product)
		ev->peak = peaks_of(st->peaks, w->h.pid, w->device,
				    peak_type(ev->product->gemm,
					      ev->kernel ? ev->kernel->mangled : NULL));
}

/* Adds the names and stacks that belong to an event. */
static void add_parts(struct stages *st, struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	ev->lineage = st->lineage;
	ev->scope_id = kind_is(h->kind, KIND_WORK)   ? ((const struct ct_work *)h)->scope
		       : kind_is(h->kind, KIND_CALL) ? call_scope((const struct ct_call *)h)
						     : CT_SCOPE_NONE;
	ev->scope = lineage_find(st->lineage, h->pid, ev->scope_id);
	if (kind_is(h->kind, KIND_WORK))
		add_capture(st, ev);
	if (kind_is(h->kind, KIND_WORK) && !st->no_stacks)
		ev->stack = stack_table_get(st->stacks, ((const struct ct_work *)h)->stack);
	switch (h->kind) {
	case CT_CALL:
	case CT_ENTER:
		ev->kernel = name_table_find(st->names, (const struct ct_call *)h);
		if (!st->no_stacks)
			ev->stack = stack_table_find(st->stacks, (const struct ct_call *)h);
		break;
	case CT_KERNEL:
		ev->kernel =
			name_table_handle(st->names, h->pid, ((const struct ct_kernel *)h)->name);
		ev->counters = kernel_counters_of(st->counters, (const struct ct_kernel *)h);
		ev->bus_bytes = moved_on_bus(around_kernel(ev, CT_SCOPE_COLLECTIVE));
		add_product(st, ev);
		break;
	case CT_CALL_COUNT:
		if (((const struct ct_call_count *)h)->how == CT_BY_KERNEL)
			ev->kernel = name_table_handle(st->names, h->pid,
						       ((const struct ct_call_count *)h)->by);
		break;
	case CT_NAME:
		ev->kernel =
			name_table_handle(st->names, h->pid, ((const struct ct_name *)h)->handle);
		break;
	case CT_COUNTER: ev->metrics = st->metrics; break;
	}
}

/* Returns the GPU that the record refers to. */
static const struct gpu *gpu_of(struct stages *st, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	if (h->kind == CT_COUNTER)
		return gpu_table_machine(st->gpus, ((const struct ct_counter *)h)->device);
	if (h->kind == CT_EVENT)
		return h->pid ? gpu_table_find(st->gpus, ev->proc,
					       ((const struct ct_event *)h)->device)
			      : gpu_table_machine(st->gpus, ((const struct ct_event *)h)->device);
	if (h->kind == CT_DEVICE)
		return h->pid ? gpu_table_find(st->gpus, ev->proc,
					       ((const struct ct_device *)h)->id)
			      : gpu_table_machine(st->gpus, ((const struct ct_device *)h)->id);
	return kind_is(h->kind, KIND_WORK) ? gpu_table_worked(st->gpus, ev->proc, ev->device)
					   : gpu_table_find(st->gpus, ev->proc, ev->device);
}

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

/* Learns which calls graphs were captured from; the scopes around them are needed for as long. */
static void follow_captures(struct stages *st, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	if (captures_event(st->captures, ev))
		lineage_release(st->lineage, h->pid);
	else if (h->kind == CT_NODE)
		lineage_keep(st->lineage, h->pid, ((const struct ct_work *)h)->scope);
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

/* The last stage. */
static int show(void *ctx, struct event *ev)
{
	const struct ct_hdr *rec = ev->rec;
	struct stages *st = ctx;
	int rows = 0, err;

	ev->proc =
		rec->kind == CT_CALL_COUNT
			? process_table_find_counted(st->procs, (const struct ct_call_count *)rec)
			: process_table_find(st->procs, rec->pid);
	if (!ev->proc)
		return -ENOMEM;
	ev->thread = thread_table_find(st->threads, rec->pid, rec->tid);
	if (rec->kind != CT_CALL && rec->kind != CT_ENTER) {
		err = name_table_record(st->names, rec);
		if (!err)
			err = lineage_record(st->lineage, rec);
		follow_captures(st, ev);
		if (!err)
			err = stack_table_record(st->stacks, rec);
		if (!err)
			err = metric_table_record(st->metrics, rec);
		if (!err)
			err = kernel_counters_record(st->counters, rec);
		if (err)
			return err;
	}
	gpu_table_record(st->gpus, ev->proc, rec);
	peaks_record(st->peaks, rec);
	ev->gpus = st->gpus;
	ev->gpu = gpu_of(st, ev);
	if (st->window && !window_has(st->window, rec) && !outside(st, ev))
		return 0;
	if (rec->kind == CT_SCOPE_END && st->filter->stores &&
	    !(st->filter->scopes >> ((const struct ct_scope *)rec)->kind & 1) && !outside(st, ev))
		return 0;
	if (rec->kind == CT_ENTER && st->no_entries)
		return 0;
	if (!filter_match(st->filter, ev) || !filter_match_device(st->filter, ev)) {
		st->inner_left_out += is_inner(st->filter, ev);
		return 0;
	}
	rec = ev->rec;
	if (rec->kind == CT_MUTED)
		muted_add(&st->muted, (const struct ct_muted *)rec);
	if (rec->kind == CT_CALL_COUNT)
		add_counted(&st->counted, (const struct ct_call_count *)rec);
	if (rec->kind == CT_CALL_COUNT && rec->flags & CT_F_LAST)
		add_counted(&st->counted_ended, (const struct ct_call_count *)rec);
	err = holes_record(st->holes, rec, ev->proc);
	if (err)
		return err;
	add_parts(st, ev);
	for (int i = 0; i < st->nsinks; i++) {
		int n = st->sinks[i].ops->event(&st->sinks[i], ev);

		if (n < 0)
			return n;
		rows |= n;
	}
	if (rec->flags & CT_F_HIDDEN)
		return 0;
	if (rows & SINK_UNWRITTEN)
		return unwritten_add(&st->unwritten, ev);
	st->shown += (uint64_t)rows;
	if (rows && rec->kind == CT_CALL && rec->flags & CT_F_UNFINISHED &&
	    !(rec->flags & CT_F_PENDING))
		st->unfinished++;
	if (rec->kind == CT_SCOPE_END && !rows)
		st->scopes_left_out++;
	if (!rows && kind_is(rec->kind, KIND_DEVICE) && rec->kind != CT_SCOPE_END)
		st->work_left_out++;
	if (!rows && (rec->kind == CT_CALL || rec->kind == CT_FOREIGN))
		st->calls_left_out++;
	if (rec->kind == CT_SCOPE_END)
		st->nscopes += (uint64_t)rows;
	else if (kind_is(rec->kind, KIND_DEVICE))
		st->work += (uint64_t)rows;
	return st->most && rows && st->shown >= st->most ? -ECANCELED : 0;
}

int stages_show(struct stages *st, const struct ct_hdr *rec)
{
	struct event ev = {
		.rec = rec, .device = CT_UNKNOWN, .context = CT_UNKNOWN, .stream = CT_UNKNOWN
	};

	/* it may be stored, and then it is read as anybody's */
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
	ev.proc = process_table_find(st->procs, call->pid);
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
		err = process_table_record(st->procs, rec);
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

	st->procs = process_table_open();
	st->threads = thread_table_open();
	st->names = name_table_open();
	st->stacks = stack_table_open();
	st->metrics = metric_table_open();
	st->counters = kernel_counters_open();
	st->gpus = gpu_table_open();
	st->scopes = scopes_open(scoped, ask_communicator, st);
	st->lineage = lineage_open();
	st->captures = captures_open();
	st->peaks = peaks_open();
	st->holes = holes_open();
	if (nest)
		st->nest = nest_open(show, st);
	st->join = join_open(&join, joined, st);
	if (st->procs && st->threads)
		st->resolve = resolve_open(resolve, st->procs, resolved, st);
	st->filter = filter;
	st->sinks = sinks;
	st->most = most;
	return st->resolve && st->join && st->names && st->stacks && st->metrics && st->counters &&
			       st->gpus && st->scopes && st->lineage && st->captures && st->peaks &&
			       st->holes && (st->nest || !nest)
		       ? 0
		       : -ENOMEM;
}

void stages_close(struct stages *st)
{
	resolve_close(st->resolve);
	nest_close(st->nest);
	scopes_close(st->scopes);
	lineage_close(st->lineage);
	captures_close(st->captures);
	peaks_close(st->peaks);
	holes_close(st->holes);
	unwritten_close(&st->unwritten);
	join_close(st->join);
	kernel_counters_close(st->counters);
	gpu_table_close(st->gpus);
	metric_table_close(st->metrics);
	stack_table_close(st->stacks);
	name_table_close(st->names);
	thread_table_close(st->threads);
	process_table_close(st->procs);
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
	thread_table_record(st->threads, rec);
	/* each record is entered once; the description of a process is entered when resolve passes
	 * it on or makes it */
	err = rec->kind == CT_PROCESS_INFO ? 0 : process_table_record(st->procs, rec);
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
