/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * planted.c - a loop that gives a device work, with one cause planted that keeps it waiting, like planted.py:
 *
 *	planted CAUSE SECONDS
 *
 * compute: a function; pipe: a child that sleeps; lock: a thread that sleeps holds a mutex; sleep; alloc: allocations that take
 * long (STANDIN_DELAY_US); thread: a new thread that computes. steps: two kernels in each step, and a sleep of 2 ms; each 20th step waits for a pipe, too, into which
 * a child writes after 100 ms.
 */
#include <cuda_runtime_api.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int ends[2], asks[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sum;

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static __attribute__((noinline)) void plant_compute(void)
{
	for (unsigned long i = 0; i < 4000000; i++)
		sum += i;
}

static void *compute(void *arg)
{
	plant_compute();
	return arg;
}

static void nap(void)
{
	usleep(4000);
}

static void kernel(void)
{
}

static void step(int pipe_in)
{
	static long n;
	dim3 one = { 1, 1, 1 };
	cudaLaunchConfig_t config = { .gridDim = one, .blockDim = one };
	char byte;

	/* by two functions, so that a step is no single call */
	cudaLaunchKernel((const void *)kernel, one, one, NULL, 0, NULL);
	cudaLaunchKernelExC(&config, (const void *)kernel, NULL);
	if (++n % 20 == 0 && (write(asks[1], "x", 1) != 1 || read(pipe_in, &byte, 1) != 1))
		exit(9);
	usleep(2000);
}

static void *hold(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&mutex);
		nap();
		pthread_mutex_unlock(&mutex);
		usleep(100);
	}
	return arg;
}

int main(int argc, char **argv)
{
	const char *cause = argc > 2 ? argv[1] : "";
	double until = now(CLOCK_MONOTONIC) + (argc > 2 ? atof(argv[2]) : 0);
	pthread_t holder;
	void *memory, *more;
	char byte;

	if (cudaMalloc(&memory, 4096) || pipe(ends))
		return 9;
	if (!strcmp(cause, "pipe") && !fork()) {
		close(ends[0]);
		for (;;) {
			nap();
			if (write(ends[1], "x", 1) != 1)
				_exit(0);
		}
	}
	if (!strcmp(cause, "steps") && !pipe(asks) && !fork()) {
		close(asks[1]);
		while (read(asks[0], &byte, 1) == 1) {
			usleep(100000);
			if (write(ends[1], "x", 1) != 1)
				break;
		}
		_exit(0);
	}
	close(ends[1]);
	if (!strcmp(cause, "lock") && pthread_create(&holder, NULL, hold, NULL))
		return 9;
	while (now(CLOCK_MONOTONIC) < until) {
		if (!strcmp(cause, "compute"))
			plant_compute();
		else if (!strcmp(cause, "pipe") && read(ends[0], &byte, 1) != 1)
			return 9;
		else if (!strcmp(cause, "lock")) {
			pthread_mutex_lock(&mutex);
			pthread_mutex_unlock(&mutex);
		} else if (!strcmp(cause, "sleep"))
			nap();
		else if (!strcmp(cause, "alloc") && (cudaMalloc(&more, 4096) || cudaFree(more)))
			return 9;
		if (!strcmp(cause, "thread") &&
		    (pthread_create(&holder, NULL, compute, NULL) || pthread_join(holder, NULL)))
			return 9;
		if (!strcmp(cause, "steps")) {
			step(ends[0]);
			continue;
		}
		if (cudaMemsetAsync(memory, 0, 4096, NULL))
			return 9;
	}
	return 0;
}
