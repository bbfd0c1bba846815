/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nests.c - a query that makes the governor act, and a driver's query inside of it. Needs no
 * library: it has these functions itself.
 *
 * 	nests slow|direct MILLISECONDS
 *
 * One thread calls cudaGetDevice as often as it can, and cudaDeviceSynchronize, whose calls are
 * all counted, after each fifty. slow: others call it too, and are in it for 30 ms before it
 * calls cuCtxGetDevice, which the program never calls itself. direct: the first thread calls
 * cuCtxGetDevice itself too. Prints the number of calls that the program made of each.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLOW 4
#define SLEEP 77 /* *device: sleep first */

int cuCtxGetDevice(int *device);
int cudaGetDevice(int *device);
int cudaDeviceSynchronize(void);

static volatile int stop, direct;
static long queries, contexts, slow[SLOW];

/* Built with frame pointers: functions that begin with a push cost a probe as little as CUDA's do. */
__attribute__((noinline)) int cuCtxGetDevice(int *device)
{
	for (volatile int i = 0; i < 30; i++)
		;
	*device = 0;
	return 0;
}

__attribute__((noinline)) int cudaGetDevice(int *device)
{
	int err;

	if (*device == SLEEP)
		usleep(30000);
	err = cuCtxGetDevice(device);
	__asm__ volatile("" ::: "memory");
	return err;
}

__attribute__((noinline)) int cudaDeviceSynchronize(void)
{
	__asm__ volatile("" ::: "memory");
	return 0;
}

static void *ask_slowly(void *arg)
{
	long *calls = arg;

	while (!stop) {
		int device = SLEEP;

		cudaGetDevice(&device);
		++*calls;
	}
	return NULL;
}

static void *ask(void *arg)
{
	while (!stop) {
		int device = 0;

		cudaGetDevice(&device);
		if (!(++queries % 50))
			cudaDeviceSynchronize();
		if (direct) {
			cuCtxGetDevice(&device);
			contexts++;
		}
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[SLOW + 1];
	int n = 0;

	if (argc != 3)
		return 2;
	direct = !strcmp(argv[1], "direct");
	pthread_create(&t[n++], NULL, ask, NULL);
	while (!direct && n <= SLOW) {
		pthread_create(&t[n], NULL, ask_slowly, &slow[n - 1]);
		n++;
	}
	usleep(atoi(argv[2]) * 1000);
	stop = 1;
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < SLOW; i++)
		queries += slow[i];
	printf("cudaGetDevice %ld\ncuCtxGetDevice %ld\n", queries, contexts);
	return 0;
}
