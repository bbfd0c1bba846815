/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * defs.c - see defs.h. A hash holds a copy of the newest record for each (kind, process, id).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../util/hash.h"
#include "../util/msg.h"
#include "../util/table/chains.h"
#include "defs.h"

#define BYTES_MAX (64u << 20)

struct def {
	struct chain_link link;
	uint64_t id;
	bool exited; /* for a process: it has exited */
	union {
		struct ct_hdr h;
		struct ct_process process;
		char room[1];
	};
};

struct defs {
	struct chains kept; /* of struct def */
	size_t bytes;
	uint64_t dropped;
	bool said;
};

struct defs *defs_open(void)
{
	return calloc(1, sizeof(struct defs));
}

static size_t defs_bytes_of(const struct def *e)
{
	return offsetof(struct def, room) + e->h.size;
}

static void defs_drop(struct defs *d, struct def *e)
{
	if (!e)
		return;
	chains_remove(&d->kept, &e->link);
	d->bytes -= defs_bytes_of(e);
	free(e);
}

/* Drops the entries that `which` selects. */
static void defs_sweep(struct defs *d, bool (*which)(const struct def *, uint64_t), uint64_t arg)
{
	chains_each(&d->kept, link) if (which((struct def *)link, arg))
		defs_drop(d, (struct def *)link);
}

static bool any(const struct def *e, uint64_t arg)
{
	(void)e, (void)arg;
	return true;
}

void defs_close(struct defs *d)
{
	if (!d)
		return;
	defs_sweep(d, any, 0);
	chains_close(&d->kept);
	free(d);
}

static uint64_t defs_hash_of(uint16_t kind, uint32_t pid, uint64_t id)
{
	return hash_bytes((uint64_t[]){ (uint64_t)kind << 32 | pid, id }, 2 * sizeof(uint64_t));
}

static struct def *defs_find(const struct defs *d, uint16_t kind, uint32_t pid, uint64_t id)
{
	struct chain_link *at = chains_find(&d->kept, defs_hash_of(kind, pid, id));

	for (; at; at = chains_again(at)) {
		struct def *e = (struct def *)at;

		if (e->id == id && e->h.pid == pid && e->h.kind == kind)
			return e;
	}
	return NULL;
}

static bool old_stack(const struct def *e, uint64_t id)
{
	return (e->h.kind == CT_FRAME || e->h.kind == CT_STACK) && e->id < id;
}

static bool is_name(const struct def *e, uint64_t arg)
{
	(void)arg;
	return e->h.kind == CT_NAME;
}

static bool is_stream(const struct def *e, uint64_t arg)
{
	(void)arg;
	return e->h.kind == CT_STREAM || e->h.kind == CT_CONTEXT || e->h.kind == CT_THREAD_NAME ||
	       e->h.kind == CT_SCOPE_BEGIN || e->h.kind == CT_NODE;
}

static bool is_no_process(const struct def *e, uint64_t arg)
{
	(void)arg;
	return e->h.kind != CT_PROCESS;
}

/* Makes room. It first drops the older half of the frames and stacks, because their ids are not
 * used for long. If that is not enough, it drops definitions that only a program that creates
 * streams without end, or a malicious file, has in such numbers. */
static void defs_make_room(struct defs *d)
{
	bool (*const rest[])(const struct def *, uint64_t) = { is_name, is_stream, is_no_process,
							       any };
	size_t before = d->kept.n;
	uint64_t newest = 0;

	if (d->bytes <= BYTES_MAX)
		return;
	chains_each(&d->kept, link)
	{
		const struct def *e = (struct def *)link;

		if (e->h.kind == CT_FRAME && e->id > newest)
			newest = e->id;
	}
	for (uint64_t part = 2; part <= 8 && d->bytes > BYTES_MAX / 4 * 3; part *= 2)
		defs_sweep(d, old_stack, newest - newest / part);
	for (size_t i = 0; i < ARRAY_LEN(rest) && d->bytes > BYTES_MAX / 4 * 3; i++)
		defs_sweep(d, rest[i], 0);
	d->dropped += before - d->kept.n;
	if (!d->said)
		msg_warn("definitions take more than %u MiB: in files begun later, some calls have "
			 "no names of kernels or no stacks",
			 BYTES_MAX >> 20);
	d->said = true;
}

/* Keeps a copy under `kind`, which may differ from the record's own kind. */
static int defs_keep(struct defs *d, const struct ct_hdr *h, uint16_t kind, uint32_t pid,
		     uint64_t id)
{
	struct def *e;

	defs_drop(d, defs_find(d, kind, pid, id));
	e = malloc(offsetof(struct def, room) + h->size + sizeof(e->process));
	if (!e)
		return -ENOMEM;
	memset(e, 0, offsetof(struct def, room));
	memcpy(e->room, h, h->size);
	e->id = id;
	e->h.kind = kind;
	e->h.pid = pid;
	if (chains_add(&d->kept, &e->link, defs_hash_of(kind, pid, id))) {
		free(e);
		return -ENOMEM;
	}
	d->bytes += defs_bytes_of(e);
	defs_make_room(d);
	return 0;
}

static bool of_process(const struct def *e, uint64_t pid)
{
	return e->h.pid == pid;
}

/* A process that begins or becomes another program has none of the definitions that were known
 * under its pid before. */
static int defs_process(struct defs *d, const struct ct_process *p)
{
	const struct def *e = defs_find(d, CT_PROCESS, p->h.pid, 0);
	bool same = e && p->h.kind == CT_PROCESS &&
		    e->process.start_boottime_ns == p->start_boottime_ns;

	if (e && !same)
		defs_sweep(d, of_process, p->h.pid);
	return defs_keep(d, &p->h, CT_PROCESS, p->h.pid, 0);
}

/* A child has the description of its parent until its own record comes. */
static int fork_of(struct defs *d, const struct ct_fork *f)
{
	const struct def *e = defs_find(d, CT_PROCESS, f->h.pid, 0);
	struct ct_process child;

	if (!e || e->h.size < sizeof(child))
		return 0;
	child = e->process;
	child.h.size = sizeof(child);
	child.h.tid = f->child_pid;
	child.ppid = f->h.pid;
	child.ns_pid = f->child_ns_pid;
	child.start_boottime_ns = 0;
	return defs_keep(d, &child.h, CT_PROCESS, f->child_pid, 0);
}

/* The name of the main thread is the name of the process. */
static int thread_name(struct defs *d, const struct ct_thread_name *n)
{
	struct def *e = n->h.tid == n->h.pid ? defs_find(d, CT_PROCESS, n->h.pid, 0) : NULL;

	if (!e || e->h.size < sizeof(e->process))
		return defs_keep(d, &n->h, n->h.kind, n->h.pid, n->h.tid);
	memcpy(e->process.comm, n->comm, sizeof(e->process.comm));
	return 0;
}

/* That a node is a copy says more than the call that copied it. */
static int node(struct defs *d, const struct ct_node *n)
{
	const struct def *e = defs_find(d, CT_NODE, n->w.h.pid, n->w.graph_node);

	if (e && !n->origin && ((const struct ct_node *)&e->h)->origin)
		return 0;
	return defs_keep(d, &n->w.h, CT_NODE, n->w.h.pid, n->w.graph_node);
}

/* The key of a row of what was not seen, without its process. */
static uint64_t hole_id(const struct ct_hole *h)
{
	const uint64_t key[] = { h->h.start_ns, (uint64_t)h->h.tid << 32 | h->device,
				 (uint64_t)h->reason << 16 | (uint64_t)h->layer << 8 | h->state,
				 h->text_len ? hash_bytes(h->text, h->text_len) : 0 };

	return hash_bytes(key, sizeof(key));
}

int defs_record(struct defs *d, const struct ct_hdr *h)
{
	struct def *e;

	switch (h->kind) {
	case CT_PROCESS:
	case CT_EXEC: return defs_process(d, (const struct ct_process *)h);
	case CT_FORK: return fork_of(d, (const struct ct_fork *)h);
	case CT_EXIT:
		e = defs_find(d, CT_PROCESS, h->pid, 0);
		if (e)
			e->exited = true;
		return 0;
	case CT_PROCESS_INFO: return defs_keep(d, h, h->kind, h->pid, 0);
	case CT_THREAD_NAME: return thread_name(d, (const struct ct_thread_name *)h);
	case CT_DEVICE: return defs_keep(d, h, h->kind, h->pid, ((const struct ct_device *)h)->id);
	case CT_CONTEXT:
		/* a repeated definition does not replace the first one, which is shown */
		return defs_keep(d, h, h->kind, h->pid,
				 ((const struct ct_context *)h)->id |
					 (uint64_t)(h->flags & CT_F_HIDDEN) << 32);
	case CT_STREAM:
		return defs_keep(d, h, h->kind, h->pid,
				 ((const struct ct_stream *)h)->id |
					 (uint64_t)((const struct ct_stream *)h)->context << 32);
	case CT_SCOPE_BEGIN:
		return defs_keep(d, h, h->kind, h->pid, ((const struct ct_scope *)h)->id);
	case CT_SCOPE_END:
		defs_drop(d,
			  defs_find(d, CT_SCOPE_BEGIN, h->pid, ((const struct ct_scope *)h)->id));
		return 0;
	case CT_NODE: return node(d, (const struct ct_node *)h);
	case CT_HOLE: return defs_keep(d, h, h->kind, h->pid, hole_id((const struct ct_hole *)h));
	case CT_METRIC: return defs_keep(d, h, h->kind, h->pid, ((const struct ct_metric *)h)->id);
	case CT_FRAME: return defs_keep(d, h, h->kind, h->pid, ((const struct ct_frame *)h)->id);
	case CT_STACK: return defs_keep(d, h, h->kind, h->pid, ((const struct ct_stack *)h)->id);
	case CT_NAME:
		if (((const struct ct_name *)h)->len)
			return defs_keep(d, h, h->kind, h->pid,
					 ((const struct ct_name *)h)->handle);
		defs_drop(d, defs_find(d, h->kind, h->pid, ((const struct ct_name *)h)->handle));
		return 0;
	default: return 0;
	}
}

/* What was defined by processes that have exited, and by nobody else since. */
static bool of_exited(const struct def *e, uint64_t defs)
{
	const struct def *p =
		defs_find((const struct defs *)(uintptr_t)defs, CT_PROCESS, e->h.pid, 0);

	return p && p->exited && e != p;
}

static bool is_exited(const struct def *e, uint64_t arg)
{
	(void)arg;
	return e->exited;
}

static void defs_forget_exited(struct defs *d)
{
	defs_sweep(d, of_exited, (uintptr_t)d);
	defs_sweep(d, is_exited, 0);
}

static int by_number(const void *a, const void *b)
{
	const struct def *x = *(const struct def *const *)a, *y = *(const struct def *const *)b;

	if (x->h.pid != y->h.pid)
		return x->h.pid < y->h.pid ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Writes those of one kind, in an order that is the same in each run. */
static int write_kind(const struct defs *d, uint16_t kind, emit_fn emit, void *ctx)
{
	const struct def **some = malloc((d->kept.n + 1) * sizeof(*some));
	size_t n = 0;
	int err = 0;

	if (!some)
		return -ENOMEM;
	chains_each(&d->kept, link)
	{
		if (((const struct def *)link)->h.kind == kind)
			some[n++] = (const struct def *)link;
	}
	qsort(some, n, sizeof(*some), by_number);
	for (size_t i = 0; i < n && !err; i++)
		err = emit(ctx, &some[i]->h);
	free(some);
	return err;
}

int defs_write(struct defs *d, emit_fn emit, void *ctx)
{
	static const uint16_t order[] = { CT_PROCESS, CT_PROCESS_INFO, CT_THREAD_NAME, CT_DEVICE,
					  CT_CONTEXT, CT_STREAM,       CT_METRIC,      CT_NAME,
					  CT_FRAME,   CT_STACK,	       CT_SCOPE_BEGIN, CT_NODE,
					  CT_HOLE };
	int err = 0;

	for (size_t k = 0; k < ARRAY_LEN(order) && !err; k++)
		err = write_kind(d, order[k], emit, ctx);
	defs_forget_exited(d);
	return err;
}

uint64_t defs_dropped(const struct defs *d)
{
	return d->dropped;
}
