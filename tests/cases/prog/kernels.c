/* SPDX-License-Identifier: BSD-2-Clause */
/* kernels.c - kernels N [wait]: looks up N kernels of names of its own and launches each once by
 * the driver; with wait, says "launched", and ends when it is told a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	CUmodule module;
	CUfunction f;
	char name[64];

	if (cuInit(0) || cuModuleLoadData(&module, "x"))
		return 1;
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "kernel_of_its_own_%d", i);
		if (cuModuleGetFunction(&f, module, name) ||
		    cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL))
			return 1;
	}
	if (argc > 2) {
		puts("launched");
		fflush(stdout);
		getchar();
	}
	return 0;
}
