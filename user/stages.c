/* SPDX-License-Identifier: BSD-2-Clause */
/* stages.c - see stages.h. Knows no source. */
#include <errno.h>
#include <string.h>

#include "stages.h"

int stages_show(struct stages *st, const struct ct_hdr *rec)
{
	bool call = rec->kind == CT_CALL || rec->kind == CT_ENTER;
	struct event ev = { .rec = rec, .proc = process_table_find(st->procs, rec->pid) };
	int rows = 0, err;

	if (!ev.proc)
		return -ENOMEM;
	if (!call) {
		err = name_table_record(st->names, rec);
		if (!err)
			err = stack_table_record(st->stacks, rec);
		if (err)
			return err;
	}
	if (!filter_match(st->filter, &ev))
		return 0;
	if (call) {
		ev.kernel = name_table_find(st->names, (const struct ct_call *)rec);
		if (!st->no_stacks)
			ev.stack = stack_table_find(st->stacks, (const struct ct_call *)rec);
	}
	if (rec->kind == CT_TALLY && ((const struct ct_tally *)rec)->how == CT_BY_KERNEL)
		ev.kernel = name_table_handle(st->names, rec->pid, ((const struct ct_tally *)rec)->by);
	for (int i = 0; i < st->nsinks; i++) {
		int n = st->sinks[i].ops->event(&st->sinks[i], &ev);

		if (n < 0)
			return n;
		rows |= n;
	}
	st->shown += (uint64_t)rows;
	return st->most && rows && st->shown >= st->most ? -ECANCELED : 0;
}

static int show(void *ctx, const struct ct_hdr *rec)
{
	return stages_show(ctx, rec);
}

/* What resolve hands on. A call that has not returned yet is shown at once: its children may be long in coming. */
static int resolved(void *ctx, const struct ct_hdr *rec)
{
	struct stages *st = ctx;

	return st->nest && !(rec->kind == CT_CALL && rec->flags & CT_F_PENDING) ? nest_record(st->nest, rec) :
										  stages_show(st, rec);
}

int stages_open(struct stages *st, const struct resolve_opts *resolve, bool nest, const struct filter *filter,
		struct sink *sinks, uint64_t most)
{
	st->procs = process_table_open();
	st->names = name_table_open();
	st->stacks = stack_table_open();
	if (nest)
		st->nest = nest_open(show, st);
	if (st->procs)
		st->resolve = resolve_open(resolve, st->procs, resolved, st);
	st->filter = filter;
	st->sinks = sinks;
	st->most = most;
	return st->resolve && st->names && st->stacks && (st->nest || !nest) ? 0 : -ENOMEM;
}

void stages_close(struct stages *st)
{
	resolve_close(st->resolve);
	nest_close(st->nest);
	stack_table_close(st->stacks);
	name_table_close(st->names);
	process_table_close(st->procs);
	memset(st, 0, sizeof(*st));
}

int stages_record(struct stages *st, const struct ct_hdr *rec)
{
	int paused = 0, err;

	/* what is held is of the program that was there before, under its name and with its kernels */
	if (st->nest && (rec->kind == CT_EXEC || rec->kind == CT_PROCESS))
		paused = nest_flush(st->nest, UINT64_MAX);
	if (paused && paused != -EINTR)
		return paused;
	err = process_table_record(st->procs, rec);
	if (!err)
		err = resolve_record(st->resolve, rec);
	return err ? err : paused;
}

int stages_flush(struct stages *st, uint64_t now_ns)
{
	return st->nest ? nest_flush(st->nest, now_ns) : 0;
}
