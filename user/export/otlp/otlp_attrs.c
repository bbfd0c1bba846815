/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * otlp_attrs.c - attributes, with the names of go-cupti's tags, so that programs that read those
 * tags still work. Arguments of calls are found by their names in CUDA's headers. Knows no function
 * and no encoding.
 */
#include <stdio.h>
#include <string.h>

#include "../../event/device.h"
#include "../../event/gpus.h"
#include "../../flow/about.h"
#include "../slice/work_text.h"
#include "otlp_attrs.h"

static void otlp_attrs_put_text(struct otlp_enc *e, const char *key, const char *s)
{
	otlp_str(e, key, s, strlen(s));
}

static void put_dim(struct otlp_enc *e, const char *key, const uint32_t d[3])
{
	char text[48];

	snprintf(text, sizeof(text), "[%u,%u,%u]", d[0], d[1], d[2]);
	otlp_attrs_put_text(e, key, text);
}

static void put_pointer(struct otlp_enc *e, const char *key, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)v);
	otlp_attrs_put_text(e, key, text);
}

/* ---- calls ---- */

/* An argument's name in CUDA's headers and the attribute's. */
static const struct {
	const char *name, *key;
} arguments[] = {
	{ "gridDim", "grid_dim" },
	{ "blockDim", "block_dim" },
	{ "sharedMem", "shared_mem" },
	{ "sharedMemBytes", "shared_mem" },
	{ "stream", "stream" },
	{ "hStream", "stream" },
	{ "kind", "kind" },
	{ "dst", "destination_ptr" },
	{ "dstDevice", "destination_ptr" },
	{ "dstHost", "destination_ptr" },
	{ "src", "source_ptr" },
	{ "srcDevice", "source_ptr" },
	{ "srcHost", "source_ptr" },
	{ "devPtr", "ptr" },
	{ "dptr", "ptr" },
	{ "ptr", "ptr" },
	{ "flags", "flags" },
	{ "width", "width" },
	{ "height", "height" },
	{ "pitch", "pitch" },
};

static void otlp_attrs_put_flags(struct otlp_enc *e, const char *key, const struct field *f)
{
	const struct xlat_row *row;
	char text[256] = "";
	uint64_t left = f->u;
	size_t n = 0;
	int at = 0;

	while (n < sizeof(text) && (row = xlat_flag(f->xlat, f->u, left, &at))) {
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? "|" : "", row->name);
		left &= ~(uint64_t)row->value;
	}
	if ((left || !n) && n < sizeof(text))
		snprintf(text + n, sizeof(text) - n, "%s0x%llx", n ? "|" : "",
			 (unsigned long long)left);
	otlp_attrs_put_text(e, key, text);
}

static void put_field(struct otlp_enc *e, const char *key, const struct field *f)
{
	const char *name;

	switch (f->type) {
	case FIELD_INT: otlp_int(e, key, f->i); break;
	case FIELD_UINT:
	case FIELD_SIZE:
	case FIELD_BOOL: otlp_int(e, key, (int64_t)f->u); break;
	case FIELD_PTR:
	case FIELD_STREAM:
	case FIELD_FUNC: put_pointer(e, key, f->u); break;
	case FIELD_ENUM:
		name = f->xlat ? xlat_name(f->xlat, f->i) : NULL;
		if (name)
			otlp_attrs_put_text(e, key, name);
		else
			otlp_int(e, key, f->i);
		break;
	case FIELD_FLAGS: otlp_attrs_put_flags(e, key, f); break;
	case FIELD_DIM3: put_dim(e, key, f->dim); break;
	}
}

/* The driver's launch has x, y and z as arguments of their own: gridDimX and so on. */
static bool part_of_dim(const struct field *f, const char *name, uint32_t d[3])
{
	size_t n = strlen(name);

	if (strncmp(f->name, name, n) || f->name[n] < 'X' || f->name[n] > 'Z' || f->name[n + 1])
		return false;
	d[f->name[n] - 'X'] = (uint32_t)f->u;
	return true;
}

static void put_arguments(struct otlp_enc *e, const struct field *f, int n)
{
	uint32_t grid[3] = { 0 }, block[3] = { 0 };
	uint64_t seen = 0;

	for (int i = 0; i < n; i++) {
		if (!f[i].name || f[i].absent || part_of_dim(&f[i], "gridDim", grid) ||
		    part_of_dim(&f[i], "blockDim", block))
			continue;
		for (size_t k = 0; k < ARRAY_LEN(arguments); k++) {
			if (strcmp(f[i].name, arguments[k].name) || seen >> k & 1)
				continue;
			put_field(e, arguments[k].key, &f[i]);
			/* each attribute is added only once, from the first argument that has
			 * one of its names */
			for (size_t same = 0; same < ARRAY_LEN(arguments); same++)
				if (!strcmp(arguments[same].key, arguments[k].key))
					seen |= 1ULL << same;
		}
	}
	if (grid[0])
		put_dim(e, "grid_dim", grid);
	if (block[0])
		put_dim(e, "block_dim", block);
}

static void otlp_attrs_put_head(struct otlp_enc *e, const char *type, uint16_t func, uint32_t tid,
				const char *thread, uint32_t number)
{
	otlp_attrs_put_text(e, "trace_source", "cudatrace");
	otlp_attrs_put_text(e, "cupti_type", type);
	if (func < api_nfuncs) {
		otlp_attrs_put_text(e, "cupti_domain", api_domain_name(api_funcs[func].domain));
		otlp_attrs_put_text(e, "function_name", api_funcs[func].name);
	}
	if (tid)
		otlp_int(e, "thread.id", tid);
	if (thread)
		otlp_attrs_put_text(e, "thread.name", thread);
	if (number)
		otlp_int(e, "correlation_id", number);
}

/* A payload of floating point is a text. */
static void put_payload(struct otlp_enc *e, const struct field *f)
{
	char text[40];

	if (f->type != FIELD_FLOAT) {
		otlp_int(e, "scope.payload", (int64_t)f->u);
		return;
	}
	snprintf(text, sizeof(text), "%.*g", f->single ? 9 : 17, f->f);
	otlp_attrs_put_text(e, "scope.payload", text);
}

static void put_around(struct otlp_enc *e, const struct event *ev)
{
	const char *name = about_around(ev);

	if (name)
		otlp_attrs_put_text(e, "scope", name);
	if (ev->scope)
		otlp_int(e, "scope.id", ev->scope_id);
}

void otlp_call_attrs(struct otlp_enc *e, const struct event *ev)
{
	const struct ct_call *c = (const struct ct_call *)ev->rec;
	struct field f[EVENT_MAX_FIELDS];
	int n = event_fields(ev, f, EVENT_MAX_FIELDS);
	int64_t bytes = api_size(c, API_ARCH_HERE);

	otlp_attrs_put_head(e, "callback", c->func, about_tid(ev), ev->thread, ev->number);
	put_arguments(e, f, n);
	if (bytes >= 0)
		otlp_int(e, "byte_count", bytes);
	if (ev->kernel)
		otlp_attrs_put_text(e, "kernel", ev->kernel->full);
	put_around(e, ev);
	if (c->h.flags & CT_F_UNFINISHED)
		otlp_bool(e, "unfinished", true);
	else if (n && f[n - 1].type == FIELD_ERROR && f[n - 1].name &&
		 !strcmp(f[n - 1].name, "returned") && f[n - 1].xlat &&
		 xlat_name(f[n - 1].xlat, f[n - 1].i))
		otlp_attrs_put_text(e, "result", xlat_name(f[n - 1].xlat, f[n - 1].i));
	else if (n && f[n - 1].type == FIELD_STR && f[n - 1].name &&
		 !strcmp(f[n - 1].name, "returned"))
		otlp_str(e, "result", f[n - 1].str, f[n - 1].str_len);
}

static void otlp_attrs_put_word(struct otlp_enc *e, const char *key, const char *word)
{
	if (word)
		otlp_attrs_put_text(e, key, word);
}

/* Adds what a product of matrices is, to a call for one or to a kernel that computes it. */
static void put_product(struct otlp_enc *e, const struct event *ev)
{
	struct product p;

	if (!product_of(ev, &p))
		return;
	if (p.gemm->flags & CT_GEMM_SHAPE) {
		otlp_int(e, "gemm.m", (int64_t)p.gemm->m);
		otlp_int(e, "gemm.n", (int64_t)p.gemm->n);
		otlp_int(e, "gemm.k", (int64_t)p.gemm->k);
	}
	if (p.gemm->batch)
		otlp_int(e, "gemm.batch", (int64_t)p.gemm->batch);
	otlp_attrs_put_word(e, "gemm.a_type", gemm_type(p.gemm->a_type));
	otlp_attrs_put_word(e, "gemm.b_type", gemm_type(p.gemm->b_type));
	otlp_attrs_put_word(e, "gemm.d_type", gemm_type(p.gemm->d_type));
	if (p.flop)
		otlp_int(e, "gemm.flop", (int64_t)p.flop);
	if (p.rate >= 0)
		otlp_double(e, "gemm.tflops", p.rate / 1e12);
	if (p.share >= 0)
		otlp_double(e, "gemm.peak_share", p.share);
}

/* The number of a scope is unique in its process. */
void otlp_scope_attrs(struct otlp_enc *e, const struct event *ev)
{
	const struct ct_scope *s = (const struct ct_scope *)ev->rec;
	const char *domain = s->text + s->text_len, *category = domain + s->domain_len,
		   *layer = category + s->category_len;
	struct field f[EVENT_MAX_FIELDS];
	int n = event_fields(ev, f, EVENT_MAX_FIELDS);

	otlp_attrs_put_head(e, "scope", CT_NO_FUNC, about_tid(ev), ev->thread, 0);
	otlp_attrs_put_text(e, "scope.kind", scope_word(s));
	otlp_str(e, "scope.layer", layer, s->layer_len);
	otlp_int(e, "scope.id", s->id);
	if (s->parent == CT_SCOPE_UNKNOWN)
		otlp_bool(e, "scope.parent_unknown", true);
	else if (s->parent)
		otlp_int(e, "scope.parent", s->parent);
	if (s->domain_len)
		otlp_str(e, "scope.domain", domain, s->domain_len);
	if (s->category)
		otlp_int(e, "scope.category", s->category);
	if (s->category_len)
		otlp_str(e, "scope.category_name", category, s->category_len);
	for (int i = 0; i < n; i++)
		if (f[i].name && !strcmp(f[i].name, "payload"))
			put_payload(e, &f[i]);
	if (s->fields_len)
		otlp_str(e,
			 scope_collective(s)		? "scope.group"
			 : s->kind == CT_SCOPE_OPERATOR ? "scope.inputs"
							: "scope.payload_fields",
			 layer + s->layer_len, s->fields_len);
	put_product(e, ev);
	if (s->flags & CT_SCOPE_ANY_THREAD)
		otlp_bool(e, "scope.any_thread", true);
	if (s->flags & CT_SCOPE_UNPAIRED)
		otlp_bool(e, "scope.unpaired", true);
	if (s->flags & CT_SCOPE_UNFINISHED)
		otlp_bool(e, "unfinished", true);
}

void otlp_cause_attrs(struct otlp_enc *e, const struct event *work)
{
	otlp_attrs_put_head(e, "callback", work->cause->func,
			    process_tid(work->proc, work->cause->tid), work->thread, work->number);
}

const char *otlp_muted_attrs(struct otlp_enc *e, const struct event *ev, char *buf, size_t size)
{
	const struct ct_muted *m = (const struct ct_muted *)ev->rec;
	struct text name = { 0 };

	about_text(&name, m->text + m->domain_len, m->name_len);
	otlp_attrs_put_text(e, "trace_source", "cudatrace");
	otlp_attrs_put_text(e, "cupti_type", "muted");
	otlp_str(e, "cupti_domain", m->text, m->domain_len);
	if (!name.bad)
		otlp_str(e, "function_name", name.s, name.len);
	otlp_int(e, "calls.counted", (int64_t)m->counted);
	otlp_int(e, "calls.estimated", m->unseen.calls);
	otlp_int(e, "calls.below", m->unseen.below);
	otlp_int(e, "calls.above", m->unseen.above);
	otlp_int(e, "windows", m->windows);
	snprintf(buf, size, "muted %.*s", name.bad ? 1 : (int)name.len, name.bad ? "?" : name.s);
	text_free(&name);
	return buf;
}

/* ---- device work ---- */

/* These return the span's name. */
static const char *otlp_attrs_put_kernel(struct otlp_enc *e, const struct event *ev, char *buf,
					 size_t size)
{
	const struct ct_kernel *k = (const struct ct_kernel *)ev->rec;

	(void)buf, (void)size;
	put_dim(e, "grid_dim", k->grid);
	put_dim(e, "block_dim", k->block);
	if (k->cluster[0])
		put_dim(e, "cluster_dim", k->cluster);
	otlp_int(e, "shared_mem", (int64_t)k->static_shared + k->dynamic_shared);
	otlp_int(e, "registers_per_thread", k->registers);
	otlp_int(e, "local_memory_per_thread", k->local_per_thread);
	if (k->queued_ns)
		otlp_int(e, "queued", (int64_t)k->queued_ns);
	if (k->submitted_ns)
		otlp_int(e, "submitted", (int64_t)k->submitted_ns);
	if (!ev->kernel)
		return "unknown kernel";
	otlp_attrs_put_text(e, "name", ev->kernel->full);
	otlp_attrs_put_text(e, "symbol_name", ev->kernel->mangled);
	return ev->kernel->brief;
}

static const char *put_copy(struct otlp_enc *e, const struct event *ev, char *buf, size_t size)
{
	const struct ct_copy *c = (const struct ct_copy *)ev->rec;

	snprintf(buf, size, "Memcpy %s", work_copy_kind(c->kind));
	otlp_int(e, "bytes", (int64_t)c->bytes);
	otlp_attrs_put_text(e, "copy_kind", work_copy_kind(c->kind));
	otlp_attrs_put_text(e, "src_kind", work_memory_kind(c->src));
	otlp_attrs_put_text(e, "dst_kind", work_memory_kind(c->dst));
	return buf;
}

static const char *put_set(struct otlp_enc *e, const struct event *ev, char *buf, size_t size)
{
	const struct ct_set *s = (const struct ct_set *)ev->rec;

	(void)buf, (void)size;
	otlp_int(e, "bytes", (int64_t)s->bytes);
	otlp_int(e, "value", s->value);
	otlp_attrs_put_text(e, "dst_kind", work_memory_kind(s->memory));
	return "Memset";
}

static const char *put_graph(struct otlp_enc *e, const struct event *ev, char *buf, size_t size)
{
	(void)e, (void)ev, (void)buf, (void)size;
	return "Graph";
}

/* For work of a graph's replay: adds which call was captured. */
static void put_capture(struct otlp_enc *e, const struct event *ev)
{
	if (ev->capture && ev->capture->before)
		otlp_attrs_put_text(e, "captured", "before the trace");
	if (ev->captured_in)
		otlp_attrs_put_text(e, "captured_in", ev->captured_in);
	if (ev->captured_at)
		otlp_attrs_put_text(e, "captured_at", ev->captured_at);
	if (ev->capture && ev->capture->number)
		otlp_int(e, "captured_by", ev->capture->number);
}

const char *otlp_work_attrs(struct otlp_enc *e, const struct event *ev, char *buf, size_t size)
{
	static const char *(*const names[CT_KIND_END])(struct otlp_enc *, const struct event *,
						       char *, size_t) = {
		[CT_KERNEL] = otlp_attrs_put_kernel,
		[CT_COPY] = put_copy,
		[CT_SET] = put_set,
		[CT_GRAPH] = put_graph,
	};
	const struct ct_work *w = (const struct ct_work *)ev->rec;

	otlp_attrs_put_head(e, "activity", CT_NO_FUNC, 0, NULL, ev->number);
	if (w->device != CT_UNKNOWN)
		otlp_int(e, "device_id", w->device);
	if (ev->gpu && *ev->gpu->text)
		otlp_attrs_put_text(e, "gpu_uuid", ev->gpu->text);
	if (w->context != CT_UNKNOWN)
		otlp_int(e, "context_id", w->context);
	if (w->stream != CT_UNKNOWN)
		otlp_int(e, "stream_id", w->stream);
	put_around(e, ev);
	if (w->graph)
		otlp_int(e, "graph_id", w->graph);
	if (w->graph_node)
		otlp_int(e, "graph_node_id", (int64_t)w->graph_node);
	put_capture(e, ev);
	put_product(e, ev);
	return names[w->h.kind] ? names[w->h.kind](e, ev, buf, size) : about_kind(w->h.kind);
}
