/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ledger.c - see ledger.h. What is held, and what a call does to it, is the account's
 * (event/memory/account.h): it says what comes and goes, and here that is added up by call sites,
 * and what went wrong is noted.
 */
#include <stdlib.h>
#include <string.h>

#include "../event/device.h"
#include "ledger_rows.h"

/* Both APIs use the same number. */
#define UNLOADING 4 /* the driver or the runtime is being shut down */

static void ledger_moved(void *ctx, const struct live_entry *, enum account_why, uint64_t at_ns);
static void ledger_unseen(void *ctx, const struct account_call *);
static void ledger_ends(void *ctx, uint32_t process, uint64_t at_ns);

static const struct account_ops account_ops = { ledger_moved, ledger_unseen, ledger_ends };

struct ledger *ledger_open(const struct ledger_opts *opts)
{
	struct ledger *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->opts = *opts;
	l->sites = sites_open(0);
	account_open(&l->account, opts->live_max, &account_ops, l);
	blocks_init(&l->blocks, opts->live_max);
	l->blocks.changed = opts->block_changed;
	l->blocks.ctx = opts->ctx;
	if (l->sites && !ledger_index_open(l)) {
		for (int w = 0; w < ACCOUNT_WHERE_END; w++)
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
	blocks_free(&l->blocks);
	sites_close(l->sites);
	ledger_index_close(l);
	free(l->rows);
	for (uint32_t i = 0; i < l->account.nprocesses; i++)
		free(l->account.processes[i].handles);
	account_close(&l->account);
	free(l);
}

const struct ledger_row *ledger_all(const struct ledger *l, enum account_where where)
{
	return &l->rows[where]; /* the first ones that were made */
}

const struct ledger_row *ledger_of_process(const struct ledger *l, uint32_t process,
					   enum account_where where)
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

static void add_to_row(struct ledger *l, const struct ledger_row *key, const struct live_entry *e,
		       enum account_why why, uint64_t at_ns)
{
	struct ledger_row *r = ledger_row(l, key);

	if (!r)
		return;
	if (why != ACCOUNT_TAKEN) {
		/* a row that was made later than the allocation does not have it */
		r->bytes -= e->bytes < r->bytes ? e->bytes : r->bytes;
		r->n -= r->n > 0;
		r->freed_n += why == ACCOUNT_FREED || why == ACCOUNT_RELEASED;
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
static void add_to_rows(struct ledger *l, const struct live_entry *e, enum account_why why,
			uint64_t at_ns)
{
	struct ledger_row k = { .by = LEDGER_BY_KIND,
				.where = (uint8_t)account_where(e),
				.process = e->process };
	uint8_t where = k.where;

	if (e->space == API_SPACE_HANDLE)
		return; /* the memory behind it counts */
	k.kind = e->kind;
	add_to_row(l, &k, e, why, at_ns);
	if (where == ACCOUNT_ADDRESSES)
		return;
	k.kind = 0;
	k.by = LEDGER_BY_PROCESS;
	add_to_row(l, &k, e, why, at_ns);
	k.by = LEDGER_BY_LIBRARY;
	k.library = sites_get(l->sites, e->site)->library;
	add_to_row(l, &k, e, why, at_ns);
	k.library = NULL;
	k.by = LEDGER_BY_STACK;
	k.site = e->site;
	add_to_row(l, &k, e, why, at_ns);
	k.site = 0;
	if (where == ACCOUNT_DEVICE) {
		k.by = LEDGER_BY_DEVICE;
		k.device = e->device;
		add_to_row(l, &k, e, why, at_ns);
	}
	add_to_row(l, &(struct ledger_row){ .by = LEDGER_BY_ALL, .where = where }, e, why, at_ns);
	if (l->opts.moved && e->bytes <= INT64_MAX)
		l->opts.moved(l->opts.ctx, at_ns, e->process, e->site, (enum account_where)where,
			      why == ACCOUNT_TAKEN ? (int64_t)e->bytes : -(int64_t)e->bytes);
}

/* Is it memory that an allocator inside the program gives out? Memory that is only an address or a handle is not. */
static bool is_segment(const struct live_entry *e)
{
	return e->allocator && (e->space == API_SPACE_DEVICE || e->space == API_SPACE_MAPPED);
}

static void tell_blocks(struct ledger *l, const struct live_entry *e, bool taken, uint64_t at_ns)
{
	bool mapped = e->space == API_SPACE_MAPPED;
	enum block_what what = taken	? (mapped ? BLOCK_SEGMENT_MAPPED : BLOCK_SEGMENT_TAKEN)
			       : mapped ? BLOCK_SEGMENT_UNMAPPED
					: BLOCK_SEGMENT_GIVEN_BACK;

	if (is_segment(e))
		blocks_segment(&l->blocks, &(struct block_change){ .at_ns = at_ns,
								   .address = e->address,
								   .bytes = e->bytes,
								   .process = e->process,
								   .site = l->index->site,
								   .device = e->device,
								   .what = (uint8_t)what });
}

/* ---- what the account says ---- */

static void add_leak(struct ledger *l, const struct live_entry *e, enum ledger_end end)
{
	struct ledger_row key = { .by = LEDGER_LEAK,
				  .where = (uint8_t)account_where(e),
				  .kind = e->kind,
				  .end = (uint8_t)end,
				  .device = e->device,
				  .process = e->process,
				  .site = e->site },
			  *r;
	struct account_process *p = &l->account.processes[e->process];

	if (e->space == API_SPACE_HANDLE || key.where == ACCOUNT_ADDRESSES)
		return;
	p->leaked_n++;
	if (__builtin_add_overflow(p->leaked, e->bytes, &p->leaked))
		p->leaked = UINT64_MAX;
	r = ledger_row(l, &key);
	if (!r)
		return;
	if (!r->n || e->taken_ns < r->first_ns)
		r->first_ns = e->taken_ns;
	if (r->n < ARRAY_LEN(r->addresses))
		r->addresses[r->n] = e->space == LIVE_PHYSICAL ? 0 : e->address;
	r->n++;
	if (__builtin_add_overflow(r->bytes, e->bytes, &r->bytes))
		r->bytes = UINT64_MAX;
}

/* Remembers it: a second free of it is an error then. */
static void note_freed(struct ledger *l, const struct live_entry *e)
{
	*ledger_freed_at(l, e->process, e->space, e->address) =
		(struct ledger_freed){ .address = e->address,
				       .process = e->process,
				       .taken_site = e->site,
				       .freed_site = l->index->site,
				       .space = e->space,
				       .kind = e->kind };
}

static void ledger_moved(void *ctx, const struct live_entry *e, enum account_why why,
			 uint64_t at_ns)
{
	struct ledger *l = ctx;

	if (why >= ACCOUNT_EXITED)
		add_leak(l, e, (enum ledger_end)(why - ACCOUNT_EXITED));
	if (why == ACCOUNT_FREED)
		note_freed(l, e);
	add_to_rows(l, e, why, at_ns);
	if (why < ACCOUNT_EXITED)
		tell_blocks(l, e, why == ACCOUNT_TAKEN, at_ns);
}

static void ledger_unseen(void *ctx, const struct account_call *t)
{
	struct ledger *l = ctx;

	/* memory that was taken before the trace is freed during the trace, which is correct */
	if (l->account.processes[t->process].from_start)
		ledger_fault(l, LEDGER_UNSEEN, t, API_MEM_END, 0, 0);
}

static bool any_grows(struct ledger_handles *h, uint64_t until_ns)
{
	for (int k = 0; k < GROWING_END; k++)
		if (growing_grows(&h->growing, until_ns, (enum growing_kind)k))
			return true;
	return false;
}

static void ledger_ends(void *ctx, uint32_t process, uint64_t at_ns)
{
	struct ledger *l = ctx;
	struct account_process *p = &l->account.processes[process];

	if (l->opts.ends)
		l->opts.ends(l->opts.ctx, l, process);
	blocks_end(&l->blocks, process, &l->account.live);
	if (p->handles && !any_grows(p->handles, at_ns)) {
		free(p->handles);
		p->handles = NULL;
	}
}

/* ---- records ---- */

/* A free that failed. */
static void not_freed(struct ledger *l, const struct account_call *t, const struct api_memory *m)
{
	static const uint8_t others[] = { API_SPACE_DEVICE, API_SPACE_HOST, API_SPACE_REGISTERED,
					  API_SPACE_ARRAY, API_SPACE_IPC };
	const struct ledger_freed *f = ledger_freed_at(l, t->process, m->space, t->address);
	struct account_process *p = &l->account.processes[t->process];
	struct live_entry *e = live_find(&l->account.live, t->process, m->space, t->address);

	/* the program freed it, as the account notes, but too late for the call to be seen */
	if ((int32_t)t->c->ret == UNLOADING)
		return;
	for (size_t i = 0; i < ARRAY_LEN(others) && !e; i++) {
		const struct live_entry *o =
			live_find(&l->account.live, t->process, others[i], t->address);

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

/* PyTorch's allocator takes its segments itself. */
static bool is_allocators(const struct ledger *l, uint32_t site)
{
	const char *library = sites_get(l->sites, site)->library;

	return library && !strncmp(library, "libc10", strlen("libc10"));
}

static void note_time(struct ledger *l, const struct ct_hdr *h)
{
	if (!l->first_ns || h->start_ns < l->first_ns)
		l->first_ns = h->start_ns;
	if (h->end_ns > l->last_ns)
		l->last_ns = h->end_ns;
}

/* An allocator inside a program says what it did. */
static int call_reports(struct ledger *l, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	const struct blocks_oom *oom;
	uint32_t process;

	if (!blocks_has(c))
		return 0;
	process = account_process(&l->account, ev->proc);
	if (process == UINT32_MAX) {
		l->account.no_room++;
		return 0;
	}
	l->account.processes[process].had = true;
	note_time(l, ev->rec);
	oom = blocks_report(&l->blocks, ev, process, sites_of(l->sites, c->func, ev->stack),
			    &l->account.live);
	if (oom && l->opts.no_block)
		l->opts.no_block(l->opts.ctx, oom);
	return 1;
}

static void add_maker(struct ledger_maker *makers, uint32_t site)
{
	size_t i = 0;

	while (i < LEDGER_MAKERS && makers[i].n && makers[i].site != site)
		i++;
	makers[i].site = i < LEDGER_MAKERS ? site : 0;
	makers[i].n++;
}

/* Counts a handle, such as a stream, that a call makes or gives back. */
static void count_handle(struct ledger *l, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	struct account_process *p;
	enum growing_kind kind;
	uint32_t process;
	bool makes;

	if (!l->opts.handles || api_failed(c) || c->h.flags & (CT_F_UNFINISHED | CT_F_NO_RETURN))
		return;
	kind = growing_kind_of(c, &makes);
	process = kind == GROWING_END ? UINT32_MAX : account_process(&l->account, ev->proc);
	if (process == UINT32_MAX)
		return;
	p = &l->account.processes[process];
	if (!p->handles)
		p->handles = calloc(1, sizeof(*p->handles));
	if (!p->handles)
		return;
	growing_add(&p->handles->growing, c->h.start_ns, c->h.start_ns, kind, makes);
	if (makes)
		add_maker(p->handles->makers[kind], sites_of(l->sites, c->func, ev->stack));
}

static int ledger_call(struct ledger *l, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	struct account_call t = { .c = c };
	struct api_memory m;

	if (api_layer_reports(&api_funcs[c->func]))
		return call_reports(l, ev);
	count_handle(l, ev);
	if (api_memory(c, API_ARCH_HERE, &m) == API_MEMORY_NONE)
		return 0;
	t.process = account_process(&l->account, ev->proc);
	if (t.process == UINT32_MAX) {
		l->account.no_room++;
		return 0;
	}
	note_time(l, ev->rec);
	t.address = m.address;
	t.site = l->index->site = sites_of(l->sites, c->func, ev->stack);
	t.allocator = is_allocators(l, t.site);
	if (m.what == API_MEMORY_NOT_FREED)
		not_freed(l, &t, &m);
	account_call(&l->account, ev, &t, &m);
	if (m.what == API_MEMORY_NOT_TAKEN)
		ledger_not_taken(l, &t, &m,
				 account_device(&l->account.processes[t.process], ev, &m));
	return 1;
}

/* Handles memory as the driver reports it, for a process whose calls are not seen. */
static int ledger_memory(struct ledger *l, const struct event *ev)
{
	const struct ct_memory *r = (const struct ct_memory *)ev->rec;
	uint32_t process = account_memory_process(&l->account, ev);

	if (process == UINT32_MAX)
		return 0;
	note_time(l, ev->rec);
	l->index->site = sites_of(l->sites, r->w.func, ev->stack);
	account_memory(&l->account, r, process, l->index->site);
	return 1;
}

/* Handles the memory of a device that a process uses, as the driver reports it. The pid may be
 * the one that users see. */
static int ledger_driver(struct ledger *l, const struct event *ev)
{
	const struct ct_counter *r = (const struct ct_counter *)ev->rec;
	uint32_t at = r->h.pid ? account_process_find(&l->account, r->h.pid) : UINT32_MAX;
	struct account_process *p;

	for (uint32_t i = 0; r->h.pid && at == UINT32_MAX && i < l->account.nprocesses; i++)
		if (l->account.processes[i].used && !l->account.processes[i].ended &&
		    l->account.processes[i].shown_pid == r->h.pid)
			at = i;
	if (at == UINT32_MAX && r->h.pid)
		at = account_process(&l->account, ev->proc);
	if (at == UINT32_MAX)
		return 0;
	p = &l->account.processes[at];
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

int ledger_event(struct ledger *l, const struct event *ev)
{
	switch (ev->rec->kind) {
	case CT_CALL: return ledger_call(l, ev);
	case CT_MEMORY: return ledger_memory(l, ev);
	case CT_COUNTER: return ledger_driver(l, ev);
	default: account_life(&l->account, ev); return 0;
	}
}
