/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * names.c - see names.h.
 *
 * Two tables are kept for each process: which kernel each handle means (handles.h: all 20 000 that
 * a library registers), and which handles were reported by a CT_NAME record (the few hundred that
 * are launched). A launch of a kernel whose name was reported costs one look-up in the second
 * table. If the meaning of a reported handle changes, its name is withdrawn at once, so that later
 * stages never use an old name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/msg.h"
#include "../../util/table/hashmap.h"
#include "handles.h"
#include "nested_launches.h"
#include "names.h"
#include "pieces.h"

#define POOL_BYTES ((size_t)128 << 20)
#define REPORTED_MAX \
	65536 /* reported handles of one process; beyond that, all are reported again */
/* how long the names of an ended process are kept, because its last records may still be on the
 * way */
#define EXITED_NS 5000000000ULL
/* pairs of handle and name of one process that are compared with the driver's memory */
#define TEACH_MAX 64

/* A handle that a call was about. */
struct reported {
	uint64_t handle;
	struct pool_name *name; /* NULL: no name was reported */
	uint8_t source;
	uint8_t tries; /* number of nested launches that did not help */
};

struct names_process {
	struct chain_link link; /* the hash is the pid */
	uint32_t pid;
	uint64_t start_boottime_ns; /* 0: not known */
	uint64_t exited_ns;	    /* 0: it has not ended */
	struct handles *handles;
	struct hashmap reported; /* of struct reported */
	uint32_t taught;
};

struct names {
	struct names_ops ops;
	void *ctx;
	struct pool *pool;
	struct pieces *pieces;
	struct nested_launches *nested; /* NULL: not wanted */
	struct chains processes;	/* of struct names_process */
	struct names_process *last;
	uint32_t nexited;
	uint64_t now_ns; /* time of the newest record */
	uint64_t launches, named;
	bool warned;
	union {
		struct ct_name rec;
		char room[sizeof(struct ct_name) + CT_NAME_MAX + 8];
	};
};

struct names *names_open(const struct names_ops *ops, void *ctx, bool nested)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->ops = *ops;
	n->ctx = ctx;
	n->pool = pool_open(POOL_BYTES);
	n->pieces = pieces_open();
	if (nested)
		n->nested = nested_launches_open();
	if (!n->pool || !n->pieces || (nested && !n->nested)) {
		names_close(n);
		return NULL;
	}
	return n;
}

/* ---- processes ---- */

static void clear_reported(struct names *n, struct names_process *p)
{
	struct reported *t;

	hashmap_each(&p->reported, t) pool_put(n->pool, t->name);
	hashmap_close(&p->reported);
}

static void proc_free(struct names *n, struct names_process *p)
{
	clear_reported(n, p);
	handles_close(p->handles);
	free(p);
}

void names_close(struct names *n)
{
	if (!n)
		return;
	chains_each(&n->processes, link) proc_free(n, (struct names_process *)link);
	chains_close(&n->processes);
	nested_launches_close(n->nested);
	pieces_close(n->pieces);
	pool_close(n->pool);
	free(n);
}

static struct names_process *proc_find(struct names *n, uint32_t pid)
{
	struct names_process *p = n->last;

	if (p && p->pid == pid)
		return p;
	p = (struct names_process *)chains_find(&n->processes, pid);
	if (p)
		n->last = p;
	return p;
}

/* Returns the process, and adds it if it is new. NULL: no memory. */
static struct names_process *proc_get(struct names *n, uint32_t pid)
{
	struct names_process *p = proc_find(n, pid);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->handles = handles_open(n->pool);
	if (!p->handles || chains_add(&n->processes, &p->link, pid)) {
		handles_close(p->handles);
		free(p);
		return NULL;
	}
	p->pid = pid;
	hashmap_open_of(&p->reported, struct reported, handle, REPORTED_MAX);
	n->last = p;
	return p;
}

static void proc_drop(struct names *n, struct names_process *p)
{
	if (!p)
		return;
	chains_remove(&n->processes, &p->link);
	n->last = NULL;
	n->nexited -= p->exited_ns != 0;
	proc_free(n, p);
}

/* Drops the processes that ended a while ago. */
static void sweep_exited(struct names *n)
{
	if (!n->nexited)
		return;
	chains_each(&n->processes, link)
	{
		struct names_process *p = (struct names_process *)link;

		if (p->exited_ns && p->exited_ns + EXITED_NS <= n->now_ns)
			proc_drop(n, p);
	}
}

/* ---- reporting names ---- */

static int emit(struct names *n, uint32_t pid, uint64_t at_ns, uint64_t handle,
		const struct pool_name *name, uint8_t source)
{
	struct ct_name *r = &n->rec;
	uint32_t len = name ? name->len : 0, padded = (len + 7) & ~7u;

	memset(r, 0, sizeof(*r));
	r->h = (struct ct_hdr){ .size = (uint16_t)(sizeof(*r) + padded),
				.kind = CT_NAME,
				.pid = pid,
				.start_ns = at_ns,
				.end_ns = at_ns };
	r->handle = handle;
	r->len = len;
	r->source = source;
	r->cut = name && name->cut;
	memset(r->name + len, 0, padded - len);
	if (name)
		memcpy(r->name, name->text, len);
	msg_debug(MSG_NAMES, "process %u: handle 0x%llx is %s%.*s%s", pid,
		  (unsigned long long)handle, name ? "" : "without a name from now on", (int)len,
		  name ? name->text : "", r->cut ? " (cut)" : "");
	return n->ops.out(n->ctx, &r->h);
}

/* Withdraws the name that was reported for a handle. */
static int take_back(struct names *n, struct names_process *p, struct reported *t, uint64_t at_ns)
{
	if (!t->name)
		return 0;
	pool_put(n->pool, t->name);
	t->name = NULL;
	return emit(n, p->pid, at_ns, t->handle, NULL, CT_NAME_NONE);
}

static int take_all_back(struct names *n, struct names_process *p, uint64_t at_ns)
{
	struct reported *t;
	int err = 0;

	hashmap_each(&p->reported, t)
	{
		err = take_back(n, p, t, at_ns);
		if (err)
			break;
	}
	return err;
}

/* What was reported of a handle that a call is about. NULL: no memory. */
static struct reported *reported_get(struct names *n, struct names_process *p, uint64_t handle,
				     uint64_t at_ns, int *err)
{
	struct reported *t = hashmap_find(&p->reported, &handle);

	*err = 0;
	if (t)
		return t;
	if (p->reported.n >= REPORTED_MAX) {
		*err = take_all_back(n, p, at_ns);
		clear_reported(n, p);
	}
	t = hashmap_get(&p->reported, &handle, &(bool){ false });
	if (!t)
		*err = -ENOMEM;
	return t;
}

/* Withdraws reported names that are not valid any more. */
static int check_reported(struct names *n, struct names_process *p, uint64_t at_ns)
{
	struct reported *t;
	int err = 0;

	hashmap_each(&p->reported, t)
	{
		const struct handle *h = t->name ? handles_find(p->handles, t->handle) : NULL;

		if (t->name && (!h || h->name != t->name))
			err = take_back(n, p, t, at_ns);
		if (err)
			break;
	}
	return err;
}

/* ---- learning ---- */

/* The handle has this name from now on (NULL: an unknown name). Takes over the reference to the
 * name. */
static int learn(struct names *n, struct names_process *p, struct handle *h)
{
	struct reported *t = hashmap_find(&p->reported, &h->handle);
	int err = 0, e;

	if (t && t->name != h->name)
		err = take_back(n, p, t, h->learned_ns);
	if (t)
		t->tries = 0;
	if (!h->name && !(h->flags & HANDLE_PART) && !handles_find(p->handles, h->handle))
		return err;
	e = handles_put(p->handles, h);
	if (e == -ENOSPC) {
		if (!n->warned)
			msg_warn("process %u has too many kernels: the names known so far are "
				 "forgotten",
				 p->pid);
		n->warned = true;
		e = check_reported(n, p, h->learned_ns);
	}
	return err ? err : e;
}

static struct pool_name *intern(struct names *n, const char *name, uint32_t len, bool cut)
{
	struct pool_name *x = len ? pool_get(n->pool, name, len, cut) : NULL;

	if (len && !x && !n->warned) {
		n->warned = true;
		msg_warn("there are %zu MiB of kernels' names: no more are kept", POOL_BYTES >> 20);
	}
	return x;
}

/* The name of a driver's handle is used to check the driver's own memory. */
static void teach(struct names *n, struct names_process *p, const struct handle *h)
{
	if (!n->ops.teach || !h->name || h->name->cut || h->flags & HANDLE_RUNTIME ||
	    h->source != CT_NAME_REGISTERED || p->taught >= TEACH_MAX)
		return;
	p->taught++;
	n->ops.teach(n->ctx, p->pid, h->handle, h->name->text, h->name->len);
}

static int learn_name(struct names *n, struct names_process *p, const struct ct_call *c,
		      const struct api_name_event *l, struct handle *h)
{
	const struct handle *part = handles_find(p->handles, l->owner),
			    *old = handles_find(p->handles, l->handle);
	uint32_t len = l->len;
	bool cut = l->cut;
	const char *name = l->name;
	int err;

	if (name)
		name = pieces_join(n->pieces, c, l->read, name, &len, &cut);
	h->name = name ? intern(n, name, len, cut) : NULL;
	h->source = CT_NAME_REGISTERED;
	h->owner = part && part->flags & HANDLE_PART ? part->owner : l->owner;
	/* a call asked for the handle's name: the handle's owner is known from the call that looked
	 * it up */
	if (!l->owner && old) {
		h->owner = old->owner;
		h->flags = old->flags;
	}
	err = learn(n, p, h);
	if (!err)
		teach(n, p, h);
	return err;
}

/* Asks for the name of a handle that no call has taught, and keeps the answer. NULL: not known. */
static const struct handle *ask(struct names *n, struct names_process *p, uint64_t handle,
				bool driver, uint64_t at_ns, int *err)
{
	struct handle h = { .handle = handle,
			    .learned_ns = at_ns,
			    .flags = driver ? HANDLE_IN_CONTEXT : HANDLE_RUNTIME };
	enum ct_name_source source = CT_NAME_NONE;
	const char *name = NULL;
	uint32_t len = 0;

	*err = 0;
	if (n->ops.ask)
		name = n->ops.ask(n->ctx, p->pid, handle, driver, &source, &len);
	if (!name || !len)
		return NULL;
	h.name = intern(n, name, len, false);
	if (!h.name)
		return NULL;
	h.source = (uint8_t)source;
	/* the driver's memory describes the handle: it may also belong to a library that the
	 * driver's own functions loaded */
	if (source == CT_NAME_DRIVER)
		h.flags &= (uint8_t)~HANDLE_RUNTIME;
	*err = learn(n, p, &h);
	return handles_find(p->handles, handle);
}

static int learn_same(struct names *n, struct names_process *p, const struct api_name_event *l,
		      bool driver, struct handle *h)
{
	const struct handle *of = l->of ? handles_find(p->handles, l->of) : NULL;
	int err = 0;

	if (!of && l->of)
		of = ask(n, p, l->of, driver, h->learned_ns, &err);
	if (err)
		return err;
	if (of && of->name) {
		h->name = pool_ref(of->name);
		h->owner = of->owner;
		h->source = of->source;
		h->flags |= of->flags & HANDLE_IN_CONTEXT;
	}
	err = learn(n, p, h);
	if (!err)
		teach(n, p, h);
	return err;
}

/* Whether the function's handles of kernels are the driver's own; else they are addresses in the
 * program. */
static bool is_drivers(const struct api_func *f)
{
	return !api_domains[f->domain].host_stubs;
}

static int learn_call(struct names *n, const struct ct_call *c)
{
	bool driver = c->func < api_nfuncs && is_drivers(&api_funcs[c->func]);
	struct api_name_event l;
	struct handle h;
	struct names_process *p;
	int err = 0;

	if (api_name_event(c, API_ARCH_HERE, &l) == API_NAME_EVENT_NONE)
		return 0;
	p = proc_get(n, c->h.pid);
	if (!p)
		return -ENOMEM;
	h = (struct handle){ .handle = l.handle, .learned_ns = c->h.start_ns };
	h.flags = (uint8_t)((l.in_context ? HANDLE_IN_CONTEXT : 0) | (driver ? 0 : HANDLE_RUNTIME));
	switch (l.kind) {
	case API_NAME_EVENT_NAME: return learn_name(n, p, c, &l, &h);
	case API_NAME_EVENT_SAME: return learn_same(n, p, &l, driver, &h);
	case API_NAME_EVENT_PART:
		h.flags |= HANDLE_PART;
		h.owner = l.of;
		return l.of ? learn(n, p, &h) : 0;
	case API_NAME_EVENT_UNLOADED:
		err = handles_unloaded(p->handles, l.owner, c->h.start_ns, !driver);
		break;
	default: handles_context_ended(p->handles, c->h.start_ns);
	}
	if (n->ops.forget)
		n->ops.forget(n->ctx, p->pid);
	return err ? err : check_reported(n, p, c->h.start_ns);
}

int names_doubt(struct names *n, uint64_t at_ns)
{
	int err = 0;

	chains_each(&n->processes, link)
	{
		struct names_process *p = (struct names_process *)link;

		handles_doubt(p->handles, at_ns);
		if (n->ops.forget)
			n->ops.forget(n->ctx, p->pid);
		if (!err)
			err = check_reported(n, p, at_ns);
	}
	return err;
}

/* ---- the kernels that calls are about ---- */

/* For a runtime launch of a kernel that has no name: uses the name of the driver's launch that is
 * nested in it. */
static const struct handle *learn_inner(struct names *n, struct names_process *p,
					struct reported *t, const struct ct_call *c, int *err)
{
	const struct handle *in;
	struct handle h = { .handle = t->handle,
			    .learned_ns = c->h.start_ns,
			    .flags = HANDLE_RUNTIME,
			    .source = CT_NAME_INNER };
	uint64_t handle;

	*err = 0;
	if (!nested_launches_of(n->nested, c, &handle, &t->tries))
		return NULL;
	in = handles_find(p->handles, handle);
	if (!in)
		in = ask(n, p, handle, true, c->h.start_ns, err);
	if (!in || !in->name || *err)
		return NULL;
	h.name = pool_ref(in->name);
	h.owner = in->owner;
	*err = learn(n, p, &h);
	nested_launches_settled(n->nested, &t->tries);
	return *err ? NULL : handles_find(p->handles, h.handle);
}

static int report(struct names *n, const struct ct_call *c, uint64_t handle)
{
	const struct api_func *f = &api_funcs[c->func];
	bool driver = is_drivers(f), launch = f->class == API_LAUNCH && c->h.kind == CT_CALL &&
					      !(c->h.flags & CT_F_PENDING);
	struct names_process *p = proc_get(n, c->h.pid);
	const struct handle *h;
	struct reported *t;
	int err;

	if (!p)
		return -ENOMEM;
	n->launches += launch;
	t = reported_get(n, p, handle, c->h.start_ns, &err);
	if (!t || err)
		return err;
	if (t->name) {
		n->named += launch;
		return err;
	}
	h = handles_find(p->handles, handle);
	if (!h || !h->name)
		h = ask(n, p, handle, driver, c->h.start_ns, &err);
	if (!h && !err && launch && !driver && n->nested)
		h = learn_inner(n, p, t, c, &err);
	if (!h || !h->name || err)
		return err;
	n->named += launch;
	t->name = pool_ref(h->name);
	t->source = h->source;
	return emit(n, p->pid, c->h.start_ns, handle, t->name, t->source);
}

static int call(struct names *n, const struct ct_call *c)
{
	uint64_t handle;
	int err = learn_call(n, c);

	if (!err && api_kernel(c, API_ARCH_HERE, &handle)) {
		if (n->nested && c->depth && c->h.kind == CT_CALL &&
		    api_domains[api_funcs[c->func].domain].below &&
		    api_funcs[c->func].class == API_LAUNCH)
			nested_launches_saw(n->nested, c, handle);
		/* a call that itself has the name, which may come 20 000 times in a row, needs no
		 * CT_NAME */
		if (!(c->h.flags & CT_F_HIDDEN) && !api_says_name(c->func))
			err = report(n, c, handle);
	}
	if (n->nested && !c->depth && c->h.kind == CT_CALL)
		nested_launches_done(n->nested, c);
	return err;
}

/* Handles a kernel whose launches were counted in the kernel side. */
static int tallied(struct names *n, const struct ct_call_count *t)
{
	struct ct_call c = {
		.h = { .kind = CT_CALL,
		       .flags = CT_F_PENDING,
		       .pid = t->h.pid,
		       .tid = t->h.tid,
		       .start_ns = t->h.end_ns },
		.func = t->func,
	};

	return t->how == CT_BY_KERNEL && t->by ? report(n, &c, t->by) : 0;
}

/* ---- records ---- */

static int process(struct names *n, const struct ct_process *r)
{
	struct names_process *p = proc_find(n, r->h.pid);

	if (p && (r->h.kind == CT_EXEC || p->exited_ns ||
		  (p->start_boottime_ns && p->start_boottime_ns != r->start_boottime_ns))) {
		proc_drop(n, proc_find(n, r->h.pid));
		if (n->ops.forget)
			n->ops.forget(n->ctx, r->h.pid);
		p = NULL;
	}
	sweep_exited(n);
	if (!p)
		p = proc_get(n, r->h.pid);
	if (!p)
		return -ENOMEM;
	p->start_boottime_ns = r->start_boottime_ns;
	return 0;
}

/* A child has its parent's kernels. */
static int forked(struct names *n, const struct ct_fork *r)
{
	struct names_process *parent = proc_find(n, r->h.pid), *p;
	struct handles *handles;

	if (r->child_pid == r->h.pid)
		return 0;
	proc_drop(n, proc_find(n, r->child_pid));
	if (!parent || parent->exited_ns)
		return 0;
	handles = handles_fork(parent->handles);
	p = handles ? proc_get(n, r->child_pid) : NULL;
	if (!p) {
		handles_close(handles);
		return -ENOMEM;
	}
	handles_close(p->handles);
	p->handles = handles;
	return 0;
}

int names_record(struct names *n, const struct ct_hdr *h)
{
	struct names_process *p;

	if (h->end_ns > n->now_ns)
		n->now_ns = h->end_ns;
	if (h->lost)
		pieces_drop(n->pieces);
	switch (h->kind) {
	case CT_CALL:
	case CT_ENTER: return call(n, (const struct ct_call *)h);
	case CT_CALL_COUNT: return tallied(n, (const struct ct_call_count *)h);
	case CT_MORE: pieces_add(n->pieces, (const struct ct_more *)h); return 0;
	case CT_PROCESS:
	case CT_EXEC: return process(n, (const struct ct_process *)h);
	case CT_FORK: return forked(n, (const struct ct_fork *)h);
	case CT_EXIT:
		p = proc_find(n, h->pid);
		if (p && !p->exited_ns) {
			p->exited_ns = h->end_ns + 1;
			n->nexited++;
		}
		sweep_exited(n);
		return 0;
	default: return 0;
	}
}

bool names_wants_nested(const struct names *n)
{
	return n->nested && nested_launches_wanted(n->nested, n->now_ns);
}

void names_totals(const struct names *n, uint64_t *launches, uint64_t *named)
{
	*launches = n->launches;
	*named = n->named;
}
