/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polls.c - two threads, each in a call of the runtime that the stand-in's knob makes poll the driver
 * (STANDIN_POLL). Prints "stream TID" and "event TID", then "ready" when both are inside; ends at the end of
 * its input, when the calls have returned.
 */
#include <cuda_runtime_api.h>

#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static cudaStream_t stream;
static cudaEvent_t event;

static void *on_stream(void *arg)
{
	printf("stream %ld\n", (long)syscall(SYS_gettid));
	cudaStreamSynchronize(stream);
	return arg;
}

static void *on_event(void *arg)
{
	printf("event %ld\n", (long)syscall(SYS_gettid));
	cudaEventSynchronize(event);
	return arg;
}

int main(void)
{
	pthread_t a, b;
	char c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	cudaStreamCreate(&stream);
	cudaEventCreate(&event);
	pthread_create(&a, NULL, on_stream, NULL);
	pthread_create(&b, NULL, on_event, NULL);
	usleep(200000);
	puts("ready");
	while (read(0, &c, 1) == 1)
		;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return 0;
}
