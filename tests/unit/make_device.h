/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make_device.h - makes device records as the agent would: work, definitions, causes. Each maker
 * fills a room that the caller owns and returns the record, which passes record_check(). What is
 * not given is "not known"; the caller may set more.
 */
#ifndef CT_MAKE_DEVICE_H
#define CT_MAKE_DEVICE_H

#include <string.h>

#include "../../user/event/event.h"

struct made_device {
	union {
		struct ct_hdr h;
		struct ct_work work;
		struct ct_kernel kernel;
		struct ct_copy copy;
		struct ct_set set;
		struct ct_sync sync;
		struct ct_overhead overhead;
		struct ct_memory memory;
		struct ct_managed managed;
		struct ct_marker marker;
		struct ct_scope scope;
		struct ct_metric metric;
		struct ct_counter counter;
		struct ct_event event;
		struct ct_clock clock;
		struct ct_device device;
		struct ct_context context;
		struct ct_stream stream;
		struct ct_cause cause;
		struct ct_name name;
		char room[4096];
	};
};

/* Where and when, and by which call: MAKE_AT(pid, device, context, stream, correlation,
 * start_ns, end_ns). */
struct make_at {
	uint32_t pid, device, context, stream, correlation;
	uint64_t start_ns, end_ns;
};
#define MAKE_AT(...) ((struct make_at){ __VA_ARGS__ })

static inline struct ct_hdr *make_head(struct made_device *m, int kind, size_t size, uint32_t pid,
				       uint32_t tid, uint64_t start_ns, uint64_t end_ns)
{
	memset(m, 0, sizeof(*m));
	m->h = (struct ct_hdr){ .size = (uint16_t)((size + 7) & ~(size_t)7),
				.kind = (uint16_t)kind,
				.pid = pid,
				.tid = tid,
				.start_ns = start_ns,
				.end_ns = end_ns };
	return &m->h;
}

static inline struct ct_work *make_work(struct made_device *m, int kind, size_t size,
					struct make_at at)
{
	make_head(m, kind, size, at.pid, 0, at.start_ns, at.end_ns);
	m->work.device = at.device;
	m->work.context = at.context;
	m->work.stream = at.stream;
	m->work.correlation = at.correlation;
	m->work.func = CT_NO_FUNC;
	m->work.channel = 0xffff;
	return &m->work;
}

/* `name`: the handle that make_device_name() was given. One dimension: grid and block are the
 * numbers of x. */
static inline struct ct_kernel *make_kernel(struct made_device *m, struct make_at at, uint64_t name,
					    uint32_t grid, uint32_t block)
{
	make_work(m, CT_KERNEL, sizeof(struct ct_kernel), at);
	m->kernel.name = name;
	m->kernel.grid[0] = grid;
	m->kernel.block[0] = block;
	m->kernel.grid[1] = m->kernel.grid[2] = m->kernel.block[1] = m->kernel.block[2] = 1;
	m->kernel.registers = 16;
	m->kernel.executed_shared = CT_UNKNOWN;
	m->kernel.grid_id = at.correlation;
	return &m->kernel;
}

static inline struct ct_copy *make_copy(struct made_device *m, struct make_at at,
					enum ct_copy_kind kind, enum ct_memory_kind src,
					enum ct_memory_kind dst, uint64_t bytes)
{
	make_work(m, CT_COPY, sizeof(struct ct_copy), at);
	m->copy.bytes = bytes;
	m->copy.kind = (uint8_t)kind;
	m->copy.src = (uint8_t)src;
	m->copy.dst = (uint8_t)dst;
	m->copy.count = 1;
	m->copy.src_device = m->copy.dst_device = at.device;
	m->copy.src_context = m->copy.dst_context = at.context;
	return &m->copy;
}

static inline struct ct_set *make_set(struct made_device *m, struct make_at at,
				      enum ct_memory_kind memory, uint32_t value, uint64_t bytes)
{
	make_work(m, CT_SET, sizeof(struct ct_set), at);
	m->set.bytes = bytes;
	m->set.value = value;
	m->set.memory = (uint8_t)memory;
	return &m->set;
}

static inline struct ct_sync *make_sync(struct made_device *m, struct make_at at,
					enum ct_sync_type type, uint32_t event)
{
	make_work(m, CT_SYNC, sizeof(struct ct_sync), at);
	m->sync.type = type;
	m->sync.event = event;
	return &m->sync;
}

/* A graph as a whole. A node of one: another maker's record, with work.graph and work.graph_node
 * set. */
static inline struct ct_work *make_graph(struct made_device *m, struct make_at at, uint32_t graph)
{
	make_work(m, CT_GRAPH, sizeof(struct ct_work), at);
	m->work.graph = graph;
	return &m->work;
}

static inline struct ct_overhead *make_overhead(struct made_device *m, struct make_at at,
						uint32_t tid, uint32_t type)
{
	make_head(m, CT_OVERHEAD, sizeof(struct ct_overhead), at.pid, tid, at.start_ns, at.end_ns);
	m->overhead.type = type;
	m->overhead.device = at.device;
	m->overhead.context = at.context;
	m->overhead.stream = at.stream;
	m->overhead.correlation = at.correlation;
	return &m->overhead;
}

static inline struct ct_memory *make_memory_op(struct made_device *m, struct make_at at,
					       enum ct_memory_op op, enum ct_memory_kind memory,
					       uint64_t address, uint64_t bytes)
{
	make_work(m, CT_MEMORY, sizeof(struct ct_memory), at);
	m->memory.op = (uint8_t)op;
	m->memory.memory = (uint8_t)memory;
	m->memory.address = address;
	m->memory.bytes = bytes;
	return &m->memory;
}

/* kind: CUpti_ActivityUnifiedMemoryCounterKind (1: bytes HtoD, 2: bytes DtoH, 3: CPU page
 * faults, 4: GPU page faults) */
static inline struct ct_managed *make_managed(struct made_device *m, struct make_at at,
					      uint32_t kind, uint64_t address, uint64_t value)
{
	make_work(m, CT_MANAGED, sizeof(struct ct_managed), at);
	m->managed.kind = kind;
	m->managed.address = address;
	m->managed.value = value;
	m->managed.src_device = m->managed.dst_device = CT_UNKNOWN;
	return &m->managed;
}

/* The end of an NVTX scope in the domain "app", the category 7 "loader" and one color, with the
 * payload 12345. The caller may set its parent and flags. */
static inline struct ct_scope *make_scope(struct made_device *m, uint32_t pid, uint32_t tid,
					  uint64_t start_ns, uint64_t end_ns,
					  enum ct_scope_kind kind, uint32_t id, const char *text)
{
	size_t n = strlen(text);

	make_head(m, CT_SCOPE_END, sizeof(struct ct_scope) + n + strlen("apploadernvtx"), pid, tid,
		  start_ns, end_ns);
	m->scope.kind = (uint8_t)kind;
	m->scope.id = id;
	m->scope.category = 7;
	m->scope.color = 0xff00ff00;
	m->scope.payload = 12345;
	m->scope.payload_type = CT_PAYLOAD_U64;
	m->scope.text_len = (uint16_t)n;
	m->scope.domain_len = (uint16_t)strlen("app");
	m->scope.category_len = (uint16_t)strlen("loader");
	m->scope.layer_len = (uint16_t)strlen("nvtx");
	memcpy(m->scope.text, text, n);
	memcpy(m->scope.text + n, "apploadernvtx", strlen("apploadernvtx"));
	return &m->scope;
}

static inline struct ct_marker *make_marker(struct made_device *m, uint32_t pid, uint32_t tid,
					    uint64_t start_ns, uint64_t end_ns,
					    enum ct_marker_what what, const char *text,
					    const char *domain)
{
	size_t n = strlen(text), d = strlen(domain);

	make_head(m, CT_MARKER, sizeof(struct ct_marker) + n + d, pid, tid, start_ns, end_ns);
	m->marker.what = (uint8_t)what;
	m->marker.text_len = (uint16_t)n;
	m->marker.domain_len = (uint16_t)d;
	memcpy(m->marker.text, text, n);
	memcpy(m->marker.text + n, domain, d);
	return &m->marker;
}

static inline struct ct_metric *make_metric(struct made_device *m, uint32_t id, const char *name,
					    const char *unit, enum ct_metric_source source)
{
	size_t n = strlen(name), u = strlen(unit);

	make_head(m, CT_METRIC, sizeof(struct ct_metric) + n + u, 0, 0, 0, 0);
	m->metric.id = id;
	m->metric.name_len = (uint16_t)n;
	m->metric.unit_len = (uint16_t)u;
	m->metric.source = source;
	memcpy(m->metric.text, name, n);
	memcpy(m->metric.text + n, unit, u);
	return &m->metric;
}

/* A sample without values; make_value() adds one. */
static inline struct ct_counter *make_counter(struct made_device *m, uint32_t device,
					      uint64_t start_ns, uint64_t end_ns)
{
	make_head(m, CT_COUNTER, sizeof(struct ct_counter), 0, 0, start_ns, end_ns);
	m->counter.device = device;
	return &m->counter;
}

static inline void make_value(struct made_device *m, uint32_t metric, double value, uint32_t flags)
{
	struct ct_value *v = &m->counter.values[m->counter.n++];

	v->metric = metric;
	v->flags = flags;
	memcpy(&v->bits, &value, sizeof(v->bits));
	m->h.size = (uint16_t)(m->h.size + sizeof(*v));
}

static inline struct ct_event *make_event(struct made_device *m, uint32_t device, uint64_t at_ns,
					  enum ct_event_type type, uint64_t code, const char *text)
{
	size_t n = strlen(text);

	make_head(m, CT_EVENT, sizeof(struct ct_event) + n, 0, 0, at_ns, at_ns);
	m->event.device = device;
	m->event.type = type;
	m->event.code = code;
	m->event.text_len = (uint32_t)n;
	memcpy(m->event.text, text, n);
	return &m->event;
}

static inline struct ct_clock *make_clock(struct made_device *m, uint64_t at_ns,
					  uint64_t realtime_ns, uint64_t boottime_ns)
{
	make_head(m, CT_CLOCK, sizeof(struct ct_clock), 0, 0, at_ns, at_ns);
	m->clock.realtime_ns = realtime_ns;
	m->clock.boottime_ns = boottime_ns;
	return &m->clock;
}

/* An H200, but for its name and its uuid, of which every byte is id + 1. */
static inline struct ct_device *make_device(struct made_device *m, uint32_t pid, uint32_t id,
					    uint64_t at_ns, const char *name)
{
	size_t n = strlen(name);

	make_head(m, CT_DEVICE, sizeof(struct ct_device) + n, pid, pid, at_ns, at_ns);
	m->device.id = id;
	memset(m->device.uuid, (int)id + 1, sizeof(m->device.uuid));
	m->device.memory_bytes = 150754820096;
	m->device.bandwidth = 4800000000000;
	m->device.major = 9;
	m->device.multiprocessors = 132;
	m->device.clock_khz = 1980000;
	m->device.l2_bytes = 60 << 20;
	m->device.max_threads = 2048;
	m->device.max_warps = 64;
	m->device.max_blocks = 32;
	m->device.max_registers = 65536;
	m->device.max_shared = 233472;
	m->device.warp_size = 32;
	m->device.name_len = (uint32_t)n;
	memcpy(m->device.name, name, n);
	return &m->device;
}

static inline struct ct_context *make_context(struct made_device *m, uint32_t pid, uint32_t id,
					      uint32_t device, uint32_t null_stream,
					      uint64_t handle, uint64_t at_ns)
{
	make_head(m, CT_CONTEXT, sizeof(struct ct_context), pid, pid, at_ns, at_ns);
	m->context.id = id;
	m->context.device = device;
	m->context.null_stream = null_stream;
	m->context.parent = CT_UNKNOWN;
	m->context.handle = handle;
	m->context.api = 1;
	return &m->context;
}

static inline struct ct_stream *make_stream(struct made_device *m, uint32_t pid, uint32_t id,
					    uint32_t context, uint64_t handle, uint32_t flags,
					    uint64_t at_ns)
{
	make_head(m, CT_STREAM, sizeof(struct ct_stream), pid, pid, at_ns, at_ns);
	m->stream.id = id;
	m->stream.context = context;
	m->stream.handle = handle;
	m->stream.flags = flags;
	return &m->stream;
}

/* A call as CUPTI saw it: of the row `func` (CT_NO_FUNC: not known). */
static inline struct ct_cause *make_cause(struct made_device *m, uint32_t pid, uint32_t tid,
					  uint32_t correlation, int func, uint64_t start_ns,
					  uint64_t end_ns)
{
	make_head(m, CT_CAUSE, sizeof(struct ct_cause), pid, tid, start_ns, end_ns);
	m->cause.correlation = correlation;
	m->cause.func = (uint16_t)func;
	return &m->cause;
}

/* The name that kernels with the handle CT_HANDLE_DEVICE | number have. */
static inline struct ct_name *make_device_name(struct made_device *m, uint32_t pid, uint64_t number,
					       const char *mangled)
{
	size_t n = strlen(mangled);

	make_head(m, CT_NAME, sizeof(struct ct_name) + n, pid, pid, 0, 0);
	m->name.handle = CT_HANDLE_DEVICE | number;
	m->name.source = CT_NAME_DEVICE;
	m->name.len = (uint32_t)n;
	memcpy(m->name.name, mangled, n);
	return &m->name;
}

#endif
