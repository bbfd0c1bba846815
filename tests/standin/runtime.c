/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runtime.c - the stand-in's libcudart: how it finds and starts the driver, devices, errors,
 * streams, events, launches. What it does with a call is what the real one does: a few checks,
 * then the driver's function through a pointer.
 */
#include "standin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#ifndef STANDIN_VERSION
#define STANDIN_VERSION 13000
#endif

struct rt_driver rt_driver;
static int start_error;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static CUcontext contexts[STANDIN_DEVICES];
static _Thread_local cudaError_t last_error;
static _Thread_local int device;
static _Thread_local bool has_context;

struct standin_tools *tools_at;
const bool tools_driver = false;

static void *tools_function(const void *func)
{
	return (void *)rt_function(func);
}

static void start(void)
{
	__typeof__(&cuGetProcAddress_v2) get;
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	start_error = cudaErrorInsufficientDriver;
	get = lib ? (__typeof__(get))dlsym(lib, "cuGetProcAddress_v2") : NULL;
	if (!get)
		return;
#define LOOK_UP(name)                                                           \
	if (get(#name, (void **)&rt_driver.p_##name, STANDIN_VERSION, 0, NULL)) \
		return;
	RT_DRIVER_FUNCS(LOOK_UP)
	start_error = CALL(cuInit)(0);
	if (start_error)
		return;
	tools_at = (struct standin_tools *)dlsym(lib, "standin_tools");
	if (tools_at)
		tools_at->function = tools_function;
}

int rt_begin(const char *name)
{
	pthread_once(&once, start);
	if (start_error)
		return start_error;
	if (!has_context) {
		if (!contexts[device] && CALL(cuDevicePrimaryCtxRetain)(&contexts[device], device))
			return cudaErrorInitializationError;
		CALL(cuCtxSetCurrent)(contexts[device]);
		has_context = true;
	}
	return knobs_enter(name);
}

cudaError_t rt_result(int err)
{
	if (err)
		last_error = err;
	return err;
}

/* ---- errors and devices: these start nothing ---- */

RT(cudaGetLastError, void)
{
	cudaError_t err = last_error;

	last_error = cudaSuccess;
	return err;
}

RT(cudaPeekAtLastError, void)
{
	return last_error;
}

static const char *const names[][3] = {
	{ "0", "cudaSuccess", "no error" },
	{ "1", "cudaErrorInvalidValue", "invalid argument" },
	{ "2", "cudaErrorMemoryAllocation", "out of memory" },
	{ "9", "cudaErrorInvalidConfiguration", "invalid configuration argument" },
	{ "35", "cudaErrorInsufficientDriver", "the driver is too old or missing" },
	{ "98", "cudaErrorInvalidDeviceFunction", "invalid device function" },
	{ "101", "cudaErrorInvalidDevice", "invalid device ordinal" },
	{ "400", "cudaErrorInvalidResourceHandle", "invalid resource handle" },
	{ "500", "cudaErrorSymbolNotFound", "named symbol not found" },
	{ "600", "cudaErrorNotReady", "device not ready" },
};

static const char *error_text(int err, int column)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (atoi(names[i][0]) == err)
			return names[i][column];
	return column == 1 ? "cudaErrorUnknown" : "unrecognized error code";
}

FN(const char *, cudaGetErrorName, cudaError_t err)
{
	return error_text(err, 1);
}

FN(const char *, cudaGetErrorString, cudaError_t err)
{
	return error_text(err, 2);
}

static cudaError_t store_int(int *out, int value)
{
	if (!out)
		return rt_result(cudaErrorInvalidValue);
	*out = value;
	return cudaSuccess;
}

RT(cudaRuntimeGetVersion, int *version)
{
	return store_int(version, STANDIN_VERSION);
}

RT(cudaDriverGetVersion, int *version)
{
	pthread_once(&once, start);
	return start_error ? store_int(version, 0) : rt_result(CALL(cuDriverGetVersion)(version));
}

RT(cudaGetDeviceCount, int *count)
{
	RT_ENTER(cudaGetDeviceCount);
	return rt_result(CALL(cuDeviceGetCount)(count));
}

/* Asks the driver nothing: hot in real programs, and without a nested call in the real runtime
 * too once it is warm. */
RT(cudaGetDevice, int *out)
{
	RT_ENTER(cudaGetDevice);
	return store_int(out, device);
}

RT(cudaSetDevice, int want)
{
	RT_ENTER(cudaSetDevice);
	if (want < 0 || want >= STANDIN_DEVICES)
		return rt_result(cudaErrorInvalidDevice);
	if (!contexts[want] && CALL(cuDevicePrimaryCtxRetain)(&contexts[want], want))
		return rt_result(cudaErrorInitializationError);
	device = want;
	return rt_result(CALL(cuCtxSetCurrent)(contexts[want]));
}

RT(cudaDeviceGetAttribute, int *value, enum cudaDeviceAttr attribute, int dev)
{
	RT_ENTER(cudaDeviceGetAttribute);
	return rt_result(CALL(cuDeviceGetAttribute)(value, attribute, dev));
}

RT(cudaDeviceSynchronize, void)
{
	RT_ENTER(cudaDeviceSynchronize);
	return rt_result(CALL(cuCtxSynchronize)());
}

RT(cudaDeviceReset, void)
{
	RT_ENTER(cudaDeviceReset);
	return rt_result(CALL(cuCtxSynchronize)());
}

RT(cudaDeviceCanAccessPeer, int *can, int dev, int peer)
{
	RT_ENTER(cudaDeviceCanAccessPeer);
	return store_int(can, dev != peer);
}

/* ---- streams and events ---- */

RT(cudaStreamCreate, cudaStream_t *stream)
{
	RT_ENTER(cudaStreamCreate);
	return rt_result(CALL(cuStreamCreate)(stream, 0));
}

RT(cudaStreamCreateWithFlags, cudaStream_t *stream, unsigned int flags)
{
	RT_ENTER(cudaStreamCreateWithFlags);
	return rt_result(CALL(cuStreamCreate)(stream, flags));
}

RT(cudaStreamCreateWithPriority, cudaStream_t *stream, unsigned int flags, int priority)
{
	RT_ENTER(cudaStreamCreateWithPriority);
	return rt_result(CALL(cuStreamCreateWithPriority)(stream, flags, priority));
}

RT(cudaStreamDestroy, cudaStream_t stream)
{
	RT_ENTER(cudaStreamDestroy);
	return rt_result(CALL(cuStreamDestroy_v2)(stream));
}

RT(cudaStreamSynchronize, cudaStream_t stream)
{
	RT_ENTER(cudaStreamSynchronize);
	return rt_result(CALL(cuStreamSynchronize)(stream));
}

RT(cudaStreamQuery, cudaStream_t stream)
{
	RT_ENTER(cudaStreamQuery);
	return rt_result(CALL(cuStreamQuery)(stream));
}

RT(cudaStreamIsCapturing, cudaStream_t stream, int *status)
{
	RT_ENTER(cudaStreamIsCapturing);
	return rt_result(CALL(cuStreamIsCapturing)(stream, status));
}

RT(cudaStreamWaitEvent, cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	RT_ENTER(cudaStreamWaitEvent);
	return rt_result(CALL(cuStreamWaitEvent)(stream, event, flags));
}

RT(cudaStreamAddCallback, cudaStream_t stream, cudaStreamCallback_t fn, void *data,
   unsigned int flags)
{
	RT_ENTER(cudaStreamAddCallback);
	(void)flags;
	if (!fn)
		return rt_result(cudaErrorInvalidValue);
	fn(stream, cudaSuccess, data);
	return cudaSuccess;
}

RT(cudaLaunchHostFunc, cudaStream_t stream, cudaHostFn_t fn, void *data)
{
	RT_ENTER(cudaLaunchHostFunc);
	return rt_result(CALL(cuLaunchHostFunc)(stream, fn, data));
}

RT(cudaEventCreate, cudaEvent_t *event)
{
	RT_ENTER(cudaEventCreate);
	return rt_result(CALL(cuEventCreate)(event, 0));
}

RT(cudaEventCreateWithFlags, cudaEvent_t *event, unsigned int flags)
{
	RT_ENTER(cudaEventCreateWithFlags);
	return rt_result(CALL(cuEventCreate)(event, flags));
}

RT(cudaEventDestroy, cudaEvent_t event)
{
	RT_ENTER(cudaEventDestroy);
	return rt_result(CALL(cuEventDestroy_v2)(event));
}

RT(cudaEventRecord, cudaEvent_t event, cudaStream_t stream)
{
	RT_ENTER(cudaEventRecord);
	return rt_result(CALL(cuEventRecord)(event, stream));
}

RT(cudaEventRecordWithFlags, cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	RT_ENTER(cudaEventRecordWithFlags);
	(void)flags;
	return rt_result(CALL(cuEventRecord)(event, stream));
}

RT(cudaEventSynchronize, cudaEvent_t event)
{
	RT_ENTER(cudaEventSynchronize);
	return rt_result(CALL(cuEventSynchronize)(event));
}

RT(cudaEventQuery, cudaEvent_t event)
{
	RT_ENTER(cudaEventQuery);
	return rt_result(CALL(cuEventQuery)(event));
}

RT(cudaEventElapsedTime, float *ms, cudaEvent_t start_event, cudaEvent_t end_event)
{
	RT_ENTER(cudaEventElapsedTime);
	return rt_result(CALL(cuEventElapsedTime_v2)(ms, start_event, end_event));
}

/* ---- libraries, launches, graphs ---- */

RT(cudaLibraryLoadData, cudaLibrary_t *library, const void *code, enum cudaJitOption *jo, void **jv,
   unsigned int nj, enum cudaLibraryOption *lo, void **lv, unsigned int nl)
{
	RT_ENTER(cudaLibraryLoadData);
	return rt_result(
		CALL(cuLibraryLoadData)((CUlibrary *)library, code, jo, jv, nj, lo, lv, nl));
}

RT(cudaLibraryLoadFromFile, cudaLibrary_t *library, const char *file, enum cudaJitOption *jo,
   void **jv, unsigned int nj, enum cudaLibraryOption *lo, void **lv, unsigned int nl)
{
	RT_ENTER(cudaLibraryLoadFromFile);
	/* The file is not looked at: its name may be anything, also a pointer to nowhere. */
	return rt_result(
		CALL(cuLibraryLoadData)((CUlibrary *)library, file, jo, jv, nj, lo, lv, nl));
}

RT(cudaLibraryUnload, cudaLibrary_t library)
{
	RT_ENTER(cudaLibraryUnload);
	return rt_result(CALL(cuLibraryUnload)((CUlibrary)library));
}

RT(cudaLibraryGetKernel, cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
	RT_ENTER(cudaLibraryGetKernel);
	return rt_result(CALL(cuLibraryGetKernel)((CUkernel *)kernel, (CUlibrary)library, name));
}

static cudaError_t launch_result(int err)
{
	return rt_result(err == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration : err);
}

RT(cudaLaunchKernel, const void *f, dim3 grid, dim3 block, void **args, size_t shared,
   cudaStream_t stream)
{
	RT_ENTER(cudaLaunchKernel);
	if (!f)
		return rt_result(cudaErrorInvalidDeviceFunction);
	return launch_result(CALL(cuLaunchKernel)(rt_function(f), grid.x, grid.y, grid.z, block.x,
						  block.y, block.z, (unsigned int)shared, stream,
						  args, NULL));
}

RT(cudaLaunchCooperativeKernel, const void *f, dim3 grid, dim3 block, void **args, size_t shared,
   cudaStream_t stream)
{
	RT_ENTER(cudaLaunchCooperativeKernel);
	if (!f)
		return rt_result(cudaErrorInvalidDeviceFunction);
	return launch_result(CALL(cuLaunchKernel)(rt_function(f), grid.x, grid.y, grid.z, block.x,
						  block.y, block.z, (unsigned int)shared, stream,
						  args, NULL));
}

RT(cudaLaunchKernelExC, const cudaLaunchConfig_t *c, const void *f, void **args)
{
	CUlaunchConfig d;

	RT_ENTER(cudaLaunchKernelExC);
	if (!c || !f)
		return rt_result(cudaErrorInvalidValue);
	d = (CUlaunchConfig){ c->gridDim.x,
			      c->gridDim.y,
			      c->gridDim.z,
			      c->blockDim.x,
			      c->blockDim.y,
			      c->blockDim.z,
			      (unsigned int)c->dynamicSmemBytes,
			      c->stream,
			      (CUlaunchAttribute *)c->attrs,
			      c->numAttrs };
	return launch_result(CALL(cuLaunchKernelEx)(&d, rt_function(f), args, NULL));
}

/* What code compiled by nvcc calls around its launches; see registry.c for what it calls before. */
static _Thread_local struct {
	dim3 grid, block;
	size_t shared;
	void *stream;
} pushed;

FN(unsigned int, __cudaPushCallConfiguration, dim3 grid, dim3 block, size_t shared, void *stream)
{
	pushed.grid = grid;
	pushed.block = block;
	pushed.shared = shared;
	pushed.stream = stream;
	return 0;
}

RT(__cudaPopCallConfiguration, dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	*grid = pushed.grid;
	*block = pushed.block;
	*shared = pushed.shared;
	memcpy(stream, &pushed.stream, sizeof(pushed.stream));
	return cudaSuccess;
}

FN(struct cudaChannelFormatDesc, cudaCreateChannelDesc, int x, int y, int z, int w, int f)
{
	return (struct cudaChannelFormatDesc){ x, y, z, w, f };
}

RT(cudaGraphCreate, cudaGraph_t *graph, unsigned int flags)
{
	RT_ENTER(cudaGraphCreate);
	return rt_result(CALL(cuGraphCreate)(graph, flags));
}

RT(cudaGraphDestroy, cudaGraph_t graph)
{
	RT_ENTER(cudaGraphDestroy);
	return rt_result(CALL(cuGraphDestroy)(graph));
}

RT(cudaGraphInstantiate, cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	RT_ENTER(cudaGraphInstantiate);
	return rt_result(CALL(cuGraphInstantiateWithFlags)(exec, graph, flags));
}

RT(cudaGraphExecDestroy, cudaGraphExec_t exec)
{
	RT_ENTER(cudaGraphExecDestroy);
	return rt_result(CALL(cuGraphExecDestroy)(exec));
}

RT(cudaGraphLaunch, cudaGraphExec_t exec, cudaStream_t stream)
{
	RT_ENTER(cudaGraphLaunch);
	return rt_result(CALL(cuGraphLaunch)(exec, stream));
}
