/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cudnn.c - a libcudnn that needs no GPU: what it computes is a kernel that does nothing. Descriptors
 * come from a few places, so that a new one is where one that was destroyed had been.
 */
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <stddef.h>

#include "../../target/common/prologue.h"

#define API __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define PLACES 64
#define BAD_PARAM 2000

static char places[PLACES][64];
static char used[PLACES];

static void convolution_kernel(void)
{
}

static cudnnStatus_t launch(void)
{
	dim3 one = { 1, 1, 1 };

	return cudaLaunchKernel((const void *)convolution_kernel, one, one, NULL, 0, NULL) ? 5000
											   : 0;
}

API cudnnStatus_t cudnnBackendCreateDescriptor(int type, cudnnBackendDescriptor_t *descriptor)
{
	PUSHES();
	for (int i = 0; i < PLACES; i++)
		if (!used[i]) {
			used[i] = 1;
			*descriptor = places[i];
			return 0;
		}
	return BAD_PARAM;
}

API cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
	PUSHES();
	for (int i = 0; i < PLACES; i++)
		if (descriptor == places[i])
			used[i] = 0;
	return 0;
}

API cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, int attributeName,
					   int attributeType, int64_t elementCount,
					   const void *arrayOfElements)
{
	PUSHES();
	return descriptor ? 0 : BAD_PARAM;
}

API cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, int attributeName,
					   int attributeType, int64_t requestedElementCount,
					   int64_t *elementCount, void *arrayOfElements)
{
	PUSHES();
	*elementCount = requestedElementCount;
	return descriptor ? 0 : BAD_PARAM;
}

API cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
				      cudnnBackendDescriptor_t variantPack)
{
	PUSHES();
	return executionPlan ? launch() : BAD_PARAM;
}

API cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensorDesc)
{
	return cudnnBackendCreateDescriptor(0, tensorDesc);
}

API cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensorDesc)
{
	PUSHES();
	return cudnnBackendDestroyDescriptor(tensorDesc);
}

API cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc, int format,
					     int dataType, int n, int c, int h, int w)
{
	PUSHES();
	return 0;
}

API cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc, int dataType,
					     int nbDims, const int dimA[], const int strideA[])
{
	PUSHES();
	return 0;
}

API cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc, int dataType,
					     int format, int nbDims, const int filterDimA[])
{
	PUSHES();
	return 0;
}

API cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
					  cudnnTensorDescriptor_t xDesc, const void *x,
					  cudnnFilterDescriptor_t wDesc, const void *w,
					  void *convDesc, int algo, void *workSpace,
					  uint64_t workSpaceSizeInBytes, const void *beta,
					  cudnnTensorDescriptor_t yDesc, void *y)
{
	PUSHES();
	return launch();
}

API cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
					       cudnnFilterDescriptor_t wDesc, const void *w,
					       cudnnTensorDescriptor_t dyDesc, const void *dy,
					       void *convDesc, int algo, void *workSpace,
					       uint64_t workSpaceSizeInBytes, const void *beta,
					       cudnnTensorDescriptor_t dxDesc, void *dx)
{
	PUSHES();
	return launch();
}

API cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
						 cudnnTensorDescriptor_t xDesc, const void *x,
						 cudnnTensorDescriptor_t dyDesc, const void *dy,
						 void *convDesc, int algo, void *workSpace,
						 uint64_t workSpaceSizeInBytes, const void *beta,
						 cudnnFilterDescriptor_t dwDesc, void *dw)
{
	PUSHES();
	return launch();
}
