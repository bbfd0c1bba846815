// SPDX-License-Identifier: BSD-2-Clause
// alone.cu - a program, or a library with a function run(), that has NVIDIA's static runtime in it, for a machine without a driver: all calls
// fail with cudaErrorInsufficientDriver.
#include "phases.h"

#include <cuda_runtime.h>

__global__ void first(int *p)
{
	*p = 1;
}

__global__ void second(float *p, int n)
{
	*p = n;
}

extern "C" int run(void)
{
	cudaStream_t stream = 0;
	void *p = 0;
	int n = 0, failed = 0;

	failed += cudaGetDeviceCount(&n) != cudaSuccess;
	for (int i = 0; i < 3; i++)
		failed += cudaMalloc(&p, 777 + i) != cudaSuccess;
	failed += cudaMemcpyAsync(&n, p, sizeof(n), cudaMemcpyDeviceToHost, stream) != cudaSuccess;
	first<<<1, 2>>>((int *)p);
	second<<<3, 4, 5, stream>>>((float *)p, 6);
	failed += cudaGetLastError() != cudaSuccess;
	failed += cudaStreamSynchronize(stream) != cudaSuccess;
	return failed != 7;
}

#ifdef MAIN
static int work(int, char **, int)
{
	return run();
}

int main(int argc, char **argv)
{
	return phases(&argc, argv, work);
}
#endif
