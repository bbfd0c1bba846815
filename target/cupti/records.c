/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * records.c - CUPTI's activity records become those of the wire. Reads only the members of a record
 * that CUPTI 11.8 has; later members are read according to the version. Times are checked: a device
 * record without a plausible time is still sent, but marked and counted.
 */
#include "agent_state.h"

#include <stdlib.h>

#define FUTURE_NS 60000000000ULL
#define NAME_LEN 1024	  /* longest name of a device, text of a marker, or domain */
#define MARKERS 4096	  /* chains of ranges that are open */
#define MARKERS_MAX 65536 /* such ranges; more are counted as dropped */

static uint32_t u32_at(const void *record, size_t at)
{
	uint32_t v;

	memcpy(&v, (const char *)record + at, sizeof(v));
	return v;
}

static uint64_t u64_at(const void *record, size_t at)
{
	uint64_t v;

	memcpy(&v, (const char *)record + at, sizeof(v));
	return v;
}

static uint32_t known(uint32_t id)
{
	return id == ~0u ? CT_UNKNOWN : id;
}

/* A record of device work with its head. Its times are CUPTI's. */
static void *work(unsigned int kind, size_t n, uint64_t start, uint64_t end, uint32_t tid)
{
	uint64_t now = clock_now(), from = clock_ns(start), to = clock_ns(end);
	bool bad = !start || !end || end < start || to > now + FUTURE_NS;
	struct ct_work *w;

	if (bad) {
		atomic_fetch_add(&agent.bad_time, 1);
		from = to = now;
	}
	w = agent_record(kind, n, from, to, tid);
	if (!w)
		return NULL;
	w->h.flags = bad ? CT_F_NO_TIME : 0;
	w->func = CT_NO_FUNC;
	w->channel = 0xffff;
	w->device = w->context = w->stream = CT_UNKNOWN;
	return w;
}

/* The correlation id of work that may belong to a graph: 0 if it is not reliable, so that the call
 * is found by thread and time. */
static uint32_t correlation(uint32_t id, uint32_t graph_id)
{
	if (graph_id)
		atomic_store_explicit(&agent.graphs, true, memory_order_relaxed);
	return graph_id && agent.attached > 1 && agent.faults & FAULT_GRAPH_IDS ? 0 : id;
}

/* CUPTI's channel 0xffff... and those above 16 bits: not known. */
static uint16_t channel(uint32_t id)
{
	return id < 0xffff ? (uint16_t)id : 0xffff;
}

static void put_place(struct ct_work *w, uint32_t device, uint32_t context, uint32_t stream)
{
	w->device = known(device);
	w->context = known(context);
	w->stream = known(stream);
}

/* Of work that may be a node of a graph. */
static void put_cause(struct ct_work *w, uint32_t id, uint32_t graph, uint64_t node, uint32_t on)
{
	w->correlation = correlation(id, graph);
	w->graph_node = node;
	w->graph = graph;
	w->channel = channel(on);
}

static void kernel(const struct cupti_kernel *k)
{
	uint64_t name = names_of_record(k->name, clock_ns(k->start));
	struct ct_kernel *r = work(CT_KERNEL, sizeof(*r), k->start, k->end, 0);

	if (!r)
		return;
	put_place(&r->w, k->device, k->context, k->stream);
	put_cause(&r->w, k->correlation, k->graph, k->graph_node, k->channel);
	r->name = name;
	r->queued_ns = clock_ns(k->queued);
	r->submitted_ns = clock_ns(k->submitted);
	for (int i = 0; i < 3; i++) {
		r->grid[i] = (uint32_t)k->grid[i];
		r->block[i] = (uint32_t)k->block[i];
		r->cluster[i] = k->cluster[i];
	}
	r->registers = k->registers;
	r->static_shared = (uint32_t)k->static_shared;
	r->dynamic_shared = (uint32_t)k->dynamic_shared;
	r->executed_shared = k->shared_executed ? k->shared_executed : CT_UNKNOWN;
	r->local_per_thread = k->local_per_thread;
	r->local_total = k->local_total_v2;
	r->grid_id = (uint64_t)k->grid_id;
	r->launch = k->launch;
	queue_commit(r);
}

static void copy(const struct cupti_memcpy *m)
{
	struct ct_copy *r = work(CT_COPY, sizeof(*r), m->start, m->end, 0);

	if (!r)
		return;
	put_place(&r->w, m->device, m->context, m->stream);
	r->src_device = r->dst_device = r->w.device;
	r->src_context = r->dst_context = r->w.context;
	put_cause(&r->w, m->correlation, m->graph, m->graph_node, m->channel);
	r->bytes = m->bytes;
	r->count = agent.cupti.version >= CUPTI_12_8 ? (uint32_t)u64_at(m, CUPTI_MEMCPY_COUNT_AT)
						     : 1;
	if (!r->count)
		r->count = 1;
	r->kind = m->copy_kind;
	r->src = m->src;
	r->dst = m->dst;
	r->flags = m->flags & 1 ? CT_W_ASYNC : 0;
	queue_commit(r);
}

static void copy_peer(const struct cupti_memcpy2 *m)
{
	struct ct_copy *r = work(CT_COPY, sizeof(*r), m->start, m->end, 0);

	if (!r)
		return;
	put_place(&r->w, m->device, m->context, m->stream);
	r->src_device = known(m->src_device);
	r->src_context = known(m->src_context);
	r->dst_device = known(m->dst_device);
	r->dst_context = known(m->dst_context);
	put_cause(&r->w, m->correlation, m->graph, m->graph_node, m->channel);
	r->bytes = m->bytes;
	r->count = 1;
	r->kind = m->copy_kind;
	r->src = m->src;
	r->dst = m->dst;
	r->flags = m->flags & 1 ? CT_W_ASYNC : 0;
	queue_commit(r);
}

static void set(const struct cupti_memset *m)
{
	struct ct_set *r = work(CT_SET, sizeof(*r), m->start, m->end, 0);

	if (!r)
		return;
	put_place(&r->w, m->device, m->context, m->stream);
	put_cause(&r->w, m->correlation, m->graph, m->graph_node, m->channel);
	r->bytes = m->bytes;
	r->value = m->value;
	r->memory = (uint8_t)m->memory;
	r->flags = m->flags & 1 ? CT_W_ASYNC : 0;
	queue_commit(r);
}

static void sync_record(const struct cupti_sync *s)
{
	struct ct_sync *r = work(CT_SYNC, sizeof(*r), s->start, s->end, 0);

	if (!r)
		return;
	r->w.context = known(s->context);
	r->w.stream = known(s->stream);
	r->w.correlation = s->correlation;
	r->type = s->type;
	r->event = known(s->event);
	r->event_sync = agent.cupti.version >= CUPTI_12_8 ? u64_at(s, CUPTI_SYNC_EVENT_AT) : 0;
	queue_commit(r);
}

static void graph(const struct cupti_graph *g)
{
	struct ct_work *r = work(CT_GRAPH, sizeof(*r), g->start, g->end, 0);

	if (!r)
		return;
	put_place(r, g->device, g->context, g->stream);
	r->correlation = correlation(g->correlation, g->graph ? g->graph : 1);
	r->graph = g->graph;
	queue_commit(r);
}

static void overhead(const struct cupti_overhead *o)
{
	bool thread = o->object_kind == CUPTI_OBJECT_THREAD;
	struct ct_overhead *r;

	if (!o->start || o->end < o->start)
		return; /* says nothing */
	r = agent_record(CT_OVERHEAD, sizeof(*r), clock_ns(o->start), clock_ns(o->end),
			 thread ? o->object[1] : 0);
	if (!r)
		return;
	r->type = o->overhead;
	r->correlation =
		agent.cupti.version >= CUPTI_12_2 ? u32_at(o, CUPTI_OVERHEAD_CORRELATION_AT) : 0;
	r->device = r->context = r->stream = CT_UNKNOWN;
	if (o->object_kind >= CUPTI_OBJECT_DEVICE)
		r->device = known(o->object[0]);
	if (o->object_kind >= CUPTI_OBJECT_CONTEXT)
		r->context = known(o->object[1]);
	if (o->object_kind >= CUPTI_OBJECT_STREAM)
		r->stream = known(o->object[2]);
	queue_commit(r);
}

static void memory(const struct cupti_memory *m)
{
	struct ct_memory *r = work(CT_MEMORY, sizeof(*r), m->time, m->time, 0);

	if (!r)
		return;
	put_place(&r->w, m->device, m->context, m->stream);
	r->w.correlation = m->correlation;
	r->address = m->address;
	r->bytes = m->bytes;
	if (m->pool_type) {
		r->pool = m->pool;
		/* of an imported pool it is a process id */
		r->pool_bytes = m->pool_type == 1 ? m->pool_bytes : 0;
		r->pool_used = m->pool_used;
	}
	r->op = (uint8_t)m->op;
	r->memory = (uint8_t)m->memory;
	queue_commit(r);
}

static void managed(const struct cupti_um *m)
{
	struct ct_managed *r =
		work(CT_MANAGED, sizeof(*r), m->start, m->end ? m->end : m->start, 0);

	if (!r)
		return;
	r->w.stream = known(m->stream);
	r->address = m->address;
	r->value = m->value;
	r->kind = m->counter;
	r->src_device = r->w.device = known(m->src);
	r->dst_device = known(m->dst);
	queue_commit(r);
}

/* A call that device work may refer to. */
static void cause(const struct cupti_api *a, int domain)
{
	struct ct_cause *r;

	if (!a->start || a->end < a->start)
		return;
	r = agent_record(CT_CAUSE, sizeof(*r), clock_ns(a->start), clock_ns(a->end), a->tid);
	if (!r)
		return;
	r->correlation = a->correlation;
	r->func = CT_NO_FUNC;
	if (agent.funcs[domain] && a->cbid < FUNCS_MAX && agent.funcs[domain][a->cbid].flags)
		r->func = agent.funcs[domain][a->cbid].row;
	queue_commit(r);
}

static void device(const struct cupti_device *d)
{
	size_t len = d->name ? strnlen(d->name, NAME_LEN) : 0;
	uint64_t now = clock_now();
	struct ct_device *r = agent_record(CT_DEVICE, sizeof(*r) + len, now, now, 0);

	if (!r)
		return;
	r->id = d->id;
	memcpy(r->uuid, d->uuid, sizeof(r->uuid));
	r->memory_bytes = d->memory;
	r->bandwidth = d->bandwidth * 1000; /* kB/s */
	r->major = d->major;
	r->minor = d->minor;
	r->multiprocessors = d->multiprocessors;
	r->clock_khz = d->clock;
	r->l2_bytes = d->l2;
	r->max_threads = d->max_warps * d->warp;
	r->max_warps = d->max_warps;
	r->max_blocks = d->max_blocks;
	r->max_registers = d->max_registers;
	r->max_shared = d->max_shared;
	r->warp_size = d->warp;
	r->name_len = (uint32_t)len;
	memcpy(r->name, d->name ? d->name : "", len);
	queue_commit(r);
}

static void context(const struct cupti_context *c)
{
	uint64_t now = clock_now();
	struct ct_context r = {
		.h = { .start_ns = now, .end_ns = now },
		.id = c->id,
		.device = known(c->device),
		.null_stream = c->null_stream,
		.parent = CT_UNKNOWN,
		.api = c->api,
	};

	if (agent.cupti.version >= CUPTI_12_8 && *((const uint8_t *)c + CUPTI_CONTEXT_GREEN_AT))
		r.parent = u32_at(c, CUPTI_CONTEXT_PARENT_AT);
	contexts_keep(&r);
}

static void stream(const struct cupti_stream *s)
{
	uint64_t now = clock_now();
	struct ct_stream *r = agent_record(CT_STREAM, sizeof(*r), now, now, 0);

	if (!r)
		return;
	r->id = s->id;
	r->context = known(s->context);
	r->priority = (int32_t)s->priority;
	r->flags = s->flag & 0xffff;
	queue_commit(r);
}

/* ---- markers: two records of CUPTI's become one range ---- */

/* Ranges whose end has not come, by id: an outer range stays while any number of inner ranges begin and end. Used under device.c's lock. */
struct open_marker {
	struct open_marker *next;
	uint32_t id, tid;
	uint64_t start_ns;
	uint16_t text_len, domain_len;
	bool push_pop;
	char text[]; /* and the domain */
};
static struct open_marker **open_markers;
static uint32_t nopen;

static void send_marker(const struct open_marker *m, enum ct_marker_what what, uint64_t end_ns)
{
	struct ct_marker *r = agent_record(CT_MARKER, sizeof(*r) + m->text_len + m->domain_len,
					   m->start_ns, end_ns < m->start_ns ? m->start_ns : end_ns,
					   m->tid);

	if (!r)
		return;
	r->id = m->id;
	r->text_len = m->text_len;
	r->domain_len = m->domain_len;
	r->what = (uint8_t)what;
	memcpy(r->text, m->text, (size_t)m->text_len + m->domain_len);
	queue_commit(r);
}

static struct open_marker *new_marker(const struct cupti_marker *c)
{
	size_t text = c->name ? strnlen(c->name, NAME_LEN) : 0,
	       domain = c->domain ? strnlen(c->domain, NAME_LEN) : 0;
	struct open_marker *m = malloc(sizeof(*m) + text + domain);

	if (!m)
		return NULL;
	*m = (struct open_marker){
		.id = c->id,
		.start_ns = clock_ns(c->time),
		.push_pop = c->object_kind == CUPTI_OBJECT_THREAD,
		.text_len = (uint16_t)text,
		.domain_len = (uint16_t)domain,
	};
	m->tid = m->push_pop ? c->object[1] : 0;
	if (text)
		memcpy(m->text, c->name, text);
	if (domain)
		memcpy(m->text + text, c->domain, domain);
	return m;
}

/* Removes the range with an id from the open ones, and returns it; NULL: there is none. */
static struct open_marker *take_marker(uint32_t id)
{
	for (struct open_marker **at = &open_markers[id % MARKERS]; *at; at = &(*at)->next) {
		struct open_marker *m = *at;

		if (m->id != id)
			continue;
		*at = m->next;
		nopen--;
		return m;
	}
	return NULL;
}

static void marker(const struct cupti_marker *c)
{
	struct open_marker *m;

	if (!open_markers)
		open_markers = calloc(MARKERS, sizeof(*open_markers));
	if (!open_markers || !c->time)
		return;
	if (c->flags & CUPTI_MARK_END) {
		m = take_marker(c->id);
		if (m)
			send_marker(m, m->push_pop ? CT_MARKER_PUSH_POP : CT_MARKER_START_END,
				    clock_ns(c->time));
		free(m);
		return;
	}
	m = new_marker(c);
	if (m && !(c->flags & CUPTI_MARK_START))
		send_marker(m, CT_MARKER_MARK, m->start_ns);
	if (m && c->flags & CUPTI_MARK_START && nopen < MARKERS_MAX) {
		free(take_marker(c->id));
		m->next = open_markers[c->id % MARKERS];
		open_markers[c->id % MARKERS] = m;
		nopen++;
		return;
	}
	if (!m || c->flags & CUPTI_MARK_START)
		atomic_fetch_add(&agent.dropped, 1);
	free(m);
}

void records_reset(void)
{
	struct open_marker *next;

	for (int i = 0; open_markers && i < MARKERS; i++) {
		for (struct open_marker *m = open_markers[i]; m; m = next) {
			next = m->next;
			free(m);
		}
	}
	free(open_markers);
	open_markers = NULL;
	nopen = 0;
}

void records_convert(const void *record)
{
	switch (u32_at(record, 0)) {
	case CUPTI_KIND_KERNEL: kernel(record); break;
	case CUPTI_KIND_MEMCPY: copy(record); break;
	case CUPTI_KIND_MEMCPY2: copy_peer(record); break;
	case CUPTI_KIND_MEMSET: set(record); break;
	case CUPTI_KIND_SYNC: sync_record(record); break;
	case CUPTI_KIND_GRAPH: graph(record); break;
	case CUPTI_KIND_OVERHEAD: overhead(record); break;
	case CUPTI_KIND_MEMORY2: memory(record); break;
	case CUPTI_KIND_UM: managed(record); break;
	case CUPTI_KIND_RUNTIME: cause(record, AGENT_RUNTIME); break;
	case CUPTI_KIND_DRIVER: cause(record, AGENT_DRIVER); break;
	case CUPTI_KIND_DEVICE: device(record); break;
	case CUPTI_KIND_CONTEXT: context(record); break;
	case CUPTI_KIND_STREAM: stream(record); break;
	case CUPTI_KIND_MARKER: marker(record); break;
	default: /* MARKER_DATA comes along with MARKER */ break;
	}
}
