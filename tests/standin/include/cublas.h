/* SPDX-License-Identifier: BSD-2-Clause */
/* cublas.h - what of cuBLAS' and cuBLASLt's interfaces the stand-in has. */
#ifndef STANDIN_CUBLAS_H
#define STANDIN_CUBLAS_H

#include <stdint.h>

typedef void *cublasHandle_t;
typedef int cublasStatus_t;
typedef int cublasOperation_t;
enum { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };
enum { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_8I = 3, CUDA_R_32I = 10, CUDA_R_16BF = 14 };
enum { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32I = 72, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
typedef struct {
	uint64_t data[8];
} cublasLtMatrixLayoutOpaque_t, *cublasLtMatrixLayout_t;
typedef struct {
	uint64_t data[32];
} cublasLtMatmulDescOpaque_t, *cublasLtMatmulDesc_t;

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
			      cublasOperation_t transb, int m, int n, int k, const float *alpha,
			      const float *A, int lda, const float *B, int ldb, const float *beta,
			      float *C, int ldc);
cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t transa,
				 cublasOperation_t transb, int64_t m, int64_t n, int64_t k,
				 const float *alpha, const float *A, int64_t lda, const float *B,
				 int64_t ldb, const float *beta, float *C, int64_t ldc);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
			    cublasOperation_t transb, int m, int n, int k, const void *alpha,
			    const void *A, int Atype, int lda, const void *B, int Btype, int ldb,
			    const void *beta, void *C, int Ctype, int ldc, int computeType,
			    int algo);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
					  cublasOperation_t transb, int m, int n, int k,
					  const void *alpha, const void *A, int Atype, int lda,
					  long long strideA, const void *B, int Btype, int ldb,
					  long long strideB, const void *beta, void *C, int Ctype,
					  int ldc, long long strideC, int batchCount,
					  int computeType, int algo);
cublasStatus_t cublasSgemmGroupedBatched(cublasHandle_t handle, const cublasOperation_t *transa,
					 const cublasOperation_t *transb, const int *m,
					 const int *n, const int *k, const float *alpha,
					 const float *const *A, const int *lda,
					 const float *const *B, const int *ldb, const float *beta,
					 float *const *C, const int *ldc, int group_count,
					 const int *group_size);
cublasStatus_t cublasLtMatmul(void *lightHandle, cublasLtMatmulDesc_t computeDesc,
			      const void *alpha, const void *A, cublasLtMatrixLayout_t Adesc,
			      const void *B, cublasLtMatrixLayout_t Bdesc, const void *beta,
			      const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
			      cublasLtMatrixLayout_t Ddesc, const void *algo, void *workspace,
			      uint64_t workspaceSizeInBytes, void *stream);
/* These do what cuBLAS's functions of these names do, with the words at the places of versions
 * 12.1 to 13.1. */
void cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, int type, uint64_t rows, uint64_t cols,
			      int64_t ld, int batch);
void cublasLtMatmulDescInit(cublasLtMatmulDesc_t desc, int compute, int transa, int transb);

#endif
