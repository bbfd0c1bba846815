/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mute.c - makes the governor mute cudaGetDevice while other threads are inside of other calls, and
 * says how many of those there were.
 *
 *     mute MILLISECONDS	or until SIGTERM
 *     mute inside N		a query of the runtime that makes one of the driver N times, and that of the
 *				driver by itself a third as often
 *     mute turns		reads letters: with `a` one thread calls cudaGetDevice 60000 times, with `b` another one
 *				does 1000 times; each says when it has done so
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

static volatile int stop;
static long counts[2], allocations, devices;

static void end(int signal)
{
	(void)signal;
	stop = 1;
}

static void *count_devices(void *arg)
{
	long *calls = arg;
	int n;

	while (!stop) {
		cudaGetDeviceCount(&n);
		++*calls;
	}
	return NULL;
}

static void *allocate(void *arg)
{
	void *p;

	while (!stop) {
		cudaMalloc(&p, 64);
		cudaFree(p);
		allocations++;
		usleep(100);
	}
	return arg;
}

static void *ask_device(void *arg)
{
	int device;

	while (!stop) {
		cudaGetDevice(&device);
		devices++;
	}
	return arg;
}

static int inside(int n)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*attribute)(int *, int, int) =
		driver ? (int (*)(int *, int, int))dlsym(driver, "cuDeviceGetAttribute") : NULL;
	int value;

	if (!attribute)
		return 3;
	for (int i = 0; i < n; i++) {
		cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0);
		if (i % 3 == 0)
			attribute(&value, 10 /* the size of a warp */, 0);
	}
	printf("cudaDeviceGetAttribute %d\ncuDeviceGetAttribute %d\n", n, (n + 2) / 3);
	return 0;
}

static struct turn {
	int letter, calls, wake[2];
} turn[] = { { .letter = 'a', .calls = 60000 }, { .letter = 'b', .calls = 1000 } };

static void *take_turns(void *arg)
{
	struct turn *t = arg;
	int device;
	char c;

	while (read(t->wake[0], &c, 1) == 1) {
		for (int i = 0; i < t->calls; i++)
			cudaGetDevice(&device);
		printf("did %c\n", t->letter);
		fflush(stdout);
	}
	return NULL;
}

static int turns(void)
{
	pthread_t t;
	char c;

	for (int i = 0; i < 2; i++)
		if (pipe(turn[i].wake) || pthread_create(&t, NULL, take_turns, &turn[i]))
			return 3;
	while (read(0, &c, 1) == 1)
		for (int i = 0; i < 2; i++)
			if (c == turn[i].letter && write(turn[i].wake[1], &c, 1) != 1)
				return 3;
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t[4];

	if (argc == 3 && !strcmp(argv[1], "inside"))
		return inside(atoi(argv[2]));

	if (argc == 2 && !strcmp(argv[1], "turns"))
		return turns();
	if (argc != 2)
		return 2;
	signal(SIGTERM, end);
	pthread_create(&t[0], NULL, count_devices, &counts[0]);
	pthread_create(&t[1], NULL, count_devices, &counts[1]);
	pthread_create(&t[2], NULL, allocate, NULL);
	usleep(200000);
	pthread_create(&t[3], NULL, ask_device, NULL);
	for (int ms = atoi(argv[1]); ms > 0 && !stop; ms -= 10)
		usleep(10000);
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("cudaGetDeviceCount %ld\ncudaMalloc %ld\n", counts[0] + counts[1], allocations);
	return 0;
}
