/* SPDX-License-Identifier: BSD-2-Clause */
/* cudnn.h - what the tests need of cuDNN: functions, and numbers of its enumerations. */
#ifndef STANDIN_CUDNN_H
#define STANDIN_CUDNN_H

#include <stdint.h>

typedef int cudnnStatus_t;
typedef void *cudnnHandle_t;
typedef void *cudnnBackendDescriptor_t;
typedef void *cudnnTensorDescriptor_t;
typedef void *cudnnFilterDescriptor_t;

enum { CUDNN_DATA_FLOAT = 0, CUDNN_DATA_HALF = 2, CUDNN_DATA_BFLOAT16 = 9 };
enum { CUDNN_TYPE_DATA_TYPE = 1, CUDNN_TYPE_INT64 = 3, CUDNN_TYPE_BACKEND_DESCRIPTOR = 15 };
enum { CUDNN_BACKEND_ANY_DESCRIPTOR = 1 };

cudnnStatus_t cudnnBackendCreateDescriptor(int type, cudnnBackendDescriptor_t *descriptor);
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor);
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, int attributeName,
				       int attributeType, int64_t elementCount,
				       const void *arrayOfElements);
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, int attributeName,
				       int attributeType, int64_t requestedElementCount,
				       int64_t *elementCount, void *arrayOfElements);
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
				  cudnnBackendDescriptor_t variantPack);

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensorDesc);
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensorDesc);
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc, int format,
					 int dataType, int n, int c, int h, int w);
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc, int dataType,
					 int nbDims, const int dimA[], const int strideA[]);
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc, int dataType,
					 int format, int nbDims, const int filterDimA[]);
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
				      cudnnTensorDescriptor_t xDesc, const void *x,
				      cudnnFilterDescriptor_t wDesc, const void *w, void *convDesc,
				      int algo, void *workSpace, uint64_t workSpaceSizeInBytes,
				      const void *beta, cudnnTensorDescriptor_t yDesc, void *y);
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
					   cudnnFilterDescriptor_t wDesc, const void *w,
					   cudnnTensorDescriptor_t dyDesc, const void *dy,
					   void *convDesc, int algo, void *workSpace,
					   uint64_t workSpaceSizeInBytes, const void *beta,
					   cudnnTensorDescriptor_t dxDesc, void *dx);
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
					     cudnnTensorDescriptor_t xDesc, const void *x,
					     cudnnTensorDescriptor_t dyDesc, const void *dy,
					     void *convDesc, int algo, void *workSpace,
					     uint64_t workSpaceSizeInBytes, const void *beta,
					     cudnnFilterDescriptor_t dwDesc, void *dw);

#endif
