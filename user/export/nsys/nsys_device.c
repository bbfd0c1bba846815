/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nsys_device.c - device work, as rows of nsys's tables. deviceId, cudaId and gpuId are the GPU's
 * number in the trace, so that every join by any of them finds the right GPU: two processes may use
 * one number for two GPUs. The process's own number of a GPU is TARGET_INFO_CUDA_DEVICE.ordinal.
 * Numbers of contexts and streams are those of the process, as in nsys. Kinds of memory are CUPTI's
 * numbers minus one, with unknown last.
 */
#include <stdio.h>
#include <string.h>

#include "../../event/gpus.h"
#include "../slice/slice.h"
#include "nsys.h"

#define EVENT_NVTX_MARK 34
#define EVENT_NVTX_PUSH_POP 59
#define EVENT_NVTX_START_END 60
#define EVENT_NVTX_DOMAIN 75

static int64_t memory_kind(unsigned int cupti)
{
	return cupti >= CT_MEM_PAGEABLE && cupti <= CT_MEM_MANAGED_STATIC ? (int64_t)cupti - 1 : 7;
}

#define NOT_KNOWN ((int64_t)-1) /* the columns are NOT NULL */

static int64_t known_id(uint32_t id)
{
	return id == CT_UNKNOWN ? NOT_KNOWN : (int64_t)id;
}

/* The number of the GPU that a process calls `device`. */
static int64_t device_id(const struct event *ev, uint32_t device)
{
	const struct gpu *g = device == ev->device && ev->gpu
				      ? ev->gpu
				      : gpu_table_find(ev->gpus, ev->proc, device);

	return g ? (int64_t)g->number : known_id(device);
}

/* Begins a row with the columns that all tables of device work have first. */
static struct nsys_row work_row(struct nsys *n, const struct event *ev, enum nsys_table t)
{
	const struct ct_work *w = (const struct ct_work *)ev->rec;
	struct nsys_row r = nsys_begin(&n->d, t);

	nsys_i(&r, nsys_time(n, w->h.start_ns));
	nsys_i(&r, nsys_time(n, w->h.end_ns));
	nsys_i(&r, device_id(ev, w->device));
	nsys_i(&r, known_id(w->context));
	nsys_null(&r); /* greenContextId */
	nsys_i(&r, known_id(w->stream));
	nsys_opt(&r, ev->number, ev->number);
	nsys_i(&r, nsys_global(ev->proc, 0));
	return r;
}

static int64_t launch_type(unsigned int launch)
{
	return launch == CT_LAUNCH_REGULAR ? 1 : launch == CT_LAUNCH_CDP ? 0 : 2;
}

static void kernel_names(struct nsys *n, const struct event *ev, int64_t ids[3])
{
	const struct kernel_name *k = ev->kernel;
	const char *base;
	size_t len;

	if (!k) {
		if (!n->unknown_kernel)
			n->unknown_kernel = nsys_string(n->strings, "unknown kernel", 14);
		ids[0] = ids[1] = ids[2] = n->unknown_kernel;
		return;
	}
	len = nsys_base_name(k->full, &base);
	ids[0] = nsys_string(n->strings, k->full, strlen(k->full));
	ids[1] = nsys_string(n->strings, base, len);
	ids[2] = nsys_string(n->strings, k->mangled, strlen(k->mangled));
}

static int nsys_kernel(struct nsys *n, const struct event *ev)
{
	const struct ct_kernel *k = (const struct ct_kernel *)ev->rec;
	struct nsys_row r;
	int64_t names[3];

	kernel_names(n, ev, names);
	r = work_row(n, ev, NSYS_KERNEL);
	for (int i = 0; i < 3; i++)
		nsys_i(&r, names[i]);
	nsys_i(&r, launch_type(k->launch));
	nsys_null(&r); /* cacheConfig */
	nsys_i(&r, k->registers);
	for (int i = 0; i < 3; i++)
		nsys_i(&r, k->grid[i]);
	for (int i = 0; i < 3; i++)
		nsys_i(&r, k->block[i]);
	nsys_i(&r, k->static_shared);
	nsys_i(&r, k->dynamic_shared);
	nsys_i(&r, k->local_per_thread);
	nsys_i(&r, (int64_t)k->local_total);
	nsys_i(&r, (int64_t)k->grid_id);
	nsys_opt(&r, k->executed_shared != CT_UNKNOWN, k->executed_shared);
	nsys_opt(&r, k->w.graph_node, (int64_t)k->w.graph_node);
	r.at += 4; /* sharedMemoryLimitConfig, qmd* */
	nsys_opt(&r, k->w.graph, k->w.graph);
	for (int i = 0; i < 3; i++)
		nsys_opt(&r, k->cluster[0], k->cluster[i]);
	return nsys_end(&r);
}

static int nsys_copy(struct nsys *n, const struct event *ev)
{
	const struct ct_copy *c = (const struct ct_copy *)ev->rec;
	struct nsys_row r = work_row(n, ev, NSYS_MEMCPY);
	bool peer = c->kind == CT_COPY_PTOP;

	nsys_i(&r, (int64_t)c->bytes);
	nsys_i(&r, c->kind <= CT_COPY_PTOP ? c->kind : CT_COPY_UNKNOWN);
	nsys_null(&r);
	nsys_i(&r, memory_kind(c->src));
	nsys_i(&r, memory_kind(c->dst));
	nsys_opt(&r, peer, device_id(ev, c->src_device));
	nsys_opt(&r, peer, c->src_context);
	nsys_opt(&r, peer, device_id(ev, c->dst_device));
	nsys_opt(&r, peer, c->dst_context);
	nsys_null(&r); /* migrationCause */
	nsys_opt(&r, c->w.graph_node, (int64_t)c->w.graph_node);
	nsys_null(&r);
	nsys_i(&r, c->count);
	return nsys_end(&r);
}

static int nsys_set(struct nsys *n, const struct event *ev)
{
	const struct ct_set *s = (const struct ct_set *)ev->rec;
	struct nsys_row r = work_row(n, ev, NSYS_MEMSET);

	nsys_i(&r, s->value);
	nsys_i(&r, (int64_t)s->bytes);
	nsys_opt(&r, s->w.graph_node, (int64_t)s->w.graph_node);
	nsys_i(&r, memory_kind(s->memory));
	return nsys_end(&r);
}

static int nsys_sync(struct nsys *n, const struct event *ev)
{
	const struct ct_sync *s = (const struct ct_sync *)ev->rec;
	struct nsys_row r = work_row(n, ev, NSYS_SYNC);

	nsys_null(&r);
	nsys_i(&r, s->type);
	nsys_i(&r, s->event);
	nsys_opt(&r, s->event_sync, (int64_t)s->event_sync);
	return nsys_end(&r);
}

static int nsys_graph(struct nsys *n, const struct event *ev)
{
	struct nsys_row r = work_row(n, ev, NSYS_GRAPH);

	nsys_i(&r, ((const struct ct_work *)ev->rec)->graph);
	return nsys_end(&r);
}

static int nsys_memory(struct nsys *n, const struct event *ev)
{
	const struct ct_memory *m = (const struct ct_memory *)ev->rec;
	struct nsys_row r = nsys_begin(&n->d, NSYS_MEMORY);

	nsys_i(&r, nsys_time(n, m->w.h.start_ns));
	nsys_i(&r, nsys_global(ev->proc, 0));
	nsys_i(&r, device_id(ev, m->w.device));
	nsys_i(&r, known_id(m->w.context));
	nsys_i(&r, (int64_t)m->address);
	nsys_i(&r, 0);
	nsys_i(&r, (int64_t)m->bytes);
	nsys_i(&r, memory_kind(m->memory));
	nsys_i(&r, m->op == CT_MEMORY_FREE);
	nsys_null(&r);
	nsys_opt(&r, ev->number, ev->number);
	nsys_opt(&r, m->w.stream != CT_UNKNOWN, m->w.stream);
	nsys_opt(&r, m->pool, (int64_t)m->pool);
	nsys_null(&r);
	nsys_opt(&r, m->pool_bytes, (int64_t)m->pool_bytes);
	nsys_opt(&r, m->pool_used, (int64_t)m->pool_used);
	return nsys_end(&r);
}

/* CUpti_ActivityUnifiedMemoryCounterKind: moved bytes become copies, faults become separate
 * rows, and the other kinds have no table. */
static int nsys_managed(struct nsys *n, const struct event *ev)
{
	const struct ct_managed *m = (const struct ct_managed *)ev->rec;
	static const uint8_t moved[] = { [1] = 11, [2] = 12, [8] = 13 };
	struct nsys_row r;

	if (m->kind < ARRAY_LEN(moved) && moved[m->kind]) {
		r = work_row(n, ev, NSYS_MEMCPY);
		nsys_i(&r, (int64_t)m->value);
		nsys_i(&r, moved[m->kind]);
		nsys_null(&r);
		nsys_i(&r, memory_kind(CT_MEM_MANAGED));
		nsys_i(&r, memory_kind(CT_MEM_MANAGED));
		nsys_opt(&r, m->src_device != CT_UNKNOWN, device_id(ev, m->src_device));
		nsys_null(&r);
		nsys_opt(&r, m->dst_device != CT_UNKNOWN, device_id(ev, m->dst_device));
		r.at += 3;
		nsys_i(&r, (int64_t)m->address);
		nsys_i(&r, 1);
		return nsys_end(&r);
	}
	if (m->kind != 3 && m->kind != 4)
		return 0;
	r = nsys_begin(&n->d, m->kind == 3 ? NSYS_CPU_FAULT : NSYS_GPU_FAULT);
	nsys_i(&r, nsys_time(n, m->w.h.start_ns));
	if (m->kind == 4)
		nsys_i(&r, nsys_time(n, m->w.h.end_ns));
	nsys_i(&r, nsys_global(ev->proc, 0));
	if (m->kind == 4)
		nsys_i(&r, device_id(ev, m->w.device));
	nsys_i(&r, (int64_t)m->address);
	if (m->kind == 4)
		nsys_i(&r, (int64_t)m->value);
	return nsys_end(&r);
}

static int nsys_overhead(struct nsys *n, const struct event *ev)
{
	static const char *const names[] = { "CUPTI overhead",
					     "CUPTI overhead",
					     "JIT compilation",
					     "Buffer flush",
					     "Instrumentation",
					     "Resource creation and destruction",
					     "Module loading",
					     "Lazy function loading",
					     "Command buffer full",
					     "Activity buffer request",
					     "Unified memory activity setup" };
	const struct ct_overhead *o = (const struct ct_overhead *)ev->rec;
	uint32_t type = o->type < 0x10000 ? o->type + 1 : (o->type >> 16) + 2;
	const char *name = names[type < ARRAY_LEN(names) ? type : 1];
	int64_t id = nsys_string(n->strings, name, strlen(name));
	struct nsys_row r = nsys_begin(&n->d, NSYS_OVERHEAD);

	nsys_i(&r, nsys_time(n, o->h.start_ns));
	nsys_i(&r, nsys_time(n, o->h.end_ns));
	nsys_null(&r);
	nsys_opt(&r, o->h.tid, nsys_global(ev->proc, nsys_tid(ev)));
	nsys_opt(&r, ev->number, ev->number);
	nsys_i(&r, id);
	nsys_i(&r, type < ARRAY_LEN(names) ? type : 1);
	return nsys_end(&r);
}

/* Writes a domain's name as a separate row, one for each process: reports find it by domainId
 * and process, and read `text`. */
static void nvtx_domain(struct nsys *n, const struct event *ev, int64_t domain, const char *name,
			size_t len)
{
	struct nsys_row r;
	bool is_new;

	if (!nsys_seen(&n->domains,
		       ((uint64_t)process_unique(ev->proc) << 32 | (uint32_t)domain) + 1,
		       &is_new)) {
		nsys_fail(&n->d, SQLITE_NOMEM);
		return;
	}
	if (!is_new)
		return;
	r = nsys_begin(&n->d, NSYS_NVTX);
	nsys_i(&r, nsys_time(n, ev->rec->start_ns));
	nsys_null(&r); /* end */
	nsys_i(&r, EVENT_NVTX_DOMAIN);
	r.at += 3; /* rangeId, category, color */
	nsys_text(&r, name, len);
	nsys_i(&r, nsys_global(ev->proc, nsys_tid(ev)));
	r.at += 2; /* endGlobalTid, textId */
	nsys_i(&r, domain);
	nsys_end(&r);
}

/* Writes a call of a library for which nsys has no table, as a range in a domain with the
 * library's name. */
int nsys_range(struct nsys *n, const struct event *ev, int64_t start, int64_t name_id,
	       const char *name, const char *domain)
{
	int64_t id = nsys_string(n->strings, domain, strlen(domain));
	struct nsys_row r;

	nvtx_domain(n, ev, id, domain, strlen(domain));
	r = nsys_begin(&n->d, NSYS_NVTX);
	nsys_i(&r, start);
	nsys_i(&r, nsys_time(n, ev->rec->end_ns));
	nsys_i(&r, EVENT_NVTX_PUSH_POP);
	r.at += 3; /* rangeId, category, color */
	nsys_text(&r, name, strlen(name));
	nsys_i(&r, nsys_global(ev->proc, nsys_tid(ev)));
	r.at += 1; /* endGlobalTid */
	nsys_i(&r, name_id);
	nsys_i(&r, id);
	return nsys_end(&r);
}

static int nsys_marker(struct nsys *n, const struct event *ev)
{
	const struct ct_marker *m = (const struct ct_marker *)ev->rec;
	bool mark = m->what == CT_MARKER_MARK;
	int64_t text = nsys_string(n->strings, m->text, m->text_len);
	int64_t domain =
		m->domain_len ? nsys_string(n->strings, m->text + m->text_len, m->domain_len) : 0;
	int64_t thread = nsys_global(ev->proc, nsys_tid(ev));
	struct nsys_row r;

	if (m->domain_len)
		nvtx_domain(n, ev, domain, m->text + m->text_len, m->domain_len);
	r = nsys_begin(&n->d, NSYS_NVTX);
	nsys_i(&r, nsys_time(n, m->h.start_ns));
	nsys_opt(&r, !mark, nsys_time(n, m->h.end_ns));
	nsys_i(&r, mark				   ? EVENT_NVTX_MARK
		   : m->what == CT_MARKER_PUSH_POP ? EVENT_NVTX_PUSH_POP
						   : EVENT_NVTX_START_END);
	nsys_opt(&r, m->what == CT_MARKER_START_END, m->id);
	nsys_opt(&r, m->category, m->category);
	nsys_opt(&r, m->color, m->color);
	nsys_text(&r, m->text, m->text_len);
	nsys_i(&r, thread);
	nsys_opt(&r, m->what == CT_MARKER_START_END, thread);
	nsys_i(&r, text);
	nsys_i(&r, domain);
	return nsys_end(&r);
}

/* Binds the column of the payload's type; its columns follow domainId, in this order. */
static void payload(struct nsys_row *r, const struct ct_scope *s)
{
	static const uint8_t columns[] = { CT_PAYLOAD_U64, CT_PAYLOAD_I64, CT_PAYLOAD_DOUBLE,
					   CT_PAYLOAD_U32, CT_PAYLOAD_I32, CT_PAYLOAD_FLOAT };
	uint32_t low = (uint32_t)s->payload;
	double v;
	float f;

	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		r->at++;
		if (columns[i] != s->payload_type)
			continue;
		memcpy(&v, &s->payload, sizeof(v));
		memcpy(&f, &low, sizeof(f));
		if (s->payload_type == CT_PAYLOAD_DOUBLE || s->payload_type == CT_PAYLOAD_FLOAT)
			sqlite3_bind_double(r->stmt, r->at,
					    s->payload_type == CT_PAYLOAD_DOUBLE ? v : (double)f);
		else if (s->payload_type == CT_PAYLOAD_I32)
			sqlite3_bind_int64(r->stmt, r->at, (int32_t)low);
		else
			sqlite3_bind_int64(r->stmt, r->at, (int64_t)s->payload);
	}
}

static int nsys_scope(struct nsys *n, const struct event *ev)
{
	const struct ct_scope *s = (const struct ct_scope *)ev->rec;
	const char *domain_name = s->text + s->text_len;
	bool mark = s->kind == CT_SCOPE_MARK, any = s->flags & CT_SCOPE_ANY_THREAD;
	int64_t thread = nsys_global(ev->proc, nsys_tid(ev)), text, domain = 0;
	char name[ABOUT_SCOPE_MAX];
	struct nsys_row r;
	size_t name_len;

	if (about_is_hidden(&s->h))
		return 0;
	name_len = about_scope(s, name);
	text = nsys_string(n->strings, name, name_len);
	if (s->domain_len) {
		domain = nsys_string(n->strings, domain_name, s->domain_len);
		nvtx_domain(n, ev, domain, domain_name, s->domain_len);
	}
	r = nsys_begin(&n->d, NSYS_NVTX);
	nsys_i(&r, nsys_time(n, s->h.start_ns));
	nsys_opt(&r, !mark, nsys_time(n, s->h.end_ns));
	nsys_i(&r, mark ? EVENT_NVTX_MARK : any ? EVENT_NVTX_START_END : EVENT_NVTX_PUSH_POP);
	nsys_opt(&r, any, s->id);
	nsys_opt(&r, s->category, s->category);
	nsys_opt(&r, s->color, s->color);
	nsys_text(&r, name, name_len);
	nsys_i(&r, thread);
	nsys_null(&r); /* endGlobalTid: not known */
	nsys_i(&r, text);
	nsys_i(&r, domain);
	payload(&r, s);
	return nsys_end(&r);
}

/* ---- devices, contexts, streams ---- */

static int nsys_gpu(struct nsys *n, const struct event *ev)
{
	const struct ct_device *d = (const struct ct_device *)ev->rec;
	int64_t id = ev->gpu ? ev->gpu->number : d->id;
	struct nsys_row r;
	char text[48];
	const char *uuid = text + strlen("GPU-");
	bool is_new;

	gpu_uuid_text(d->uuid, text);
	if (nsys_seen(&n->gpus, (uint64_t)id + 1, &is_new) && is_new) {
		r = nsys_begin(&n->d, NSYS_GPU);
		nsys_i(&r, 0);
		nsys_i(&r, id);
		nsys_text(&r, d->name, d->name_len);
		r.at += 2; /* busLocation, isDiscrete */
		nsys_opt(&r, d->l2_bytes, d->l2_bytes);
		nsys_opt(&r, d->memory_bytes, (int64_t)d->memory_bytes);
		nsys_opt(&r, d->bandwidth, (int64_t)d->bandwidth);
		nsys_opt(&r, d->clock_khz, (int64_t)d->clock_khz * 1000);
		nsys_opt(&r, d->multiprocessors, d->multiprocessors);
		nsys_null(&r);
		nsys_text(&r, uuid, strlen(uuid));
		r.at += 2; /* luid, chipName */
		nsys_opt(&r, d->h.pid, id);
		r.at += 9; /* from ctxswDevPath to maxShmemPerBlockOptin */
		nsys_opt(&r, d->max_shared, d->max_shared);
		nsys_opt(&r, d->max_registers, d->max_registers);
		nsys_opt(&r, d->warp_size, d->warp_size);
		nsys_null(&r);
		nsys_opt(&r, d->max_warps, d->max_warps);
		nsys_opt(&r, d->max_blocks, d->max_blocks);
		r.at += 7; /* from maxThreadsPerBlock to maxGridDimZ */
		for (int i = 0; i < 2; i++) {
			nsys_opt(&r, d->major, d->major);
			nsys_opt(&r, d->major, d->minor);
		}
		nsys_end(&r);
	}
	if (!d->h.pid)
		return n->d.error ? n->d.error : 1;
	r = nsys_begin(&n->d, NSYS_DEVICE);
	nsys_i(&r, id);
	nsys_i(&r, id);
	nsys_i(&r, process_unique(ev->proc));
	nsys_text(&r, uuid, strlen(uuid));
	nsys_opt(&r, d->multiprocessors, d->multiprocessors);
	nsys_i(&r, d->id);
	return nsys_end(&r);
}

static int nsys_context(struct nsys *n, const struct event *ev)
{
	const struct ct_context *c = (const struct ct_context *)ev->rec;
	struct nsys_row r = nsys_begin(&n->d, NSYS_CONTEXT);

	nsys_i(&r, c->null_stream);
	nsys_i(&r, 0);
	nsys_i(&r, 0);
	nsys_i(&r, process_unique(ev->proc));
	nsys_i(&r, device_id(ev, c->device));
	nsys_i(&r, c->id);
	nsys_opt(&r, c->parent != CT_UNKNOWN, c->parent);
	nsys_i(&r, c->parent != CT_UNKNOWN);
	return nsys_end(&r);
}

/* A stream that has a row already is reported again when more is known about it: updates that
 * row. */
static int stream_again(struct nsys *n, const struct ct_stream *s, int64_t rowid)
{
	char sql[128];
	int rc;

	if (!s->flags || n->d.error)
		return n->d.error;
	snprintf(sql, sizeof(sql),
		 "UPDATE TARGET_INFO_CUDA_STREAM SET priority=%d,flag=%u WHERE rowid=%lld",
		 s->priority, s->flags, (long long)rowid);
	rc = sqlite3_exec(n->d.db, sql, NULL, NULL, NULL);
	return rc ? nsys_fail(&n->d, rc) : 0;
}

static int nsys_stream(struct nsys *n, const struct event *ev)
{
	const struct ct_stream *s = (const struct ct_stream *)ev->rec;
	int64_t *context, *rowid = NULL;
	struct nsys_row r;
	bool is_new;
	int err;

	context = nsys_seen(&n->contexts,
			    ((uint64_t)process_unique(ev->proc) << 32 | s->context) + 1, &is_new);
	if (context && is_new)
		*context = (int64_t)n->contexts.n;
	if (context)
		rowid = nsys_seen(&n->streams, (uint64_t)*context << 32 | s->id, &is_new);
	if (!rowid)
		return nsys_fail(&n->d, SQLITE_NOMEM);
	if (!is_new)
		return stream_again(n, s, *rowid);
	r = nsys_begin(&n->d, NSYS_STREAM);
	nsys_i(&r, s->id);
	nsys_i(&r, 0);
	nsys_i(&r, 0);
	nsys_i(&r, process_unique(ev->proc));
	nsys_i(&r, s->context);
	nsys_i(&r, s->priority);
	nsys_i(&r, s->flags);
	err = nsys_end(&r);
	*rowid = sqlite3_last_insert_rowid(n->d.db);
	return err;
}

/* Writes what happened to a device: an XID and the like. */
static int nsys_event_of_device(struct nsys *n, const struct event *ev)
{
	static const char *const types[] = { "event", "XID", "ECC error", "clocks held back",
					     "CUPTI gave up" };
	const struct ct_event *e = (const struct ct_event *)ev->rec;
	uint32_t len = e->text_len < 400 ? e->text_len : 400;
	char text[512];
	int at;

	at = snprintf(text, sizeof(text), "%s %llu",
		      types[e->type < ARRAY_LEN(types) ? e->type : 0], (unsigned long long)e->code);
	if (e->device != CT_UNKNOWN)
		at += snprintf(text + at, sizeof(text) - (size_t)at, " on device %u",
			       ev->gpu ? ev->gpu->number : e->device);
	if (len)
		snprintf(text + at, sizeof(text) - (size_t)at, ": %.*s", (int)len, e->text);
	return nsys_diagnostic(n, nsys_time(n, e->h.start_ns), e->type == CT_EVENT_CLOCK ? 2 : 3,
			       text, e->h.pid ? ev->proc : NULL);
}

/* Writes what nsys has no table for, as a range in a domain with the category's name. */
static int nsys_slice(struct nsys *n, const struct event *ev)
{
	char domain[64];
	struct slice s;
	int64_t id;

	slice_of(&s, n->opts, ev);
	if (s.track == SLICE_NOWHERE)
		return 0;
	snprintf(domain, sizeof(domain), "%.*s", (int)s.category_len, s.category);
	id = nsys_string(n->strings, s.name, s.name_len);
	return nsys_range(n, ev, nsys_time(n, s.start_ns), id, s.name, domain);
}

int nsys_device(struct nsys *n, const struct event *ev)
{
	static int (*const rows[CT_KIND_END])(struct nsys *, const struct event *) = {
		[CT_KERNEL] = nsys_kernel,
		[CT_COPY] = nsys_copy,
		[CT_SET] = nsys_set,
		[CT_SYNC] = nsys_sync,
		[CT_GRAPH] = nsys_graph,
		[CT_OVERHEAD] = nsys_overhead,
		[CT_MEMORY] = nsys_memory,
		[CT_MANAGED] = nsys_managed,
		[CT_MARKER] = nsys_marker,
		[CT_DEVICE] = nsys_gpu,
		[CT_CONTEXT] = nsys_context,
		[CT_STREAM] = nsys_stream,
		[CT_EVENT] = nsys_event_of_device,
		[CT_SCOPE_END] = nsys_scope,
	};
	uint16_t kind = ev->rec->kind;
	const struct slice_row *row = slice_row(kind);

	if (row && row->flags & SLICE_RANGE)
		return nsys_slice(n, ev);
	if (kind >= CT_KIND_END || !rows[kind])
		return 0;
	if (kind_is(kind, KIND_STREAM) && ev->rec->flags & CT_F_NO_TIME) {
		n->untimed++;
		return 0;
	}
	return rows[kind](n, ev);
}
