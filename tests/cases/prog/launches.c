/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launches.c - launches by the runtime and by the driver: first by the runtime alone, so that each
 * driver's launch is inside of one of the runtime's; then by both in turn; at last by the driver
 * alone, in the first thread and in one that never called the runtime.
 *
 * 	launches N
 *
 * N launches of each kind at each stage. Prints how many calls of each function it made itself.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const dim3 one = { 1, 1, 1 };
static CUfunction function;
static long runtime, driver;

static void stub(void)
{
}

static void by_runtime(void)
{
	if (cudaLaunchKernel((const void *)stub, one, one, NULL, 0, NULL))
		exit(9);
	runtime++;
}

static void by_driver(void)
{
	if (cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL))
		exit(9);
	driver++;
}

static void *launch(void *arg)
{
	for (long i = 0; i < *(long *)arg; i++)
		by_driver();
	return NULL;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 0;
	CUmodule module;
	pthread_t t;

	for (long i = 0; i < n; i++)
		by_runtime();
	if (cuModuleLoadData(&module, "code") ||
	    cuModuleGetFunction(&function, module, "_Z7vec_mulPfi"))
		return 9;
	for (long i = 0; i < n; i++) {
		by_runtime();
		by_driver();
	}
	launch(&n);
	pthread_create(&t, NULL, launch, &n);
	pthread_join(t, NULL);
	printf("cudaLaunchKernel %ld\ncuLaunchKernel %ld\n", runtime, driver);
	return 0;
}
