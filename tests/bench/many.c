/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many.c - a busy machine: many processes of several names, each of which calls some twenty
 * functions of libcudart every second until stdin ends. Prints "ready" when all have made their
 * first calls.
 *
 *     many LIBRARY PROCESSES NAMES
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* Their arguments, as far as they have any, may be two pointers to the same, a size, and a number. */
static const char *const names[] = {
	"cudaDeviceGetAttribute",
	"cudaDeviceGetCacheConfig",
	"cudaDeviceGetLimit",
	"cudaDeviceGetStreamPriorityRange",
	"cudaDeviceSynchronize",
	"cudaDriverGetVersion",
	"cudaEventQuery",
	"cudaEventRecord",
	"cudaEventSynchronize",
	"cudaGetDevice",
	"cudaGetDeviceCount",
	"cudaGetDeviceFlags",
	"cudaGetLastError",
	"cudaMemGetInfo",
	"cudaMemcpy",
	"cudaMemcpyAsync",
	"cudaMemset",
	"cudaMemsetAsync",
	"cudaPeekAtLastError",
	"cudaRuntimeGetVersion",
	"cudaStreamGetFlags",
	"cudaStreamQuery",
	"cudaStreamSynchronize",
};
#define FUNCTIONS (sizeof(names) / sizeof(names[0]))
typedef int (*fn)(void *, void *, size_t, size_t, size_t, size_t);

static void work(fn *functions, int ready)
{
	static char room[4096];
	struct timespec second = { .tv_sec = 1 };
	int first = 1;

	for (;;) {
		for (size_t i = 0; i < FUNCTIONS; i++)
			if (functions[i])
				functions[i](room, room, 8, 1, 0, 0);
		if (first && write(ready, "", 1) != 1)
			_exit(1);
		first = 0;
		nanosleep(&second, NULL);
	}
}

int main(int argc, char **argv)
{
	int processes = argc > 3 ? atoi(argv[2]) : 0, kinds = argc > 3 ? atoi(argv[3]) : 0,
	    ready[2];
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	fn functions[FUNCTIONS];
	char c, name[16];

	if (!lib || processes < 1 || kinds < 1 || pipe(ready)) {
		fprintf(stderr, "usage: many LIBRARY PROCESSES NAMES\n");
		return 2;
	}
	for (size_t i = 0; i < FUNCTIONS; i++)
		functions[i] = (fn)dlsym(lib, names[i]);
	for (int i = 0; i < processes; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(name, sizeof(name), "kind%d", i % kinds);
		prctl(PR_SET_NAME, name);
		close(0);
		work(functions, ready[1]);
	}
	for (int i = 0; i < processes; i++)
		if (read(ready[0], &c, 1) != 1)
			return 1;
	printf("ready\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
