/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work.c - the target of the tests about the device: gives it kernels, copies and sets, and ends in
 * one of many ways.
 *
 * 	work [-t THREADS] [-p PAUSE_MS] [-s] [-n] ROUNDS END
 *
 * A round is one launch of `vec_mul`, one copy to the device, one set; -s: in a stream of each
 * thread's own. -n: all in an NVTX range (as the stand-in has them: tests/standin/cupti.c). Each
 * thread makes ROUNDS of them, and pauses in between. END: return, exit, _exit, kill (SIGKILL to
 * itself), abort, fork (the child makes calls and returns), fork-exec (the child becomes this
 * program with ROUNDS and "return"), exec, reset (cudaDeviceReset first), unload (first loads a
 * library, launches its only kernel and unloads it, 300 times, each with a kernel of another
 * name), wait (for a line on stdin), loop (for ever), idle (sleeps for ever, with words on its
 * stack that calls to malloc left there). Prints "launched N" when the rounds are done. Built
 * against the stand-in's headers.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../unit/prog/litter.h"

cudaError_t cudaDeviceReset(void);

#define BYTES 4096

static long rounds, pause_ms;
static int streams;
static cudaKernel_t kernel;
static char host[BYTES];

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "work: %s: error %d\n", what, err);
	_exit(9);
}

static void *work(void *arg)
{
	cudaStream_t stream = NULL;
	void *device = NULL;

	(void)arg;
	check(cudaMalloc(&device, BYTES), "cudaMalloc");
	if (streams)
		check(cudaStreamCreate(&stream), "cudaStreamCreate");
	for (long i = 0; i < rounds || rounds < 0; i++) {
		check(cudaLaunchKernel((const void *)kernel, (dim3){ 4, 2, 1 }, (dim3){ 128, 1, 1 },
				       NULL, 64, stream),
		      "launch");
		check(cudaMemcpyAsync(device, host, BYTES, cudaMemcpyHostToDevice, stream), "copy");
		check(cudaMemsetAsync(device, 7, BYTES / 2, stream), "set");
		if (pause_ms)
			usleep((useconds_t)pause_ms * 1000);
	}
	check(cudaStreamSynchronize(stream), "synchronize");
	return NULL;
}

/* The names of kernels that are gone lie where those of the next ones are put. */
static void unload(void)
{
	for (int i = 0; i < 300; i++) {
		cudaLibrary_t library;
		cudaKernel_t one;
		char name[16];

		snprintf(name, sizeof(name), "_Z7one_%03dPfi", i);
		check(cudaLibraryLoadData(&library, "code", NULL, NULL, 0, NULL, NULL, 0),
		      "library");
		check(cudaLibraryGetKernel(&one, library, name), "kernel");
		check(cudaLaunchKernel((const void *)one, (dim3){ 1, 1, 1 }, (dim3){ 32, 1, 1 },
				       NULL, 0, NULL),
		      "launch");
		check(cudaLibraryUnload(library), "unload");
	}
}

static void (*nvtx_range)(const char *text);

static void take_range(void (*fn)(const char *))
{
	nvtx_range = fn;
}

static void start_nvtx(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *lib = path ? dlopen(path, RTLD_NOW) : NULL;
	int (*start)(void *) = lib ? (int (*)(void *))dlsym(lib, "InitializeInjectionNvtx2") : NULL;

	if (start)
		start((void *)take_range);
}

static void __attribute__((noinline)) idle(void)
{
	volatile char room[32768];

	for (room[0] = 1; room[0];)
		usleep(500000000);
}

static void end(const char *how, char **argv)
{
	char line[8];
	pid_t pid;

	if (!strcmp(how, "return"))
		return;
	if (!strcmp(how, "exit"))
		exit(3);
	if (!strcmp(how, "_exit"))
		_exit(4);
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "reset"))
		check(cudaDeviceReset(), "cudaDeviceReset");
	if (!strcmp(how, "unload"))
		unload();
	if (!strcmp(how, "wait") && !fgets(line, sizeof(line), stdin))
		exit(0);
	if (!strcmp(how, "idle")) {
		litter(60);
		idle();
	}
	if (!strcmp(how, "exec"))
		execl(argv[0], argv[0], "5", "return", NULL);
	if (strncmp(how, "fork", 4))
		return;
	pid = fork();
	if (!pid) {
		if (!strcmp(how, "fork-exec"))
			execl(argv[0], argv[0], "5", "return", NULL);
		/* of CUDA nothing can be expected here, of the agent that it does nothing */
		cudaGetLastError();
		exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	long nthreads = 1;
	cudaLibrary_t library;
	int opt;

	while ((opt = getopt(argc, argv, "+t:p:sn")) > 0) {
		if (opt == 't')
			nthreads = atol(optarg);
		else if (opt == 'p')
			pause_ms = atol(optarg);
		else if (opt == 's')
			streams = 1;
		else if (opt == 'n')
			start_nvtx();
		else
			return 2;
	}
	if (argc - optind < 2 || nthreads < 1 || nthreads > 64)
		return 2;
	rounds = atol(argv[optind]);
	check(cudaSetDevice(0), "cudaSetDevice");
	check(cudaLibraryLoadData(&library, "code", NULL, NULL, 0, NULL, NULL, 0), "library");
	check(cudaLibraryGetKernel(&kernel, library, "_Z7vec_mulPfi"), "kernel");
	if (nvtx_range)
		nvtx_range("all rounds");
	for (long i = 0; i < nthreads; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			abort();
	for (long i = 0; i < nthreads; i++)
		pthread_join(threads[i], NULL);
	if (nvtx_range)
		nvtx_range(NULL);
	printf("launched %ld\n", rounds * nthreads);
	fflush(stdout);
	end(argv[optind + 1], argv);
	return 0;
}
