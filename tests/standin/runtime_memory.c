/* SPDX-License-Identifier: BSD-2-Clause */
/* runtime_memory.c - the stand-in's libcudart: memory, copies, memset. Each hands over to the
 * driver's function. */
#include "standin.h"

static CUdeviceptr dev(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

RT(cudaMalloc, void **p, size_t n)
{
	RT_ENTER(cudaMalloc);
	return rt_result(CALL(cuMemAlloc_v2)((CUdeviceptr *)p, n));
}

RT(cudaFree, void *p)
{
	RT_ENTER(cudaFree);
	return rt_result(CALL(cuMemFree_v2)(dev(p)));
}

RT(cudaMallocHost, void **p, size_t n)
{
	RT_ENTER(cudaMallocHost);
	return rt_result(CALL(cuMemHostAlloc)(p, n, 0));
}

RT(cudaHostAlloc, void **p, size_t n, unsigned int flags)
{
	RT_ENTER(cudaHostAlloc);
	return rt_result(CALL(cuMemHostAlloc)(p, n, flags));
}

RT(cudaFreeHost, void *p)
{
	RT_ENTER(cudaFreeHost);
	return rt_result(CALL(cuMemFreeHost)(p));
}

RT(cudaMallocManaged, void **p, size_t n, unsigned int flags)
{
	RT_ENTER(cudaMallocManaged);
	return rt_result(CALL(cuMemAllocManaged)((CUdeviceptr *)p, n, flags));
}

RT(cudaMallocPitch, void **p, size_t *pitch, size_t width, size_t height)
{
	RT_ENTER(cudaMallocPitch);
	return rt_result(CALL(cuMemAllocPitch_v2)((CUdeviceptr *)p, pitch, width, height, 4));
}

RT(cudaMalloc3D, struct cudaPitchedPtr *p, struct cudaExtent extent)
{
	int err;

	RT_ENTER(cudaMalloc3D);
	if (!p)
		return rt_result(cudaErrorInvalidValue);
	err = CALL(cuMemAllocPitch_v2)((CUdeviceptr *)&p->ptr, &p->pitch, extent.width,
				       extent.height * extent.depth, 4);
	p->xsize = extent.width;
	p->ysize = extent.height;
	return rt_result(err);
}

RT(cudaMallocArray, cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width,
   size_t height, unsigned int flags)
{
	RT_ENTER(cudaMallocArray);
	(void)flags;
	if (!desc)
		return rt_result(cudaErrorInvalidValue);
	return rt_result(CALL(cuMemAlloc_v2)(
		(CUdeviceptr *)array,
		width * (height ? height : 1) * ((desc->x + desc->y + desc->z + desc->w) / 8)));
}

RT(cudaFreeArray, cudaArray_t array)
{
	RT_ENTER(cudaFreeArray);
	return rt_result(CALL(cuMemFree_v2)(dev(array)));
}

RT(cudaMallocAsync, void **p, size_t n, cudaStream_t stream)
{
	RT_ENTER(cudaMallocAsync);
	return rt_result(CALL(cuMemAllocAsync)((CUdeviceptr *)p, n, stream));
}

RT(cudaFreeAsync, void *p, cudaStream_t stream)
{
	RT_ENTER(cudaFreeAsync);
	return rt_result(CALL(cuMemFreeAsync)(dev(p), stream));
}

RT(cudaMemGetInfo, size_t *free_bytes, size_t *total)
{
	RT_ENTER(cudaMemGetInfo);
	return rt_result(CALL(cuMemGetInfo_v2)(free_bytes, total));
}

RT(cudaMemcpy, void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
	RT_ENTER(cudaMemcpy);
	switch (kind) {
	case cudaMemcpyHostToDevice: return rt_result(CALL(cuMemcpyHtoD_v2)(dev(dst), src, n));
	case cudaMemcpyDeviceToHost: return rt_result(CALL(cuMemcpyDtoH_v2)(dst, dev(src), n));
	case cudaMemcpyDeviceToDevice:
		return rt_result(CALL(cuMemcpyDtoD_v2)(dev(dst), dev(src), n));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault: return rt_result(CALL(cuMemcpy)(dev(dst), dev(src), n));
	}
	return rt_result(21); /* cudaErrorInvalidMemcpyDirection */
}

RT(cudaMemcpyAsync, void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
   cudaStream_t stream)
{
	RT_ENTER(cudaMemcpyAsync);
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return rt_result(CALL(cuMemcpyHtoDAsync_v2)(dev(dst), src, n, stream));
	case cudaMemcpyDeviceToHost:
		return rt_result(CALL(cuMemcpyDtoHAsync_v2)(dst, dev(src), n, stream));
	case cudaMemcpyDeviceToDevice:
		return rt_result(CALL(cuMemcpyDtoDAsync_v2)(dev(dst), dev(src), n, stream));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return rt_result(CALL(cuMemcpyAsync)(dev(dst), dev(src), n, stream));
	}
	return rt_result(21);
}

/* Fills the driver's description of a pitched copy. */
static CUDA_MEMCPY2D pitched(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			     size_t height, enum cudaMemcpyKind kind)
{
	bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
	bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;

	return (CUDA_MEMCPY2D){
		.srcMemoryType = kind == cudaMemcpyDefault ? 4
				 : from_host		   ? 1
							   : 2,
		.srcHost = src,
		.srcDevice = dev(src),
		.srcPitch = spitch,
		.dstMemoryType = kind == cudaMemcpyDefault ? 4
				 : to_host		   ? 1
							   : 2,
		.dstHost = dst,
		.dstDevice = dev(dst),
		.dstPitch = dpitch,
		.WidthInBytes = width,
		.Height = height,
	};
}

RT(cudaMemcpy2D, void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
   size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D c = pitched(dst, dpitch, src, spitch, width, height, kind);

	RT_ENTER(cudaMemcpy2D);
	return rt_result(CALL(cuMemcpy2D_v2)(&c));
}

RT(cudaMemcpy2DAsync, void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
   size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUDA_MEMCPY2D c = pitched(dst, dpitch, src, spitch, width, height, kind);

	RT_ENTER(cudaMemcpy2DAsync);
	return rt_result(CALL(cuMemcpy2DAsync_v2)(&c, stream));
}

RT(cudaMemset, void *p, int value, size_t n)
{
	RT_ENTER(cudaMemset);
	return rt_result(CALL(cuMemsetD8_v2)(dev(p), (unsigned char)value, n));
}

RT(cudaMemsetAsync, void *p, int value, size_t n, cudaStream_t stream)
{
	RT_ENTER(cudaMemsetAsync);
	return rt_result(CALL(cuMemsetD8Async)(dev(p), (unsigned char)value, n, stream));
}
