/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kinds.c - a target that makes calls of very many kinds: kinds N makes one cudaStreamQuery for
 * each of N streams that do not exist, and then a second one for each of the first ten.
 */
#include <cuda_runtime_api.h>

#include <stdint.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 0;

	for (long i = 0; i < n; i++)
		cudaStreamQuery((cudaStream_t)(uintptr_t)(4096 + 16 * i));
	for (long i = 0; i < n && i < 10; i++)
		cudaStreamQuery((cudaStream_t)(uintptr_t)(4096 + 16 * i));
	return 0;
}
