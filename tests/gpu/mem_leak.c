/* SPDX-License-Identifier: BSD-2-Clause */
/* mem_leak.c - leaks known amounts, and ends its context, so that compute-sanitizer sees it too. */
#include <cuda_runtime_api.h>

#include <stddef.h>

int main(void)
{
	void *p, *kept;

	for (size_t i = 1; i <= 10; i++)
		if (cudaMalloc(&p, i * 1000) || (i % 2 && cudaFree(p)))
			return 1;
	if (cudaMallocManaged(&kept, 4096, cudaMemAttachGlobal) ||
	    cudaMallocPitch(&p, &(size_t){ 0 }, 100, 10))
		return 1;
	if (cudaFree(p) || cudaFree(kept))
		return 1;
	return cudaDeviceReset() != cudaSuccess;
}
