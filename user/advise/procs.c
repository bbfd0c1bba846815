/* SPDX-License-Identifier: BSD-2-Clause */
/* procs.c - see procs.h. */
#include <stdlib.h>
#include <string.h>

#include "procs.h"
#include "proc_steps.h"

static void free_proc(struct advise_process *p)
{
	for (unsigned int i = 0; i < nrules; i++) {
		if (p->state[i] && rules[i]->free)
			rules[i]->free(p->state[i]);
		free(p->state[i]);
	}
	for (unsigned int i = 0; i < p->ndevices; i++)
		spans_free(&p->devices[i].busy);
	free(p->devices);
	proc_steps_close(p->steps);
	free(p);
}

void procs_free(struct procs *ps)
{
	for (uint32_t i = 0; i < ps->n; i++)
		free_proc(ps->at[i]);
	hash_map_close(&ps->threads);
	memset(ps, 0, sizeof(*ps));
}

static struct advise_process *new_proc(struct procs *ps, const struct event *ev, uint32_t start)
{
	struct advise_process *p;

	if (ps->n == PROCS_MAX)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->index = ps->n;
	p->rank = CT_UNKNOWN;
	p->pid = ev->rec->pid;
	p->start = start;
	ps->at[ps->n++] = p;
	return p;
}

/* A process may be known before the time of its start is known: it gets that time then, and is no other one. */
struct advise_process *procs_find(struct procs *ps, const struct event *ev)
{
	uint32_t pid = ev->rec->pid, start = (uint32_t)(ev->proc->start_boottime_ns >> 10);
	struct advise_process *p =
		ps->last && ps->last->pid == pid && ps->last->start == start ? ps->last : NULL;

	for (uint32_t i = ps->n; i > 0 && !p; i--)
		if (ps->at[i - 1]->pid == pid &&
		    (ps->at[i - 1]->start == start || !ps->at[i - 1]->start))
			p = ps->at[i - 1];
	if (!p)
		p = new_proc(ps, ev, start);
	if (!p)
		return NULL;
	if (ps->last != p || !p->start) {
		p->start = start;
		p->shown = ev->proc->shown_pid;
	}
	if (ev->proc->info)
		p->rank = ev->proc->info->rank;
	memcpy(p->comm, ev->proc->comm, sizeof(p->comm));
	return ps->last = p;
}

struct thread *procs_thread(struct procs *ps, const struct advise_process *p, uint32_t tid)
{
	if (!ps->threads.size)
		hash_map_open_of(&ps->threads, struct thread, tid, THREADS_MAX);
	return hash_map_get(&ps->threads, (uint32_t[]){ p->index, tid }, &(bool){ false });
}
