/* SPDX-License-Identifier: BSD-2-Clause */
/* inuse.c - see inuse.h. An open-addressed hash by process and address; what is removed lets
 * those behind it move up.
 */
#include <stdlib.h>
#include <string.h>

#include "inuse.h"

#define FIRST 1024
#define MAX (1u << 20) /* allocations at a time */

struct piece {
	uint64_t address; /* 0: free */
	int64_t bytes;
	uint32_t pid, device;
};

struct inuse {
	struct piece *pieces;
	uint32_t n, slots;
	uint64_t dropped;
};

struct inuse *inuse_open(void)
{
	struct inuse *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->slots = FIRST;
	u->pieces = calloc(u->slots, sizeof(*u->pieces));
	if (!u->pieces) {
		free(u);
		return NULL;
	}
	return u;
}

void inuse_close(struct inuse *u)
{
	if (!u)
		return;
	free(u->pieces);
	free(u);
}

static uint32_t home_of(const struct inuse *u, uint32_t pid, uint64_t address)
{
	uint64_t h = (address ^ (uint64_t)pid << 40) * 0x9e3779b97f4a7c15;

	return (uint32_t)(h >> 32) & (u->slots - 1);
}

static struct piece *slot_of(const struct inuse *u, uint32_t pid, uint64_t address)
{
	uint32_t at = home_of(u, pid, address);

	while (u->pieces[at].address &&
	       (u->pieces[at].address != address || u->pieces[at].pid != pid))
		at = (at + 1) & (u->slots - 1);
	return &u->pieces[at];
}

static bool grow(struct inuse *u)
{
	struct piece *old = u->pieces;
	uint32_t n = u->slots;

	if (u->slots / 2 >= MAX)
		return false;
	u->pieces = calloc(n * 2, sizeof(*old));
	if (!u->pieces) {
		u->pieces = old;
		return false;
	}
	u->slots = n * 2;
	for (uint32_t i = 0; i < n; i++)
		if (old[i].address)
			*slot_of(u, old[i].pid, old[i].address) = old[i];
	free(old);
	return true;
}

static void removed(struct inuse *u, struct piece *p)
{
	uint32_t mask = u->slots - 1, hole = (uint32_t)(p - u->pieces);

	for (uint32_t at = (hole + 1) & mask; u->pieces[at].address; at = (at + 1) & mask) {
		uint32_t home = home_of(u, u->pieces[at].pid, u->pieces[at].address);

		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		u->pieces[hole] = u->pieces[at];
		hole = at;
	}
	memset(&u->pieces[hole], 0, sizeof(*p));
	u->n--;
}

bool inuse_call(struct inuse *u, const struct event *ev, uint32_t *device, int64_t *delta)
{
	struct api_memory m;
	struct piece *p;

	if (ev->rec->kind != CT_CALL)
		return false;
	api_memory((const struct ct_call *)ev->rec, API_ARCH_HERE, &m);
	if ((m.what != API_MEMORY_TAKEN && m.what != API_MEMORY_FREED) ||
	    m.space != API_SPACE_DEVICE ||
	    (m.what == API_MEMORY_TAKEN && m.kind == API_MEM_IMPORTED))
		return false;
	p = slot_of(u, ev->rec->pid, m.address);
	if (m.what == API_MEMORY_FREED) {
		if (!p->address)
			return false;
		*device = p->device;
		*delta = -p->bytes;
		removed(u, p);
		return true;
	}
	if (p->address) {
		/* the driver's call inside the runtime's told of it already, or its return was
		 * not seen */
		*device = p->device;
		*delta = (int64_t)m.bytes - p->bytes;
		p->bytes = (int64_t)m.bytes;
		return *delta != 0;
	}
	if (u->n >= u->slots / 2) {
		if (!grow(u)) {
			u->dropped++;
			return false;
		}
		p = slot_of(u, ev->rec->pid, m.address);
	}
	*p = (struct piece){ .address = m.address,
			     .bytes = (int64_t)m.bytes,
			     .pid = ev->rec->pid,
			     .device = ev->device };
	u->n++;
	*device = p->device;
	*delta = p->bytes;
	return true;
}

void inuse_forget(struct inuse *u, uint32_t pid)
{
	for (uint32_t i = 0; i < u->slots;) {
		/* what moves up into the place is looked at too */
		if (u->pieces[i].address && u->pieces[i].pid == pid)
			removed(u, &u->pieces[i]);
		else
			i++;
	}
}

uint64_t inuse_dropped(const struct inuse *u)
{
	return u->dropped;
}
