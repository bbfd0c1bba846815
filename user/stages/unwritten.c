/* SPDX-License-Identifier: BSD-2-Clause */
/* unwritten.c - see unwritten.h. Knows no output. */
#include <errno.h>
#include <string.h>

#include "../event/holes/holes.h"
#include "unwritten.h"

#define PROCESSES_MAX 16384 /* those beyond are counted together */

struct unwritten_row {
	uint32_t pid, layer; /* the key; pid 0: of all others */
	uint32_t shown_pid, pad;
	uint64_t count, stated, first_ns, last_ns;
	char comm[CT_COMM_LEN];
};

void unwritten_close(struct unwritten *u)
{
	hash_map_close(&u->rows);
}

int unwritten_add(struct unwritten *u, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	struct unwritten_row key = { .pid = h->pid,
				     .layer = kind_is(h->kind, KIND_DEVICE) ? CT_HOLE_DEVICE
									    : CT_HOLE_CALLS },
			     *row;
	bool made;

	if (h->kind == CT_ENTER)
		return 0; /* its call is counted when it returns */
	if (!u->rows.size)
		hash_map_open_of(&u->rows, struct unwritten_row, layer, PROCESSES_MAX + 2);
	if (u->rows.n >= PROCESSES_MAX && !hash_map_find(&u->rows, &key))
		key.pid = 0;
	row = hash_map_get(&u->rows, &key, &made);
	if (!row)
		return -ENOMEM;
	if (made) {
		row->first_ns = h->start_ns;
		if (row->pid) {
			row->shown_pid = ev->proc->shown_pid;
			memcpy(row->comm, ev->proc->comm, sizeof(row->comm));
		}
	}
	row->count++;
	row->last_ns = h->end_ns > row->last_ns ? h->end_ns : row->last_ns;
	return 0;
}

int unwritten_state(struct unwritten *u, int (*show)(void *ctx, const struct ct_hdr *), void *ctx)
{
	int err = 0;

	for (size_t i = 0; i < u->rows.n && !err; i++) {
		struct unwritten_row *row = hash_map_at(&u->rows, i);
		struct ct_hole hole = hole_of(row->pid, (enum ct_hole_layer)row->layer,
					      CT_HOLE_LOST, CT_HOLE_UNWRITTEN);

		if (row->count == row->stated)
			continue;
		row->stated = row->count;
		hole_when(&hole, row->first_ns, row->last_ns);
		hole.count = row->count;
		hole.ns_pid = row->shown_pid;
		memcpy(hole.comm, row->comm, sizeof(hole.comm));
		err = show(ctx, &hole.h);
	}
	return err;
}
