/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loads.c - how long a program waits that loads libraries: loads LIBRARY... prints the mean of all, in
 * microseconds, and the longest one. It waits before, until a tracer has nothing else to do.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	double all = 0, longest = 0;

	usleep(1200000);
	for (int i = 1; i < argc; i++) {
		double took, began = now_us();

		if (!dlopen(argv[i], RTLD_NOW)) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		took = now_us() - began;
		all += took;
		longest = took > longest ? took : longest;
	}
	printf("%.1f %.1f\n", all / (argc > 1 ? argc - 1 : 1), longest);
	return 0;
}
