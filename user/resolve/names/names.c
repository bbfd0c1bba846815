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
#include "../../event/registry.h"
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
	struct registered r;
	struct handles *handles;
	struct hash_map reported; /* of struct reported */
	uint32_t taught;
};

struct names {
	struct names_ops ops;
	void *ctx;
	struct pool *pool;
	struct pieces *pieces;
	struct nested_launches *nested; /* NULL: not wanted */
	struct registry processes;	/* of struct names_process */
	uint64_t now_ns;		/* time of the newest record */
	uint64_t launches, named;
	bool warned;
	union {
		struct ct_name rec;
		char room[sizeof(struct ct_name) + CT_NAME_MAX + 8];
	};
};

static void renewed(void *ctx, void *item, const struct ct_hdr *);
static void forgotten(void *ctx, void *item, const struct ct_hdr *);

static const struct registry_rules rules = { .size = sizeof(struct names_process),
					     .most = UINT32_MAX,
					     .stays_ns = EXITED_NS,
					     .all = true,
					     .exec = renewed,
					     .gone = forgotten };

struct names *names_open(const struct names_ops *ops, void *ctx, bool nested)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->ops = *ops;
	n->ctx = ctx;
	registry_open(&n->processes, &rules, n);
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

	hash_map_each(&p->reported, t) pool_put(n->pool, t->name);
	hash_map_close(&p->reported);
}

static void forgotten(void *ctx, void *item, const struct ct_hdr *h)
{
	struct names_process *p = item;

	(void)h;
	clear_reported(ctx, p);
	handles_close(p->handles);
	p->handles = NULL;
}

/* It is another program, or another process, now. */
static void renewed(void *ctx, void *item, const struct ct_hdr *h)
{
	struct names *n = ctx;
	struct names_process *p = item;

	forgotten(n, p, h);
	p->taught = 0;
	if (n->ops.forget)
		n->ops.forget(n->ctx, h->pid);
}

void names_close(struct names *n)
{
	if (!n)
		return;
	registry_close(&n->processes);
	nested_launches_close(n->nested);
	pieces_close(n->pieces);
	pool_close(n->pool);
	free(n);
}

/* Returns the process, and adds it if it is new. NULL: no memory. */
static struct names_process *proc_get(struct names *n, uint32_t pid)
{
	struct names_process *p = registry_get(&n->processes, pid);

	if (p && !p->handles) {
		hash_map_open_of(&p->reported, struct reported, handle, REPORTED_MAX);
		p->handles = handles_open(n->pool);
	}
	return p && p->handles ? p : NULL;
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
	return emit(n, p->r.pid, at_ns, t->handle, NULL, CT_NAME_NONE);
}

static int take_all_back(struct names *n, struct names_process *p, uint64_t at_ns)
{
	struct reported *t;
	int err = 0;

	hash_map_each(&p->reported, t)
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
	struct reported *t = hash_map_find(&p->reported, &handle);

	*err = 0;
	if (t)
		return t;
	if (p->reported.n >= REPORTED_MAX) {
		*err = take_all_back(n, p, at_ns);
		clear_reported(n, p);
	}
	t = hash_map_get(&p->reported, &handle, &(bool){ false });
	if (!t)
		*err = -ENOMEM;
	return t;
}

/* Withdraws reported names that are not valid any more. */
static int check_reported(struct names *n, struct names_process *p, uint64_t at_ns)
{
	struct reported *t;
	int err = 0;

	hash_map_each(&p->reported, t)
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
	struct reported *t = hash_map_find(&p->reported, &h->handle);
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
				 p->r.pid);
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
	n->ops.teach(n->ctx, p->r.pid, h->handle, h->name->text, h->name->len);
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
		name = n->ops.ask(n->ctx, p->r.pid, handle, driver, &source, &len);
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
		n->ops.forget(n->ctx, p->r.pid);
	return err ? err : check_reported(n, p, c->h.start_ns);
}

int names_doubt(struct names *n, uint64_t at_ns)
{
	struct names_process *p;
	int err = 0;

	registry_each(&n->processes, p)
	{
		if (p->handles)
			handles_doubt(p->handles, at_ns);
		if (n->ops.forget)
			n->ops.forget(n->ctx, p->r.pid);
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
	return emit(n, p->r.pid, c->h.start_ns, handle, t->name, t->source);
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

/* A child has its parent's kernels. */
static int forked(struct names *n, const struct ct_fork *r)
{
	struct names_process *parent = registry_find(&n->processes, r->h.pid), *p;
	struct handles *handles;

	if (r->child_pid == r->h.pid)
		return 0;
	p = registry_find(&n->processes, r->child_pid);
	if (p)
		registry_forget(&n->processes, p);
	if (!parent || !parent->handles || parent->r.exited)
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
	if (h->end_ns > n->now_ns)
		n->now_ns = h->end_ns;
	if (h->lost)
		pieces_drop(n->pieces);
	switch (h->kind) {
	case CT_CALL:
	case CT_ENTER: return call(n, (const struct ct_call *)h);
	case CT_CALL_COUNT: return tallied(n, (const struct ct_call_count *)h);
	case CT_MORE: pieces_add(n->pieces, (const struct ct_more *)h); return 0;
	case CT_FORK: return forked(n, (const struct ct_fork *)h);
	default:
		if (registry_record(&n->processes, h))
			registry_sweep(&n->processes, n->now_ns);
		return 0;
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
