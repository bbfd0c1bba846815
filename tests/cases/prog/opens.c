/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opens.c - threads that load libraries at the same time: `opens THREADS COMMUNICATORS LIBRARY...`. Each
 * thread takes every THREADS-th library, loads it and calls its cudaStreamQuery at once. With
 * COMMUNICATORS 1, one more thread makes communicators of NCCL meanwhile. Prints how many of them it made.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct comm;
struct unique {
	char bytes[128];
};
int ncclGetUniqueId(struct unique *id);
int ncclCommInitRank(struct comm **comm, int n, struct unique id, int rank);

static char **libraries;
static int count, threads, failed;
static bool ended;

static void *loads(void *first)
{
	unsigned int seed = (unsigned int)(size_t)first;

	for (int i = (int)(size_t)first; i < count; i += threads) {
		void *lib = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
		int (*query)(void *) = lib ? (int (*)(void *))dlsym(lib, "cudaStreamQuery") : NULL;

		if (!query || query(NULL))
			__atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
		usleep((unsigned int)rand_r(&seed) % 3000);
	}
	return NULL;
}

static void *communicates(void *made)
{
	struct unique id;
	struct comm *comm;

	ncclGetUniqueId(&id);
	while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
		if (!ncclCommInitRank(&comm, 1, id, 0))
			++*(int *)made;
		usleep(200);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[16], other;
	bool with = argc > 3 && atoi(argv[2]);
	int made = 0;

	threads = argc > 3 ? atoi(argv[1]) : 0;
	if (threads < 1 || threads > 16)
		return 2;
	libraries = argv + 3;
	count = argc - 3;
	if (with && pthread_create(&other, NULL, communicates, &made))
		return 1;
	for (size_t i = 0; i < (size_t)threads; i++)
		if (pthread_create(&thread[i], NULL, loads, (void *)i))
			return 1;
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
	if (with)
		pthread_join(other, NULL);
	printf("communicators %d\n", made);
	return failed;
}
