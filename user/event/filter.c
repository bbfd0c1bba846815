/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * filter.c - what the user asked to see. The kernel side applies the part of the filter that it
 * can. The decision here is the one that counts, and it is the only one for a source that filters
 * nothing. Knows no sink and no source.
 */
#include <fnmatch.h>

#include "device.h"
#include "muted.h"
#include "select.h"

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
	if (f->calls.failed_only && done && !api_failed(c))
		return false;
	/* a call without a return did not succeed, as far as is known */
	if (f->calls.succeeded_only && c->h.kind == CT_CALL &&
	    (!done || c->h.flags & CT_F_UNFINISHED || api_failed(c)))
		return false;
	if (f->calls.min_duration_ns && done &&
	    (int64_t)(c->h.end_ns - c->h.start_ns) < (int64_t)f->calls.min_duration_ns)
		return false;
	if (f->calls.min_size_bytes &&
	    api_size(c, API_ARCH_HERE) < (int64_t)f->calls.min_size_bytes)
		return false;
	return true;
}

/* A call of a function that is not known here: it is in no class, and the meaning of its
 * arguments and its result is not known. */
static bool foreign_matches(const struct filter *f, const struct ct_foreign *c)
{
	if (!f->foreign || c->h.flags & CT_F_HIDDEN || f->calls.failed_only ||
	    f->calls.succeeded_only || f->calls.min_size_bytes || (c->depth && !f->nested) ||
	    (f->tid && c->h.tid != f->tid))
		return false;
	return !f->calls.min_duration_ns ||
	       (int64_t)(c->h.end_ns - c->h.start_ns) >= (int64_t)f->calls.min_duration_ns;
}

/* Calls that were not recorded one by one: it is not known how long each of them took, or which
 * of them failed. */
static bool muted_matches(const struct filter *f, const struct ct_muted *m)
{
	int func = muted_func(m);

	if (f->calls.failed_only || f->calls.succeeded_only || f->calls.min_size_bytes ||
	    (f->tid && m->h.tid != f->tid))
		return false;
	return func < 0 ? f->foreign : !f->shown || f->shown[func / 64] >> (func % 64) & 1;
}

/* Neither its thread nor the called functions are known. */
static bool unprobed_matches(const struct filter *f, const struct ct_unprobed *u)
{
	bool ours = !f->npids || !u->ns_pid;

	for (int i = 0; i < f->npids && !ours; i++)
		ours = (uint32_t)f->pids[i] == u->ns_pid;
	return ours && (!f->comm_glob || !*u->comm || !fnmatch(f->comm_glob, u->comm, 0));
}

/* A row of the ledger. Its process may be one that no other record describes. */
static bool hole_matches(const struct filter *f, const struct ct_hole *h, const struct process *p)
{
	const char *comm = *h->comm ? h->comm : p->heard ? p->comm : "";
	bool ours = !f->npids || !h->h.pid;

	for (int i = 0; i < f->npids && !ours; i++)
		ours = (uint32_t)f->pids[i] == h->h.pid || (uint32_t)f->pids[i] == h->ns_pid ||
		       (uint32_t)f->pids[i] == p->shown_pid;
	return ours && (!f->tid || !h->h.tid || h->h.tid == f->tid) &&
	       (!f->comm_glob || !*comm || !fnmatch(f->comm_glob, comm, 0));
}

static bool pid_matches(const struct filter *f, const struct process *p)
{
	for (int i = 0; i < f->npids; i++)
		if ((uint32_t)f->pids[i] == p->pid || (uint32_t)f->pids[i] == p->shown_pid)
			return true;
	return !f->npids;
}

/* The bytes that device work moves; -1: it has no size. */
static int64_t scope_size(const struct ct_scope *s)
{
	const struct ct_collective *c = scope_collective(s);

	return c && c->bytes ? (int64_t)c->bytes : -1;
}

static int64_t work_size(const struct ct_hdr *h)
{
	switch (h->kind) {
	case CT_COPY: return (int64_t)((const struct ct_copy *)h)->bytes;
	case CT_SET: return (int64_t)((const struct ct_set *)h)->bytes;
	case CT_MEMORY: return (int64_t)((const struct ct_memory *)h)->bytes;
	case CT_SCOPE_END: return scope_size((const struct ct_scope *)h);
	default: return -1;
	}
}

/* Device work is shown whichever functions -e names, because the user asked for it with --gpu.
 * Device work does not fail. */
static bool work_matches(const struct filter *f, const struct ct_hdr *h)
{
	if (f->calls.failed_only &&
	    !(h->kind == CT_SCOPE_END && scope_failed((const struct ct_scope *)h)))
		return false;
	if (f->tid && h->tid != f->tid)
		return false;
	if (f->calls.min_duration_ns &&
	    (int64_t)(h->end_ns - h->start_ns) < (int64_t)f->calls.min_duration_ns)
		return false;
	return !f->calls.min_size_bytes || work_size(h) >= (int64_t)f->calls.min_size_bytes;
}

/* A scope has ended. Ranges and marks have no size and do not fail. */
static bool scope_matches(const struct filter *f, const struct ct_scope *s)
{
	if (f->stores)
		return true;
	return !(s->h.flags & CT_F_HIDDEN) && f->scopes >> s->kind & 1 && work_matches(f, &s->h);
}

/* A hidden call that says which device or context later calls use. */
static bool places(const struct ct_hdr *h)
{
	struct api_place place;

	return h->flags & CT_F_HIDDEN &&
	       api_place((const struct ct_call *)h, API_ARCH_HERE, &place) != API_PLACE_NONE;
}

bool filter_match(const struct filter *f, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;

	/* a thread of a process that is not shown may be what one that is shown waited for */
	if (h->kind == CT_HOST_SEGMENT)
		return true;
	if (h->kind == CT_HOLE)
		return hole_matches(f, (const struct ct_hole *)h, ev->proc);
	if (h->pid && h->kind != CT_LOST && !pid_matches(f, ev->proc))
		return false;
	switch (h->kind) {
	case CT_LOST: /* a gap concerns everybody */
	case CT_METRIC:
	case CT_CLOCK: return true;
	case CT_UNPROBED: return unprobed_matches(f, (const struct ct_unprobed *)h);
	case CT_COUNTER: /* a sample of the device as a whole, or of one process */
		return !f->calls.failed_only && (!h->pid || f->by_process);
	case CT_EVENT: return !f->calls.failed_only;
	case CT_SCOPE_END:
		if (!scope_matches(f, (const struct ct_scope *)h))
			return false;
		break;
	case CT_SCOPE_BEGIN:
		/* what is stored may be needed by a process that gets the name later */
		if (!f->definitions || f->stores)
			return f->definitions;
		break;
	case CT_NODE:
	case CT_NAME:
	case CT_FRAME:
	case CT_STACK:
	case CT_PROCESS_INFO: return f->definitions;
	case CT_CALL:
	case CT_ENTER:
		if (!call_matches(f, (const struct ct_call *)h) && !(f->stores && places(h)))
			return false;
		break;
	case CT_FOREIGN:
		if (!foreign_matches(f, (const struct ct_foreign *)h))
			return false;
		break;
	case CT_MUTED:
		if (!muted_matches(f, (const struct ct_muted *)h))
			return false;
		break;
	case CT_CONTEXT: /* reported again with its handle, by which calls refer to it */
		if (h->flags & CT_F_HIDDEN && !f->stores)
			return false;
		break;
	case CT_DEVICE: /* the machine's own devices belong to no process */
		if (!h->pid)
			return true;
		break;
	default:
		if (kind_is(h->kind, KIND_TIMED) && !work_matches(f, h))
			return false;
		break;
	}
	return !f->comm_glob || !h->pid || !fnmatch(f->comm_glob, ev->proc->comm, 0);
}

bool filter_match_device(const struct filter *f, const struct event *ev)
{
	if (!f->one_device || !kind_is(ev->rec->kind, KIND_CALL | KIND_WORK))
		return true;
	return ev->device == f->device ||
	       (ev->device == CT_UNKNOWN && !kind_is(ev->rec->kind, KIND_WORK));
}
