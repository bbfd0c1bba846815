/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cupti.h - the parts of CUPTI that the agent uses, declared here so that the build needs none of
 * NVIDIA's headers.
 *
 * The agent reads the part of records that is the same in CUPTI 11.8 to 13: newer versions only add
 * members at the end. Numbers and offsets are those of cupti_activity.h and cupti_callbacks.h;
 * tests/cupti_layout.c compares all of them with the real headers where these are installed.
 */
#ifndef CT_CUPTI_H
#define CT_CUPTI_H

#include <stddef.h>
#include <stdint.h>

enum {
	CUPTI_OK = 0,
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_MAX_LIMIT_REACHED = 12,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
	CUPTI_UNKNOWN = 999,
};

/* CUpti_CallbackDomain, CUpti_ApiCallbackSite, the callback ids of the domains RESOURCE and STATE */
enum {
	CUPTI_DRIVER = 1,
	CUPTI_RUNTIME = 2,
	CUPTI_RESOURCE = 3,
	CUPTI_SYNCHRONIZE = 4,
	CUPTI_NVTX = 5,
	CUPTI_STATE = 6
};
enum { CUPTI_SITE_ENTER = 0, CUPTI_SITE_EXIT = 1 };
enum {
	CUPTI_RES_CONTEXT_CREATED = 1,
	CUPTI_RES_CONTEXT_DESTROYS = 2,
	CUPTI_RES_STREAM_CREATED = 3,
	CUPTI_RES_STREAM_DESTROYS = 4,
	CUPTI_RES_INIT_FINISHED = 5,
	CUPTI_RES_NODE_CREATED = 13,
	CUPTI_RES_NODE_CLONED = 20,
};
enum { CUPTI_STATE_FATAL = 1, CUPTI_STATE_ERROR = 2, CUPTI_STATE_WARNING = 3 };

/* CUpti_ActivityKind */
enum {
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_DRIVER = 4,
	CUPTI_KIND_RUNTIME = 5,
	CUPTI_KIND_DEVICE = 8,
	CUPTI_KIND_CONTEXT = 9,
	CUPTI_KIND_KERNEL = 10 /* CONCURRENT_KERNEL; kind 3 serialises kernels */,
	CUPTI_KIND_MARKER = 12,
	CUPTI_KIND_MARKER_DATA = 13,
	CUPTI_KIND_OVERHEAD = 17,
	CUPTI_KIND_MEMCPY2 = 22,
	CUPTI_KIND_UM = 25,
	CUPTI_KIND_STREAM = 37,
	CUPTI_KIND_SYNC = 38,
	CUPTI_KIND_MEMORY2 = 49,
	CUPTI_KIND_GRAPH = 51,
};

/* CUpti_ActivityAttribute */
enum {
	CUPTI_ATTR_DEVICE_BUFFER_SIZE = 0,
	CUPTI_ATTR_DEVICE_BUFFER_POOL_LIMIT = 2,
	CUPTI_ATTR_ZEROED = 5,
	CUPTI_ATTR_PRE_ALLOCATE = 6,
	CUPTI_ATTR_PER_THREAD = 9,
	CUPTI_ATTR_THREAD_ID_TYPE = 21 /* from 13.2 on */
};
enum { CUPTI_THREAD_ID_SYSTEM = 1 };
enum { CUPTI_MARK_INSTANT = 1, CUPTI_MARK_START = 2, CUPTI_MARK_END = 4, CUPTI_MARK_ARGB = 2 };
enum {
	CUPTI_OBJECT_PROCESS = 1,
	CUPTI_OBJECT_THREAD = 2,
	CUPTI_OBJECT_DEVICE = 3,
	CUPTI_OBJECT_CONTEXT = 4,
	CUPTI_OBJECT_STREAM = 5
};

#define CUPTI_PACKED __attribute__((packed, aligned(8)))

struct cupti_kernel { /* Kernel5 and later; the members for clusters: Kernel8 and later (11.8) */
	uint32_t kind;
	uint8_t cache, shared_config;
	uint16_t registers;
	uint32_t cache_requested, cache_executed;
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3], static_shared, dynamic_shared;
	uint32_t local_per_thread, local_total, correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch, carveout_requested, carveout, pad;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t limit_config, graph;
	void *access_policy;
	uint32_t channel, channel_type;
	uint32_t cluster[3], cluster_policy;
	uint64_t local_total_v2;
} CUPTI_PACKED;

struct cupti_memcpy { /* Memcpy5 */
	uint32_t kind;
	uint8_t copy_kind, src, dst, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation, runtime_correlation, pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
	uint32_t channel_type, pad2;
} CUPTI_PACKED;
/* Memcpy6 (12.8 and on): how many copies the record stands for */
#define CUPTI_MEMCPY_COUNT_AT 88

struct cupti_memcpy2 { /* MemcpyPtoP4 */
	uint32_t kind;
	uint8_t copy_kind, src, dst, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, src_device, src_context, dst_device, dst_context,
		correlation;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
} CUPTI_PACKED;

struct cupti_memset { /* Memset4 */
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory;
	uint32_t pad;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph, channel;
} CUPTI_PACKED;

struct cupti_api {
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t pid, tid, correlation, result;
} CUPTI_PACKED;

struct cupti_sync { /* Synchronization */
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
} CUPTI_PACKED;
#define CUPTI_SYNC_EVENT_AT 40 /* Synchronization2: uint64_t cudaEventSyncId */

struct cupti_graph { /* GraphTrace */
	uint32_t kind, correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
	void *reserved;
} CUPTI_PACKED;

struct cupti_overhead { /* Overhead */
	uint32_t kind, overhead, object_kind;
	uint32_t object[3]; /* process, thread; or device, context, stream */
	uint64_t start, end;
} CUPTI_PACKED;
#define CUPTI_OVERHEAD_CORRELATION_AT 40 /* Overhead2 */

struct cupti_memory { /* Memory3 */
	uint32_t kind, op, memory, correlation;
	uint64_t address, bytes, time, pc;
	uint32_t pid, device, context, stream;
	const char *name;
	uint32_t async, pad;
	uint32_t pool_type, pad2;
	uint64_t pool, pool_threshold, pool_bytes, pool_used;
} CUPTI_PACKED;

struct cupti_marker { /* Marker2 */
	uint32_t kind, flags;
	uint64_t time;
	uint32_t id, object_kind, object[3], pad;
	const char *name, *domain;
} CUPTI_PACKED;

struct cupti_marker_data { /* MarkerData */
	uint32_t kind, flags, id, payload_kind;
	uint64_t payload;
	uint32_t color, category;
} CUPTI_PACKED;

struct cupti_um { /* UnifiedMemoryCounter2 */
	uint32_t kind, counter;
	uint64_t value, start, end, address;
	uint32_t src, dst, stream, pid, flags, pad;
} CUPTI_PACKED;

struct cupti_device { /* Device2 and on */
	uint32_t kind, flags;
	uint64_t bandwidth /* kB/s */, memory;
	uint32_t constant, l2, warp, clock /* kHz */, engines, multiprocessors, max_ipc, max_warps,
		max_blocks, max_shared, max_registers;
	uint32_t block_registers, block_shared, block_threads, block_dim[3], grid_dim[3];
	uint32_t major, minor, id, ecc;
	uint8_t uuid[16];
	const char *name;
} CUPTI_PACKED;

struct cupti_context { /* Context */
	uint32_t kind, id, device;
	uint16_t api, null_stream;
} CUPTI_PACKED;
#define CUPTI_CONTEXT_PARENT_AT 16 /* Context2: uint32_t parent, uint8_t is_green */
#define CUPTI_CONTEXT_GREEN_AT 20

struct cupti_stream {
	uint32_t kind, context, id, priority, flag, correlation;
} CUPTI_PACKED;

/* What a callback gets: CUpti_CallbackData, CUpti_ResourceData, CUpti_StateData. */
struct cupti_call {
	uint32_t site;
	const char *function;
	const void *params;
	void *result;
	const char *symbol;
	void *context;
	uint32_t context_id;
	uint64_t *data;
	uint32_t correlation;
};
struct cupti_resource {
	void *context, *stream, *descriptor;
};
/* CUpti_GraphData: the descriptor of a resource. type: a CUgraphNodeType. */
struct cupti_graph_data {
	void *graph, *original_graph, *node, *original;
	uint32_t type;
	void *dependency, *exec;
};
enum { CUPTI_NODE_KERNEL = 0, CUPTI_NODE_MEMCPY = 1, CUPTI_NODE_MEMSET = 2 };
struct cupti_state {
	int result;
	const char *message;
};
struct cupti_subscriber_params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_size;
	uint8_t allow_several, pad[7]; /* from 13.2 on */
};
/* the size of the struct in earlier versions */
#define CUPTI_SUBSCRIBER_PARAMS_ALONE offsetof(struct cupti_subscriber_params, allow_several)

typedef void (*cupti_callback)(void *user, int domain, uint32_t cbid, const void *data);
typedef void (*cupti_request)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*cupti_complete)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			       size_t valid);
typedef void (*cupti_request_v2)(uint8_t **buffer, size_t *size, size_t *max_records, void *info);
typedef void (*cupti_complete_v2)(uint8_t *buffer, size_t size, size_t valid, void *info);
typedef uint64_t (*cupti_clock)(void);

/*
 * The functions that dlsym finds. F: required; O: may be missing in an older CUPTI, and is then
 * NULL.
 */
#define CUPTI_FUNCS(F, O)                                                                       \
	F(cuptiGetVersion, (uint32_t * version))                                                \
	F(cuptiSubscribe, (void **subscriber, cupti_callback, void *user))                      \
	F(cuptiUnsubscribe, (void *subscriber))                                                 \
	F(cuptiEnableCallback, (uint32_t enable, void *subscriber, int domain, uint32_t cbid))  \
	F(cuptiEnableDomain, (uint32_t enable, void *subscriber, int domain))                   \
	F(cuptiGetCallbackName, (int domain, uint32_t cbid, const char **name))                 \
	F(cuptiActivityRegisterCallbacks, (cupti_request, cupti_complete))                      \
	F(cuptiActivityEnable, (int kind))                                                      \
	F(cuptiActivityDisable, (int kind))                                                     \
	F(cuptiActivityFlushAll, (uint32_t forced))                                             \
	F(cuptiActivityGetNextRecord, (uint8_t * buffer, size_t valid, void **record))          \
	F(cuptiActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped)) \
	F(cuptiActivitySetAttribute, (int attribute, size_t *size, void *value))                \
	F(cuptiGetTimestamp, (uint64_t * timestamp))                                            \
	F(cuptiSetThreadIdType, (int type))                                                     \
	O(cuptiSubscribe_v2,                                                                    \
	  (void **subscriber, cupti_callback, void *user, struct cupti_subscriber_params *))    \
	/* the variants for one of several subscribers */                                       \
	O(cuptiActivityEnable_v2, (void *subscriber, int kind, void *config))                   \
	O(cuptiActivityEnableAndDump_v2, (void *subscriber, int kind, void *config))            \
	O(cuptiActivityDisable_v2, (void *subscriber, int kind, void *config))                  \
	O(cuptiActivityRegisterCallbacks_v2,                                                    \
	  (void *subscriber, cupti_request_v2, cupti_complete_v2))                              \
	O(cuptiActivitySetAttribute_v2,                                                         \
	  (void *subscriber, int attribute, size_t *size, void *value))                         \
	O(cuptiActivityGetNextRecord_v2,                                                        \
	  (void *subscriber, uint8_t *buffer, size_t valid, void **record))                     \
	O(cuptiActivityGetNumDroppedRecords_v2,                                                 \
	  (void *subscriber, void *context, uint32_t stream, size_t *dropped))                  \
	O(cuptiActivityEnableRuntimeApi_v2, (void *subscriber, uint32_t cbid, uint8_t enable))  \
	O(cuptiActivityEnableDriverApi_v2, (void *subscriber, uint32_t cbid, uint8_t enable))   \
	O(cuptiGetTimestamp_v2, (void *subscriber, uint64_t *timestamp))                        \
	O(cuptiActivityGetAttribute, (int attribute, size_t *size, void *value))                \
	O(cuptiGetThreadIdType, (int *type))                                                    \
	O(cuptiActivityEnableAndDump, (int kind))                                               \
	O(cuptiActivityRegisterTimestampCallback, (cupti_clock))                                \
	O(cuptiActivityEnableRuntimeApi, (uint32_t cbid, uint8_t enable))                       \
	O(cuptiActivityEnableDriverApi, (uint32_t cbid, uint8_t enable))                        \
	O(cuptiGetStreamIdEx, (void *context, void *stream, uint8_t per_thread, uint32_t *id))  \
	O(cuptiGetGraphNodeId, (void *node, uint64_t *id))                                      \
	O(cuptiGetContextId, (void *context, uint32_t *id))                                     \
	O(cuptiGetResultString, (int result, const char **text))                                \
	O(cuptiFinalize, (void))

/* What it refuses is said (refusals.c), and so no result is left out. */
#if defined(__clang__)
#define CUPTI_FIELD(name, args) int(*name) args;
#else
#define CUPTI_FIELD(name, args) int(*name) args __attribute__((warn_unused_result));
#endif
struct cupti {
	CUPTI_FUNCS(CUPTI_FIELD, CUPTI_FIELD)
	void *lib;
	int (*get_driver_version)(int *); /* cuDriverGetVersion; NULL: not found */
	uint32_t version;		  /* 18: 11.8; 23: 12.5; 130001: 13.0U1 */
	uint32_t driver;		  /* cuDriverGetVersion(): 13000; 0: not known */
	char path[512];
};

#endif
