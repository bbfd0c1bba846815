/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.c - the "GPU's" memory and the driver's functions on it. Device memory is host memory
 * that is tracked, so that a bad pointer, a copy beyond an allocation's end and a double free
 * give the driver's errors.
 */
#include "standin.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

struct block {
	uintptr_t addr;
	size_t size;
	enum mem_kind kind;
	struct block *next;
};

static struct block *blocks; /* newest first: programs mostly free what they took last */
static struct block *block_cache;
static size_t used_bytes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
LOCK_OVER_FORK(lock)

/* STANDIN_REUSE: memory whose free waits until it was handed out so many times. */
static struct {
	void *addr;
	size_t size;
	int left; /* -1: not read yet; 0: no free waits */
	bool waits, is_free;
	pthread_cond_t handed_out;
} reuse = { .left = -1, .handed_out = PTHREAD_COND_INITIALIZER };

size_t mem_used(void)
{
	return __atomic_load_n(&used_bytes, __ATOMIC_RELAXED);
}

/* Memory for an allocation. */
static int find_room(void **mem, size_t size)
{
	if (!reuse.is_free || size > reuse.size)
		return posix_memalign(mem, 512, size);
	*mem = reuse.addr;
	reuse.is_free = false;
	reuse.left--;
	pthread_cond_broadcast(&reuse.handed_out);
	return 0;
}

/* Gives memory back to the C library, or to the allocation that the knob asks for. */
static void give_back(void *p, size_t size)
{
	const char *times = reuse.left < 0 ? getenv("STANDIN_REUSE") : NULL;

	if (reuse.left < 0)
		reuse.left = times ? atoi(times) : 0;
	if (!reuse.left || (reuse.waits && p != reuse.addr)) {
		free(p);
		return;
	}
	reuse.is_free = true;
	if (reuse.waits)
		return;
	reuse.addr = p;
	reuse.size = size;
	reuse.waits = true;
	while (reuse.left)
		pthread_cond_wait(&reuse.handed_out, &lock);
	reuse.waits = false;
}

int mem_alloc(void **p, size_t size, enum mem_kind kind)
{
	struct block *b = NULL;
	void *mem = NULL;
	int err = CUDA_ERROR_OUT_OF_MEMORY;

	if (!p || !size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (size > STANDIN_TOTAL_BYTES || used_bytes + size > STANDIN_TOTAL_BYTES)
		goto out;
	if (find_room(&mem, size))
		goto out;
	b = block_cache;
	if (b)
		block_cache = b->next;
	else
		b = malloc(sizeof(*b));
	if (!b) {
		free(mem);
		goto out;
	}
	*b = (struct block){ (uintptr_t)mem, size, kind, blocks };
	blocks = b;
	if (kind != MEM_HOST)
		used_bytes += size;
	*p = mem;
	err = 0;
out:
	pthread_mutex_unlock(&lock);
	return err;
}

int mem_free(void *p, enum mem_kind kind)
{
	int err = CUDA_ERROR_INVALID_VALUE;
	struct block **at;

	if (!p)
		return 0;
	pthread_mutex_lock(&lock);
	for (at = &blocks; *at; at = &(*at)->next) {
		struct block *b = *at;

		if (b->addr != (uintptr_t)p)
			continue;
		if ((b->kind == MEM_HOST) != (kind == MEM_HOST))
			break;
		*at = b->next;
		b->next = block_cache;
		block_cache = b;
		if (b->kind != MEM_HOST)
			used_bytes -= b->size;
		give_back(p, b->size);
		err = 0;
		break;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

int mem_find(const void *p, size_t size)
{
	uintptr_t addr = (uintptr_t)p;
	int kind = 0;

	pthread_mutex_lock(&lock);
	for (struct block *b = blocks; b; b = b->next) {
		if (addr < b->addr || addr - b->addr >= b->size)
			continue;
		kind = size <= b->size - (addr - b->addr) ? (int)b->kind : -1;
		break;
	}
	pthread_mutex_unlock(&lock);
	return kind;
}

/* True when the range is memory that the device may touch. */
static bool on_device(CUdeviceptr p, size_t size)
{
	return mem_find((void *)(uintptr_t)p, size) > 0;
}

static int copy(CUdeviceptr dst, const void *src, size_t n, bool dst_device, bool src_device)
{
	if (!n)
		return 0;
	if (dst_device && !on_device(dst, n))
		return CUDA_ERROR_INVALID_VALUE;
	if (src_device && !on_device((uintptr_t)src, n))
		return CUDA_ERROR_INVALID_VALUE;
	if (!dst || !src)
		return CUDA_ERROR_INVALID_VALUE;
	memmove((void *)(uintptr_t)dst, src, n);
	return 0;
}

DRV(cuMemGetInfo_v2, size_t *free_bytes, size_t *total)
{
	ENTER(cuMemGetInfo_v2);
	if (!free_bytes || !total)
		return CUDA_ERROR_INVALID_VALUE;
	*free_bytes = STANDIN_TOTAL_BYTES - mem_used();
	*total = STANDIN_TOTAL_BYTES;
	return 0;
}

DRV(cuMemAlloc_v2, CUdeviceptr *p, size_t n)
{
	ENTER(cuMemAlloc_v2);
	return mem_alloc((void **)p, n, MEM_DEVICE);
}

DRV(cuMemAllocAsync, CUdeviceptr *p, size_t n, CUstream s)
{
	ENTER(cuMemAllocAsync);
	return handle_stream_ok(s) ? mem_alloc((void **)p, n, MEM_DEVICE)
				   : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuMemAllocFromPoolAsync, CUdeviceptr *p, size_t n, CUmemoryPool pool, CUstream s)
{
	ENTER(cuMemAllocFromPoolAsync);
	if (!handle_get(pool, H_POOL) || !handle_stream_ok(s))
		return CUDA_ERROR_INVALID_HANDLE;
	return mem_alloc((void **)p, n, MEM_DEVICE);
}

DRV(cuMemAllocManaged, CUdeviceptr *p, size_t n, unsigned int flags)
{
	ENTER(cuMemAllocManaged);
	(void)flags;
	return mem_alloc((void **)p, n, MEM_MANAGED);
}

DRV(cuMemAllocPitch_v2, CUdeviceptr *p, size_t *pitch, size_t width, size_t height,
    unsigned int element)
{
	ENTER(cuMemAllocPitch_v2);
	(void)element;
	if (!pitch || !width || !height || width > STANDIN_TOTAL_BYTES ||
	    height > STANDIN_TOTAL_BYTES / width)
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = (width + 511) & ~511UL;
	return mem_alloc((void **)p, *pitch * height, MEM_DEVICE);
}

DRV(cuMemFree_v2, CUdeviceptr p)
{
	ENTER(cuMemFree_v2);
	return mem_free((void *)(uintptr_t)p, MEM_DEVICE);
}

DRV(cuMemFreeAsync, CUdeviceptr p, CUstream s)
{
	ENTER(cuMemFreeAsync);
	return handle_stream_ok(s) ? mem_free((void *)(uintptr_t)p, MEM_DEVICE)
				   : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuMemHostAlloc, void **p, size_t n, unsigned int flags)
{
	ENTER(cuMemHostAlloc);
	(void)flags;
	return mem_alloc(p, n, MEM_HOST);
}

DRV(cuMemAllocHost_v2, void **p, size_t n)
{
	ENTER(cuMemAllocHost_v2);
	return mem_alloc(p, n, MEM_HOST);
}

DRV(cuMemFreeHost, void *p)
{
	ENTER(cuMemFreeHost);
	return mem_free(p, MEM_HOST);
}

DRV(cuMemHostGetDevicePointer_v2, CUdeviceptr *p, void *host, unsigned int flags)
{
	ENTER(cuMemHostGetDevicePointer_v2);
	(void)flags;
	if (!p || mem_find(host, 1) != MEM_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	*p = (uintptr_t)host;
	return 0;
}

/* Neither side is known to be the device's: unified addressing decides, and plain host memory is
 * legal on both sides. */
DRV(cuMemcpy, CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	ENTER(cuMemcpy);
	return copy(dst, (void *)(uintptr_t)src, n, false, false);
}

DRV(cuMemcpyAsync, CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
	ENTER(cuMemcpyAsync);
	return handle_stream_ok(s) ? copy(dst, (void *)(uintptr_t)src, n, false, false)
				   : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuMemcpyHtoD_v2, CUdeviceptr dst, const void *src, size_t n)
{
	ENTER(cuMemcpyHtoD_v2);
	return copy(dst, src, n, true, false);
}

DRV(cuMemcpyDtoH_v2, void *dst, CUdeviceptr src, size_t n)
{
	ENTER(cuMemcpyDtoH_v2);
	return copy((uintptr_t)dst, (void *)(uintptr_t)src, n, false, true);
}

DRV(cuMemcpyDtoD_v2, CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	ENTER(cuMemcpyDtoD_v2);
	return copy(dst, (void *)(uintptr_t)src, n, true, true);
}

DRV(cuMemcpyHtoDAsync_v2, CUdeviceptr dst, const void *src, size_t n, CUstream s)
{
	ENTER(cuMemcpyHtoDAsync_v2);
	return handle_stream_ok(s) ? copy(dst, src, n, true, false) : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuMemcpyDtoHAsync_v2, void *dst, CUdeviceptr src, size_t n, CUstream s)
{
	ENTER(cuMemcpyDtoHAsync_v2);
	if (!handle_stream_ok(s))
		return CUDA_ERROR_INVALID_HANDLE;
	return copy((uintptr_t)dst, (void *)(uintptr_t)src, n, false, true);
}

DRV(cuMemcpyDtoDAsync_v2, CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
	ENTER(cuMemcpyDtoDAsync_v2);
	if (!handle_stream_ok(s))
		return CUDA_ERROR_INVALID_HANDLE;
	return copy(dst, (void *)(uintptr_t)src, n, true, true);
}

/* The address of the first byte of one side, and whether it must be the device's. */
static CUdeviceptr side_2d(unsigned int type, const void *host, CUdeviceptr dev, size_t x, size_t y,
			   size_t pitch, bool *device)
{
	*device = type == 2;
	return (type == 1 ? (uintptr_t)host : dev) + y * pitch + x;
}

static int copy_2d(const CUDA_MEMCPY2D *c)
{
	bool dst_device, src_device;
	CUdeviceptr dst, src;
	int err = 0;

	if (!c || c->WidthInBytes > STANDIN_TOTAL_BYTES || c->Height > STANDIN_TOTAL_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	if (c->srcMemoryType == 3 || c->dstMemoryType == 3)
		return 0; /* arrays have no memory here */
	if (c->Height > 1 && (c->srcPitch < c->WidthInBytes || c->dstPitch < c->WidthInBytes))
		return CUDA_ERROR_INVALID_VALUE;
	dst = side_2d(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY,
		      c->dstPitch, &dst_device);
	src = side_2d(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY,
		      c->srcPitch, &src_device);
	for (size_t row = 0; row < c->Height && !err; row++)
		err = copy(dst + row * c->dstPitch, (void *)(uintptr_t)(src + row * c->srcPitch),
			   c->WidthInBytes, dst_device, src_device);
	return err;
}

DRV(cuMemcpy2D_v2, const CUDA_MEMCPY2D *c)
{
	ENTER(cuMemcpy2D_v2);
	return copy_2d(c);
}

DRV(cuMemcpy2DAsync_v2, const CUDA_MEMCPY2D *c, CUstream s)
{
	ENTER(cuMemcpy2DAsync_v2);
	return handle_stream_ok(s) ? copy_2d(c) : CUDA_ERROR_INVALID_HANDLE;
}

static int set(CUdeviceptr p, unsigned int value, size_t width, size_t n)
{
	if (n > STANDIN_TOTAL_BYTES || (n && !on_device(p, n * width)))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		memcpy((char *)(uintptr_t)p + i * width, &value, width);
	return 0;
}

DRV(cuMemsetD8_v2, CUdeviceptr p, unsigned char value, size_t n)
{
	ENTER(cuMemsetD8_v2);
	return set(p, value, 1, n);
}

DRV(cuMemsetD8Async, CUdeviceptr p, unsigned char value, size_t n, CUstream s)
{
	ENTER(cuMemsetD8Async);
	return handle_stream_ok(s) ? set(p, value, 1, n) : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuMemsetD32_v2, CUdeviceptr p, unsigned int value, size_t n)
{
	ENTER(cuMemsetD32_v2);
	return set(p, value, 4, n);
}

DRV(cuMemsetD32Async, CUdeviceptr p, unsigned int value, size_t n, CUstream s)
{
	ENTER(cuMemsetD32Async);
	return handle_stream_ok(s) ? set(p, value, 4, n) : CUDA_ERROR_INVALID_HANDLE;
}

DRV(cuPointerGetAttribute, void *data, int attribute, CUdeviceptr p)
{
	int kind = mem_find((void *)(uintptr_t)p, 1);

	ENTER(cuPointerGetAttribute);
	if (!data || kind <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == 2) /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
		*(unsigned int *)data = kind == MEM_HOST ? 1 : 2;
	else
		*(void **)data = (void *)(uintptr_t)p;
	return 0;
}

/* A handle is the address itself: good within one process, which is all that a test needs. */
DRV(cuIpcGetMemHandle, void *handle, CUdeviceptr p)
{
	ENTER(cuIpcGetMemHandle);
	if (!handle || !on_device(p, 1))
		return CUDA_ERROR_INVALID_VALUE;
	memset(handle, 0, 64);
	memcpy(handle, &p, sizeof(p));
	return 0;
}

DRV(cuIpcOpenMemHandle_v2, CUdeviceptr *p, cudaIpcMemHandle_t handle, unsigned int flags)
{
	ENTER(cuIpcOpenMemHandle_v2);
	(void)flags;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(p, &handle, sizeof(*p));
	return on_device(*p, 1) ? 0 : CUDA_ERROR_INVALID_VALUE;
}
