/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gemms.c - products of matrices by cuBLAS: gemms MODE [N].
 *   all    one of each kind, and some that cuBLAS would refuse
 *   many   N products of 256 x 128 x 64
 *   odd    N products of 255 x 128 x 63
 *   wait   a product for each byte of stdin; "q" ends
 */
#include <cublas.h>
#include <cuda_runtime_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static float x[16];

static void matmul(int a_rows, int b_cols, int transa)
{
	cublasLtMatrixLayoutOpaque_t a, b, d;
	cublasLtMatmulDescOpaque_t desc;

	cublasLtMatmulDescInit(&desc, CUBLAS_COMPUTE_32F_FAST_TF32, transa, CUBLAS_OP_N);
	cublasLtMatrixLayoutInit(&a, CUDA_R_16BF, (uint64_t)a_rows, 512, a_rows, 4);
	cublasLtMatrixLayoutInit(&b, CUDA_R_16BF, (uint64_t)a_rows, (uint64_t)b_cols, a_rows, 4);
	cublasLtMatrixLayoutInit(&d, CUDA_R_32F, 512, (uint64_t)b_cols, 512, 4);
	cublasLtMatmul(NULL, &desc, x, x, &a, x, &b, x, x, &d, x, &d, NULL, NULL, 0, NULL);
	/* words that are no layout */
	if (transa == CUBLAS_OP_N) {
		memset(&b, 0xa5, sizeof(b));
		cublasLtMatmul(NULL, &desc, x, x, &a, x, &b, x, x, &d, x, &d, NULL, NULL, 0, NULL);
	}
}

static void grouped(int groups, int m)
{
	int sizes[40], ms[40], ns[40], ks[40];

	for (int i = 0; i < groups; i++) {
		sizes[i] = 3;
		ms[i] = i ? m : 64;
		ns[i] = 32;
		ks[i] = 16;
	}
	cublasSgemmGroupedBatched(x, NULL, NULL, ms, ns, ks, x, NULL, NULL, NULL, NULL, x, NULL,
				  NULL, groups, sizes);
}

static void all(void)
{
	cublasSgemm_v2(x, CUBLAS_OP_N, CUBLAS_OP_T, 4096, 2048, 1024, x, x, 1, x, 1, x, x, 1);
	cublasSgemm_v2_64(x, CUBLAS_OP_N, CUBLAS_OP_N, 100, 99, 98, x, x, 1, x, 1, x, x, 1);
	cublasGemmEx(x, CUBLAS_OP_T, CUBLAS_OP_N, 1024, 512, 256, x, x, CUDA_R_16F, 1, x,
		     CUDA_R_16F, 1, x, x, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, -1);
	cublasGemmStridedBatchedEx(x, CUBLAS_OP_N, CUBLAS_OP_N, 128, 64, 32, x, x, CUDA_R_8I, 1, 7,
				   x, CUDA_R_8I, 1, 7, x, x, CUDA_R_32I, 1, 7, 12,
				   CUBLAS_COMPUTE_32I, -1);
	grouped(2, 64);
	grouped(2, 65);
	grouped(40, 64); /* more than is read */
	matmul(256, 128, CUBLAS_OP_T);
	matmul(512, 128, CUBLAS_OP_N);
	matmul(256, 128, CUBLAS_OP_N); /* the layouts and the operation do not agree */
	cublasSgemm_v2(x, CUBLAS_OP_N, CUBLAS_OP_N, -1, 8, 8, x, x, 1, x, 1, x, x, 1);
}

static void product(int less)
{
	cublasGemmEx(x, CUBLAS_OP_N, CUBLAS_OP_N, 256 - less, 128, 64 - less, x, x, CUDA_R_16F, 1,
		     x, CUDA_R_16F, 1, x, x, CUDA_R_16F, 1, CUBLAS_COMPUTE_32F, -1);
}

static void wait_for_bytes(void)
{
	char c;

	product(0);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) == 1 && c != 'q')
		product(0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "all";

	if (!strcmp(mode, "all"))
		all();
	else if (!strcmp(mode, "many") || !strcmp(mode, "odd"))
		for (int i = argc > 2 ? atoi(argv[2]) : 1; i > 0; i--)
			product(mode[0] == 'o');
	else if (!strcmp(mode, "wait"))
		wait_for_bytes();
	else
		return 2;
	cudaDeviceSynchronize();
	return 0;
}
