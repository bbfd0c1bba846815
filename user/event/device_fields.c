/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device_fields.c - the fields of device work, and the words for CUPTI's numbers. A field without a
 * label is for JSON only: the table does not show it. Knows no format.
 */
#include "device.h"
#include "kernel_counters.h"
#include "field_add.h"

/* ---- words ---- */

#define WORDS(id, ...)                                              \
	static const struct xlat_row id##_rows[] = { __VA_ARGS__ }; \
	static const struct xlat id = { #id, "", false, id##_rows, ARRAY_LEN(id##_rows) };

/* clang-format off */
WORDS(copy_kinds, { 0, "unknown" }, { CT_COPY_HTOD, "HtoD" }, { CT_COPY_DTOH, "DtoH" }, { CT_COPY_HTOA, "HtoA" },
	{ CT_COPY_ATOH, "AtoH" }, { CT_COPY_ATOA, "AtoA" }, { CT_COPY_ATOD, "AtoD" }, { CT_COPY_DTOA, "DtoA" },
	{ CT_COPY_DTOD, "DtoD" }, { CT_COPY_HTOH, "HtoH" }, { CT_COPY_PTOP, "PtoP" })
WORDS(memory_kinds, { 0, "unknown" }, { CT_MEM_PAGEABLE, "pageable" }, { CT_MEM_PINNED, "pinned" },
	{ CT_MEM_DEVICE, "device" }, { CT_MEM_ARRAY, "array" }, { CT_MEM_MANAGED, "managed" },
	{ CT_MEM_DEVICE_STATIC, "device_static" }, { CT_MEM_MANAGED_STATIC, "managed_static" })
WORDS(sync_types, { 0, "unknown" }, { CT_SYNC_EVENT, "event" }, { CT_SYNC_STREAM_WAIT, "stream_wait_event" },
	{ CT_SYNC_STREAM, "stream" }, { CT_SYNC_CONTEXT, "context" })
/* CUpti_ActivityOverheadKind */
WORDS(overhead_kinds, { 0, "unknown" }, { 1, "driver_compiler" }, { 1 << 16, "cupti_buffer_flush" },
	{ 2 << 16, "cupti_instrumentation" }, { 3 << 16, "cupti_resource" }, { 4 << 16, "module_loading" },
	{ 5 << 16, "lazy_function_loading" }, { 6 << 16, "command_buffer_full" },
	{ 7 << 16, "activity_buffer_request" }, { 8 << 16, "uvm_activity_init" })
/* CUpti_ActivityUnifiedMemoryCounterKind */
enum { MANAGED_HTOD = 1, MANAGED_DTOH = 2, MANAGED_DTOD = 8 };
WORDS(managed_kinds, { 0, "unknown" }, { MANAGED_HTOD, "bytes_HtoD" }, { MANAGED_DTOH, "bytes_DtoH" }, { 3, "cpu_page_faults" },
	{ 4, "gpu_page_faults" }, { 5, "thrashing" }, { 6, "throttling" }, { 7, "remote_map" }, { MANAGED_DTOD, "bytes_DtoD" })
WORDS(launch_types, { CT_LAUNCH_REGULAR, "regular" }, { CT_LAUNCH_COOPERATIVE, "cooperative" },
	{ CT_LAUNCH_COOPERATIVE_MULTI, "cooperative_multi_device" }, { CT_LAUNCH_CDP, "from_device" })
WORDS(memory_ops, { CT_MEMORY_ALLOC, "alloc" }, { CT_MEMORY_FREE, "free" })
WORDS(marker_kinds, { CT_MARKER_MARK, "mark" }, { CT_MARKER_PUSH_POP, "push_pop" }, { CT_MARKER_START_END, "start_end" })
WORDS(event_types, { CT_EVENT_XID, "xid" }, { CT_EVENT_ECC, "ecc" }, { CT_EVENT_CLOCK, "clock" },
	{ CT_EVENT_TRUNCATED, "truncated" }, { CT_EVENT_UNDECIDED, "undecided" })
WORDS(metric_sources, { CT_METRIC_PM, "pm" }, { CT_METRIC_GPM, "gpm" }, { CT_METRIC_NVML, "nvml" })
/* clang-format on */

static const char *word(const struct xlat *x, uint32_t value)
{
	const char *name = xlat_name(x, value);

	return name ? name : "unknown";
}

const char *device_copy_kind(uint32_t kind)
{
	return word(&copy_kinds, kind);
}

const char *device_memory_kind(uint32_t kind)
{
	return word(&memory_kinds, kind);
}

const char *device_overhead_kind(uint32_t kind)
{
	return word(&overhead_kinds, kind);
}

const char *device_sync_type(uint32_t type)
{
	return word(&sync_types, type);
}

const char *device_managed_kind(uint32_t kind)
{
	return word(&managed_kinds, kind);
}

bool device_managed_is_size(uint32_t kind)
{
	return kind == MANAGED_HTOD || kind == MANAGED_DTOH || kind == MANAGED_DTOD;
}

const char *device_event_type(uint32_t type)
{
	return word(&event_types, type);
}

/* ---- parts ---- */

static void device_fields_add_word(struct field **at, const char *name, const char *key,
				   const struct xlat *x, uint32_t value)
{
	field_add_u(at, name, FIELD_WORD, value)->xlat = x;
	field_as(at, key);
}

/* Adds a number that CUPTI gives; adds nothing when it is not known. */
static void add_number(struct field **at, const char *name, uint32_t n)
{
	if (n != CT_UNKNOWN)
		field_add_u(at, name, FIELD_UINT, n);
}

/* Adds a device by the number that its machine gives it. In merged recordings the upper bits are
 * the number of the host. */
static void add_machine_device(struct field **at, const struct ct_hdr *h, uint32_t n)
{
	add_number(at, "device",
		   h->pid || n == CT_UNKNOWN ? n : n & ((1u << DEVICE_HOST_SHIFT) - 1));
}

/* Adds a field that only outputs for programs show; adds nothing when the value is 0. */
static void add_more(struct field **at, const char *name, const char *key, enum field_type type,
		     uint64_t v)
{
	if (!v)
		return;
	field_add_u(at, name, type, v)->label = "";
	field_as(at, key);
}

static void add_dim(struct field **at, const char *name, const uint32_t dim[3])
{
	memcpy(field_add(at, name, FIELD_DIM3)->dim, dim, 3 * sizeof(dim[0]));
}

static void add_size(struct field **at, uint64_t bytes)
{
	field_add_u(at, "bytes", FIELD_SIZE, bytes)->label = "size";
	field_as(at, "size_bytes");
}

/* Adds the rate in bytes per second. */
static void add_rate(struct field **at, const struct ct_hdr *h, uint64_t bytes)
{
	uint64_t ns = h->end_ns - h->start_ns;

	if (!ns || !bytes)
		return;
	field_add(at, "bandwidth", FIELD_RATE)->f = (double)bytes * 1e9 / (double)ns;
	field_as(at, "bytes_per_second");
}

/* Adds what was captured when the node was made that is replayed. */
static void add_capture(struct field **at, const struct event *ev)
{
	static const char before[] = "before the trace";
	const struct capture *c = ev->capture;

	if (c->before) {
		field_add_str(at, "captured", before, sizeof(before) - 1);
		return;
	}
	if (ev->captured_in)
		field_add_str(at, "captured_in", ev->captured_in, strlen(ev->captured_in));
	if (ev->captured_at)
		field_add_str(at, "captured_at", ev->captured_at, strlen(ev->captured_at));
	if (c->func < api_nfuncs) {
		const char *name = api_funcs[c->func].name;

		field_add_str(at, "captured_api", name, strlen(name))->label = "";
		field_as(at, "captured_name");
	}
	if (c->number)
		field_add_u(at, "captured_by", FIELD_UINT, c->number);
}

/* Adds the fields that all device work has: where it ran, and which call caused it. */
static void add_work(struct field **at, const struct event *ev)
{
	const struct ct_work *w = (const struct ct_work *)ev->rec;

	add_number(at, "device", w->device);
	add_number(at, "context", w->context);
	add_number(at, "stream", w->stream);
	if (ev->number)
		field_add_u(at, "correlation", FIELD_UINT, ev->number);
	if (w->graph)
		field_add_u(at, "graph", FIELD_UINT, w->graph);
	if (w->graph_node)
		field_add_u(at, "graph_node", FIELD_UINT, w->graph_node)->label = "node";
	if (ev->capture)
		add_capture(at, ev);
	xla_work_fields(at, ev);
	if (w->channel != 0xffff)
		field_add_u(at, "channel", FIELD_UINT, w->channel)->label = "";
	if (ev->cause && ev->cause->func < api_nfuncs) {
		const char *name = api_funcs[ev->cause->func].name;

		field_add_str(at, "api", name, strlen(name))->label = "";
		field_as(at, "cause");
	}
	if (ev->cause) {
		field_add_u(at, "call_ns", FIELD_UINT, ev->cause->start_ns)->label = "";
		field_as(at, "cause_start_ns");
	}
	if (w->h.flags & CT_F_INFERRED)
		field_add_u(at, "inferred", FIELD_BOOL, 1);
	if (w->h.flags & CT_F_NO_TIME)
		field_add_u(at, "no_time", FIELD_BOOL, 1);
	if (ev->cause && w->h.start_ns >= ev->cause->start_ns && !(w->h.flags & CT_F_NO_TIME))
		field_add_u(at, "delay_ns", FIELD_DURATION, w->h.start_ns - ev->cause->start_ns)
			->label = "delay";
}

/* ---- kinds ---- */

static void kernel_fields(struct field **at, const struct event *ev)
{
	const struct ct_kernel *k = (const struct ct_kernel *)ev->rec;
	const struct ct_hdr *h = ev->rec;

	if (!ev->kernel)
		field_add_u(at, "name", FIELD_FUNC, k->name & ~CT_HANDLE_DEVICE)->key = "handle";
	add_dim(at, "grid", k->grid);
	add_dim(at, "block", k->block);
	if (k->cluster[0])
		add_dim(at, "cluster", k->cluster);
	if (k->launch != CT_LAUNCH_REGULAR)
		device_fields_add_word(at, "launch", NULL, &launch_types, k->launch);
	field_add_u(at, "registers", FIELD_UINT, k->registers)->key = "registers_per_thread";
	field_add_u(at, "static_shared", FIELD_SIZE, k->static_shared)->key = "static_shared_bytes";
	field_add_u(at, "dynamic_shared", FIELD_SIZE, k->dynamic_shared)->key =
		"dynamic_shared_bytes";
	if (k->executed_shared != CT_UNKNOWN) {
		field_add_u(at, "executed_shared", FIELD_SIZE, k->executed_shared)->label = "";
		field_as(at, "executed_shared_bytes");
	}
	add_more(at, "local_per_thread", "local_per_thread_bytes", FIELD_SIZE, k->local_per_thread);
	add_more(at, "local_total", "local_total_bytes", FIELD_SIZE, k->local_total);
	add_more(at, "queued_ns", NULL, FIELD_UINT, k->queued_ns);
	add_more(at, "submitted_ns", NULL, FIELD_UINT, k->submitted_ns);
	add_more(at, "grid_id", NULL, FIELD_UINT, k->grid_id);
	if (ev->bus_bytes > 0 && h->end_ns > h->start_ns && !(h->flags & CT_F_NO_TIME)) {
		field_add(at, "busbw", FIELD_RATE)->f =
			ev->bus_bytes * 1e9 / (double)(h->end_ns - h->start_ns);
		field_as(at, "bus_bytes_per_second");
	}
	product_fields(at, ev);
	add_work(at, ev);
	*at += kernel_counters_fields(ev->counters, *at, KERNEL_COUNTER_END);
}

static void copy_fields(struct field **at, const struct event *ev)
{
	const struct ct_copy *c = (const struct ct_copy *)ev->rec;
	bool peer = c->kind == CT_COPY_PTOP || c->src_device != c->dst_device;

	device_fields_add_word(at, "kind", "copy_kind", &copy_kinds, c->kind);
	(*at)[-1].label = "";
	add_size(at, c->bytes);
	add_rate(at, ev->rec, c->bytes);
	device_fields_add_word(at, "src", "src_memory", &memory_kinds, c->src);
	device_fields_add_word(at, "dst", "dst_memory", &memory_kinds, c->dst);
	if (c->flags & CT_W_ASYNC)
		field_add_u(at, "async", FIELD_BOOL, 1);
	if (c->count > 1)
		field_add_u(at, "copies", FIELD_UINT, c->count);
	if (peer) {
		add_number(at, "src_device", c->src_device);
		add_number(at, "src_context", c->src_context);
		add_number(at, "dst_device", c->dst_device);
		add_number(at, "dst_context", c->dst_context);
	}
	add_work(at, ev);
}

static void set_fields(struct field **at, const struct event *ev)
{
	const struct ct_set *s = (const struct ct_set *)ev->rec;

	field_add_u(at, "value", FIELD_UINT, s->value)->key = "set_value";
	add_size(at, s->bytes);
	add_rate(at, ev->rec, s->bytes);
	device_fields_add_word(at, "memory", "dst_memory", &memory_kinds, s->memory);
	if (s->flags & CT_W_ASYNC)
		field_add_u(at, "async", FIELD_BOOL, 1);
	add_work(at, ev);
}

static void sync_fields(struct field **at, const struct event *ev)
{
	const struct ct_sync *s = (const struct ct_sync *)ev->rec;

	device_fields_add_word(at, "on", NULL, &sync_types, s->type);
	add_number(at, "event", s->event);
	add_more(at, "event_sync", NULL, FIELD_UINT, s->event_sync);
	add_work(at, ev);
}

static void overhead_fields(struct field **at, const struct ct_overhead *o)
{
	device_fields_add_word(at, "kind", NULL, &overhead_kinds, o->type);
	add_number(at, "device", o->device);
	add_number(at, "context", o->context);
	add_number(at, "stream", o->stream);
}

static void memory_fields(struct field **at, const struct event *ev)
{
	const struct ct_memory *m = (const struct ct_memory *)ev->rec;

	device_fields_add_word(at, "op", NULL, &memory_ops, m->op);
	field_add_u(at, "address", FIELD_PTR, m->address);
	add_size(at, m->bytes);
	device_fields_add_word(at, "memory", NULL, &memory_kinds, m->memory);
	if (m->pool)
		field_add_u(at, "pool", FIELD_PTR, m->pool);
	if (m->pool_bytes)
		field_add_u(at, "pool_bytes", FIELD_SIZE, m->pool_bytes);
	if (m->pool_used)
		field_add_u(at, "pool_used", FIELD_SIZE, m->pool_used)->key = "pool_used_bytes";
	add_work(at, ev);
}

static void managed_fields(struct field **at, const struct event *ev)
{
	const struct ct_managed *m = (const struct ct_managed *)ev->rec;

	device_fields_add_word(at, "kind", NULL, &managed_kinds, m->kind);
	field_add_u(at, "address", FIELD_PTR, m->address);
	field_add_u(at, "value", FIELD_UINT, m->value);
	if (device_managed_is_size(m->kind))
		field_as(at, "size_bytes");
	add_number(at, "src_device", m->src_device);
	add_number(at, "dst_device", m->dst_device);
	add_work(at, ev);
}

static void add_range_id(struct field **at, uint32_t id)
{
	field_add_u(at, "id", FIELD_UINT, id)->label = "";
	field_as(at, "range_id");
}

static void marker_fields(struct field **at, const struct ct_marker *m)
{
	field_add_str(at, "text", m->text, strnlen(m->text, m->text_len))->key = "name";
	if (m->domain_len)
		field_add_str(at, "domain", m->text + m->text_len,
			      strnlen(m->text + m->text_len, m->domain_len));
	device_fields_add_word(at, "kind", NULL, &marker_kinds, m->what);
	add_range_id(at, m->id);
	if (m->category)
		field_add_u(at, "category", FIELD_UINT, m->category)->key = "category_id";
	add_more(at, "color", NULL, FIELD_PTR, m->color);
}

WORDS(scope_kinds, { CT_SCOPE_RANGE, "range" }, { CT_SCOPE_MARK, "mark" },
      { CT_SCOPE_COLLECTIVE, "collective" }, { CT_SCOPE_COMMUNICATOR, "communicator_call" },
      { CT_SCOPE_OPERATOR, "operator" }, { CT_SCOPE_GEMM, "gemm" })

uint32_t call_scope(const struct ct_call *c)
{
	size_t at = c->h.flags & CT_F_STACK ? 16 : 8;
	uint64_t word;

	if (!(c->h.flags & CT_F_SCOPE) || c->h.size < sizeof(*c) + at)
		return CT_SCOPE_NONE;
	memcpy(&word, (const char *)c + c->h.size - at, sizeof(word));
	return word >> 32 == CT_SCOPE_BY_ID ? (uint32_t)word : CT_SCOPE_UNKNOWN;
}

const char *scope_word(const struct ct_scope *s)
{
	const char *word = xlat_name(&scope_kinds, s->kind);

	return word ? word : "scope";
}

static void payload_field(struct field **at, const struct ct_scope *s)
{
	struct field *f;
	float single;
	uint32_t low = (uint32_t)s->payload;

	switch (s->payload_type) {
	case CT_PAYLOAD_U64:
	case CT_PAYLOAD_U32: field_add_u(at, "payload", FIELD_UINT, s->payload); break;
	case CT_PAYLOAD_I64: field_add(at, "payload", FIELD_INT)->i = (int64_t)s->payload; break;
	case CT_PAYLOAD_I32: field_add(at, "payload", FIELD_INT)->i = (int32_t)low; break;
	case CT_PAYLOAD_DOUBLE:
		f = field_add(at, "payload", FIELD_FLOAT);
		memcpy(&f->f, &s->payload, sizeof(f->f));
		break;
	case CT_PAYLOAD_FLOAT:
		f = field_add(at, "payload", FIELD_FLOAT);
		memcpy(&single, &low, sizeof(single));
		f->f = single;
		f->single = true;
		break;
	}
}

static void scope_fields(struct field **at, const struct ct_scope *s)
{
	const char *text = s->text, *domain = text + s->text_len,
		   *category = domain + s->domain_len, *layer = category + s->category_len;
	const struct ct_collective *more = scope_collective(s);
	static const struct {
		const char *name, *label;
	} fields[] = { { "payload_fields", "payload" },
		       { "group", "group" },
		       { "inputs", "inputs" },
		       { "operation", "operation" } };
	const int names = more				 ? 1
			  : s->kind == CT_SCOPE_OPERATOR ? 2
			  : s->kind == CT_SCOPE_GEMM	 ? 3
							 : 0;
	struct field *f = field_add_str(at, "name", text, strnlen(text, s->text_len));

	f->absent = f->out = s->flags & CT_SCOPE_UNNAMED;
	f->cut = s->flags & CT_SCOPE_CUT;
	f->label = "";
	if (s->domain_len)
		field_add_str(at, "domain", domain, strnlen(domain, s->domain_len));
	if (s->category_len) {
		field_add_str(at, "category_name", category, strnlen(category, s->category_len))
			->label = "category";
		field_as(at, "category");
	}
	if (s->category) {
		f = field_add_u(at, "category", FIELD_UINT, s->category);
		f->key = "category_id";
		if (s->category_len)
			f->label = "";
	}
	payload_field(at, s);
	if (s->fields_len)
		field_add_str(at, fields[names].name, layer + s->layer_len,
			      strnlen(layer + s->layer_len, s->fields_len))
			->label = fields[names].label;
	if (more)
		collective_fields(at, s, more);
	gemm_fields(at, s);
	if (s->kind == CT_SCOPE_RANGE)
		xla_scope_fields(at, text, strnlen(text, s->text_len));
	if (s->color)
		field_add_u(at, "color", FIELD_PTR, s->color)->label = "";
	field_add_str(at, "layer", layer, strnlen(layer, s->layer_len))->label = "";
	add_range_id(at, s->id);
	if (s->parent == CT_SCOPE_UNKNOWN)
		field_add_u(at, "parent_unknown", FIELD_BOOL, 1)->label = "";
	else if (s->parent)
		add_more(at, "parent", "parent_id", FIELD_UINT, s->parent);
	if (s->flags & CT_SCOPE_ANY_THREAD)
		field_add_u(at, "any_thread", FIELD_BOOL, 1)->label = "";
	if (s->flags & CT_SCOPE_UNPAIRED)
		field_add_u(at, "unpaired", FIELD_BOOL, 1)->label = "";
	if (s->flags & CT_SCOPE_UNFINISHED)
		field_add_u(at, "unfinished", FIELD_BOOL, 1)->label = "";
}

static bool is_among(const struct field *f, const struct field *end, const char *name)
{
	for (; f < end; f++)
		if (!strcmp(f->name, name))
			return true;
	return false;
}

/* Adds each known metric once, as long as there is room. A sample that cannot be true gets no
 * value. */
static void counter_fields(struct field **at, const struct event *ev, int max)
{
	const struct ct_counter *c = (const struct ct_counter *)ev->rec;
	struct field *begin = *at, *list;

	add_machine_device(at, &c->h, c->device);
	list = field_add(at, "values", FIELD_OPEN);
	for (uint32_t i = 0; i < c->n; i++) {
		const struct metric *m = metric_table_find(ev->metrics, c->values[i].metric);
		struct field *f;

		if (!m || is_among(list + 1, *at, m->name))
			continue;
		if (*at - begin >= max - 1) {
			list->cut = true;
			break;
		}
		f = field_add(at, m->name, FIELD_FLOAT);
		memcpy(&f->f, &c->values[i].bits, sizeof(f->f));
		if (c->values[i].flags & CT_VALUE_SUSPECT)
			f->absent = f->out = true;
	}
	field_add(at, NULL, FIELD_CLOSE);
}

static void event_record_fields(struct field **at, const struct ct_event *e)
{
	device_fields_add_word(at, "what", NULL, &event_types, e->type);
	add_machine_device(at, &e->h, e->device);
	if (e->type != CT_EVENT_UNDECIDED)
		field_add_u(at, "code", FIELD_UINT, e->code);
	if (e->text_len)
		field_add_str(at, "text", e->text, strnlen(e->text, e->text_len));
}

/* ---- definitions ---- */

static void device_record_fields(struct field **at, const struct ct_device *d)
{
	struct field *f;

	add_machine_device(at, &d->h, d->id);
	field_add_str(at, "name", d->name, strnlen(d->name, d->name_len));
	f = field_add(at, "uuid", FIELD_BYTES);
	f->str = (const char *)d->uuid;
	f->str_len = sizeof(d->uuid);
	field_add_u(at, "major", FIELD_UINT, d->major);
	field_add_u(at, "minor", FIELD_UINT, d->minor);
	field_add_u(at, "memory_bytes", FIELD_UINT, d->memory_bytes);
	field_add_u(at, "bandwidth", FIELD_UINT, d->bandwidth)->key = "memory_bytes_per_second";
	field_add_u(at, "multiprocessors", FIELD_UINT, d->multiprocessors);
	field_add_u(at, "clock_khz", FIELD_UINT, d->clock_khz);
	field_add_u(at, "l2_bytes", FIELD_UINT, d->l2_bytes);
	field_add_u(at, "max_threads", FIELD_UINT, d->max_threads);
	field_add_u(at, "max_warps", FIELD_UINT, d->max_warps);
	field_add_u(at, "max_blocks", FIELD_UINT, d->max_blocks);
	field_add_u(at, "max_registers", FIELD_UINT, d->max_registers);
	field_add_u(at, "max_shared", FIELD_UINT, d->max_shared)->key = "max_shared_bytes";
	field_add_u(at, "warp_size", FIELD_UINT, d->warp_size);
}

static void context_fields(struct field **at, const struct ct_context *c)
{
	field_add_u(at, "context", FIELD_UINT, c->id);
	add_number(at, "device", c->device);
	add_number(at, "null_stream", c->null_stream);
	add_number(at, "parent", c->parent);
	if (c->handle)
		field_add_u(at, "handle", FIELD_PTR, c->handle);
}

static void stream_fields(struct field **at, const struct ct_stream *s)
{
	static const char *const kinds[] = { "unknown", "default", "non_blocking", "null" };
	const char *kind = kinds[s->flags < ARRAY_LEN(kinds) ? s->flags : 0];

	field_add_u(at, "stream", FIELD_UINT, s->id);
	add_number(at, "context", s->context);
	if (s->handle)
		field_add_u(at, "handle", FIELD_PTR, s->handle);
	field_add(at, "priority", FIELD_INT)->i = s->priority;
	field_add_str(at, "kind", kind, strlen(kind));
}

static void metric_fields(struct field **at, const struct ct_metric *m)
{
	field_add_u(at, "id", FIELD_UINT, m->id);
	field_add_str(at, "name", m->text, strnlen(m->text, m->name_len));
	field_add_str(at, "unit", m->text + m->name_len,
		      strnlen(m->text + m->name_len, m->unit_len));
	device_fields_add_word(at, "source", NULL, &metric_sources, m->source);
}

static void clock_fields(struct field **at, const struct ct_clock *c)
{
	field_add_u(at, "realtime_ns", FIELD_UINT, c->realtime_ns);
	field_add_u(at, "boottime_ns", FIELD_UINT, c->boottime_ns);
	field_add_u(at, "error_ns", FIELD_UINT, c->error_ns);
}

int device_fields(const struct event *ev, struct field *out, int max)
{
	const struct ct_hdr *h = ev->rec;
	struct field *at = out;

	if (max < DEVICE_FIELDS_MIN)
		return 0;
	switch (h->kind) {
	case CT_KERNEL: kernel_fields(&at, ev); break;
	case CT_COPY: copy_fields(&at, ev); break;
	case CT_SET: set_fields(&at, ev); break;
	case CT_SYNC: sync_fields(&at, ev); break;
	case CT_GRAPH: add_work(&at, ev); break;
	case CT_OVERHEAD: overhead_fields(&at, (const struct ct_overhead *)h); break;
	case CT_MEMORY: memory_fields(&at, ev); break;
	case CT_MANAGED: managed_fields(&at, ev); break;
	case CT_MARKER: marker_fields(&at, (const struct ct_marker *)h); break;
	case CT_SCOPE_BEGIN:
	case CT_SCOPE_END: scope_fields(&at, (const struct ct_scope *)h); break;
	case CT_COUNTER: counter_fields(&at, ev, max); break;
	case CT_EVENT: event_record_fields(&at, (const struct ct_event *)h); break;
	case CT_CLOCK: clock_fields(&at, (const struct ct_clock *)h); break;
	case CT_DEVICE: device_record_fields(&at, (const struct ct_device *)h); break;
	case CT_CONTEXT: context_fields(&at, (const struct ct_context *)h); break;
	case CT_STREAM: stream_fields(&at, (const struct ct_stream *)h); break;
	case CT_METRIC: metric_fields(&at, (const struct ct_metric *)h); break;
	}
	return (int)(at - out);
}
