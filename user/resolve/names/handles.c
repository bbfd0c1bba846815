/* SPDX-License-Identifier: BSD-2-Clause */
/* handles.c - see handles.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/hash.h"
#include "handles.h"

/* ---- names ---- */

struct pool {
	struct chains names; /* of struct pool_name */
	size_t bytes, max_bytes;
};

struct pool *pool_open(size_t max_bytes)
{
	struct pool *p = calloc(1, sizeof(*p));

	if (p)
		p->max_bytes = max_bytes;
	return p;
}

void pool_close(struct pool *p)
{
	if (!p)
		return;
	chains_each(&p->names, link) free(link);
	chains_close(&p->names);
	free(p);
}

static size_t name_bytes(uint32_t len)
{
	return sizeof(struct pool_name) + len + 1;
}

static struct pool_name *name_make(struct pool *p, const char *text, uint32_t len, bool cut,
				   uint64_t hash)
{
	struct pool_name *x;

	if (p->bytes + name_bytes(len) > p->max_bytes)
		return NULL;
	x = calloc(1, name_bytes(len));
	if (!x || chains_add(&p->names, &x->link, hash)) {
		free(x);
		return NULL;
	}
	memcpy(x->text, text, len);
	x->len = len;
	x->cut = cut;
	p->bytes += name_bytes(len);
	return x;
}

struct pool_name *pool_get(struct pool *p, const char *text, uint32_t len, bool cut)
{
	uint64_t hash = hash_bytes(text, len);
	struct chain_link *at = chains_find(&p->names, hash);
	struct pool_name *x = NULL;

	for (; at && !x; at = chains_again(at)) {
		x = (struct pool_name *)at;
		if (x->len != len || x->cut != cut || memcmp(x->text, text, len))
			x = NULL;
	}
	if (!x)
		x = name_make(p, text, len, cut, hash);
	if (x)
		x->refs++;
	return x;
}

struct pool_name *pool_ref(struct pool_name *x)
{
	if (x)
		x->refs++;
	return x;
}

void pool_put(struct pool *p, struct pool_name *x)
{
	INVARIANT(!x || x->refs);
	if (!x || --x->refs)
		return;
	chains_remove(&p->names, &x->link);
	p->bytes -= name_bytes(x->len);
	free(x);
}

/* ---- handles ---- */

#define FIRST_BUCKETS 64	    /* a power of two */
#define MAX_BUCKETS (1 << 20)	    /* buckets of one process: three quarters of them can be used */
#define GONE_BUCKETS 512	    /* a power of two */
#define GONE_MAX (GONE_BUCKETS / 2) /* when this many owners are gone, their handles are removed */

struct table {
	uint32_t refs; /* number of processes that share the table */
	uint32_t nbuckets, used;
	struct handle *buckets;
};

struct gone {
	uint64_t owner, from_ns; /* owner 0: a free bucket */
};

struct handles {
	struct pool *pool;
	struct table *t;
	uint64_t context_ended_ns, runtime_unloaded_ns, driver_unloaded_ns, doubted_ns;
	struct gone *gone; /* GONE_BUCKETS; NULL: none yet */
	uint32_t ngone;
};

static uint32_t hash_handle(uint64_t handle)
{
	return (uint32_t)hash_number(handle);
}

static struct table *table_open(uint32_t nbuckets)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->buckets = calloc(nbuckets, sizeof(*t->buckets));
	if (!t->buckets) {
		free(t);
		return NULL;
	}
	t->nbuckets = nbuckets;
	t->refs = 1;
	return t;
}

static void table_put(struct table *t, struct pool *pool)
{
	INVARIANT(!t || t->refs);
	if (!t || --t->refs)
		return;
	for (uint32_t i = 0; i < t->nbuckets; i++)
		pool_put(pool, t->buckets[i].name);
	free(t->buckets);
	free(t);
}

static struct handle *bucket_of(const struct table *t, uint64_t handle)
{
	uint32_t i = hash_handle(handle) & (t->nbuckets - 1);

	while (t->buckets[i].flags && t->buckets[i].handle != handle)
		i = (i + 1) & (t->nbuckets - 1);
	return &t->buckets[i];
}

struct handles *handles_open(struct pool *pool)
{
	struct handles *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->pool = pool;
	h->t = table_open(FIRST_BUCKETS);
	if (!h->t) {
		free(h);
		return NULL;
	}
	return h;
}

void handles_close(struct handles *h)
{
	if (!h)
		return;
	table_put(h->t, h->pool);
	free(h->gone);
	free(h);
}

struct handles *handles_fork(struct handles *parent)
{
	struct handles *h = malloc(sizeof(*h));

	if (!h)
		return NULL;
	*h = *parent;
	if (parent->gone) {
		h->gone = malloc(GONE_BUCKETS * sizeof(*h->gone));
		if (!h->gone) {
			free(h);
			return NULL;
		}
		memcpy(h->gone, parent->gone, GONE_BUCKETS * sizeof(*h->gone));
	}
	h->t->refs++;
	return h;
}

static struct gone *gone_bucket(const struct handles *h, uint64_t owner)
{
	uint32_t i = hash_handle(owner) & (GONE_BUCKETS - 1);

	while (h->gone[i].owner && h->gone[i].owner != owner)
		i = (i + 1) & (GONE_BUCKETS - 1);
	return &h->gone[i];
}

/* Whether the handle was learned after its owner was last unloaded. */
static bool alive(const struct handles *h, const struct handle *e)
{
	if (e->flags & HANDLE_IN_CONTEXT && e->learned_ns < h->context_ended_ns)
		return false;
	if (!(e->flags & HANDLE_RUNTIME) && e->learned_ns < h->doubted_ns)
		return false;
	if (e->owner) {
		const struct gone *g = h->gone ? gone_bucket(h, e->owner) : NULL;

		return !g || !g->owner || e->learned_ns >= g->from_ns;
	}
	/* Its owner is not known: any unloading may have been its owner's. */
	if (e->learned_ns < h->runtime_unloaded_ns)
		return false;
	return e->flags & HANDLE_RUNTIME || e->learned_ns >= h->driver_unloaded_ns;
}

/* Moves the handles that are not gone into a new table, which is not shared and has room for one
 * more. */
static int rebuild(struct handles *h)
{
	uint32_t n = 0, nbuckets = FIRST_BUCKETS;
	struct table *t;

	for (uint32_t i = 0; i < h->t->nbuckets; i++)
		n += h->t->buckets[i].flags && alive(h, &h->t->buckets[i]);
	while (n + 1 > nbuckets / 16 * 11)
		nbuckets *= 2;
	if (nbuckets > MAX_BUCKETS)
		return -ENOSPC;
	t = table_open(nbuckets);
	if (!t)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->t->nbuckets; i++) {
		const struct handle *e = &h->t->buckets[i];

		if (!e->flags || !alive(h, e))
			continue;
		*bucket_of(t, e->handle) = *e;
		pool_ref(e->name);
		t->used++;
	}
	table_put(h->t, h->pool);
	h->t = t;
	return 0;
}

const struct handle *handles_find(struct handles *h, uint64_t handle)
{
	const struct handle *e = bucket_of(h->t, handle);

	return e->flags && (e->name || e->flags & HANDLE_PART) && alive(h, e) ? e : NULL;
}

/* There are too many handles: forgetting all is better than keeping what may be out of date. */
static int start_anew(struct handles *h)
{
	struct table *t = table_open(FIRST_BUCKETS);

	if (!t)
		return -ENOMEM;
	table_put(h->t, h->pool);
	h->t = t;
	return 0;
}

int handles_put(struct handles *h, const struct handle *new)
{
	struct handle *e = bucket_of(h->t, new->handle);
	int err = 0;

	if (h->t->refs > 1 || (!e->flags && h->t->used >= h->t->nbuckets / 4 * 3)) {
		err = rebuild(h);
		e = bucket_of(h->t, new->handle);
	}
	if (err) {
		pool_put(h->pool, new->name);
		return err == -ENOSPC && start_anew(h) ? -ENOMEM : err;
	}
	if (e->flags)
		pool_put(h->pool, e->name);
	else
		h->t->used++;
	*e = *new;
	e->flags |= HANDLE_USED;
	return 0;
}

int handles_unloaded(struct handles *h, uint64_t owner, uint64_t from_ns, bool runtime)
{
	uint64_t *any = runtime ? &h->runtime_unloaded_ns : &h->driver_unloaded_ns;
	struct gone *g;

	if (from_ns > *any)
		*any = from_ns;
	if (!h->gone) {
		h->gone = calloc(GONE_BUCKETS, sizeof(*h->gone));
		if (!h->gone)
			return -ENOMEM;
	}
	g = gone_bucket(h, owner);
	if (!g->owner && h->ngone >= GONE_MAX) {
		int err = rebuild(h);

		if (err)
			return err;
		memset(h->gone, 0, GONE_BUCKETS * sizeof(*h->gone));
		h->ngone = 0;
		g = gone_bucket(h, owner);
	}
	h->ngone += !g->owner;
	g->owner = owner;
	if (from_ns > g->from_ns)
		g->from_ns = from_ns;
	return 0;
}

void handles_context_ended(struct handles *h, uint64_t from_ns)
{
	if (from_ns > h->context_ended_ns)
		h->context_ended_ns = from_ns;
}

void handles_doubt(struct handles *h, uint64_t at_ns)
{
	h->doubted_ns = at_ns;
	handles_context_ended(h, at_ns);
}
