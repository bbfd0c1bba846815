/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * graphs.c - a CUDA graph that is captured once and replayed: graphs [N].
 *
 * Two launches are captured in the range "capture", the second one in "inner" too. The graph is
 * replayed N times in the range "step", and once outside of all ranges. With "wait" it replays once
 * more for each byte of stdin, and nothing is captured then.
 */
#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The toolkit has the library's functions, and no header for it. */
int nvtxRangePushA(const char *);
int nvtxRangePop(void);

static void kernel(void)
{
}

static void launch(unsigned int blocks)
{
	struct dim3 grid = { blocks, 1, 1 }, block = { 32, 1, 1 };

	cudaLaunchKernel((const void *)kernel, grid, block, NULL, 0, 0);
}

int main(int argc, char **argv)
{
	bool wait = argc > 1 && !strcmp(argv[1], "wait");
	int n = argc > 1 && !wait ? atoi(argv[1]) : 1;
	cudaGraphExec_t exec;
	cudaGraph_t graph = NULL;
	char c;

	cudaFree(0);
	nvtxRangePushA("capture");
	cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal);
	launch(1);
	nvtxRangePushA("inner");
	launch(2);
	nvtxRangePop();
	cudaStreamEndCapture(0, &graph);
	nvtxRangePop();
	if (!graph) /* of the stand-in */
		cudaGraphCreate(&graph, 0);
	cudaGraphInstantiate(&exec, graph, 0);
	if (wait) {
		puts("ready");
		fflush(stdout);
		while (read(0, &c, 1) == 1 && c != 'q')
			cudaGraphLaunch(exec, 0);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		nvtxRangePushA("step");
		cudaGraphLaunch(exec, 0);
		nvtxRangePop();
	}
	cudaGraphLaunch(exec, 0);
	cudaDeviceSynchronize();
	return 0;
}
