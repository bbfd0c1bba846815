/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target.c - what the benchmarks trace: calls one function of libcudart in a tight loop and prints
 * the nanoseconds per call. On a machine without a driver real libcudart answers 35 after about 10
 * ns, which leaves the probe's own cost.
 *
 *     target LIBRARY FUNCTION CALLS [ROUNDS]
 *
 * Waits for a line on stdin before each round, so that a tracer can be put on and taken off
 * between rounds.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

struct dim {
	unsigned x, y, z;
};
typedef int (*launch_fn)(const void *, struct dim, struct dim, void **, size_t, void *);
typedef int (*six_fn)(void *, size_t, const void *, size_t, size_t, int);

int main(int argc, char **argv)
{
	void *lib, *fn, *args[1] = { NULL };
	long calls, rounds, i, r;
	struct dim one = { 1, 1, 1 };
	uint64_t start, value = 0;
	char line[16];

	if (argc < 4) {
		fprintf(stderr, "usage: target LIBRARY FUNCTION CALLS [ROUNDS]\n");
		return 2;
	}
	lib = dlopen(argv[1], RTLD_NOW);
	fn = lib ? dlsym(lib, argv[2]) : NULL;
	if (!fn) {
		fprintf(stderr, "target: %s\n", dlerror());
		return 1;
	}
	calls = atol(argv[3]);
	rounds = argc > 4 ? atol(argv[4]) : 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("pid %d\n", getpid());
	for (r = 0; r < rounds; r++) {
		if (argc > 4 && !fgets(line, sizeof(line), stdin))
			break;
		start = now_ns();
		if (!strcmp(argv[2], "cudaLaunchKernel"))
			for (i = 0; i < calls; i++)
				((launch_fn)fn)((void *)main, one, one, args, 0, NULL);
		else
			for (i = 0; i < calls; i++)
				((six_fn)fn)(&value, 8, args, 8, 8, 1);
		printf("%.1f\n", (double)(now_ns() - start) / calls);
	}
	return 0;
}
