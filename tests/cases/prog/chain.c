/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chain.c - calls whose stacks are known: built at -O2 without frame pointers.
 *
 *     chain plain        main > outer > middle > inner > cudaMalloc
 *     chain deep N       main > down, N times > cudaMalloc
 *     chain back         main > by_library > qsort > compare > cudaMalloc
 *     chain thread       a thread: worker > inner > cudaMalloc
 *     chain big          main > roomy (an array of 64 KiB on the stack) > cudaMalloc
 *     chain often N      main > outer > middle > inner > cudaMalloc, N times
 *     chain lines        for each line of input: main > outer > middle > inner > cudaMalloc
 *     chain alone        the same in a thread, alone > outer, after the main thread has ended
 *     chain hang         main > outer > middle > inner > cudaMalloc, then main > wait_for_gpu >
 *                        cudaDeviceSynchronize
 */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline, noclone))

static volatile int never;

KEEP int inner(size_t n)
{
	void *p = NULL;
	int err = cudaMalloc(&p, n);

	return err + never; /* no tail call */
}

KEEP int middle(size_t n)
{
	char room[200];

	memset(room, never, sizeof(room));
	return inner(n) + room[n % sizeof(room)];
}

KEEP int outer(size_t n)
{
	return middle(n) + never;
}

KEEP int down(int n)
{
	return (n > 1 ? down(n - 1) : inner(64)) + never;
}

KEEP static int compare(const void *a, const void *b)
{
	static int once;

	if (!once++)
		inner(32);
	return *(const int *)a - *(const int *)b;
}

KEEP int by_library(void)
{
	int v[2] = { 2, 1 };

	qsort(v, 2, sizeof(*v), compare);
	return v[0] + never;
}

KEEP int roomy(void)
{
	volatile char room[65536];

	room[0] = (char)never;
	room[sizeof(room) - 1] = (char)never;
	return inner(16) + room[0];
}

static void *worker(void *arg)
{
	inner(48);
	return arg;
}

KEEP static void *alone(void *main_thread)
{
	char line[16];

	pthread_join(*(pthread_t *)main_thread, NULL);
	while (fgets(line, sizeof(line), stdin))
		outer(128);
	exit(0);
}

KEEP int wait_for_gpu(void)
{
	return cudaDeviceSynchronize() + never;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "plain";
	int n = argc > 2 ? atoi(argv[2]) : 1, err = 0;
	pthread_t t;

	if (!strcmp(mode, "plain")) {
		err = outer(128);
	} else if (!strcmp(mode, "deep")) {
		err = down(n);
	} else if (!strcmp(mode, "back")) {
		by_library();
	} else if (!strcmp(mode, "thread")) {
		pthread_create(&t, NULL, worker, NULL);
		pthread_join(t, NULL);
	} else if (!strcmp(mode, "big")) {
		err = roomy();
	} else if (!strcmp(mode, "often")) {
		for (int i = 0; i < n; i++)
			err |= outer(128);
	} else if (!strcmp(mode, "lines")) {
		char line[16];

		while (fgets(line, sizeof(line), stdin))
			err |= outer(128);
	} else if (!strcmp(mode, "alone")) {
		static pthread_t self;

		self = pthread_self();
		if (!pthread_create(&t, NULL, alone, &self))
			pthread_exit(NULL);
		err = 1;
	} else if (!strcmp(mode, "hang")) {
		err = outer(128);
		err |= wait_for_gpu();
	}
	return err + never;
}
