/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ledger.c - see ledger.h.
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

#include "../event/device.h"
#include "ledger_rows.h"

#define SPACE_PHYSICAL 0x80 /* by its own number */

/* Both APIs use the same number. */
#define UNLOADING 4 /* the driver or the runtime is being shut down */

static enum ledger_where where_of(uint8_t kind)
{
	switch (kind) {
	case API_MEM_HOST:
	case API_MEM_REGISTERED: return LEDGER_HOST;
	case API_MEM_IMPORTED:
	case API_MEM_RESERVED:
	case API_MEM_MAPPED: return LEDGER_ADDRESSES;
	default: return LEDGER_DEVICE;
	}
}

struct ledger *ledger_open(const struct ledger_opts *opts)
{
	struct ledger *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->opts = *opts;
	l->sites = sites_open(0);
	live_init(&l->live, opts->live_max);
	blocks_init(&l->blocks, opts->live_max);
	l->blocks.changed = opts->block_changed;
	l->blocks.ctx = opts->ctx;
	if (l->sites && !ledger_index_open(l)) {
		for (int w = 0; w < LEDGER_WHERE_END; w++)
			if (!ledger_row(l, &(struct ledger_row){ .by = LEDGER_BY_ALL,
								 .where = (uint8_t)w }))
				goto no_memory;
		return l;
	}
no_memory:
	ledger_close(l);
	return NULL;
}

void ledger_close(struct ledger *l)
{
	if (!l)
		return;
	live_free(&l->live);
	blocks_free(&l->blocks);
	sites_close(l->sites);
	ledger_index_close(l);
	free(l->rows);
	for (uint32_t i = 0; i < l->nprocesses; i++)
		free(l->processes[i].handles);
	free(l->processes);
	free(l);
}

const struct ledger_row *ledger_all(const struct ledger *l, enum ledger_where where)
{
	return &l->rows[where]; /* the first ones that were made */
}

const struct ledger_row *ledger_of_process(const struct ledger *l, uint32_t process,
					   enum ledger_where where)
{
	return ledger_row_find(l, &(struct ledger_row){ .by = LEDGER_BY_PROCESS,
							.where = (uint8_t)where,
							.process = process });
}

void ledger_mark(struct ledger *l)
{
	for (uint32_t i = 0; i < l->nrows; i++)
		l->rows[i].marked = l->rows[i].bytes;
}

/* ---- sums ---- */

enum why { TAKEN, FREED, SWEPT };

static void add_to(struct ledger *l, const struct ledger_row *key, const struct live_entry *e,
		   enum why why, uint64_t at_ns)
{
	struct ledger_row *r = ledger_row(l, key);

	if (!r)
		return;
	if (why != TAKEN) {
		/* a row that was made later than the allocation does not have it */
		r->bytes -= e->bytes < r->bytes ? e->bytes : r->bytes;
		r->n -= r->n > 0;
		r->freed_n += why == FREED;
		return;
	}
	r->n++;
	r->taken_n++;
	if (__builtin_add_overflow(r->taken, e->bytes, &r->taken))
		r->taken = UINT64_MAX;
	if (__builtin_add_overflow(r->bytes, e->bytes, &r->bytes))
		r->bytes = UINT64_MAX;
	if (r->bytes > r->peak) {
		r->peak = r->bytes;
		r->peak_ns = at_ns;
	}
}

/* Adds it to all rows to which it belongs. */
static void sum(struct ledger *l, const struct live_entry *e, enum why why, uint64_t at_ns)
{
	struct ledger_row k = { .by = LEDGER_BY_KIND,
				.where = (uint8_t)where_of(e->kind),
				.process = e->process };
	uint8_t where = k.where;

	if (e->space == API_SPACE_HANDLE)
		return; /* the memory behind it counts */
	k.kind = e->kind;
	add_to(l, &k, e, why, at_ns);
	if (where == LEDGER_ADDRESSES)
		return;
	k.kind = 0;
	k.by = LEDGER_BY_PROCESS;
	add_to(l, &k, e, why, at_ns);
	k.by = LEDGER_BY_LIBRARY;
	k.library = sites_get(l->sites, e->site)->library;
	add_to(l, &k, e, why, at_ns);
	k.library = NULL;
	k.by = LEDGER_BY_STACK;
	k.site = e->site;
	add_to(l, &k, e, why, at_ns);
	k.site = 0;
	if (where == LEDGER_DEVICE) {
		k.by = LEDGER_BY_DEVICE;
		k.device = e->device;
		add_to(l, &k, e, why, at_ns);
	}
	add_to(l, &(struct ledger_row){ .by = LEDGER_BY_ALL, .where = where }, e, why, at_ns);
	if (l->opts.moved && e->bytes <= INT64_MAX)
		l->opts.moved(l->opts.ctx, at_ns, e->process, e->site, (enum ledger_where)where,
			      why == TAKEN ? (int64_t)e->bytes : -(int64_t)e->bytes);
}

/* Is it memory that an allocator inside the program gives out? Memory that is only an address or a handle is not. */
static bool is_segment(const struct live_entry *e)
{
	return e->allocator && (e->space == API_SPACE_DEVICE || e->space == API_SPACE_MAPPED);
}

static void tell_blocks(struct ledger *l, const struct live_entry *e, enum blocks_what what,
			uint64_t at_ns)
{
	if (is_segment(e))
		blocks_segment(&l->blocks,
			       &(struct blocks_change){ .at_ns = at_ns,
							.address = e->address,
							.bytes = e->bytes,
							.process = e->process,
							.site = l->index->site,
							.device = e->device,
							.what = (uint8_t)what,
							.mapped = e->space == API_SPACE_MAPPED });
}

static void remove_entry(struct ledger *l, struct live_entry *e, enum why why, uint64_t at_ns)
{
	sum(l, e, why, at_ns);
	if (why == FREED)
		tell_blocks(l, e, BLOCKS_SEGMENT_GIVEN_BACK, at_ns);
	l->processes[e->process].live_n--;
	live_remove(&l->live, e);
}

/* Removes handles or mappings of physical memory. */
static void unref(struct ledger *l, uint32_t process, uint64_t number, uint32_t n, uint64_t at_ns)
{
	struct live_entry *memory = number ? live_find(&l->live, process, SPACE_PHYSICAL, number)
					   : NULL;

	if (!memory)
		return;
	memory->refs -= n < memory->refs ? n : memory->refs;
	if (!memory->refs)
		remove_entry(l, memory, FREED, at_ns);
}

/* ---- what went wrong ---- */

static void remove_freed(struct ledger *l, struct live_entry *e, const struct ledger_trouble *t)
{
	*ledger_freed_at(l, e->process, e->space, e->address) =
		(struct ledger_freed){ .address = e->address,
				       .process = e->process,
				       .taken_site = e->site,
				       .freed_site = t->site,
				       .space = e->space,
				       .kind = e->kind };
	remove_entry(l, e, FREED, t->c->h.start_ns);
}

static void not_freed(struct ledger *l, const struct ledger_trouble *t, const struct api_memory *m)
{
	static const uint8_t others[] = { API_SPACE_DEVICE, API_SPACE_HOST, API_SPACE_REGISTERED,
					  API_SPACE_ARRAY, API_SPACE_IPC };
	const struct ledger_freed *f = ledger_freed_at(l, t->process, m->space, t->address);
	struct ledger_process *p = &l->processes[t->process];
	struct live_entry *e = live_find(&l->live, t->process, m->space, t->address);

	if ((int32_t)t->c->ret == UNLOADING) {
		/* the program freed it, but too late for the call to be seen */
		if (e && m->space != API_SPACE_HANDLE)
			remove_freed(l, e, t);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(others) && !e; i++) {
		const struct live_entry *o = live_find(&l->live, t->process, others[i], t->address);

		if (!o || m->space == API_SPACE_HANDLE)
			continue;
		p->wrong_n++;
		ledger_fault(l, LEDGER_WRONG, t, o->kind, o->site, 0);
		return;
	}
	if (e) {
		p->failed_frees_n++;
	} else if (f->address == t->address && f->process == t->process && f->space == m->space) {
		p->doubles_n++;
		ledger_fault(l, LEDGER_DOUBLE, t, f->kind, f->taken_site, f->freed_site);
	} else {
		p->invalid_n++;
		ledger_fault(l, LEDGER_INVALID, t, m->kind, 0, 0);
	}
}

/* ---- what calls do ---- */

/* An entry for what was taken. NULL: no room. */
static struct live_entry *enter(struct ledger *l, const struct live_entry *from)
{
	struct live_entry *e = live_find(&l->live, from->process, from->space, from->address);

	if (e) {
		/* it was freed: by a call that has not returned yet, or by one that was not seen */
		l->processes[from->process].unfreed_n++;
		if (from->space == API_SPACE_HANDLE || from->space == API_SPACE_MAPPED)
			unref(l, from->process, e->of,
			      from->space == API_SPACE_HANDLE ? e->refs : 1, from->taken_ns);
		e = live_find(&l->live, from->process, from->space, from->address);
		remove_entry(l, e, FREED, from->taken_ns);
	}
	e = live_add(&l->live, from->process, from->space, from->address);
	if (!e) {
		l->no_room++;
		return NULL;
	}
	*e = *from;
	if (e->bytes >= CT_SIZE_MOST || (where_of(e->kind) != LEDGER_ADDRESSES &&
					 ledger_all(l, where_of(e->kind))->bytes >= CT_SUM_MOST)) {
		l->odd_sizes += e->space != API_SPACE_HANDLE;
		e->bytes = 0;
	}
	l->processes[from->process].live_n++;
	sum(l, e, TAKEN, from->taken_ns);
	tell_blocks(l, e, BLOCKS_SEGMENT_TAKEN, from->taken_ns);
	return e;
}

/* The device that a call works on. A thread that has chosen none uses the first one: that is
 * known only for a program that was seen from its beginning, and only for the runtime. */
static uint16_t device_of(const struct ledger_process *p, const struct event *ev,
			  const struct api_memory *m)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	uint32_t device = m->device != CT_UNKNOWN ? m->device : ev->device;

	if (device == CT_UNKNOWN && p->from_start && !ev->context_handle &&
	    api_domains[api_funcs[c->func].domain].first_device)
		device = 0;
	return device < LIVE_NO_DEVICE ? (uint16_t)device : LIVE_NO_DEVICE;
}

/* PyTorch's allocator takes its segments itself. */
static bool is_allocators(const struct ledger *l, uint32_t site)
{
	const char *library = sites_get(l->sites, site)->library;

	return library && !strncmp(library, "libc10", strlen("libc10"));
}

static void take(struct ledger *l, const struct event *ev, const struct ledger_trouble *t,
		 const struct api_memory *m)
{
	struct live_entry e = { .address = m->address,
				.bytes = m->bytes,
				.taken_ns = t->c->h.end_ns,
				.process = t->process,
				.site = t->site,
				.space = m->space,
				.allocator = is_allocators(l, t->site),
				.kind = m->kind,
				.device = device_of(&l->processes[t->process], ev, m) },
			  *other;

	if (m->space == API_SPACE_HANDLE) {
		struct live_entry memory = e;

		memory.space = SPACE_PHYSICAL;
		memory.address = ++l->index->serial;
		memory.refs = 1;
		if (!enter(l, &memory))
			return;
		e.of = memory.address;
		e.refs = 1;
		if (!enter(l, &e))
			unref(l, t->process, memory.address, 1, e.taken_ns);
		return;
	}
	if (m->space == API_SPACE_MAPPED) {
		other = live_find(&l->live, t->process, API_SPACE_HANDLE, m->of);
		e.of = other ? other->of : 0;
		other = e.of ? live_find(&l->live, t->process, SPACE_PHYSICAL, e.of) : NULL;
		if (other)
			other->refs++;
		if (!enter(l, &e))
			unref(l, t->process, e.of, 1, e.taken_ns);
		return;
	}
	if (m->space != API_SPACE_RESERVED)
		e.of = ev->context_handle;
	enter(l, &e);
}

/* Adds a handle of the memory that is mapped at an address. */
static void retain(struct ledger *l, const struct ledger_trouble *t, const struct api_memory *m)
{
	struct live_entry *mapping = live_find(&l->live, t->process, API_SPACE_MAPPED, m->of),
			  *handle, *memory;
	struct live_entry e = { .address = m->address,
				.taken_ns = t->c->h.end_ns,
				.process = t->process,
				.site = t->site,
				.space = API_SPACE_HANDLE,
				.device = LIVE_NO_DEVICE,
				.refs = 1 };

	memory = mapping && mapping->of
			 ? live_find(&l->live, t->process, SPACE_PHYSICAL, mapping->of)
			 : NULL;
	if (!memory)
		return;
	handle = live_find(&l->live, t->process, API_SPACE_HANDLE, m->address);
	e.of = memory->address;
	e.kind = memory->kind;
	memory->refs++;
	if (handle && handle->of == e.of)
		handle->refs++;
	else if (!enter(l, &e))
		unref(l, t->process, e.of, 1, e.taken_ns);
}

static void unseen(struct ledger *l, const struct ledger_trouble *t)
{
	l->processes[t->process].unseen_n++;
	/* memory that was taken before the trace is freed during the trace, which is correct */
	if (l->processes[t->process].from_start)
		ledger_fault(l, LEDGER_UNSEEN, t, API_MEM_END, 0, 0);
}

/* Removes all mappings in a number of bytes from an address. */
static void unmap(struct ledger *l, const struct ledger_trouble *t, uint64_t bytes)
{
	uint64_t at = t->address, end;

	if (__builtin_add_overflow(at, bytes, &end))
		end = UINT64_MAX;
	do {
		struct live_entry *e = live_find(&l->live, t->process, API_SPACE_MAPPED, at);
		uint64_t of;

		if (!e || !e->bytes) {
			unseen(l, t);
			return;
		}
		at += e->bytes;
		of = e->of;
		remove_entry(l, e, FREED, t->c->h.start_ns);
		unref(l, t->process, of, 1, t->c->h.start_ns);
	} while (at < end && at > t->address);
}

static void give_back(struct ledger *l, const struct ledger_trouble *t, const struct api_memory *m)
{
	struct live_entry *e;

	if (m->space == API_SPACE_MAPPED) {
		unmap(l, t, m->bytes);
		return;
	}
	e = live_find(&l->live, t->process, m->space, m->address);
	if (!e) {
		unseen(l, t);
		return;
	}
	if (m->space == API_SPACE_HANDLE) {
		uint64_t of = e->of;

		if (!--e->refs)
			remove_freed(l, e, t);
		unref(l, t->process, of, 1, t->c->h.start_ns);
		return;
	}
	if (t->c->h.start_ns < e->taken_ns) {
		/* this frees what was at the address before: its free is seen after all */
		l->processes[t->process].unfreed_n -= l->processes[t->process].unfreed_n > 0;
		return;
	}
	remove_freed(l, e, t);
}

/* ---- ends ---- */

static void leak(struct ledger *l, const struct live_entry *e, enum ledger_end end)
{
	struct ledger_row key = { .by = LEDGER_LEAK,
				  .where = (uint8_t)where_of(e->kind),
				  .kind = e->kind,
				  .end = (uint8_t)end,
				  .device = e->device,
				  .process = e->process,
				  .site = e->site },
			  *r;

	if (e->space == API_SPACE_HANDLE || key.where == LEDGER_ADDRESSES)
		return;
	l->processes[e->process].leaked_n++;
	if (__builtin_add_overflow(l->processes[e->process].leaked, e->bytes,
				   &l->processes[e->process].leaked))
		l->processes[e->process].leaked = UINT64_MAX;
	r = ledger_row(l, &key);
	if (!r)
		return;
	if (!r->n || e->taken_ns < r->first_ns)
		r->first_ns = e->taken_ns;
	if (r->n < ARRAY_LEN(r->addresses))
		r->addresses[r->n] = e->space == SPACE_PHYSICAL ? 0 : e->address;
	r->n++;
	if (__builtin_add_overflow(r->bytes, e->bytes, &r->bytes))
		r->bytes = UINT64_MAX;
}

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
static void sweep(struct ledger *l, uint32_t process, enum ledger_end end,
		  const struct api_memory *m, uint16_t device, uint64_t at_ns)
{
	struct live_entry *e;

	for (uint32_t at = 0; l->processes[process].live_n && (e = live_next(&l->live, &at));) {
		if (e->process != process || (m && !in_context(e, m, device)))
			continue;
		leak(l, e, end);
		remove_entry(l, e, SWEPT, at_ns);
		at--;
	}
}

static bool grows(struct ledger_handles *h, uint64_t until_ns)
{
	for (int k = 0; k < GROWING_END; k++)
		if (growing_grows(&h->growing, until_ns, (enum growing_kind)k))
			return true;
	return false;
}

static void end_process(struct ledger *l, uint32_t process, enum ledger_end end, int status,
			uint64_t at_ns)
{
	struct ledger_process *p = &l->processes[process];

	if (l->opts.ends)
		l->opts.ends(l->opts.ctx, l, process);
	blocks_end(&l->blocks, process, &l->live);
	sweep(l, process, end, NULL, 0, at_ns);
	p->ended = true;
	p->ended_ns = at_ns;
	if (p->handles && !grows(p->handles, at_ns)) {
		free(p->handles);
		p->handles = NULL;
	}
	p->status = status;
	ledger_process_drop(l, process);
}

/* ---- records ---- */

static void see(struct ledger *l, const struct ct_hdr *h)
{
	if (!l->first_ns || h->start_ns < l->first_ns)
		l->first_ns = h->start_ns;
	if (h->end_ns > l->last_ns)
		l->last_ns = h->end_ns;
}

/* An allocator inside a program says what it did. */
static int report(struct ledger *l, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	const struct blocks_oom *oom;
	uint32_t process;

	if (!blocks_has(c))
		return 0;
	process = ledger_process(l, ev->proc);
	if (process == UINT32_MAX) {
		l->no_room++;
		return 0;
	}
	l->processes[process].had = true;
	see(l, ev->rec);
	oom = blocks_report(&l->blocks, ev, process, sites_of(l->sites, c->func, ev->stack),
			    &l->live);
	if (oom && l->opts.no_block)
		l->opts.no_block(l->opts.ctx, oom);
	return 1;
}

static void made_at(struct ledger_maker *makers, uint32_t site)
{
	size_t i = 0;

	while (i < LEDGER_MAKERS && makers[i].n && makers[i].site != site)
		i++;
	makers[i].site = i < LEDGER_MAKERS ? site : 0;
	makers[i].n++;
}

/* Counts a handle, such as a stream, that a call makes or gives back. */
static void handle(struct ledger *l, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	struct ledger_process *p;
	enum growing_kind kind;
	uint32_t process;
	bool makes;

	if (!l->opts.handles || api_failed(c) || c->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN))
		return;
	kind = growing_kind_of(c, &makes);
	process = kind == GROWING_END ? UINT32_MAX : ledger_process(l, ev->proc);
	if (process == UINT32_MAX)
		return;
	p = &l->processes[process];
	if (!p->handles)
		p->handles = calloc(1, sizeof(*p->handles));
	if (!p->handles)
		return;
	growing_add(&p->handles->growing, c->h.start_ns, c->h.start_ns, kind, makes);
	if (makes)
		made_at(p->handles->makers[kind], sites_of(l->sites, c->func, ev->stack));
}

static int call(struct ledger *l, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	struct api_memory m;
	struct ledger_trouble t = { .c = c };
	struct ledger_process *p;

	if (api_layer_reports(&api_funcs[c->func]))
		return report(l, ev);
	handle(l, ev);
	if (api_memory(c, API_ARCH_HERE, &m) == API_MEMORY_NONE)
		return 0;
	t.process = ledger_process(l, ev->proc);
	if (t.process == UINT32_MAX) {
		l->no_room++;
		return 0;
	}
	p = &l->processes[t.process];
	p->had = p->by_calls = true;
	see(l, ev->rec);
	t.address = m.address;
	t.site = l->index->site = sites_of(l->sites, c->func, ev->stack);
	switch (m.what) {
	case API_MEMORY_TAKEN: take(l, ev, &t, &m); break;
	case API_MEMORY_FREED: give_back(l, &t, &m); break;
	case API_MEMORY_RETAINED: retain(l, &t, &m); break;
	case API_MEMORY_NOT_TAKEN: ledger_not_taken(l, &t, &m, device_of(p, ev, &m)); break;
	case API_MEMORY_NOT_FREED: not_freed(l, &t, &m); break;
	case API_MEMORY_ENDED:
		sweep(l, t.process, LEDGER_CONTEXT, &m, device_of(p, ev, &m), c->h.start_ns);
		break;
	}
	return 1;
}

/* Handles memory as the driver reports it, for a process whose calls are not seen. */
static int memory(struct ledger *l, const struct event *ev)
{
	const struct ct_memory *r = (const struct ct_memory *)ev->rec;
	bool host = r->memory == CT_MEM_PINNED || r->memory == CT_MEM_PAGEABLE;
	struct live_entry e = { .address = r->address,
				.bytes = r->bytes,
				.taken_ns = r->w.h.start_ns,
				.space = API_SPACE_DEVICE,
				.device = r->w.device < LIVE_NO_DEVICE ? (uint16_t)r->w.device
								       : LIVE_NO_DEVICE },
			  *old;

	if (!r->address)
		return 0;
	e.process = ledger_process(l, ev->proc);
	if (e.process == UINT32_MAX) {
		l->no_room++;
		return 0;
	}
	if (l->processes[e.process].by_calls)
		return 0;
	see(l, ev->rec);
	l->processes[e.process].had = true;
	e.site = l->index->site = sites_of(l->sites, r->w.func, ev->stack);
	e.kind = host			       ? API_MEM_HOST
		 : r->memory == CT_MEM_MANAGED ? API_MEM_MANAGED
		 : r->pool		       ? API_MEM_POOL
		 : r->memory == CT_MEM_ARRAY   ? API_MEM_ARRAY
					       : API_MEM_DEVICE;
	if (r->op == CT_MEMORY_ALLOC) {
		enter(l, &e);
		return 1;
	}
	old = live_find(&l->live, e.process, e.space, e.address);
	if (old)
		remove_entry(l, old, FREED, e.taken_ns);
	else
		l->processes[e.process].unseen_n++;
	return 1;
}

/* Handles the memory of a device that a process uses, as the driver reports it. The pid may be
 * the one that users see. */
static int driver(struct ledger *l, const struct event *ev)
{
	const struct ct_counter *r = (const struct ct_counter *)ev->rec;
	uint32_t at = r->h.pid ? ledger_process_find(l, r->h.pid) : UINT32_MAX;
	struct ledger_process *p;

	for (uint32_t i = 0; r->h.pid && at == UINT32_MAX && i < l->nprocesses; i++)
		if (l->processes[i].used && !l->processes[i].ended &&
		    l->processes[i].shown_pid == r->h.pid)
			at = i;
	if (at == UINT32_MAX && r->h.pid)
		at = ledger_process(l, ev->proc);
	if (at == UINT32_MAX)
		return 0;
	p = &l->processes[at];
	for (uint32_t i = 0; ev->metrics && i < r->n && r->device < ARRAY_LEN(p->driver_of); i++) {
		const struct metric *m = metric_table_find(ev->metrics, r->values[i].metric);
		double v;

		memcpy(&v, &r->values[i].bits, sizeof(v));
		if (!m || strcmp(m->name, "mem_process") || !(v >= 0 && v < 0x1p60))
			continue;
		p->driver_of[r->device] = (uint64_t)v;
	}
	p->driver_bytes = 0;
	for (size_t i = 0; i < ARRAY_LEN(p->driver_of); i++)
		p->driver_bytes += p->driver_of[i];
	p->driver_peak = p->driver_bytes > p->driver_peak ? p->driver_bytes : p->driver_peak;
	return 0;
}

static int process(struct ledger *l, const struct event *ev)
{
	const struct ct_process *r = (const struct ct_process *)ev->rec;
	uint32_t at = ledger_process_find(l, r->h.pid);

	/* the same pid, but another process: the end of the one before was lost */
	if (at != UINT32_MAX &&
	    (r->h.kind == CT_EXEC || (l->processes[at].start_boottime_ns && r->start_boottime_ns &&
				      l->processes[at].start_boottime_ns != r->start_boottime_ns)))
		end_process(l, at, r->h.kind == CT_EXEC ? LEDGER_EXECED : LEDGER_REPLACED, 0,
			    r->h.start_ns);
	if (r->h.kind != CT_EXEC)
		return 0;
	at = ledger_process(l, ev->proc);
	if (at != UINT32_MAX)
		l->processes[at].from_start = true;
	return 0;
}

int ledger_event(struct ledger *l, const struct event *ev)
{
	const struct ct_hdr *h = ev->rec;
	struct process child = { 0 };
	uint32_t at;

	switch (h->kind) {
	case CT_CALL: return call(l, ev);
	case CT_MEMORY: return memory(l, ev);
	case CT_COUNTER: return driver(l, ev);
	case CT_CLOCK: /* the first one is read when the probes are there */
		if (!l->began_boottime_ns)
			l->began_boottime_ns = ((const struct ct_clock *)h)->boottime_ns;
		return 0;
	case CT_PROCESS:
	case CT_EXEC: return process(l, ev);
	case CT_FORK:
		child.pid = child.shown_pid = ((const struct ct_fork *)h)->child_pid;
		at = ledger_process_find(l, child.pid);
		if (at != UINT32_MAX)
			end_process(l, at, LEDGER_REPLACED, 0, h->start_ns);
		at = ledger_process(l, &child);
		if (at != UINT32_MAX)
			l->processes[at].from_start = true;
		return 0;
	case CT_EXIT:
		at = ledger_process_find(l, h->pid);
		if (at != UINT32_MAX)
			end_process(l, at, LEDGER_EXITED, ((const struct ct_exit *)h)->status,
				    h->start_ns);
		return 0;
	default: return 0;
	}
}
