/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_loop.c - launches an empty kernel in a loop and prints what a launch takes: for the cost of
 * --gpu.
 *
 *         agent_loop launch LAUNCHES ROUNDS       prints "round N: X ns" for each round, in
 *                                                 which the device is synchronised at the end
 *                                                 only
 *         agent_loop graph REPLAYS NODES  replays a graph of so many kernels; prints "nodes N in
 *                                         S s"
 *
 * At its end it prints "kernels N": how many ran.
 */
#include <cuda_runtime_api.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char ptx[] =
	".version 6.3\n.target sm_52\n.address_size 64\n.visible .entry empty()\n{\n\tret;\n}\n";

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void check(cudaError_t err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "agent_loop: %s: %s\n", what, cudaGetErrorString(err));
	exit(1);
}

static cudaKernel_t kernel;

static void launch(cudaStream_t stream)
{
	check(cudaLaunchKernel((const void *)kernel, (dim3){ 1, 1, 1 }, (dim3){ 32, 1, 1 }, NULL, 0,
			       stream),
	      "launch");
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0, m = argc > 3 ? atol(argv[3]) : 0;
	cudaLibrary_t library;
	cudaStream_t stream;
	uint64_t begin;

	if (argc < 4)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	check(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), "library");
	check(cudaLibraryGetKernel(&kernel, library, "empty"), "kernel");
	check(cudaStreamCreate(&stream), "stream");
	if (!strcmp(argv[1], "launch")) {
		for (long r = 0; r < m; r++) {
			begin = now_ns();
			for (long i = 0; i < n; i++)
				launch(stream);
			printf("round %ld: %.0f ns\n", r, (double)(now_ns() - begin) / (double)n);
			check(cudaStreamSynchronize(stream), "synchronize");
		}
	} else {
		cudaGraph_t graph;
		cudaGraphExec_t exec;

		check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
		for (long i = 0; i < m; i++)
			launch(stream);
		check(cudaStreamEndCapture(stream, &graph), "end of capture");
		check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
		begin = now_ns();
		for (long i = 0; i < n; i++) {
			check(cudaGraphLaunch(exec, stream), "graph launch");
			if (i % 64 == 63)
				check(cudaStreamSynchronize(stream), "synchronize");
		}
		check(cudaStreamSynchronize(stream), "synchronize");
		printf("nodes %ld in %.2f s\n", n * m, (double)(now_ns() - begin) / 1e9);
	}
	printf("kernels %ld\n", n * m);
	return 0;
}
