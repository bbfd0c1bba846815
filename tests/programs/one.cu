// SPDX-License-Identifier: BSD-2-Clause
// one.cu - a single kernel of the name KERNEL, in a library with a function run(), or with -DMAIN a program.
#include "phases.h"

#include <cuda_runtime.h>

__global__ void KERNEL(int *p)
{
	*p = 1;
}

extern "C" int run(void)
{
	KERNEL<<<1, 1>>>(0);
	return cudaGetLastError() != cudaSuccess;
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
