/* SPDX-License-Identifier: BSD-2-Clause */
/* procs.c - see procs.h. */
#include <stdlib.h>
#include <string.h>

#include "procs.h"

static void free_proc(struct proc *p)
{
	for (unsigned int i = 0; i < nrules; i++) {
		if (p->state[i] && rules[i].free)
			rules[i].free(p->state[i]);
		free(p->state[i]);
	}
	for (unsigned int i = 0; i < p->ndevices; i++)
		spans_free(&p->devices[i].busy);
	free(p->devices);
	free(p);
}

void procs_free(struct procs *ps)
{
	for (uint32_t i = 0; i < ps->n; i++)
		free_proc(ps->at[i]);
	free(ps->threads);
	memset(ps, 0, sizeof(*ps));
}

static struct proc *new_proc(struct procs *ps, const struct event *ev, uint32_t start)
{
	struct proc *p;

	if (ps->n == PROCS_MAX)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->index = ps->n;
	p->pid = ev->rec->pid;
	p->start = start;
	ps->at[ps->n++] = p;
	return p;
}

/* A process that is known before its start is becomes the one with the start. */
struct proc *procs_find(struct procs *ps, const struct event *ev)
{
	uint32_t pid = ev->rec->pid, start = (uint32_t)(ev->proc->start_boottime_ns >> 10);
	struct proc *p = ps->last && ps->last->pid == pid && ps->last->start == start ? ps->last
										      : NULL;

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
	memcpy(p->comm, ev->proc->comm, sizeof(p->comm));
	return ps->last = p;
}

static uint32_t thread_hash(uint32_t proc, uint32_t tid)
{
	return (uint32_t)(((uint64_t)proc << 32 | tid) * 0x9e3779b97f4a7c15ULL >> 40);
}

static struct thread *thread_slot(struct thread *threads, uint32_t cap, uint32_t proc, uint32_t tid)
{
	uint32_t at = thread_hash(proc, tid);

	/* proc is kept plus one: zero is free */
	while (threads[at & (cap - 1)].proc &&
	       (threads[at & (cap - 1)].proc != proc + 1 || threads[at & (cap - 1)].tid != tid))
		at++;
	return &threads[at & (cap - 1)];
}

static bool grow_threads(struct procs *ps)
{
	uint32_t cap = ps->threads_cap ? ps->threads_cap * 2 : 256;
	struct thread *threads = calloc(cap, sizeof(*threads));

	if (!threads)
		return false;
	for (uint32_t i = 0; i < ps->threads_cap; i++)
		if (ps->threads[i].proc)
			*thread_slot(threads, cap, ps->threads[i].proc - 1, ps->threads[i].tid) =
				ps->threads[i];
	free(ps->threads);
	ps->threads = threads;
	ps->threads_cap = cap;
	return true;
}

struct thread *procs_thread(struct procs *ps, const struct proc *p, uint32_t tid)
{
	struct thread *t =
		ps->threads_cap ? thread_slot(ps->threads, ps->threads_cap, p->index, tid) : NULL;

	if (t && t->proc)
		return t;
	if (ps->nthreads >= THREADS_MAX ||
	    ((ps->nthreads + 1) * 2 > ps->threads_cap && !grow_threads(ps)))
		return NULL;
	t = thread_slot(ps->threads, ps->threads_cap, p->index, tid);
	ps->nthreads++;
	t->proc = p->index + 1;
	t->tid = tid;
	return t;
}
