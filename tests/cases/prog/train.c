/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * train.c - steps as a training loop makes them: launches, records of events and asynchronous
 * memsets, some allocations, and a wait at the end.
 *
 *	train [-b] STEPS LAUNCHES PAUSE_US
 *
 * A step makes LAUNCHES launches, as many records, a fifth as many memsets of 256 bytes; takes and
 * gives back 1000 bytes four times, and waits for the device. A launch in ten is followed by
 * PAUSE_US of sleep, or, -b, of work: 0 leaves the steps busy. STEPS 0: until SIGTERM. The last
 * call of each tenth step fails. Prints how many calls of each function it made.
 */
#include <cuda_runtime_api.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const dim3 grid = { 4, 1, 1 }, block = { 64, 1, 1 };
static volatile sig_atomic_t ended;
static int works; /* in its pauses */
static long launches, records, sets, allocations, waits, failures;

static void stub(void)
{
}

static void end(int sig)
{
	(void)sig;
	ended = 1;
}

static void take_and_give(void)
{
	void *p;

	for (int i = 0; i < 4; i++) {
		if (cudaMalloc(&p, 1000) || cudaFree(p))
			exit(9);
		allocations++;
	}
}

static uint64_t cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void rest(useconds_t us)
{
	uint64_t until = cpu_us() + us;

	if (!works)
		usleep(us);
	while (works && cpu_us() < until)
		;
}

static void step(long n, useconds_t pause_us, cudaEvent_t event, void *memory)
{
	for (long i = 0; i < n; i++) {
		if (cudaLaunchKernel((const void *)stub, grid, block, NULL, 0, NULL) ||
		    cudaEventRecord(event, NULL))
			exit(9);
		launches++;
		records++;
		if (i % 5 == 0) {
			if (cudaMemsetAsync(memory, 0, 256, NULL))
				exit(9);
			sets++;
		}
		if (pause_us && i % 10 == 0)
			rest(pause_us);
	}
	take_and_give();
	if (cudaDeviceSynchronize())
		exit(9);
	waits++;
}

int main(int argc, char **argv)
{
	long steps, n;
	useconds_t pause_us;
	cudaEvent_t event;
	void *memory;

	works = argc > 1 && !strcmp(argv[1], "-b");
	argv += works;
	if (argc - works != 4)
		return 2;
	steps = atol(argv[1]);
	n = atol(argv[2]);
	pause_us = (useconds_t)atol(argv[3]);
	signal(SIGTERM, end);
	if (cudaMalloc(&memory, 4096) || cudaEventCreate(&event))
		return 9;
	allocations++;
	for (long i = 0; (!steps || i < steps) && !ended; i++) {
		step(n, pause_us, event, memory);
		if (i % 10 == 9) {
			cudaSetDevice(4096);
			failures++;
		}
	}
	printf("cudaLaunchKernel %ld\ncudaEventRecord %ld\ncudaMemsetAsync %ld\n", launches,
	       records, sets);
	printf("cudaMalloc %ld\ncudaFree %ld\ncudaDeviceSynchronize %ld\ncudaSetDevice %ld\n",
	       allocations, allocations - 1, waits, failures);
	return 0;
}
