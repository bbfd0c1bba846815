/* SPDX-License-Identifier: BSD-2-Clause */
/* captures.c - see captures.h. */
#include <stdlib.h>

#include "../../util/table/owned.h"
#include "../registry.h"
#include "captures.h"

#define SHARE 4
#define COPIES_MAX 16 /* copies of copies that are followed */

/* Begins with its key. */
struct node {
	uint32_t pid, pad;
	uint64_t id;
	uint64_t origin; /* 0: `made` is this node's own */
	struct capture made;
};

struct owner {
	struct registered r;
	bool followed; /* its nodes are */
};

struct captures {
	struct owned nodes;	/* of struct node */
	struct registry owners; /* of struct owner */
	uint64_t dropped;
	bool forgot;  /* by this record */
	bool orphans; /* there may be nodes of processes that were forgotten */
};

static void renewed(void *ctx, void *item, const struct ct_hdr *h)
{
	struct captures *c = ctx;
	struct owner *o = item;

	c->forgot = o->followed;
	o->followed = false;
	owned_forget(&c->nodes, h->pid);
}

static void forgotten(void *ctx, void *item, const struct ct_hdr *h)
{
	(void)item, (void)h;
	((struct captures *)ctx)->orphans = true;
}

static void drop_orphans(struct captures *c)
{
	struct node *n;

	if (!c->orphans)
		return;
	c->orphans = false;
	owned_each(&c->nodes, n) if (!registry_find(&c->owners, n->pid)) owned_remove(&c->nodes, n);
}

/* The last kernels of a process that has ended may still be on the way: it stays until there is no room. */
static const struct registry_rules rules = {
	.size = sizeof(struct owner),
	.most = REGISTRY_MOST,
	.stays_ns = UINT64_MAX,
	.exec = renewed,
	.gone = forgotten,
};

struct captures *captures_open(void)
{
	struct captures *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	owned_open_of(&c->nodes, struct node, id, CAPTURES_MAX, SHARE);
	registry_open(&c->owners, &rules, c);
	return c;
}

void captures_close(struct captures *c)
{
	if (!c)
		return;
	registry_close(&c->owners);
	owned_close(&c->nodes);
	free(c);
}

static void learn(struct captures *c, const struct event *ev)
{
	const struct ct_node *r = (const struct ct_node *)ev->rec;
	struct node key = { .pid = r->w.h.pid, .id = r->w.graph_node }, *n;
	struct owner *o;

	if (c->nodes.things.n == CAPTURES_MAX)
		registry_forget_exited(&c->owners);
	o = registry_get(&c->owners, r->w.h.pid);
	drop_orphans(c);
	if (o)
		o->followed = true;
	if (!key.id)
		return;
	n = o ? owned_get(&c->nodes, &key, &(bool){ false }) : NULL;
	if (!n) {
		c->dropped++;
		return;
	}
	/* of a copy CUPTI says both that it was made and that it is a copy, and join may turn them round */
	if (n->origin && !r->origin)
		return;
	n->origin = r->origin;
	n->made = (struct capture){ .call_ns = r->w.call_ns,
				    .tid = r->w.h.tid,
				    .number = ev->number,
				    .scope = r->w.call_ns ? r->w.scope : CT_SCOPE_UNKNOWN,
				    .stack = r->w.stack,
				    .func = r->w.func };
}

bool captures_event(struct captures *c, const struct event *ev)
{
	c->forgot = false;
	if (ev->rec->kind == CT_NODE)
		learn(c, ev);
	else
		registry_record(&c->owners, ev->rec);
	return c->forgot;
}

const struct capture *captures_find(const struct captures *c, uint32_t pid, uint64_t node)
{
	static const struct capture before = { .scope = CT_SCOPE_UNKNOWN,
					       .func = CT_NO_FUNC,
					       .before = true };
	const struct owner *o = registry_find(&c->owners, pid);
	const struct node *n;

	if (!node || !o || !o->followed)
		return NULL;
	for (int i = 0; i < COPIES_MAX; i++) {
		n = owned_find(&c->nodes, &(struct node){ .pid = pid, .id = node });
		if (!n)
			break;
		if (!n->origin)
			return &n->made;
		node = n->origin;
	}
	return &before;
}

uint64_t captures_dropped(const struct captures *c)
{
	return c->dropped;
}
