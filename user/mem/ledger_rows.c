/* SPDX-License-Identifier: BSD-2-Clause */
/* ledger_rows.c - see ledger_rows.h: hashes of numbers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ledger_rows.h"
#include "../util/table/array.h"

#define ROWS_MAX (1u << 18)
#define PROCESSES_MAX (1u << 16)
#define PID_SLOTS (PROCESSES_MAX * 2)

int ledger_index_open(struct ledger *l)
{
	struct ledger_index *x = calloc(1, sizeof(*x));

	l->index = x;
	if (!x)
		return -ENOMEM;
	x->most = l->opts.rows_max && l->opts.rows_max < ROWS_MAX ? l->opts.rows_max : ROWS_MAX;
	x->slots = 1024;
	x->rows = calloc(x->slots, sizeof(*x->rows));
	x->pids = calloc(PID_SLOTS, sizeof(*x->pids));
	return x->rows && x->pids ? 0 : -ENOMEM;
}

void ledger_index_close(struct ledger *l)
{
	if (!l->index)
		return;
	free(l->index->rows);
	free(l->index->pids);
	free(l->index);
}

/* ---- rows ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 32;
}

static uint32_t *row_slot(const struct ledger *l, const struct ledger_row *k)
{
	const struct ledger_index *x = l->index;
	uint64_t h = mix(k->by | (uint64_t)k->where << 8 | (uint64_t)k->kind << 16 |
				 (uint64_t)k->end << 24 | (uint64_t)k->device << 32,
			 (uint64_t)k->process << 32 | k->site);

	h = mix(h, (uintptr_t)k->library);
	for (uint32_t i = (uint32_t)(h >> 8) & (x->slots - 1);; i = (i + 1) & (x->slots - 1)) {
		const struct ledger_row *r = x->rows[i] ? &l->rows[x->rows[i] - 1] : NULL;

		if (!r || (r->by == k->by && r->where == k->where && r->kind == k->kind &&
			   r->end == k->end && r->device == k->device && r->process == k->process &&
			   r->site == k->site && r->library == k->library))
			return &x->rows[i];
	}
}

const struct ledger_row *ledger_row_find(const struct ledger *l, const struct ledger_row *key)
{
	uint32_t at = *row_slot(l, key);

	return at ? &l->rows[at - 1] : NULL;
}

/* Room for one more. */
static bool grow(struct ledger *l)
{
	struct ledger_index *x = l->index;
	uint32_t slots = x->slots * 2, *old = x->rows;

	if (l->nrows >= x->most)
		return false;
	if (!array_room(l->rows, l->nrows))
		return false;
	if (l->nrows < x->slots / 2)
		return true;
	x->rows = calloc(slots, sizeof(*x->rows));
	if (!x->rows) {
		x->rows = old;
		return false;
	}
	x->slots = slots;
	for (uint32_t i = 0; i < l->nrows; i++)
		*row_slot(l, &l->rows[i]) = i + 1;
	free(old);
	return true;
}

struct ledger_row *ledger_row(struct ledger *l, const struct ledger_row *key)
{
	uint32_t *slot = row_slot(l, key);

	if (*slot)
		return &l->rows[*slot - 1];
	if (!grow(l)) {
		l->no_row++;
		return NULL;
	}
	l->rows[l->nrows++] = *key;
	*row_slot(l, key) = l->nrows;
	return &l->rows[l->nrows - 1];
}

/* ---- processes ---- */

static uint32_t *pid_slot(const struct ledger *l, uint32_t pid)
{
	const struct ledger_index *x = l->index;
	uint32_t i = pid * 2654435761u & (PID_SLOTS - 1);

	while (x->pids[i] && l->processes[x->pids[i] - 1].pid != pid)
		i = (i + 1) & (PID_SLOTS - 1);
	return &x->pids[i];
}

uint32_t ledger_process_find(const struct ledger *l, uint32_t pid)
{
	uint32_t at = *pid_slot(l, pid);

	return at ? at - 1 : UINT32_MAX;
}

static uint32_t place(struct ledger *l)
{
	for (; l->index->free_process < l->nprocesses; l->index->free_process++)
		if (!l->processes[l->index->free_process].used)
			return l->index->free_process;
	if (l->nprocesses >= PROCESSES_MAX)
		return UINT32_MAX;
	if (!array_room(l->processes, l->nprocesses))
		return UINT32_MAX;
	return l->nprocesses++;
}

uint32_t ledger_process(struct ledger *l, const struct process *proc)
{
	uint32_t at = *pid_slot(l, proc->pid);
	struct ledger_process *p;

	if (!at) {
		uint32_t i = place(l);

		if (i == UINT32_MAX)
			return i;
		l->processes[i] = (struct ledger_process){ .pid = proc->pid, .used = true };
		at = i + 1;
		*pid_slot(l, proc->pid) = at;
	}
	p = &l->processes[at - 1];
	p->shown_pid = proc->shown_pid;
	if (proc->start_boottime_ns) {
		p->start_boottime_ns = proc->start_boottime_ns;
		p->from_start |= l->began_boottime_ns &&
				 proc->start_boottime_ns >= l->began_boottime_ns;
	}
	memcpy(p->comm, proc->comm, sizeof(p->comm));
	return at - 1;
}

void ledger_process_drop(struct ledger *l, uint32_t process)
{
	struct ledger_process *p = &l->processes[process];
	uint32_t *slot = pid_slot(l, p->pid), hole = (uint32_t)(slot - l->index->pids);

	for (uint32_t i = (hole + 1) & (PID_SLOTS - 1); l->index->pids[i];
	     i = (i + 1) & (PID_SLOTS - 1)) {
		uint32_t home = l->processes[l->index->pids[i] - 1].pid * 2654435761u &
				(PID_SLOTS - 1);

		if (((i - home) & (PID_SLOTS - 1)) < ((i - hole) & (PID_SLOTS - 1)))
			continue;
		l->index->pids[hole] = l->index->pids[i];
		hole = i;
	}
	l->index->pids[hole] = 0;
	if (p->had)
		return;
	p->used = false;
	if (process < l->index->free_process)
		l->index->free_process = process;
}

struct ledger_freed *ledger_freed_slot(struct ledger *l, uint32_t process, uint8_t space,
				       uint64_t address)
{
	uint64_t h = mix(address, (uint64_t)process << 8 | space);

	return &l->index->freed[(h >> 20) & (FREED_SLOTS - 1)];
}
