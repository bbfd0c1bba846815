/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * filter.c - what the user asked to see. The kernel side applies what it can of the same questions; the answers here are
 * the ones that count, and all there is for a source that filters nothing. Knows no sink and no source.
 */
#include <fnmatch.h>

#include "event.h"

static bool call_matches(const struct filter *f, const struct ct_call *c)
{
	bool done = c->h.kind == CT_CALL && !(c->h.flags & CT_F_NO_RETURN);

	if (c->h.flags & CT_F_HIDDEN || f->counted)
		return false;
	if (f->shown && !(f->shown[c->func / 64] >> (c->func % 64) & 1))
		return false;
	if (c->depth && !f->nested)
		return false;
	if (f->tid && c->h.tid != f->tid)
		return false;
	if (f->failed_only && done && !api_failed(c))
		return false;
	if (f->min_duration_ns && done && (int64_t)(c->h.end_ns - c->h.start_ns) < f->min_duration_ns)
		return false;
	if (f->min_size_bytes && api_size(c, API_ARCH_HERE) < f->min_size_bytes)
		return false;
	return true;
}

static bool pid_matches(const struct filter *f, const struct process *p)
{
	for (int i = 0; i < f->npids; i++)
		if ((uint32_t)f->pids[i] == p->pid || (uint32_t)f->pids[i] == p->shown_pid)
			return true;
	return !f->npids;
}

bool filter_match(const struct filter *f, const struct event *ev)
{
	uint16_t kind = ev->rec->kind;

	/* A gap concerns everybody. */
	if (kind == CT_LOST)
		return true;
	if (ev->rec->pid && !pid_matches(f, ev->proc))
		return false;
	if (kind == CT_NAME || kind == CT_FRAME || kind == CT_STACK || kind == CT_PROCESS_INFO)
		return f->definitions;
	if ((kind == CT_CALL || kind == CT_ENTER) && !call_matches(f, (const struct ct_call *)ev->rec))
		return false;
	return !f->comm_glob || !ev->rec->pid || !fnmatch(f->comm_glob, ev->proc->comm, 0);
}
