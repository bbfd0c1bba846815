/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * busy.c - threads that do nothing but call cudaDeviceSetLimit, and write down when they did.
 *
 * 	busy THREADS LOG
 *
 * Each call's value is its number: the thread's, 0 and on, times 2^32, plus the call's. Every
 * 2000 calls a thread ends and another one goes on in its place. Prints "ready", ends at
 * SIGTERM, and writes LOG: for each thread the number of its calls, then a begin and an end for
 * each (CLOCK_MONOTONIC, ns), all as 64-bit words.
 */
#include <cuda_runtime_api.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALLS_MAX 4000000 /* of one thread */
#define CALLS_EACH 2000
#define THREADS_MAX 16

cudaError_t cudaDeviceSetLimit(int limit, size_t value);

struct span {
	uint64_t begin_ns, end_ns;
};

static struct span *spans[THREADS_MAX];
static uint64_t counts[THREADS_MAX];
static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void *some_calls(void *arg)
{
	uint64_t id = (uint64_t)(uintptr_t)arg;

	for (int i = 0; i < CALLS_EACH && !stop; i++) {
		struct span *s = &spans[id][counts[id]];

		s->begin_ns = now_ns();
		cudaDeviceSetLimit(0, id << 32 | counts[id]);
		s->end_ns = now_ns();
		counts[id]++;
		for (volatile int k = 0; k < 10000; k++)
			;
	}
	return NULL;
}

static void *go_on(void *arg)
{
	pthread_t t;

	while (!stop && counts[(uintptr_t)arg] + CALLS_EACH < CALLS_MAX) {
		if (pthread_create(&t, NULL, some_calls, arg))
			abort();
		pthread_join(t, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc == 3 ? atoi(argv[1]) : 0;
	pthread_t t[THREADS_MAX];
	FILE *log;

	if (n < 1 || n > THREADS_MAX)
		return 2;
	signal(SIGTERM, on_term);
	cudaSetDevice(0);
	for (int i = 0; i < n; i++)
		spans[i] = calloc(CALLS_MAX, sizeof(*spans[i]));
	for (int i = 0; i < n; i++)
		pthread_create(&t[i], NULL, go_on, (void *)(uintptr_t)i);
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	log = fopen(argv[2], "wbe");
	for (int i = 0; log && i < n; i++) {
		fwrite(&counts[i], sizeof(counts[i]), 1, log);
		fwrite(spans[i], sizeof(*spans[i]), counts[i], log);
	}
	return !log || fclose(log);
}
