/* SPDX-License-Identifier: BSD-2-Clause */
/* inner.c - a shared object with a static cudart of its own, as many plugins are. */
#include <cuda_runtime_api.h>

void inner_calls(long n);

__attribute__((visibility("default"))) void inner_calls(long n)
{
	for (long i = 0; i < n; i++)
		cudaStreamQuery(0);
}
