/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * step.c - makes the calls of a training step as PyTorch's do it (by the thousand: queries; by the
 * hundred: launches), again and again, and says how many there were of each.
 *
 *     step MILLISECONDS [STEP-MICROSECONDS]
 *
 * A step takes STEP-MICROSECONDS (11000) without a tracer: the host computes between the calls.
 * Prints the number of calls of each function, and, as `median`, the microseconds of the median
 * step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cuda_runtime_api.h>

#define LAUNCHES 570
#define STEPS_MAX 100000

static long devices, errors, launches, copies, steps;
static double took[STEPS_MAX];
static char host[64];
static void *device;

static void kernel(void)
{
}

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* Work of the host, by what it takes without a tracer. */
static void compute(long turns)
{
	volatile long n = 0;

	while (n < turns)
		n++;
}

/* Around each launch 8 times cudaGetDevice, and once cudaGetLastError; at the end of a step a copy. */
static void step(long turns)
{
	dim3 one = { 1, 1, 1 };
	int n;

	for (int i = 0; i < LAUNCHES; i++) {
		for (int k = 0; k < 8; k++) {
			cudaGetDevice(&n);
			devices++;
			compute(turns);
		}
		cudaLaunchKernel((const void *)kernel, one, one, NULL, 0, NULL);
		launches++;
		cudaGetLastError();
		errors++;
		compute(turns);
	}
	cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice);
	copies++;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	double begin, end, want = argc > 2 ? atof(argv[2]) : 11000;
	long turns;

	if (argc < 2)
		return 2;
	cudaMalloc(&device, sizeof(host));
	begin = now_us();
	compute(20000000);
	turns = (long)(20000000 / (now_us() - begin) * want / (LAUNCHES * 9));
	end = now_us() + atof(argv[1]) * 1e3;
	while (now_us() < end && steps < STEPS_MAX) {
		begin = now_us();
		step(turns);
		took[steps++] = now_us() - begin;
	}
	qsort(took, (size_t)steps, sizeof(*took), by_size);
	printf("cudaGetDevice %ld\ncudaGetLastError %ld\ncudaLaunchKernel %ld\ncudaMemcpy "
	       "%ld\nmedian %.0f\n",
	       devices, errors, launches, copies, took[steps / 2]);
	return 0;
}
