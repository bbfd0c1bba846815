/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sins.c - the target of the tests of advise: `sins good` does its work as one should, `sins
 * bad` as one should not. Built against the stand-in's headers.
 */
#include <cuda_runtime_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (1 << 20)
#define STEPS 40

static cudaKernel_t kernel;
static char host[BYTES];

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "sins: %s: error %d\n", what, err);
	exit(9);
}

static void launch(cudaStream_t stream)
{
	check(cudaLaunchKernel((const void *)kernel, (dim3){ 400, 1, 1 }, (dim3){ 256, 1, 1 }, NULL,
			       0, stream),
	      "launch");
}

__attribute__((noinline)) static void bad_step(void)
{
	void *device = NULL;
	cudaEvent_t event;

	check(cudaMalloc(&device, BYTES), "cudaMalloc");
	check(cudaEventCreate(&event), "event");
	check(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice), "copy");
	launch(NULL);
	check(cudaMemcpyAsync(host, device, 4, cudaMemcpyDeviceToHost, NULL), "read");
	check(cudaStreamSynchronize(NULL), "synchronize");
	check(cudaEventDestroy(event), "event");
	check(cudaFree(device), "cudaFree");
	__asm__ volatile("" ::: "memory");
}

/* For ever held; a kernel, and a wait for it. */
__attribute__((noinline)) static void forgetful_step(void)
{
	void *device = NULL;

	check(cudaMalloc(&device, 4096), "cudaMalloc");
	launch(NULL);
	check(cudaDeviceSynchronize(), "synchronize");
	__asm__ volatile("" ::: "memory");
}

static void bad(void)
{
	void *device = NULL;

	for (int i = 0; i < STEPS; i++) {
		bad_step();
		for (int k = 0; k < 3; k++)
			forgetful_step();
	}
	/* fails, and nobody asks */
	cudaMemsetAsync(NULL, 0, BYTES, NULL);
	launch(NULL);
	check(cudaMalloc(&device, BYTES), "cudaMalloc");
	for (int i = 0; i < 10; i++)
		check(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, NULL), "copy");
	check(cudaDeviceSynchronize(), "synchronize");
	check(cudaFree(device), "cudaFree");
}

static void good(void)
{
	void *device = NULL, *pinned = NULL;
	cudaStream_t stream;
	cudaEvent_t event;

	check(cudaMalloc(&device, BYTES), "cudaMalloc");
	check(cudaMallocHost(&pinned, BYTES), "cudaMallocHost");
	check(cudaStreamCreate(&stream), "stream");
	check(cudaEventCreate(&event), "event");
	/* few, so that a busy machine cannot make many of them long */
	for (int i = 0; i < 9; i++) {
		check(cudaMemcpyAsync(device, pinned, BYTES, cudaMemcpyHostToDevice, stream),
		      "copy");
		launch(stream);
		check(cudaEventRecord(event, stream), "event");
	}
	check(cudaMemcpyAsync(pinned, device, BYTES, cudaMemcpyDeviceToHost, stream), "copy");
	check(cudaStreamSynchronize(stream), "synchronize");
	check(cudaEventDestroy(event), "event");
	check(cudaStreamDestroy(stream), "stream");
	check(cudaFreeHost(pinned), "cudaFreeHost");
	check(cudaFree(device), "cudaFree");
}

int main(int argc, char **argv)
{
	cudaLibrary_t library;

	if (argc < 2)
		return 2;
	check(cudaLibraryLoadData(&library, "code", NULL, NULL, 0, NULL, NULL, 0), "library");
	check(cudaLibraryGetKernel(&kernel, library, "_Z7vec_mulPfi"), "kernel");
	if (!strcmp(argv[1], "bad"))
		bad();
	else
		good();
	return 0;
}
