/* SPDX-License-Identifier: BSD-2-Clause */
/* captures.c - see captures.h. */
#include <stdlib.h>

#include "../../util/table/hashmap.h"
#include "captures.h"

#define SHARE 4
#define COPIES_MAX 16 /* copies of copies that are followed */

/* Begins with its key. */
struct node {
	uint64_t pid, id;
	uint64_t origin; /* 0: `made` is this node's own */
	struct capture made;
};

/* A process whose nodes are followed. */
struct owner {
	uint32_t pid;
	uint32_t n;
	bool exited;
};

struct captures {
	struct hashmap nodes, owners;
	uint64_t dropped;
};

struct captures *captures_open(void)
{
	struct captures *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	hashmap_open_of(&c->nodes, struct node, id, CAPTURES_MAX);
	hashmap_open_of(&c->owners, struct owner, pid, CAPTURES_MAX);
	return c;
}

void captures_close(struct captures *c)
{
	if (!c)
		return;
	hashmap_close(&c->nodes);
	hashmap_close(&c->owners);
	free(c);
}

static void forget(struct captures *c, struct owner *o)
{
	struct node *n;

	for (bool any = o->n; any; any = false)
		hashmap_each(&c->nodes, n) if (n->pid == o->pid) hashmap_remove(&c->nodes, n);
	hashmap_remove(&c->owners, o);
}

/* Makes room: what its last records said of a process that has ended has been heard by then. */
static void forget_exited(struct captures *c)
{
	struct owner *o;

	hashmap_each(&c->owners, o) if (o->exited) forget(c, o);
}

static void learn(struct captures *c, const struct event *ev)
{
	const struct ct_node *r = (const struct ct_node *)ev->rec;
	struct node key = { .pid = r->w.h.pid, .id = r->w.graph_node }, *n;
	bool made = false;
	struct owner *o;

	if (c->nodes.n == CAPTURES_MAX)
		forget_exited(c);
	o = hashmap_get(&c->owners, &r->w.h.pid, &made);
	if (!key.id)
		return;
	n = hashmap_find(&c->nodes, &key);
	if (!n && o && o->n < CAPTURES_MAX / SHARE) {
		n = hashmap_get(&c->nodes, &key, &made);
		o->n += !!n;
	}
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
	const struct ct_hdr *h = ev->rec;
	struct owner *o;

	if (h->kind == CT_NODE)
		learn(c, ev);
	if (h->kind != CT_EXIT && h->kind != CT_EXEC && h->kind != CT_PROCESS)
		return false;
	o = hashmap_find(&c->owners, &h->pid);
	if (!o)
		return false;
	/* its last kernels may still be on the way */
	if (h->kind == CT_EXIT)
		o->exited = true;
	if (h->kind != CT_EXEC && !(h->kind == CT_PROCESS && o->exited))
		return false;
	forget(c, o);
	return true;
}

const struct capture *captures_find(const struct captures *c, uint32_t pid, uint64_t node)
{
	static const struct capture before = { .scope = CT_SCOPE_UNKNOWN,
					       .func = CT_NO_FUNC,
					       .before = true };
	const struct node *n;

	if (!node || !hashmap_find(&c->owners, &pid))
		return NULL;
	for (int i = 0; i < COPIES_MAX; i++) {
		n = hashmap_find(&c->nodes, &(struct node){ .pid = pid, .id = node });
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
