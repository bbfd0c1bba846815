/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crowded.c - a program in which something is mapped wherever the jump of a hook on a function of CUDA would land:
 * crowded. Each line of standard input makes 10 calls of cudaStreamQuery by the loader's slot, which is not bound before the first
 * one; after "pointer" they are made by a pointer that dlsym() gave out. Says how many it has made.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PIECE (64UL << 10)
#define MOST (3UL << 30)

/* All that is free above the libraries, but for 64 MiB below the stack. */
static void fill(uintptr_t from)
{
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0) - (64 << 20), end = from + MOST;

	for (uintptr_t at = from & ~(PIECE - 1); at < end && at < stack; at += PIECE)
		mmap((void *)at, PIECE, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	/* and page by page, where a piece has no room */
	for (uintptr_t at = from & ~4095UL; at < end && at < stack; at += 4096) {
		if (at % PIECE == 0 &&
		    mmap((void *)at, PIECE, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)at)
			at += PIECE - 4096;
		else
			mmap((void *)at, 4096, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			     0);
	}
}

int main(void)
{
	cudaError_t (*pointer)(cudaStream_t) = NULL;
	void *lib = dlopen("libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD);
	char line[64];
	int made = 0;

	if (!lib)
		return 1;
	pointer = (cudaError_t(*)(cudaStream_t))dlsym(lib, "cudaStreamQuery");
	fill((uintptr_t)pointer + (512UL << 20));
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < 10; i++, made++)
			if ((strcmp(line, "pointer\n") ? cudaStreamQuery(0) : pointer(0)) !=
			    cudaSuccess)
				return 2;
		printf("made %d\n", made);
		fflush(stdout);
	}
	return 0;
}
