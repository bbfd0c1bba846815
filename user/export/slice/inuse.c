/* SPDX-License-Identifier: BSD-2-Clause */
/* inuse.c - see inuse.h. */
#include <stdlib.h>

#include "inuse.h"
#include "../../util/table/keyed.h"

#define MAX (1u << 20) /* allocations at a time */

struct piece {
	struct {
		uint64_t address, pid;
	} key;
	int64_t bytes;
	uint32_t device;
};

struct inuse {
	struct keyed pieces;
	uint64_t dropped;
};

struct inuse *inuse_open(void)
{
	struct inuse *u = calloc(1, sizeof(*u));

	if (u)
		keyed_open_of(&u->pieces, struct piece, key, MAX);
	return u;
}

void inuse_close(struct inuse *u)
{
	if (u)
		keyed_close(&u->pieces);
	free(u);
}

bool inuse_call(struct inuse *u, const struct event *ev, uint32_t *device, int64_t *delta)
{
	struct piece want, *p;
	struct api_memory m;
	bool made;

	if (ev->rec->kind != CT_CALL)
		return false;
	api_memory((const struct ct_call *)ev->rec, API_ARCH_HERE, &m);
	if (m.bytes >= CT_SIZE_MOST)
		m.bytes = 0; /* there is no such size */
	if ((m.what != API_MEMORY_TAKEN && m.what != API_MEMORY_FREED) ||
	    m.space != API_SPACE_DEVICE ||
	    (m.what == API_MEMORY_TAKEN && m.kind == API_MEM_IMPORTED))
		return false;
	want.key.address = m.address;
	want.key.pid = ev->rec->pid;
	if (m.what == API_MEMORY_FREED) {
		p = keyed_find(&u->pieces, &want.key);
		if (!p)
			return false;
		*device = p->device;
		*delta = -p->bytes;
		keyed_remove(&u->pieces, p);
		return true;
	}
	p = keyed_get(&u->pieces, &want.key, &made);
	if (!p) {
		u->dropped++;
		return false;
	}
	/* not new: the nested driver call inside the runtime's call was counted already, or its
	 * free was not seen */
	if (made)
		p->device = ev->device;
	*device = p->device;
	*delta = (int64_t)m.bytes - p->bytes;
	p->bytes = (int64_t)m.bytes;
	return made || *delta;
}

void inuse_forget(struct inuse *u, uint32_t pid)
{
	struct piece *p;

	keyed_each(&u->pieces, p) if (p->key.pid == pid) keyed_remove(&u->pieces, p);
}

uint64_t inuse_dropped(const struct inuse *u)
{
	return u->dropped;
}
