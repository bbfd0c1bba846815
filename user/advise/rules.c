/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.c - the rules as rows. To add one: its functions and state in a file of its kind, both
 * declared in rules.h, an id there, a row here, its section in docs/advice.md, and a test where
 * it fires and one where it must not.
 */
#include "rules.h"

#define KIND(k) (1ULL << (k))
#define WORK_KINDS (KIND(CT_KERNEL) | KIND(CT_COPY) | KIND(CT_SET))
#define OPS(name)                                                                     \
	.state_bytes = sizeof(struct name), .event = name##_event, .end = name##_end, \
	.free = name##_free

/* clang-format off */
const struct rule rules[] = {
	[RULE_PAGEABLE] = {
		{ "pageable-async-copy", "Asynchronous copies of pageable memory", ADVISE_DEVICE,
		  "the time that the host was inside these calls",
		  "Take the host memory from cudaMallocHost or cudaHostAlloc, or pin it with cudaHostRegister; in "
		  "PyTorch pin_memory=True or tensor.pin_memory(), without which non_blocking=True has no effect." },
		.kinds = KIND(CT_COPY), .most = ADVISE_SERIOUS, OPS(pageable) },
	[RULE_SYNC_COPY] = {
		{ "sync-copy", "Copies that block the host", ADVISE_CALLS,
		  "the time that the host was inside these calls",
		  "Use cudaMemcpyAsync with pinned memory on a stream, and wait for it, by an event, only where the "
		  "data is needed." },
		.kinds = KIND(CT_CALL) | KIND(CT_COPY), .traits = TR_COPY, .most = ADVISE_SERIOUS, OPS(sync_copy) },
	[RULE_SYNC_SET] = {
		{ "sync-memset", "Memsets that block the host", ADVISE_DEVICE,
		  "the time that the host was inside these calls",
		  "Use cudaMemsetAsync on a stream; or memset() on the host where it is host memory." },
		.kinds = KIND(CT_SET), .most = ADVISE_SERIOUS, .state_bytes = sizeof(struct hits), .event = sync_set_event,
		.end = sync_set_end, .free = hits_state_free },
	[RULE_SYNC_EACH] = {
		{ "sync-after-launch", "A wait after each launch", ADVISE_CALLS,
		  "from the end of each such wait until the thread had given the device work again",
		  "Leave the wait out: work of one stream is done in order. Wait once, where a result is needed; "
		  "between streams use events and cudaStreamWaitEvent." },
		.kinds = KIND(CT_CALL), .traits = TR_WORK | TR_SYNC, .most = ADVISE_SERIOUS, OPS(sync_each) },
	[RULE_READBACK] = {
		{ "small-readback", "Single values read back", ADVISE_CALLS,
		  "from the end of each such wait until the thread had given the device work again",
		  "Keep the value on the device and decide there, or read it every so many steps, or copy it to "
		  "pinned memory and look at it a step later. In PyTorch: .item(), .cpu(), float(tensor), "
		  "print(tensor) and tensor in an if do this." },
		.kinds = KIND(CT_CALL), .traits = TR_WORK | TR_SYNC, .most = ADVISE_SERIOUS, OPS(readback) },
	[RULE_ALLOC_LOOP] = {
		{ "alloc-in-loop", "Memory allocated and freed in a loop", ADVISE_CALLS,
		  "the time in the calls that allocate and free, from the first repetition on",
		  "Allocate once before the loop, or use cudaMallocAsync and cudaFreeAsync, which take from a pool. "
		  "cudaFree also waits for the device." },
		.kinds = KIND(CT_CALL), .traits = TR_ALLOC | TR_FREE, .most = ADVISE_SERIOUS, OPS(alloc_loop) },
	[RULE_LAUNCH_BOUND] = {
		{ "launch-bound", "Kernels shorter than their launches", ADVISE_CALLS | ADVISE_DEVICE,
		  "by how much each launch took longer than its kernel; tracing makes launches longer, so at most",
		  "Put the launches into a CUDA graph (in PyTorch torch.cuda.graph, or torch.compile with "
		  "mode=\"reduce-overhead\"), fuse kernels, or give each more to do." },
		.kinds = KIND(CT_KERNEL), .most = ADVISE_SERIOUS, OPS(launch_bound) },
	[RULE_GAPS] = {
		{ "gpu-gaps", "Times in which the GPU starves", ADVISE_DEVICE,
		  "the length of the gaps, without CUPTI's own work in them",
		  "Prepare the next work while the device is busy with this: load data in other threads, launch "
		  "ahead, wait later. The places below are the calls that ended the gaps." },
		.most = ADVISE_SERIOUS, .state_bytes = 1, .end = gaps_end },
	[RULE_LOW_USE] = {
		{ "low-utilisation", "The GPU is mostly idle", ADVISE_DEVICE,
		  "the idle time in these parts, without the gaps that gpu-gaps counts",
		  "Many short gaps: launch more at once (graphs, larger batches), use several streams, see "
		  "launch-bound and sync-after-launch." },
		.most = ADVISE_SERIOUS, .state_bytes = 1, .end = low_use_end },
	[RULE_LATE_LOAD] = {
		{ "late-loading", "Device code loaded or compiled late", ADVISE_CALLS,
		  "the time in the calls that load or in what the driver says of loading and compiling, whichever is "
		  "longer",
		  "Load before the work begins: CUDA_MODULE_LOADING=EAGER, or a warm-up that runs each kernel once. "
		  "Compiling at run time (JIT): build for this GPU's architecture, or keep the cache "
		  "(CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE)." },
		.kinds = KIND(CT_CALL) | KIND(CT_OVERHEAD), .traits = TR_LOAD, .most = ADVISE_SERIOUS, OPS(late_load) },
	[RULE_QUEUE_FULL] = {
		{ "launch-queue-full", "The launch queue is full", ADVISE_CALLS,
		  "the time that launches waited for room; the device was busy then",
		  "The host is far ahead, which by itself is no harm. If the thread has other work, give it to "
		  "another thread; launch less at once (graphs, larger kernels)." },
		.kinds = KIND(CT_CALL) | KIND(CT_OVERHEAD), .traits = TR_LAUNCH, .most = ADVISE_WARNING, OPS(queue_full) },
	[RULE_DEFAULT_STREAM] = {
		{ "default-stream", "The default stream holds others up", ADVISE_DEVICE,
		  "the time of the default stream's work between others', in which they could not run; at most",
		  "Give that work a stream of its own, create streams with cudaStreamNonBlocking, or compile with "
		  "--default-stream per-thread." },
		.kinds = WORK_KINDS | KIND(CT_CONTEXT) | KIND(CT_STREAM), .most = ADVISE_SERIOUS, OPS(default_stream) },
	[RULE_FAILED] = {
		{ "failed-calls", "Calls that failed", ADVISE_CALLS,
		  "the time in the failed calls",
		  "Look at the result of each call. What the program did with these results cannot be seen, only what "
		  "it called next." },
		.kinds = KIND(CT_CALL), .traits = ~0u, .least = ADVISE_WARNING, .most = ADVISE_SERIOUS, OPS(failed) },
	[RULE_CREATE_LOOP] = {
		{ "create-in-loop", "Events or streams made and destroyed in a loop", ADVISE_CALLS,
		  "the time in the calls that create and destroy, from the first repetition on",
		  "Create them once and use them again." },
		.kinds = KIND(CT_CALL), .traits = TR_EVENT_CREATE | TR_EVENT_DESTROY | TR_STREAM_CREATE | TR_STREAM_DESTROY,
		.most = ADVISE_SERIOUS, OPS(create_loop) },
	[RULE_LEAK] = {
		{ "leak", "Device memory that is not given back", ADVISE_CALLS,
		  "no time: memory",
		  "Free it where it is no longer needed; 'cudatrace mem' says more. Allocators that keep memory for "
		  "later, as PyTorch's does, give none back at the end, which is no leak." },
		.kinds = KIND(CT_CALL) | KIND(CT_EXEC), .traits = TR_MEMORY, .most = ADVISE_SERIOUS, OPS(leak) },
	[RULE_SMALL_COPIES] = {
		{ "small-copies", "Small copies that could be one", ADVISE_CALLS,
		  "the time in these calls, but for the first of each row",
		  "Gather the data and copy it once, or use cudaMemcpy2D, 3D or cudaMemcpyBatchAsync." },
		.kinds = KIND(CT_CALL), .traits = TR_WORK | TR_SYNC, .most = ADVISE_SERIOUS, OPS(small_copies) },
	[RULE_POLLING] = {
		{ "polling", "Waiting by asking again and again", ADVISE_CALLS,
		  "the time in these calls",
		  "Wait once: cudaEventSynchronize on an event with cudaEventBlockingSync leaves the core to others; "
		  "leave out waits that have nothing to wait for." },
		.kinds = KIND(CT_CALL), .traits = TR_POLL | TR_SYNC | TR_WORK, .most = ADVISE_SERIOUS, OPS(polling) },
	[RULE_ROUNDTRIP] = {
		{ "host-roundtrip", "Data that goes to the host and back", ADVISE_CALLS,
		  "the time in both calls; of asynchronous ones only until they return",
		  "Leave the data on the device, or copy from device to device (cudaMemcpyPeer between two)." },
		/* a pinned buffer that is filled anew each time looks the same: what the host
		 * did with it cannot be seen */
		.kinds = KIND(CT_CALL), .traits = TR_LINEAR, .most = ADVISE_NOTE, OPS(roundtrip) },
	[RULE_OCCUPANCY] = {
		{ "low-occupancy", "Long kernels that leave much of the GPU empty", ADVISE_DEVICE,
		  "the time of these kernels; how much of it more threads would gain cannot be told",
		  "Launch more blocks; where registers or shared memory limit the threads, use less of them "
		  "(__launch_bounds__). Some kernels, as matrix products by tensor cores, are made for few threads." },
		.kinds = KIND(CT_KERNEL), .most = ADVISE_NOTE, OPS(occupancy) },
};
/* clang-format on */

const unsigned int nrules = ARRAY_LEN(rules);
