/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many.c - many [--wait] N: registers N kernels as code made by nvcc does, and launches every
 * 100th by its host function and by its handle. Kernel i is `_Z<length>many_kernel_<i>Pi`.
 */
#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "phases.h"

void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *,
			    void *, void *, int *);
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *);

static char *hosts;

static int work(int argc, char **argv, int again)
{
	long n = argc > 1 ? atol(argv[1]) : 20000;
	dim3 one = { 1, 1, 1 };
	char name[128], base[64];
	cudaKernel_t kernel;

	if (!again) {
		void **fat = __cudaRegisterFatBinary(&hosts);

		hosts = malloc((size_t)n);
		for (long i = 0; hosts && i < n; i++) {
			snprintf(base, sizeof(base), "many_kernel_%ld", i);
			snprintf(name, sizeof(name), "_Z%zu%sPi", strlen(base), base);
			__cudaRegisterFunction(fat, hosts + i, name, name, -1, NULL, NULL, NULL,
					       NULL, NULL);
		}
	}
	for (long i = 0; hosts && i < n; i += 100) {
		if (cudaLaunchKernel(hosts + i, one, one, NULL, 0, NULL) ||
		    __cudaGetKernel(&kernel, hosts + i) ||
		    cudaLaunchKernel((void *)kernel, one, one, NULL, 0, NULL))
			return 1;
	}
	return !hosts;
}

int main(int argc, char **argv)
{
	return phases(&argc, argv, work);
}
