// SPDX-License-Identifier: BSD-2-Clause
// other.cu - the second file of `kernels`: a kernel whose name another file has too, and which is another kernel.
#include <cuda_runtime.h>

static __global__ void internal(int *p)
{
	*p = 9;
}

void other_file(int *p)
{
	internal<<<1, 1>>>(p);
}
