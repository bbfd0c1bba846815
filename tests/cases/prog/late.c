/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * late.c - a program that is linked with nothing of CUDA: `late PATH N [PATH N...]` loads each
 * library when it is already running and calls its cudaStreamQuery N times at once. Prints the
 * last result of each.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		void *lib = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		int (*query)(void *) = lib ? (int (*)(void *))dlsym(lib, "cudaStreamQuery") : NULL;
		int result = -1;

		if (!query) {
			fprintf(stderr, "late: %s\n", dlerror());
			return 127;
		}
		for (long n = atol(argv[i + 1]); n > 0; n--)
			result = query(NULL);
		printf("result %d\n", result);
	}
	return 0;
}
