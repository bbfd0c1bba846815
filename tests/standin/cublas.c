/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cublas.c - a libcublas that needs no GPU: its products launch a kernel that does nothing. As in
 * the real one, functions call each other: those with 32-bit integers the `_64` ones, GemmEx
 * cuBLASLt.
 */
#include <cublas.h>
#include <cuda_runtime_api.h>

#include <string.h>

#include "../../target/common/prologue.h"

#define API __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wunused-parameter"

static void product_kernel(void)
{
}

static cublasStatus_t launch(void)
{
	dim3 one = { 1, 1, 1 };

	return cudaLaunchKernel((const void *)product_kernel, one, one, NULL, 0, NULL) ? 13 : 0;
}

API void cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, int type, uint64_t rows,
				  uint64_t cols, int64_t ld, int batch)
{
	memset(layout, 0, sizeof(*layout));
	layout->data[0] = (uint32_t)type;
	layout->data[1] = rows;
	layout->data[2] = cols;
	layout->data[3] = (uint64_t)ld;
	layout->data[4] = (uint32_t)batch;
}

API void cublasLtMatmulDescInit(cublasLtMatmulDesc_t desc, int compute, int transa, int transb)
{
	memset(desc, 0, sizeof(*desc));
	desc->data[0] = 6;
	desc->data[1] = (uint32_t)compute;
	desc->data[2] = (uint64_t)(uint32_t)transa << 32;
	desc->data[3] = (uint32_t)transb;
}

API cublasStatus_t cublasLtMatmul(void *lightHandle, cublasLtMatmulDesc_t computeDesc,
				  const void *alpha, const void *A, cublasLtMatrixLayout_t Adesc,
				  const void *B, cublasLtMatrixLayout_t Bdesc, const void *beta,
				  const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
				  cublasLtMatrixLayout_t Ddesc, const void *algo, void *workspace,
				  uint64_t workspaceSizeInBytes, void *stream)
{
	PUSHES();
	return Ddesc ? launch() : 7;
}

API cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t transa,
				     cublasOperation_t transb, int64_t m, int64_t n, int64_t k,
				     const float *alpha, const float *A, int64_t lda,
				     const float *B, int64_t ldb, const float *beta, float *C,
				     int64_t ldc)
{
	PUSHES();
	return m < 0 ? 7 : launch();
}

API cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
				  cublasOperation_t transb, int m, int n, int k, const float *alpha,
				  const float *A, int lda, const float *B, int ldb,
				  const float *beta, float *C, int ldc)
{
	PUSHES();
	cublasStatus_t err = cublasSgemm_v2_64(handle, transa, transb, m, n, k, alpha, A, lda, B,
					       ldb, beta, C, ldc);

	__asm__ volatile("" ::: "memory"); /* a call, and no jump */
	return err;
}

API cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
				cublasOperation_t transb, int m, int n, int k, const void *alpha,
				const void *A, int Atype, int lda, const void *B, int Btype,
				int ldb, const void *beta, void *C, int Ctype, int ldc,
				int computeType, int algo)
{
	PUSHES();
	cublasLtMatrixLayoutOpaque_t a, b, d;
	cublasLtMatmulDescOpaque_t desc;

	cublasLtMatmulDescInit(&desc, computeType, transa, transb);
	cublasLtMatrixLayoutInit(&a, Atype, (uint64_t)(transa ? k : m), (uint64_t)(transa ? m : k),
				 lda, 1);
	cublasLtMatrixLayoutInit(&b, Btype, (uint64_t)(transb ? n : k), (uint64_t)(transb ? k : n),
				 ldb, 1);
	cublasLtMatrixLayoutInit(&d, Ctype, (uint64_t)m, (uint64_t)n, ldc, 1);
	return cublasLtMatmul(NULL, &desc, alpha, A, &a, B, &b, beta, C, &d, C, &d, NULL, NULL, 0,
			      NULL);
}

API cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
					      cublasOperation_t transb, int m, int n, int k,
					      const void *alpha, const void *A, int Atype, int lda,
					      long long strideA, const void *B, int Btype, int ldb,
					      long long strideB, const void *beta, void *C,
					      int Ctype, int ldc, long long strideC, int batchCount,
					      int computeType, int algo)
{
	PUSHES();
	return launch();
}

API cublasStatus_t cublasSgemmGroupedBatched(cublasHandle_t handle, const cublasOperation_t *transa,
					     const cublasOperation_t *transb, const int *m,
					     const int *n, const int *k, const float *alpha,
					     const float *const *A, const int *lda,
					     const float *const *B, const int *ldb,
					     const float *beta, float *const *C, const int *ldc,
					     int group_count, const int *group_size)
{
	PUSHES();
	return launch();
}
