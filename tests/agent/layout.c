/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layout.c - what target/cupti/cupti.h says of CUPTI's records and numbers, against the real
 * headers. Compiling it is the test. Where 11.8 to 13 have several versions of a record, the
 * oldest that serves and the newest are both compared.
 */
#include <cuda.h>
#include <cupti.h>
#include <cupti_activity_deprecated.h>

/* ours has the same names for a few of the real enumerators */
#define CUPTI_OK OUR_OK
#include "../../target/cupti/cupti.h"

#define AT(ours, m, T, M)                                                      \
	_Static_assert(offsetof(struct ours, m) == offsetof(T, M),             \
		       #ours "." #m " and " #T "." #M);                        \
	_Static_assert(sizeof(((struct ours *)0)->m) == sizeof(((T *)0)->M) || \
			       sizeof(((struct ours *)0)->m) % 12 == 0,        \
		       "size of " #ours "." #m)
#define FIRST(ours, m, T, M) \
	_Static_assert(offsetof(struct ours, m) == offsetof(T, M), #ours "." #m " and " #T "." #M)
#define WITHIN(ours, T) \
	_Static_assert(sizeof(struct ours) <= sizeof(T), #ours " is longer than " #T)
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a)
#define SAME_FUNC(fn, ...)                                                                       \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&(fn)), __typeof__(__VA_ARGS__)), \
		       #fn)

#define KERNEL(T)                                                    \
	WITHIN(cupti_kernel, T);                                     \
	AT(cupti_kernel, registers, T, registersPerThread);          \
	AT(cupti_kernel, start, T, start);                           \
	AT(cupti_kernel, end, T, end);                               \
	AT(cupti_kernel, device, T, deviceId);                       \
	AT(cupti_kernel, context, T, contextId);                     \
	AT(cupti_kernel, stream, T, streamId);                       \
	FIRST(cupti_kernel, grid, T, gridX);                         \
	FIRST(cupti_kernel, block, T, blockX);                       \
	AT(cupti_kernel, static_shared, T, staticSharedMemory);      \
	AT(cupti_kernel, dynamic_shared, T, dynamicSharedMemory);    \
	AT(cupti_kernel, local_per_thread, T, localMemoryPerThread); \
	AT(cupti_kernel, correlation, T, correlationId);             \
	AT(cupti_kernel, grid_id, T, gridId);                        \
	AT(cupti_kernel, name, T, name);                             \
	AT(cupti_kernel, queued, T, queued);                         \
	AT(cupti_kernel, submitted, T, submitted);                   \
	AT(cupti_kernel, launch, T, launchType);                     \
	AT(cupti_kernel, shared_executed, T, sharedMemoryExecuted);  \
	AT(cupti_kernel, graph_node, T, graphNodeId);                \
	AT(cupti_kernel, graph, T, graphId);                         \
	AT(cupti_kernel, channel, T, channelID);                     \
	FIRST(cupti_kernel, cluster, T, clusterX);                   \
	AT(cupti_kernel, local_total_v2, T, localMemoryTotal_v2)
KERNEL(CUpti_ActivityKernel8);
KERNEL(CUpti_ActivityKernel10);

#define MEMCPY(T)                                        \
	WITHIN(cupti_memcpy, T);                         \
	AT(cupti_memcpy, copy_kind, T, copyKind);        \
	AT(cupti_memcpy, src, T, srcKind);               \
	AT(cupti_memcpy, dst, T, dstKind);               \
	AT(cupti_memcpy, flags, T, flags);               \
	AT(cupti_memcpy, bytes, T, bytes);               \
	AT(cupti_memcpy, start, T, start);               \
	AT(cupti_memcpy, end, T, end);                   \
	AT(cupti_memcpy, device, T, deviceId);           \
	AT(cupti_memcpy, correlation, T, correlationId); \
	AT(cupti_memcpy, graph_node, T, graphNodeId);    \
	AT(cupti_memcpy, graph, T, graphId);             \
	AT(cupti_memcpy, channel, T, channelID)
MEMCPY(CUpti_ActivityMemcpy5);
MEMCPY(CUpti_ActivityMemcpy6);
SAME(CUPTI_MEMCPY_COUNT_AT, offsetof(CUpti_ActivityMemcpy6, copyCount));

WITHIN(cupti_memcpy2, CUpti_ActivityMemcpyPtoP4);
AT(cupti_memcpy2, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
AT(cupti_memcpy2, src_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
AT(cupti_memcpy2, dst_context, CUpti_ActivityMemcpyPtoP4, dstContextId);
AT(cupti_memcpy2, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
AT(cupti_memcpy2, graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);
AT(cupti_memcpy2, channel, CUpti_ActivityMemcpyPtoP4, channelID);

WITHIN(cupti_memset, CUpti_ActivityMemset4);
AT(cupti_memset, value, CUpti_ActivityMemset4, value);
AT(cupti_memset, start, CUpti_ActivityMemset4, start);
AT(cupti_memset, correlation, CUpti_ActivityMemset4, correlationId);
AT(cupti_memset, flags, CUpti_ActivityMemset4, flags);
AT(cupti_memset, memory, CUpti_ActivityMemset4, memoryKind);
AT(cupti_memset, graph_node, CUpti_ActivityMemset4, graphNodeId);
AT(cupti_memset, channel, CUpti_ActivityMemset4, channelID);

WITHIN(cupti_api, CUpti_ActivityAPI);
AT(cupti_api, cbid, CUpti_ActivityAPI, cbid);
AT(cupti_api, tid, CUpti_ActivityAPI, threadId);
AT(cupti_api, correlation, CUpti_ActivityAPI, correlationId);
AT(cupti_api, result, CUpti_ActivityAPI, returnValue);

WITHIN(cupti_sync, CUpti_ActivitySynchronization);
AT(cupti_sync, type, CUpti_ActivitySynchronization, type);
AT(cupti_sync, correlation, CUpti_ActivitySynchronization, correlationId);
AT(cupti_sync, event, CUpti_ActivitySynchronization, cudaEventId);
AT(cupti_sync, event, CUpti_ActivitySynchronization2, cudaEventId);
SAME(CUPTI_SYNC_EVENT_AT, offsetof(CUpti_ActivitySynchronization2, cudaEventSyncId));

WITHIN(cupti_graph, CUpti_ActivityGraphTrace);
AT(cupti_graph, start, CUpti_ActivityGraphTrace, start);
AT(cupti_graph, correlation, CUpti_ActivityGraphTrace, correlationId);
AT(cupti_graph, graph, CUpti_ActivityGraphTrace, graphId);
AT(cupti_graph, stream, CUpti_ActivityGraphTrace2, streamId);

WITHIN(cupti_overhead, CUpti_ActivityOverhead);
AT(cupti_overhead, overhead, CUpti_ActivityOverhead, overheadKind);
AT(cupti_overhead, start, CUpti_ActivityOverhead, start);
AT(cupti_overhead, end, CUpti_ActivityOverhead3, end);
SAME(CUPTI_OVERHEAD_CORRELATION_AT, offsetof(CUpti_ActivityOverhead2, correlationId));
SAME(CUPTI_OVERHEAD_CORRELATION_AT, offsetof(CUpti_ActivityOverhead3, correlationId));

#define MEMORY(T)                                                        \
	WITHIN(cupti_memory, T);                                         \
	AT(cupti_memory, op, T, memoryOperationType);                    \
	AT(cupti_memory, memory, T, memoryKind);                         \
	AT(cupti_memory, correlation, T, correlationId);                 \
	AT(cupti_memory, address, T, address);                           \
	AT(cupti_memory, bytes, T, bytes);                               \
	AT(cupti_memory, time, T, timestamp);                            \
	AT(cupti_memory, device, T, deviceId);                           \
	AT(cupti_memory, pool_type, T, memoryPoolConfig.memoryPoolType); \
	AT(cupti_memory, pool, T, memoryPoolConfig.address);             \
	AT(cupti_memory, pool_bytes, T, memoryPoolConfig.pool.size);     \
	AT(cupti_memory, pool_used, T, memoryPoolConfig.utilizedSize)
MEMORY(CUpti_ActivityMemory3);
MEMORY(CUpti_ActivityMemory4);

WITHIN(cupti_marker, CUpti_ActivityMarker2);
AT(cupti_marker, flags, CUpti_ActivityMarker2, flags);
AT(cupti_marker, time, CUpti_ActivityMarker2, timestamp);
AT(cupti_marker, id, CUpti_ActivityMarker2, id);
FIRST(cupti_marker, object, CUpti_ActivityMarker2, objectId);
AT(cupti_marker, name, CUpti_ActivityMarker2, name);
AT(cupti_marker, domain, CUpti_ActivityMarker2, domain);

WITHIN(cupti_um, CUpti_ActivityUnifiedMemoryCounter2);
AT(cupti_um, counter, CUpti_ActivityUnifiedMemoryCounter2, counterKind);
AT(cupti_um, value, CUpti_ActivityUnifiedMemoryCounter3, value);
AT(cupti_um, address, CUpti_ActivityUnifiedMemoryCounter3, address);
AT(cupti_um, dst, CUpti_ActivityUnifiedMemoryCounter3, dstId);
AT(cupti_um, stream, CUpti_ActivityUnifiedMemoryCounter2, streamId);

#define DEVICE(T)                                                          \
	WITHIN(cupti_device, T);                                           \
	AT(cupti_device, bandwidth, T, globalMemoryBandwidth);             \
	AT(cupti_device, memory, T, globalMemorySize);                     \
	AT(cupti_device, l2, T, l2CacheSize);                              \
	AT(cupti_device, warp, T, numThreadsPerWarp);                      \
	AT(cupti_device, clock, T, coreClockRate);                         \
	AT(cupti_device, multiprocessors, T, numMultiprocessors);          \
	AT(cupti_device, max_warps, T, maxWarpsPerMultiprocessor);         \
	AT(cupti_device, max_blocks, T, maxBlocksPerMultiprocessor);       \
	AT(cupti_device, max_shared, T, maxSharedMemoryPerMultiprocessor); \
	AT(cupti_device, max_registers, T, maxRegistersPerMultiprocessor); \
	AT(cupti_device, major, T, computeCapabilityMajor);                \
	AT(cupti_device, id, T, id);                                       \
	AT(cupti_device, uuid, T, uuid);                                   \
	AT(cupti_device, name, T, name)
DEVICE(CUpti_ActivityDevice2);
DEVICE(CUpti_ActivityDevice5);

WITHIN(cupti_context, CUpti_ActivityContext);
AT(cupti_context, id, CUpti_ActivityContext, contextId);
AT(cupti_context, device, CUpti_ActivityContext, deviceId);
AT(cupti_context, api, CUpti_ActivityContext3, computeApiKind);
AT(cupti_context, null_stream, CUpti_ActivityContext3, nullStreamId);
SAME(CUPTI_CONTEXT_PARENT_AT, offsetof(CUpti_ActivityContext2, parentContextId));
SAME(CUPTI_CONTEXT_GREEN_AT, offsetof(CUpti_ActivityContext2, isGreenContext));

WITHIN(cupti_stream, CUpti_ActivityStream);
AT(cupti_stream, id, CUpti_ActivityStream, streamId);
AT(cupti_stream, priority, CUpti_ActivityStream, priority);
AT(cupti_stream, flag, CUpti_ActivityStream, flag);

AT(cupti_call, function, CUpti_CallbackData, functionName);
AT(cupti_call, params, CUpti_CallbackData, functionParams);
AT(cupti_call, result, CUpti_CallbackData, functionReturnValue);
AT(cupti_call, symbol, CUpti_CallbackData, symbolName);
AT(cupti_call, context, CUpti_CallbackData, context);
AT(cupti_call, context_id, CUpti_CallbackData, contextUid);
AT(cupti_call, data, CUpti_CallbackData, correlationData);
AT(cupti_call, correlation, CUpti_CallbackData, correlationId);
AT(cupti_resource, context, CUpti_ResourceData, context);
AT(cupti_resource, stream, CUpti_ResourceData, resourceHandle);
AT(cupti_resource, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME(sizeof(struct cupti_graph_data), sizeof(CUpti_GraphData));
AT(cupti_graph_data, node, CUpti_GraphData, node);
AT(cupti_graph_data, original, CUpti_GraphData, originalNode);
AT(cupti_graph_data, type, CUpti_GraphData, nodeType);
AT(cupti_state, result, CUpti_StateData, notification.result);
AT(cupti_state, message, CUpti_StateData, notification.message);
#if CUPTI_API_VERSION >= 130300 /* what sharing takes */
SAME(sizeof(struct cupti_subscriber_params), sizeof(CUpti_SubscriberParams));
AT(cupti_subscriber_params, allow_several, CUpti_SubscriberParams, allowMultipleSubscribers);
SAME(CUPTI_ATTR_THREAD_ID_TYPE, CUPTI_ACTIVITY_ATTR_THREAD_ID_TYPE);
SAME_FUNC(cuptiSubscribe_v2, CUptiResult (*)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *,
					     CUpti_SubscriberParams *));
SAME_FUNC(cuptiActivityEnable_v2,
	  CUptiResult (*)(CUpti_SubscriberHandle, CUpti_ActivityKind, CUpti_ActivityConfig *));
SAME_FUNC(cuptiActivityEnableAndDump_v2,
	  CUptiResult (*)(CUpti_SubscriberHandle, CUpti_ActivityKind, CUpti_ActivityConfig *));
SAME_FUNC(cuptiActivityDisable_v2,
	  CUptiResult (*)(CUpti_SubscriberHandle, CUpti_ActivityKind, CUpti_ActivityConfig *));
SAME_FUNC(cuptiActivityRegisterCallbacks_v2,
	  CUptiResult (*)(CUpti_SubscriberHandle,
			  void (*)(uint8_t **, size_t *, size_t *,
				   CUpti_BufferCallbackRequestInfo *),
			  void (*)(uint8_t *, size_t, size_t, CUpti_BufferCallbackCompleteInfo *)));
SAME_FUNC(cuptiActivitySetAttribute_v2,
	  CUptiResult (*)(CUpti_SubscriberHandle, CUpti_ActivityAttribute, size_t *, void *));
SAME_FUNC(cuptiActivityGetNextRecord_v2,
	  CUptiResult (*)(CUpti_SubscriberHandle, uint8_t *, size_t, CUpti_Activity **));
SAME_FUNC(cuptiActivityGetNumDroppedRecords_v2,
	  CUptiResult (*)(CUpti_SubscriberHandle, CUcontext, uint32_t, size_t *));
SAME_FUNC(cuptiActivityEnableRuntimeApi_v2,
	  CUptiResult (*)(CUpti_SubscriberHandle, CUpti_CallbackId, uint8_t));
SAME_FUNC(cuptiActivityEnableDriverApi_v2,
	  CUptiResult (*)(CUpti_SubscriberHandle, CUpti_CallbackId, uint8_t));
SAME_FUNC(cuptiGetTimestamp_v2, CUptiResult (*)(CUpti_SubscriberHandle, uint64_t *));
#else
SAME(CUPTI_SUBSCRIBER_PARAMS_ALONE, CUpti_SubscriberParams_STRUCT_SIZE);
#endif
AT(cupti_subscriber_params, name, CUpti_SubscriberParams, subscriberName);
AT(cupti_subscriber_params, old_name, CUpti_SubscriberParams, oldSubscriberName);

SAME(CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(CUPTI_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME(CUPTI_UNKNOWN, CUPTI_ERROR_UNKNOWN);
SAME(CUPTI_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
SAME(CUPTI_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME(CUPTI_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
SAME(CUPTI_STATE, CUPTI_CB_DOMAIN_STATE);
SAME(CUPTI_RES_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
SAME(CUPTI_RES_CONTEXT_DESTROYS, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
SAME(CUPTI_RES_STREAM_CREATED, CUPTI_CBID_RESOURCE_STREAM_CREATED);
SAME(CUPTI_RES_NODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
SAME(CUPTI_RES_NODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
SAME(CUPTI_NODE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL);
SAME(CUPTI_NODE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMCPY);
SAME(CUPTI_NODE_MEMSET, CU_GRAPH_NODE_TYPE_MEMSET);
SAME(CUPTI_STATE_FATAL, CUPTI_CBID_STATE_FATAL_ERROR);
SAME(CUPTI_SITE_EXIT, CUPTI_API_EXIT);
SAME(CUPTI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(CUPTI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(CUPTI_KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(CUPTI_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(CUPTI_KIND_DEVICE, CUPTI_ACTIVITY_KIND_DEVICE);
SAME(CUPTI_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_CONTEXT);
SAME(CUPTI_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(CUPTI_KIND_MARKER, CUPTI_ACTIVITY_KIND_MARKER);
SAME(CUPTI_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME(CUPTI_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME(CUPTI_KIND_UM, CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
SAME(CUPTI_KIND_STREAM, CUPTI_ACTIVITY_KIND_STREAM);
SAME(CUPTI_KIND_SYNC, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
SAME(CUPTI_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY2);
SAME(CUPTI_KIND_GRAPH, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
SAME(CUPTI_ATTR_DEVICE_BUFFER_SIZE, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
SAME(CUPTI_ATTR_DEVICE_BUFFER_POOL_LIMIT, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
SAME(CUPTI_THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
SAME(CUPTI_MARK_INSTANT, CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS);
SAME(CUPTI_MARK_START, CUPTI_ACTIVITY_FLAG_MARKER_START);
SAME(CUPTI_MARK_END, CUPTI_ACTIVITY_FLAG_MARKER_END);
SAME(CUPTI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD);
SAME(CUPTI_OBJECT_DEVICE, CUPTI_ACTIVITY_OBJECT_DEVICE);
SAME(CUPTI_OBJECT_STREAM, CUPTI_ACTIVITY_OBJECT_STREAM);
