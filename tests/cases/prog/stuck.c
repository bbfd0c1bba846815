/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stuck.c - the target of the cases about threads that hang. One thread for each thing that a
 * thread can be at; the stand-in's knobs make the calls hang. Prints "NAME TID" for each, then
 * "ready". A line on stdin lets `late` begin its call, another ends the program: it prints how
 * often `short` called, and how many waits of `sleeper` ended too soon.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static sem_t started, late_may, never;
static volatile int ending;
static volatile long calls, disturbed;
static cudaStream_t stream;
static cudaEvent_t event;

static void begin(const char *name)
{
	printf("%s %ld\n", name, (long)syscall(SYS_gettid));
	sem_post(&started);
}

__attribute__((noinline)) void wait_for_stream(void)
{
	cudaStreamSynchronize(stream);
	__asm__ volatile("");
}

static void *blocked(void *arg)
{
	begin("blocked");
	wait_for_stream();
	return arg;
}

static void *spinning(void *arg)
{
	begin("spinning");
	cudaDeviceSynchronize();
	return arg;
}

static void *driver(void *arg)
{
	begin("driver");
	cuEventRecord((CUevent)event, 0);
	return arg;
}

/* Its stack holds what calls have left there. */
static void *idle(void *arg)
{
	void *p;

	cudaMalloc(&p, 64);
	cudaFree(p);
	begin("idle");
	sem_wait(&never);
	return arg;
}

static void *short_calls(void *arg)
{
	begin("short");
	while (!ending) {
		cudaStreamQuery(0);
		calls++;
	}
	return arg;
}

static size_t in_callback(int block_size)
{
	(void)block_size;
	sem_wait(&never);
	return 0;
}

static void *callback(void *arg)
{
	int grid, block;

	begin("callback");
	cuOccupancyMaxPotentialBlockSize(&grid, &block, (CUfunction)1, in_callback, 0, 0);
	return arg;
}

static void *late(void *arg)
{
	begin("late");
	sem_wait(&late_may);
	cudaEventSynchronize(event);
	begin("late-returned");
	return arg;
}

/* A signal, also one that no handler sees, would end these early. */
static void *sleeper(void *arg)
{
	struct epoll_event ev;
	int ep = epoll_create1(0);

	begin("sleeper");
	while (!ending) {
		struct timespec ts = { 0, 3000000 };

		disturbed += epoll_wait(ep, &ev, 1, 3) != 0;
		disturbed += nanosleep(&ts, NULL) != 0;
	}
	return arg;
}

static int wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1)
		if (c == '\n')
			return 1;
	return 0;
}

int main(void)
{
	void *(*const threads[])(void *) = { blocked,	  spinning, driver, idle,
					     short_calls, callback, late,   sleeper };
	const size_t n = sizeof(threads) / sizeof(threads[0]);
	pthread_t id;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sem_init(&started, 0, 0);
	sem_init(&late_may, 0, 0);
	sem_init(&never, 0, 0);
	cudaFree(0);
	cudaStreamCreate(&stream);
	cudaEventCreate(&event);
	for (size_t i = 0; i < n; i++)
		pthread_create(&id, NULL, threads[i], NULL);
	for (size_t i = 0; i < n; i++)
		sem_wait(&started);
	printf("stream %p\nevent %p\nready\n", (void *)stream, (void *)event);
	while (wait_line())
		sem_post(&late_may);
	ending = 1;
	usleep(20000);
	printf("short-calls %ld\ndisturbed %ld\n", calls, disturbed);
	fflush(stdout);
	_exit(0);
}
