/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * driver.c - the stand-in's libcuda, without its memory: devices, contexts, streams, events,
 * modules, launches, graphs. A launch is "executed" at once on the host when the kernel's name
 * holds vec_add or vecAdd and its arguments are (const float *a, const float *b, float *c, int
 * n); every other kernel does nothing.
 */
#include "standin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 1024
static struct chunk {
	struct chunk *next;
	int used;
	struct handle h[CHUNK];
} * chunks;
static struct handle *free_handles;
static uint64_t next_id = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
LOCK_OVER_FORK(lock)

static _Thread_local struct handle *current;
static struct handle *primary[STANDIN_DEVICES];
static int primary_refs[STANDIN_DEVICES];

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

struct handle *handle_new(enum handle_kind kind)
{
	struct handle *h;

	pthread_mutex_lock(&lock);
	h = free_handles;
	if (h) {
		free_handles = h->next_free;
	} else {
		if (!chunks || chunks->used == CHUNK) {
			struct chunk *c = calloc(1, sizeof(*c));

			if (!c)
				goto out;
			c->next = chunks;
			chunks = c;
		}
		h = &chunks->h[chunks->used++];
	}
	*h = (struct handle){ .kind = kind, .id = next_id++ };
out:
	pthread_mutex_unlock(&lock);
	return h;
}

struct handle *handle_get(const void *p, enum handle_kind kind)
{
	uintptr_t at = (uintptr_t)p;
	struct handle *h = NULL;

	pthread_mutex_lock(&lock);
	for (struct chunk *c = chunks; c && !h; c = c->next) {
		uintptr_t first = (uintptr_t)c->h;

		if (at >= first && at < first + sizeof(c->h) &&
		    (at - first) % sizeof(struct handle) == 0)
			h = (struct handle *)at;
	}
	if (h && h->kind != kind)
		h = NULL;
	pthread_mutex_unlock(&lock);
	return h;
}

static void free_locked(struct handle *h)
{
	free(h->name);
	h->name = NULL;
	h->owner = NULL;
	h->kind = H_FREE;
	h->next_free = free_handles;
	free_handles = h;
}

void handle_free(struct handle *h)
{
	pthread_mutex_lock(&lock);
	free_locked(h);
	pthread_mutex_unlock(&lock);
}

void handle_free_owned(const struct handle *owner)
{
	pthread_mutex_lock(&lock);
	for (struct chunk *c = chunks; c; c = c->next)
		for (int i = 0; i < c->used; i++)
			if (c->h[i].kind != H_FREE && c->h[i].owner == owner)
				free_locked(&c->h[i]);
	pthread_mutex_unlock(&lock);
}

bool handle_stream_ok(const void *p)
{
	return (uintptr_t)p <= 2 || handle_get(p, H_STREAM);
}

/* Makes a handle of a kind and stores it: what all the Create functions do. */
static int create(void *out, enum handle_kind kind, uint32_t flags)
{
	struct handle *h;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	h = handle_new(kind);
	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	h->flags = flags;
	memcpy(out, &h, sizeof(h));
	return 0;
}

static int destroy(void *p, enum handle_kind kind)
{
	struct handle *h = handle_get(p, kind);

	if (!h)
		return CUDA_ERROR_INVALID_HANDLE;
	handle_free(h);
	return 0;
}

/* ---- the driver, its devices and contexts ---- */

__attribute__((visibility("default"))) struct standin_tools standin_tools;
struct standin_tools *tools_at = &standin_tools;
const bool tools_driver = true;
static pthread_once_t inject_once = PTHREAD_ONCE_INIT;

/* The real driver does this once, on the thread that starts it. */
static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *lib = path ? dlopen(path, RTLD_NOW) : NULL;
	int (*begin)(void) = lib ? (int (*)(void))dlsym(lib, "InitializeInjection") : NULL;

	if (begin)
		begin();
}

DRV(cuInit, unsigned int flags)
{
	ENTER(cuInit);
	pthread_once(&inject_once, inject);
	return flags ? CUDA_ERROR_INVALID_VALUE : 0;
}

static int store_int(int *out, int value)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = value;
	return 0;
}

DRV(cuDriverGetVersion, int *version)
{
	ENTER(cuDriverGetVersion);
	return store_int(version, 13000);
}

DRV(cuDeviceGetCount, int *count)
{
	ENTER(cuDeviceGetCount);
	return store_int(count, STANDIN_DEVICES);
}

DRV(cuDeviceGet, CUdevice *device, int ordinal)
{
	ENTER(cuDeviceGet);
	if (ordinal < 0 || ordinal >= STANDIN_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	return store_int(device, ordinal);
}

DRV(cuDeviceGetName, char *name, int len, CUdevice device)
{
	ENTER(cuDeviceGetName);
	if (!name || len <= 0 || device < 0 || device >= STANDIN_DEVICES)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, len, "Stand-in GPU %d", device);
	return 0;
}

DRV(cuDeviceTotalMem_v2, size_t *bytes, CUdevice device)
{
	ENTER(cuDeviceTotalMem_v2);
	if (!bytes || device < 0 || device >= STANDIN_DEVICES)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = STANDIN_TOTAL_BYTES;
	return 0;
}

DRV(cuDeviceGetAttribute, int *value, int attribute, CUdevice device)
{
	ENTER(cuDeviceGetAttribute);
	if (device < 0 || device >= STANDIN_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	return store_int(value, attribute == 75	  ? 9
				: attribute == 76 ? 0
				: attribute == 1  ? 1024
						  : 64);
}

DRV(cuDevicePrimaryCtxRetain, CUcontext *ctx, CUdevice device)
{
	ENTER(cuDevicePrimaryCtxRetain);
	if (!ctx || device < 0 || device >= STANDIN_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!primary[device]) {
		struct handle *h = handle_new(H_CONTEXT), *none = NULL;

		if (!h)
			return CUDA_ERROR_OUT_OF_MEMORY;
		h->value = device;
		if (!__atomic_compare_exchange_n(&primary[device], &none, h, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			handle_free(h);
	}
	__atomic_add_fetch(&primary_refs[device], 1, __ATOMIC_RELAXED);
	*ctx = (CUcontext)primary[device];
	return 0;
}

DRV(cuDevicePrimaryCtxRelease_v2, CUdevice device)
{
	ENTER(cuDevicePrimaryCtxRelease_v2);
	if (device < 0 || device >= STANDIN_DEVICES || primary_refs[device] <= 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	__atomic_sub_fetch(&primary_refs[device], 1, __ATOMIC_RELAXED);
	return 0;
}

DRV(cuDevicePrimaryCtxGetState, CUdevice device, unsigned int *flags, int *active)
{
	ENTER(cuDevicePrimaryCtxGetState);
	if (device < 0 || device >= STANDIN_DEVICES || !flags)
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = 0;
	return store_int(active, primary_refs[device] > 0);
}

DRV(cuCtxCreate_v4, CUcontext *ctx, void *params, unsigned int flags, CUdevice device)
{
	int err;

	ENTER(cuCtxCreate_v4);
	(void)params;
	if (device < 0 || device >= STANDIN_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	err = create(ctx, H_CONTEXT, flags);
	if (!err) {
		current = (struct handle *)*ctx;
		current->value = device;
	}
	return err;
}

DRV(cuCtxCreate_v2, CUcontext *ctx, unsigned int flags, CUdevice device)
{
	ENTER(cuCtxCreate_v2);
	return in_cuCtxCreate_v4(ctx, NULL, flags, device);
}

DRV(cuCtxDestroy_v2, CUcontext ctx)
{
	ENTER(cuCtxDestroy_v2);
	if (current == (struct handle *)ctx)
		current = NULL;
	return destroy(ctx, H_CONTEXT);
}

DRV(cuCtxGetCurrent, CUcontext *ctx)
{
	ENTER(cuCtxGetCurrent);
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = (CUcontext)current;
	return 0;
}

DRV(cuCtxSetCurrent, CUcontext ctx)
{
	ENTER(cuCtxSetCurrent);
	if (ctx && !handle_get(ctx, H_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	current = (struct handle *)ctx;
	return 0;
}

DRV(cuCtxGetDevice, CUdevice *device)
{
	ENTER(cuCtxGetDevice);
	return current ? store_int(device, (int)current->value) : CUDA_ERROR_INVALID_CONTEXT;
}

DRV(cuCtxSynchronize, void)
{
	ENTER(cuCtxSynchronize);
	return 0;
}

/* ---- streams and events ---- */

DRV(cuStreamCreate, CUstream *stream, unsigned int flags)
{
	ENTER(cuStreamCreate);
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE : create(stream, H_STREAM, flags);
}

DRV(cuStreamCreateWithPriority, CUstream *stream, unsigned int flags, int priority)
{
	int err;

	ENTER(cuStreamCreateWithPriority);
	err = create(stream, H_STREAM, flags);
	if (!err)
		((struct handle *)*stream)->value = priority;
	return err;
}

DRV(cuStreamDestroy_v2, CUstream stream)
{
	ENTER(cuStreamDestroy_v2);
	return destroy(stream, H_STREAM);
}

static int check_stream(CUstream stream)
{
	return handle_stream_ok(stream) ? 0 : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuStreamSynchronize, CUstream stream)
{
	ENTER(cuStreamSynchronize);
	return check_stream(stream);
}

DRV(cuStreamQuery, CUstream stream)
{
	ENTER(cuStreamQuery);
	return check_stream(stream);
}

DRV(cuStreamIsCapturing, CUstream stream, int *status)
{
	ENTER(cuStreamIsCapturing);
	return handle_stream_ok(stream) ? store_int(status, 0) : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuStreamGetPriority, CUstream stream, int *priority)
{
	struct handle *h = handle_get(stream, H_STREAM);

	ENTER(cuStreamGetPriority);
	return handle_stream_ok(stream) ? store_int(priority, h ? (int)h->value : 0)
					: CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuStreamGetFlags, CUstream stream, unsigned int *flags)
{
	struct handle *h = handle_get(stream, H_STREAM);

	ENTER(cuStreamGetFlags);
	return handle_stream_ok(stream) ? store_int((int *)flags, h ? (int)h->flags : 0)
					: CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned int flags)
{
	ENTER(cuStreamWaitEvent);
	(void)flags;
	return handle_stream_ok(stream) && handle_get(event, H_EVENT) ? 0
								      : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuEventCreate, CUevent *event, unsigned int flags)
{
	ENTER(cuEventCreate);
	return create(event, H_EVENT, flags);
}

DRV(cuEventDestroy_v2, CUevent event)
{
	ENTER(cuEventDestroy_v2);
	return destroy(event, H_EVENT);
}

DRV(cuEventRecord, CUevent event, CUstream stream)
{
	struct handle *h = handle_get(event, H_EVENT);

	ENTER(cuEventRecord);
	if (!h || !handle_stream_ok(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	h->value = now_ns();
	return 0;
}

static int check_event(CUevent event)
{
	return handle_get(event, H_EVENT) ? 0 : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuEventSynchronize, CUevent event)
{
	ENTER(cuEventSynchronize);
	return check_event(event);
}

DRV(cuEventQuery, CUevent event)
{
	ENTER(cuEventQuery);
	return check_event(event);
}

DRV(cuEventElapsedTime_v2, float *ms, CUevent start, CUevent end)
{
	struct handle *a = handle_get(start, H_EVENT), *b = handle_get(end, H_EVENT);

	ENTER(cuEventElapsedTime_v2);
	if (!ms || !a || !b || !a->value || !b->value ||
	    ((a->flags | b->flags) & cudaEventDisableTiming))
		return CUDA_ERROR_INVALID_HANDLE;
	*ms = (b->value - a->value) / 1e6f;
	return 0;
}

/* ---- modules, libraries, launches ---- */

DRV(cuModuleLoadData, CUmodule *module, const void *image)
{
	ENTER(cuModuleLoadData);
	return image ? create(module, H_MODULE, 0) : CUDA_ERROR_INVALID_VALUE;
}

DRV(cuModuleLoadDataEx, CUmodule *module, const void *image, unsigned int n, void *options,
    void **values)
{
	ENTER(cuModuleLoadDataEx);
	(void)n, (void)options, (void)values;
	return image ? create(module, H_MODULE, 0) : CUDA_ERROR_INVALID_VALUE;
}

/* The module's own block is freed last, so that the next module gets it, and that one's kernel
 * the kernel's. */
static int unload(void *module)
{
	struct handle *h = handle_get(module, H_MODULE);

	if (!h)
		return CUDA_ERROR_INVALID_HANDLE;
	handle_free_owned(h);
	handle_free(h);
	return 0;
}

DRV(cuModuleUnload, CUmodule module)
{
	ENTER(cuModuleUnload);
	return unload(module);
}

static int get_kernel(void *out, void *module, const char *name)
{
	struct handle *h;
	int err;

	if (!handle_get(module, H_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name || !*name)
		return CUDA_ERROR_NOT_FOUND;
	err = create(out, H_KERNEL, 0);
	if (err)
		return err;
	memcpy(&h, out, sizeof(h));
	h->owner = module;
	h->name = strdup(name);
	return h->name ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

DRV(cuModuleGetFunction, CUfunction *f, CUmodule module, const char *name)
{
	ENTER(cuModuleGetFunction);
	return get_kernel(f, module, name);
}

DRV(cuLibraryLoadData, CUlibrary *library, const void *code, void *jo, void **jv, unsigned int nj,
    void *lo, void **lv, unsigned int nl)
{
	ENTER(cuLibraryLoadData);
	(void)jo, (void)jv, (void)nj, (void)lo, (void)lv, (void)nl;
	return code ? create(library, H_MODULE, 0) : CUDA_ERROR_INVALID_VALUE;
}

DRV(cuLibraryUnload, CUlibrary library)
{
	ENTER(cuLibraryUnload);
	return unload(library);
}

DRV(cuLibraryGetKernel, CUkernel *kernel, CUlibrary library, const char *name)
{
	ENTER(cuLibraryGetKernel);
	return get_kernel(kernel, library, name);
}

DRV(cuKernelGetFunction, CUfunction *f, CUkernel kernel)
{
	ENTER(cuKernelGetFunction);
	if (!f || !handle_get(kernel, H_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	*f = (CUfunction)kernel;
	return 0;
}

static void log_launch(const struct handle *h)
{
	static int fd = -2;
	const char *path;
	char *line = NULL;
	int n;

	if (fd == -2) {
		path = getenv("STANDIN_LAUNCHES");
		fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	}
	if (fd < 0)
		return;
	n = asprintf(&line, "%d %p %s\n", (int)getpid(), (const void *)h, h->name);
	if (n > 0 && write(fd, line, (size_t)n) != n)
		abort();
	free(line);
}

static int launch(CUfunction f, const unsigned int grid[3], const unsigned int block[3],
		  CUstream stream, void **args)
{
	struct handle *h = handle_get(f, H_KERNEL);

	if (!f || !handle_stream_ok(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	for (int i = 0; i < 3; i++)
		if (!grid[i] || !block[i])
			return CUDA_ERROR_INVALID_VALUE;
	if (block[0] > 1024 || block[1] > 1024 || block[2] > 64)
		return CUDA_ERROR_INVALID_VALUE;
	if (h)
		log_launch(h);
	if (h && args && (strstr(h->name, "vec_add") || strstr(h->name, "vecAdd"))) {
		const float *a = *(const float **)args[0], *b = *(const float **)args[1];
		float *c = *(float **)args[2];
		int n = *(int *)args[3];

		for (int i = 0; i < n; i++)
			c[i] = a[i] + b[i];
	}
	return 0;
}

DRV(cuLaunchKernel, CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
    unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
    void **args, void **extra)
{
	ENTER(cuLaunchKernel);
	(void)shared, (void)extra;
	return launch(f, (unsigned int[3]){ gx, gy, gz }, (unsigned int[3]){ bx, by, bz }, stream,
		      args);
}

DRV(cuLaunchKernelEx, const CUlaunchConfig *c, CUfunction f, void **args, void **extra)
{
	ENTER(cuLaunchKernelEx);
	(void)extra;
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(f, (unsigned int[3]){ c->gridDimX, c->gridDimY, c->gridDimZ },
		      (unsigned int[3]){ c->blockDimX, c->blockDimY, c->blockDimZ }, c->hStream,
		      args);
}

struct host_call {
	CUhostFn fn;
	void *data;
};

static void *host_thread(void *arg)
{
	struct host_call *c = arg;

	c->fn(c->data);
	return NULL;
}

/* A host function runs on a thread of the driver's, never on the caller's. */
DRV(cuLaunchHostFunc, CUstream stream, CUhostFn fn, void *data)
{
	struct host_call c = { fn, data };
	pthread_t t;

	ENTER(cuLaunchHostFunc);
	if (!fn || !handle_stream_ok(stream))
		return CUDA_ERROR_INVALID_VALUE;
	if (pthread_create(&t, NULL, host_thread, &c))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_join(t, NULL);
	return 0;
}

/* Calls the program back on the calling thread, once for each block size that it tries. */
DRV(cuOccupancyMaxPotentialBlockSize, int *grid, int *block, CUfunction f, CUoccupancyB2DSize size,
    size_t shared, int limit)
{
	ENTER(cuOccupancyMaxPotentialBlockSize);
	(void)f, (void)shared;
	for (int b = limit > 0 && limit < 1024 ? limit : 1024; b >= 256 && size; b /= 2)
		size(b);
	store_int(grid, 128);
	return store_int(block, limit > 0 && limit < 1024 ? limit : 1024);
}

DRV(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, CUfunction f, int size, size_t shared)
{
	ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
	(void)f, (void)shared;
	return size > 0 ? store_int(blocks, 2048 / size) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- graphs, pools, the rest ---- */

DRV(cuGraphCreate, CUgraph *graph, unsigned int flags)
{
	ENTER(cuGraphCreate);
	return create(graph, H_GRAPH, flags);
}

DRV(cuGraphDestroy, CUgraph graph)
{
	ENTER(cuGraphDestroy);
	return destroy(graph, H_GRAPH);
}

DRV(cuGraphInstantiateWithFlags, CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	ENTER(cuGraphInstantiateWithFlags);
	return handle_get(graph, H_GRAPH) ? create(exec, H_GRAPH_EXEC, (uint32_t)flags)
					  : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuGraphExecDestroy, CUgraphExec exec)
{
	ENTER(cuGraphExecDestroy);
	return destroy(exec, H_GRAPH_EXEC);
}

DRV(cuGraphLaunch, CUgraphExec exec, CUstream stream)
{
	ENTER(cuGraphLaunch);
	return handle_get(exec, H_GRAPH_EXEC) && handle_stream_ok(stream)
		       ? 0
		       : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuGraphAddEmptyNode, void **node, CUgraph graph, const void *deps, size_t n)
{
	ENTER(cuGraphAddEmptyNode);
	(void)deps, (void)n;
	return handle_get(graph, H_GRAPH) ? create(node, H_GRAPH_NODE, 0)
					  : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuMemPoolCreate, CUmemoryPool *pool, const void *properties)
{
	ENTER(cuMemPoolCreate);
	return properties ? create(pool, H_POOL, 0) : CUDA_ERROR_INVALID_VALUE;
}

DRV(cuMemPoolDestroy, CUmemoryPool pool)
{
	ENTER(cuMemPoolDestroy);
	return destroy(pool, H_POOL);
}

static const char *error_name(int err)
{
	switch (err) {
	case 0: return "CUDA_SUCCESS";
	case 1: return "CUDA_ERROR_INVALID_VALUE";
	case 2: return "CUDA_ERROR_OUT_OF_MEMORY";
	case 101: return "CUDA_ERROR_INVALID_DEVICE";
	case 201: return "CUDA_ERROR_INVALID_CONTEXT";
	case 400: return "CUDA_ERROR_INVALID_HANDLE";
	case 500: return "CUDA_ERROR_NOT_FOUND";
	case 600: return "CUDA_ERROR_NOT_READY";
	}
	return NULL;
}

DRV(cuGetErrorName, CUresult err, const char **name)
{
	ENTER(cuGetErrorName);
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = error_name(err);
	return *name ? 0 : CUDA_ERROR_INVALID_VALUE;
}

DRV(cuGetErrorString, CUresult err, const char **text)
{
	ENTER(cuGetErrorString);
	return in_cuGetErrorName(err, text);
}

DRV(cuGetProcAddress_v2, const char *symbol, void **fn, int version, uint64_t flags, int *status)
{
	ENTER(cuGetProcAddress_v2);
	(void)version, (void)flags;
	if (!symbol || !fn)
		return CUDA_ERROR_INVALID_VALUE;
	*fn = NULL;
	/* The library's own symbols, however it was loaded: a name alone could find another
	 * library's. */
	Dl_info self;

	if (dladdr((void *)&in_cuInit, &self)) {
		void *lib = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);

		if (lib) {
			*fn = dlsym(lib, symbol);
			dlclose(lib);
		}
	}
	if (status)
		*status = *fn ? 0 : 1;
	return *fn ? 0 : CUDA_ERROR_NOT_FOUND;
}
