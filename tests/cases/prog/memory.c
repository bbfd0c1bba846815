/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.c - the target of the tests of `cudatrace mem`: takes and frees known amounts, and prints
 * nothing (`many`: where it is).
 *
 * 	memory [-w] MODE
 *
 * Modes: leak, many, threads, fork, exec, faults, pool, virtual, oom, reuse, swap, again, reset,
 * host, arrays, driver, streams. -w: takes 4096 bytes first, prints "ready", waits for a line on stdin,
 * and frees them: for a tracer that comes late. Built against the stand-in's headers; what the
 * stand-in has no code for returns success and leaves its outputs as they were given.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

cudaError_t cudaDeviceReset(void);
cudaError_t cudaFreeHost(void *);
cudaError_t cudaHostRegister(void *, size_t, unsigned int);
cudaError_t cudaHostUnregister(void *);
cudaError_t cudaMallocArray(void **array, const int *desc, size_t width, size_t height,
			    unsigned int flags);
cudaError_t cudaFreeArray(void *);
cudaError_t cudaGraphAddMemAllocNode(void **node, void *graph, void *const *deps, size_t n,
				     void *params);
CUresult cuMemCreate(unsigned long long *handle, size_t size, const void *prop,
		     unsigned long long flags);
CUresult cuMemRelease(unsigned long long handle);
CUresult cuMemAddressReserve(unsigned long long *p, size_t size, size_t align,
			     unsigned long long at, unsigned long long flags);
CUresult cuMemAddressFree(unsigned long long p, size_t size);
CUresult cuMemMap(unsigned long long p, size_t size, size_t off, unsigned long long handle,
		  unsigned long long flags);
CUresult cuMemUnmap(unsigned long long p, size_t size);

#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noinline, noclone))
#endif
#define NOT_A_TAIL __asm__ volatile("" ::: "memory")

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "memory: %s: error %d\n", what, err);
	_exit(9);
}

/* 96 streams, of which every fourth is destroyed. */
static void streams(void)
{
	cudaStream_t stream;

	for (int i = 0; i < 96; i++) {
		must(cudaStreamCreate(&stream), "cudaStreamCreate");
		if (i % 4 == 3)
			must(cudaStreamDestroy(stream), "cudaStreamDestroy");
		usleep(5000);
	}
}

KEEP void *take(size_t n)
{
	void *p = NULL;

	must(cudaMalloc(&p, n), "cudaMalloc");
	NOT_A_TAIL;
	return p;
}

KEEP void lose(size_t n)
{
	take(n);
	NOT_A_TAIL;
}

KEEP void leak(void)
{
	for (int i = 0; i < 10; i++)
		must(cudaFree(take(1000)), "cudaFree");
	for (size_t i = 1; i <= 2; i++)
		lose(i << 20);
	take(100);
	NOT_A_TAIL;
}

/* Says where it is, and waits for a line, or for the end of stdin. */
static void stop_at(const char *what)
{
	char line[8];

	printf("%s\n", what);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return;
}

#define MANY 500
static void many(void)
{
	void *all[MANY];

	for (int i = 0; i < MANY; i++)
		all[i] = take(10);
	stop_at("taken");
	for (int i = 0; i < MANY; i++)
		must(cudaFree(all[i]), "cudaFree");
	take(10);
	stop_at("freed");
}

/* ---- threads: each takes 50, frees half; the rest is freed by another one, but for one in ten ---- */

#define THREADS 8
#define EACH 50
static void *held[THREADS][EACH];

static void *taker(void *arg)
{
	void **mine = arg;

	for (int i = 0; i < EACH; i++)
		mine[i] = take(1024);
	for (int i = 0; i < EACH; i += 2) {
		must(cudaFree(mine[i]), "cudaFree");
		mine[i] = NULL;
	}
	return NULL;
}

static void *freer(void *arg)
{
	void **others = arg;

	for (int i = 0; i < EACH; i++)
		if (others[i] && i % 10 != 1)
			must(cudaFree(others[i]), "cudaFree");
	return NULL;
}

static void in_threads(void *(*f)(void *))
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, f, held[(i + (f == freer)) % THREADS]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static void threads(void)
{
	in_threads(taker);
	in_threads(freer);
}

/* ---- the rest ---- */

static void forks(char **argv, int with_exec)
{
	pid_t pid;

	lose(1000);
	pid = fork();
	if (!pid) {
		lose(300);
		if (with_exec)
			execl("/proc/self/exe", argv[0], "leak", NULL);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void faults(void)
{
	void *p = take(500), *host = NULL;

	must(cudaFree(p), "cudaFree");
	for (int i = 0; i < 2; i++)
		cudaFree(p);
	cudaFree((void *)0x1234000);
	must(cudaMallocHost(&host, 4096), "cudaMallocHost");
	cudaFree(host);
	must(cudaFreeHost(host), "cudaFreeHost");
	cudaFree(NULL);
}

static void pool(void)
{
	void *p = NULL, *q = NULL, *m = NULL;
	cudaStream_t stream;

	must(cudaStreamCreate(&stream), "cudaStreamCreate");
	must(cudaMallocAsync(&p, 1000, stream), "cudaMallocAsync");
	must(cudaMallocAsync(&q, 2000, stream), "cudaMallocAsync");
	must(cudaMallocManaged(&m, 500, 1), "cudaMallocManaged");
	must(cudaFreeAsync(p, stream), "cudaFreeAsync");
}

static void virtual(void)
{
	uint32_t prop[8] = { 1, 0, 1, 1 };
	unsigned long long base = 0x7000000000ULL, handle;

	must(cuMemAddressReserve(&base, 64 << 20, 0, 0, 0), "reserve");
	for (unsigned int i = 0; i < 4; i++) {
		/* the same number each time: the memory behind it is still mapped */
		handle = 0x5000;
		must(cuMemCreate(&handle, 2 << 20, prop, 0), "create");
		must(cuMemMap(base + i * (2ULL << 20), 2 << 20, 0, handle, 0), "map");
		must(cuMemRelease(handle), "release");
	}
	must(cuMemUnmap(base, 3 * (2UL << 20)), "unmap");
}

static void oom(void)
{
	void *p;

	lose(3000);
	take(1000);
	if (cudaMalloc(&p, 1ULL << 50) != 2)
		_exit(8);
}

static void reuse(void)
{
	for (int i = 0; i < 100; i++)
		must(cudaFree(take(100)), "cudaFree");
}

static void reset(void)
{
	lose(1 << 20);
	must(cudaDeviceReset(), "cudaDeviceReset");
	lose(100);
}

static void host(void)
{
	static char mine[8192];
	void *p = NULL, *q = NULL;

	must(cudaMallocHost(&p, 10000), "cudaMallocHost");
	must(cudaMallocHost(&q, 20000), "cudaMallocHost");
	must(cudaHostRegister(mine, sizeof(mine), 0), "cudaHostRegister");
	must(cudaHostUnregister(mine), "cudaHostUnregister");
	must(cudaFreeHost(p), "cudaFreeHost");
}

static void arrays(void)
{
	static const int floats[5] = { 32, 0, 0, 0, 2 };
	void *a = (void *)0xa000, *b = (void *)0xb000, *node = NULL, *pitched = NULL;
	uint64_t params[15] = { 0 };
	size_t pitch;

	must(cudaMallocArray(&a, floats, 64, 64, 0), "cudaMallocArray");
	must(cudaMallocArray(&b, floats, 100, 0, 0), "cudaMallocArray");
	must(cudaFreeArray(a), "cudaFreeArray");
	must(cudaMallocPitch(&pitched, &pitch, 100, 10), "cudaMallocPitch");
	params[13] = 7777;
	params[14] = 0xd000;
	must(cudaGraphAddMemAllocNode(&node, NULL, NULL, 0, params), "cudaGraphAddMemAllocNode");
}

static void driver(void)
{
	CUdeviceptr p, q;

	must(cuMemAlloc_v2(&p, 1000), "cuMemAlloc");
	must(cuMemAlloc_v2(&q, 2000), "cuMemAlloc");
	must(cuMemFree_v2(p), "cuMemFree");
	lose(10);
}

/* A thread is given the address that another one is still freeing, STANDIN_REUSE times; all is
 * freed. */

static void *swapped;
static int swaps;

static void *swapper(void *arg)
{
	size_t before = *(size_t *)arg, now = before, total;

	while (now == before)
		must(cudaMemGetInfo(&now, &total), "cudaMemGetInfo");
	for (int i = 1; i <= swaps; i++) {
		must(take(500) != swapped, "another address");
		if (i < swaps)
			must(cudaFree(swapped), "cudaFree");
	}
	return NULL;
}

static void swap(void)
{
	const char *times = getenv("STANDIN_REUSE");
	size_t before, total;
	pthread_t t;

	must(!times, "STANDIN_REUSE");
	swaps = atoi(times);
	swapped = take(1000);
	must(cudaMemGetInfo(&before, &total), "cudaMemGetInfo");
	pthread_create(&t, NULL, swapper, &before);
	must(cudaFree(swapped), "cudaFree");
	pthread_join(t, NULL);
	must(cudaFree(swapped), "cudaFree");
}

/* cudaFree fails (STANDIN_FAIL), another function frees. */
static void again(void)
{
	void *p = take(500);

	must(!cudaFree(p), "a free that was to fail");
	must(cuMemFree_v2((CUdeviceptr)(uintptr_t)p), "cuMemFree");
}

static void run(const char *mode, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = { { "leak", leak },	    { "many", many },	  { "threads", threads },
		      { "faults", faults }, { "pool", pool },	  { "virtual", virtual },
		      { "oom", oom },	    { "reuse", reuse },	  { "swap", swap },
		      { "again", again },   { "reset", reset },	  { "host", host },
		      { "arrays", arrays }, { "driver", driver }, { "streams", streams } };

	if (!strcmp(mode, "fork") || !strcmp(mode, "exec")) {
		forks(argv, *mode == 'e');
		return;
	}
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(mode, modes[i].name))
			continue;
		modes[i].run();
		return;
	}
	_exit(7);
}

int main(int argc, char **argv)
{
	char line[8];
	void *p;

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "-w")) {
		p = take(4096);
		take(5000);
		printf("ready\n");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 2;
		must(cudaFree(p), "cudaFree");
	}
	run(argv[argc - 1], argv);
	return 0;
}
