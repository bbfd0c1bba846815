/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * account.c - see account.h.
 *
 * Records come in the order in which calls returned. One thread's free may return after another
 * thread's allocation that was given the same address: so a free whose call began before the
 * allocation at its address had returned frees what was there before. And if an address is
 * allocated while it is held, a free was not seen.
 *
 * Physical memory (cuMemCreate) lives as long as one of its handles or mappings does, and a
 * handle's number may be reused before that. So the memory has a number of its own, to which
 * handles and mappings refer.
 */
#include <stdlib.h>
#include <string.h>

#include "../../util/table/array.h"
#include "../device.h"
#include "account.h"

#define PROCESSES_MAX (1u << 16)

/* Both APIs use the same number. */
#define UNLOADING 4 /* the driver or the runtime is being shut down */

/* Where a process is among the account's. */
struct pid_place {
	struct registered r;
	uint32_t at; /* + 1; 0: nowhere yet */
};

static void renewed(void *ctx, void *item, const struct ct_hdr *h);
static void ended(void *ctx, void *item, const struct ct_hdr *h);

static const struct registry_rules rules = {
	.size = sizeof(struct pid_place), .most = PROCESSES_MAX, .exec = renewed, .gone = ended
};

void account_open(struct account *a, uint32_t most, const struct account_ops *ops, void *ctx)
{
	static const struct account_ops none = { 0 };

	*a = (struct account){ .ops = ops ? ops : &none, .ctx = ctx };
	live_init(&a->live, most);
	registry_open(&a->pids, &rules, a);
}

void account_close(struct account *a)
{
	registry_close(&a->pids);
	live_free(&a->live);
	free(a->processes);
}

enum account_where account_where(const struct live_entry *e)
{
	switch (e->kind) {
	case API_MEM_HOST:
	case API_MEM_REGISTERED: return ACCOUNT_HOST;
	case API_MEM_IMPORTED:
	case API_MEM_RESERVED:
	case API_MEM_MAPPED: return ACCOUNT_ADDRESSES;
	default: return ACCOUNT_DEVICE;
	}
}

/* ---- processes ---- */

uint32_t account_process_find(const struct account *a, uint32_t pid)
{
	const struct pid_place *p = registry_find(&a->pids, pid);

	return p ? p->at - 1 : UINT32_MAX;
}

static uint32_t free_place(struct account *a)
{
	for (; a->free_process < a->nprocesses; a->free_process++)
		if (!a->processes[a->free_process].used)
			return a->free_process;
	if (a->nprocesses >= PROCESSES_MAX)
		return UINT32_MAX;
	if (!array_room(a->processes, a->nprocesses))
		return UINT32_MAX;
	return a->nprocesses++;
}

uint32_t account_process(struct account *a, const struct process *proc)
{
	struct pid_place *place = registry_of(&a->pids, proc);
	struct account_process *p;
	uint32_t at;

	if (place && !place->at) {
		at = free_place(a);
		if (at == UINT32_MAX)
			return UINT32_MAX;
		a->processes[at] = (struct account_process){ .pid = proc->pid, .used = true };
		place->at = at + 1;
	}
	if (!place)
		return UINT32_MAX;
	at = place->at - 1;
	p = &a->processes[at];
	p->shown_pid = proc->shown_pid;
	if (proc->start_boottime_ns)
		p->from_start |= a->began_boottime_ns &&
				 proc->start_boottime_ns >= a->began_boottime_ns;
	memcpy(p->comm, proc->comm, sizeof(p->comm));
	return at;
}

/* A process that has ended and never held anything is forgotten. */
static void process_drop(struct account *a, uint32_t process)
{
	struct account_process *p = &a->processes[process];

	if (p->had || p->handles)
		return;
	p->used = false;
	if (process < a->free_process)
		a->free_process = process;
}

/* ---- entries ---- */

/* Adds it to the sums of all processes, and tells who asked. */
static void entry_moved(struct account *a, const struct live_entry *e, enum account_why why,
			uint64_t at_ns)
{
	uint64_t *bytes = &a->bytes[account_where(e)], *peak = &a->peak[account_where(e)];

	/* of a handle the memory behind it counts */
	if (e->space != API_SPACE_HANDLE && why != ACCOUNT_TAKEN)
		*bytes -= e->bytes < *bytes ? e->bytes : *bytes;
	else if (e->space != API_SPACE_HANDLE && __builtin_add_overflow(*bytes, e->bytes, bytes))
		*bytes = UINT64_MAX;
	*peak = *bytes > *peak ? *bytes : *peak;
	if (a->ops->moved)
		a->ops->moved(a->ctx, e, why, at_ns);
}

static void entry_remove(struct account *a, struct live_entry *e, enum account_why why,
			 uint64_t at_ns)
{
	entry_moved(a, e, why, at_ns);
	a->processes[e->process].live_n--;
	live_remove(&a->live, e);
}

/* Removes handles or mappings of physical memory. */
static void drop_refs(struct account *a, uint32_t process, uint64_t number, uint32_t n,
		      uint64_t at_ns)
{
	struct live_entry *memory = number ? live_find(&a->live, process, LIVE_PHYSICAL, number)
					   : NULL;

	if (!memory)
		return;
	memory->refs -= n < memory->refs ? n : memory->refs;
	if (!memory->refs)
		entry_remove(a, memory, ACCOUNT_RELEASED, at_ns);
}

/* An entry for what was taken. NULL: no room. */
static struct live_entry *entry_add(struct account *a, const struct live_entry *from)
{
	struct live_entry *e = live_find(&a->live, from->process, from->space, from->address);

	if (e) {
		/* it was freed: by a call that has not returned yet, or by one that was not seen */
		a->processes[from->process].unfreed_n++;
		if (from->space == API_SPACE_HANDLE || from->space == API_SPACE_MAPPED)
			drop_refs(a, from->process, e->of,
				  from->space == API_SPACE_HANDLE ? e->refs : 1, from->taken_ns);
		e = live_find(&a->live, from->process, from->space, from->address);
		entry_remove(a, e, ACCOUNT_RELEASED, from->taken_ns);
	}
	e = live_add(&a->live, from->process, from->space, from->address);
	if (!e) {
		a->no_room++;
		return NULL;
	}
	*e = *from;
	if (e->bytes >= CT_SIZE_MOST ||
	    (account_where(e) != ACCOUNT_ADDRESSES && a->bytes[account_where(e)] >= CT_SUM_MOST)) {
		a->odd_sizes += e->space != API_SPACE_HANDLE;
		e->bytes = 0;
	}
	a->processes[from->process].live_n++;
	entry_moved(a, e, ACCOUNT_TAKEN, from->taken_ns);
	return e;
}

/* The device that a call works on. A thread that has chosen none uses the first one: that is
 * known only for a program that was seen from its beginning, and only for the runtime. */
uint16_t account_device(const struct account_process *p, const struct event *ev,
			const struct api_memory *m)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	uint32_t device = m->device != CT_UNKNOWN ? m->device : ev->device;

	if (device == CT_UNKNOWN && p->from_start && !ev->context_handle &&
	    api_domains[api_funcs[c->func].domain].first_device)
		device = 0;
	return device < LIVE_NO_DEVICE ? (uint16_t)device : LIVE_NO_DEVICE;
}

static void call_takes(struct account *a, const struct event *ev, const struct account_call *t,
		       const struct api_memory *m)
{
	struct live_entry e = { .address = m->address,
				.bytes = m->bytes,
				.taken_ns = t->c->h.end_ns,
				.process = t->process,
				.site = t->site,
				.space = m->space,
				.allocator = t->allocator,
				.kind = m->kind,
				.device = account_device(&a->processes[t->process], ev, m) },
			  *other;

	if (m->space == API_SPACE_HANDLE) {
		struct live_entry memory = e;

		memory.space = LIVE_PHYSICAL;
		memory.address = ++a->serial;
		memory.refs = 1;
		if (!entry_add(a, &memory))
			return;
		e.of = memory.address;
		e.refs = 1;
		if (!entry_add(a, &e))
			drop_refs(a, t->process, memory.address, 1, e.taken_ns);
		return;
	}
	if (m->space == API_SPACE_MAPPED) {
		other = live_find(&a->live, t->process, API_SPACE_HANDLE, m->of);
		e.of = other ? other->of : 0;
		other = e.of ? live_find(&a->live, t->process, LIVE_PHYSICAL, e.of) : NULL;
		if (other)
			other->refs++;
		if (!entry_add(a, &e))
			drop_refs(a, t->process, e.of, 1, e.taken_ns);
		return;
	}
	if (m->space != API_SPACE_RESERVED)
		e.of = ev->context_handle;
	entry_add(a, &e);
}

/* Adds a handle of the memory that is mapped at an address. */
static void call_retains(struct account *a, const struct account_call *t,
			 const struct api_memory *m)
{
	struct live_entry *mapping = live_find(&a->live, t->process, API_SPACE_MAPPED, m->of),
			  *handle, *memory;
	struct live_entry e = { .address = m->address,
				.taken_ns = t->c->h.end_ns,
				.process = t->process,
				.site = t->site,
				.space = API_SPACE_HANDLE,
				.device = LIVE_NO_DEVICE,
				.refs = 1 };

	memory = mapping && mapping->of
			 ? live_find(&a->live, t->process, LIVE_PHYSICAL, mapping->of)
			 : NULL;
	if (!memory)
		return;
	handle = live_find(&a->live, t->process, API_SPACE_HANDLE, m->address);
	e.of = memory->address;
	e.kind = memory->kind;
	memory->refs++;
	if (handle && handle->of == e.of)
		handle->refs++;
	else if (!entry_add(a, &e))
		drop_refs(a, t->process, e.of, 1, e.taken_ns);
}

static void free_unseen(struct account *a, const struct account_call *t)
{
	a->processes[t->process].unseen_n++;
	if (a->ops->unseen)
		a->ops->unseen(a->ctx, t);
}

/* Removes all mappings in a number of bytes from an address. */
static void call_unmaps(struct account *a, const struct account_call *t, uint64_t bytes)
{
	uint64_t at = t->address, end;

	if (__builtin_add_overflow(at, bytes, &end))
		end = UINT64_MAX;
	do {
		struct live_entry *e = live_find(&a->live, t->process, API_SPACE_MAPPED, at);
		uint64_t of;

		if (!e || !e->bytes) {
			free_unseen(a, t);
			return;
		}
		at += e->bytes;
		of = e->of;
		entry_remove(a, e, ACCOUNT_RELEASED, t->c->h.start_ns);
		drop_refs(a, t->process, of, 1, t->c->h.start_ns);
	} while (at < end && at > t->address);
}

static void call_gives_back(struct account *a, const struct account_call *t,
			    const struct api_memory *m)
{
	struct live_entry *e;

	if (m->space == API_SPACE_MAPPED) {
		call_unmaps(a, t, m->bytes);
		return;
	}
	e = live_find(&a->live, t->process, m->space, m->address);
	if (!e) {
		free_unseen(a, t);
		return;
	}
	if (m->space == API_SPACE_HANDLE) {
		uint64_t of = e->of;

		if (!--e->refs)
			entry_remove(a, e, ACCOUNT_FREED, t->c->h.start_ns);
		drop_refs(a, t->process, of, 1, t->c->h.start_ns);
		return;
	}
	if (t->c->h.start_ns < e->taken_ns) {
		/* this frees what was at the address before: its free is seen after all */
		a->processes[t->process].unfreed_n -= a->processes[t->process].unfreed_n > 0;
		return;
	}
	entry_remove(a, e, ACCOUNT_FREED, t->c->h.start_ns);
}

/* The program freed it, but too late for the call to be seen. */
static void free_was_late(struct account *a, const struct account_call *t,
			  const struct api_memory *m)
{
	struct live_entry *e = live_find(&a->live, t->process, m->space, t->address);

	if ((int32_t)t->c->ret == UNLOADING && e && m->space != API_SPACE_HANDLE)
		entry_remove(a, e, ACCOUNT_FREED, t->c->h.start_ns);
}

/* ---- ends ---- */

/* True for what ends with a context: not addresses, and not memory that handles refer to. */
static bool in_context(const struct live_entry *e, const struct api_memory *m, uint16_t device)
{
	switch (e->space) {
	case API_SPACE_DEVICE:
	case API_SPACE_HOST:
	case API_SPACE_REGISTERED:
	case API_SPACE_ARRAY:
	case API_SPACE_IPC:
		return m->of ? e->of == m->of
			     : !e->of && (e->device == device || e->device == LIVE_NO_DEVICE);
	default: return false;
	}
}

/* Handles what a process still holds when it ends, or what its context held (m). */
static void sweep_entries(struct account *a, uint32_t process, enum account_why why,
			  const struct api_memory *m, uint16_t device, uint64_t at_ns)
{
	struct live_entry *e;

	for (uint32_t at = 0; a->processes[process].live_n && (e = live_next(&a->live, &at));) {
		if (e->process != process || (m && !in_context(e, m, device)))
			continue;
		entry_remove(a, e, why, at_ns);
		at--;
	}
}

/* From now on its pid belongs to another process. */
static void end_process(struct account *a, struct pid_place *place, enum account_why why,
			int status, uint64_t at_ns)
{
	uint32_t process = place->at - 1;
	struct account_process *p = &a->processes[process];

	if (!place->at)
		return;
	place->at = 0;

	if (a->ops->ends)
		a->ops->ends(a->ctx, process, at_ns);
	sweep_entries(a, process, why, NULL, 0, at_ns);
	p->ended = true;
	p->ended_ns = at_ns;
	p->status = status;
	process_drop(a, process);
}

/* ---- records ---- */

void account_call(struct account *a, const struct event *ev, const struct account_call *t,
		  const struct api_memory *m)
{
	struct account_process *p = &a->processes[t->process];

	p->had = p->by_calls = true;
	switch (m->what) {
	case API_MEMORY_TAKEN: call_takes(a, ev, t, m); break;
	case API_MEMORY_FREED: call_gives_back(a, t, m); break;
	case API_MEMORY_RETAINED: call_retains(a, t, m); break;
	case API_MEMORY_NOT_FREED: free_was_late(a, t, m); break;
	case API_MEMORY_ENDED:
		sweep_entries(a, t->process, ACCOUNT_CONTEXT_ENDED, m, account_device(p, ev, m),
			      t->c->h.start_ns);
		break;
	}
}

uint32_t account_memory_process(struct account *a, const struct event *ev)
{
	uint32_t process;

	if (!((const struct ct_memory *)ev->rec)->address)
		return UINT32_MAX;
	process = account_process(a, ev->proc);
	if (process == UINT32_MAX)
		a->no_room++;
	return process == UINT32_MAX || a->processes[process].by_calls ? UINT32_MAX : process;
}

void account_memory(struct account *a, const struct ct_memory *r, uint32_t process, uint32_t site)
{
	bool host = r->memory == CT_MEM_PINNED || r->memory == CT_MEM_PAGEABLE;
	struct live_entry e = { .address = r->address,
				.bytes = r->bytes,
				.taken_ns = r->w.h.start_ns,
				.space = API_SPACE_DEVICE,
				.process = process,
				.site = site,
				.device = r->w.device < LIVE_NO_DEVICE ? (uint16_t)r->w.device
								       : LIVE_NO_DEVICE },
			  *old;

	a->processes[process].had = true;
	e.kind = host			       ? API_MEM_HOST
		 : r->memory == CT_MEM_MANAGED ? API_MEM_MANAGED
		 : r->pool		       ? API_MEM_POOL
		 : r->memory == CT_MEM_ARRAY   ? API_MEM_ARRAY
					       : API_MEM_DEVICE;
	if (r->op == CT_MEMORY_ALLOC) {
		entry_add(a, &e);
		return;
	}
	old = live_find(&a->live, process, e.space, e.address);
	if (old)
		entry_remove(a, old, ACCOUNT_RELEASED, e.taken_ns);
	else
		a->processes[process].unseen_n++;
}

void account_forget(struct account *a, uint32_t pid, enum account_why why, uint64_t at_ns)
{
	struct pid_place *place = registry_find(&a->pids, pid);

	if (!place)
		return;
	end_process(a, place, why, 0, at_ns);
	registry_forget(&a->pids, place);
}

/* It executed a program, or another process has its number: the end of the one before was lost. */
static void renewed(void *ctx, void *item, const struct ct_hdr *h)
{
	end_process(ctx, item, h->kind == CT_EXEC ? ACCOUNT_EXECED : ACCOUNT_REPLACED, 0,
		    h->start_ns);
}

static void ended(void *ctx, void *item, const struct ct_hdr *h)
{
	if (h)
		end_process(ctx, item, ACCOUNT_EXITED, ((const struct ct_exit *)h)->status,
			    h->start_ns);
}

/* A process that is seen from its beginning. */
static void begins(struct account *a, const struct process *proc)
{
	uint32_t at = account_process(a, proc);

	if (at != UINT32_MAX)
		a->processes[at].from_start = true;
}

void account_life(struct account *a, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	struct process child = { 0 };

	switch (h->kind) {
	case CT_CLOCK: /* the first one is read when the probes are there */
		if (!a->began_boottime_ns)
			a->began_boottime_ns = ((const struct ct_clock *)h)->boottime_ns;
		return;
	case CT_FORK:
		child.pid = child.shown_pid = ((const struct ct_fork *)h)->child_pid;
		account_forget(a, child.pid, ACCOUNT_REPLACED, h->start_ns);
		begins(a, &child);
		return;
	default: registry_record(&a->pids, h);
	}
	if (h->kind == CT_EXEC)
		begins(a, ev->proc);
}

int account_event(struct account *a, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	struct account_call t = { .c = c };
	struct api_memory m;

	if (ev->rec->kind == CT_MEMORY) {
		t.process = account_memory_process(a, ev);
		if (t.process == UINT32_MAX)
			return 0;
		account_memory(a, (const struct ct_memory *)ev->rec, t.process, 0);
		return 1;
	}
	if (ev->rec->kind != CT_CALL) {
		account_life(a, ev);
		return 0;
	}
	if (api_layer_reports(&api_funcs[c->func]) ||
	    api_memory(c, API_ARCH_HERE, &m) == API_MEMORY_NONE)
		return 0;
	t.process = account_process(a, ev->proc);
	if (t.process == UINT32_MAX) {
		a->no_room++;
		return 0;
	}
	t.address = m.address;
	account_call(a, ev, &t, &m);
	return 1;
}
