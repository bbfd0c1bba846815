/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dozens.c - loads libraries that contain a runtime, as most large libraries of CUDA do, and the runtime's own library;
 * then makes 10 calls with that. "last": it is loaded last. "first": it is loaded first, so that in the order of addresses
 * it comes after the others, which the kernel maps below it; and a line is waited for before the calls.
 * dozens last|first LIBRARY...
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	int (*cuda_malloc)(void **, size_t);
	void *runtime = NULL, *p;
	bool first = argc > 1 && !strcmp(argv[1], "first");

	if (first)
		runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
	for (int i = 2; i < argc; i++)
		if (!dlopen(argv[i], RTLD_NOW | RTLD_LOCAL)) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
	if (!first)
		runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
	cuda_malloc = runtime ? (int (*)(void **, size_t))dlsym(runtime, "cudaMalloc") : NULL;
	if (!cuda_malloc) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	printf("loaded\n");
	fflush(stdout);
	if (first)
		getchar();
	for (int i = 0; i < 10; i++)
		if (cuda_malloc(&p, 64))
			return 1;
	return 0;
}
