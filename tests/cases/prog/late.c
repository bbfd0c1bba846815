/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * late.c - a program that is linked with nothing of CUDA: `late PATH N [PATH N...]` loads each
 * library when it is already running and calls its cudaStreamQuery N times at once. Prints the
 * last result of each. A PATH of "+" maps N MiB, as large libraries would; "o" the same, with a hole of
 * 100 MiB above. A PATH of "-" closes the library that was opened last, which must then be unmapped.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HOLE (100UL << 20)

/* In pieces, so that small holes are filled too. */
static void fill(long mib)
{
	for (long n = mib * 8; n > 0; n--)
		if (mmap(NULL, 128 << 10, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			 -1, 0) == MAP_FAILED)
			exit(1);
}

/* Returns whether nothing of the library is mapped any more. */
static bool is_closed(void *lib, const char *path)
{
	return lib && !dlclose(lib) && !dlopen(path, RTLD_NOW | RTLD_NOLOAD);
}

int main(int argc, char **argv)
{
	const char *path = NULL;
	void *lib = NULL;

	for (int i = 1; i + 1 < argc; i += 2) {
		int (*query)(void *) = NULL;
		int result = -1;

		if (!strcmp(argv[i], "+") || !strcmp(argv[i], "o")) {
			void *hole = argv[i][0] == 'o' ? mmap(NULL, HOLE, PROT_NONE,
							      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
						       : NULL;

			fill(atol(argv[i + 1]));
			if (hole)
				munmap(hole, HOLE);
			continue;
		}
		if (!strcmp(argv[i], "-")) {
			if (!is_closed(lib, path)) {
				fprintf(stderr, "late: %s is still there\n",
					path ? path : "nothing");
				return 1;
			}
			lib = NULL;
			continue;
		}
		path = argv[i];
		lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (lib)
			query = (int (*)(void *))dlsym(lib, "cudaStreamQuery");
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
