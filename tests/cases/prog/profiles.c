/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * profiles.c - a program that profiles itself with CUPTI, as PyTorch does: it registers functions
 * for buffers, subscribes once and never again, enables kinds of records, works, disables the kinds,
 * flushes, and counts the records of kernels.
 *
 *	profiles [--wait] [-d] [-a] [-l] [-f] STEP...
 *
 * -d: calls CUPTI by pointers that dlsym() gave at the begin; -a: uses the activity functions
 * alone; -l: registers a clock with each session; -f: leaves no room for jumps out of libcupti. A step is one of these:
 *
 *	N		N launches of a kernel, each in a thread of its own if N ends with `t`
 *	start, stop	a session; stop prints "profile RECORDS of LAUNCHES"
 *	disable, flush, print	the parts of stop
 *	both		two threads start a session at the same moment, and one stops it
 *	unsubscribe, finalize	what a tidy profiler does at its end
 *	settings	prints "settings T C": CUPTI's type of thread ids, and whether its clock is CLOCK_REALTIME
 *	fork		the further steps are a child's, for whose end the parent waits
 *	ready		prints "ready PID" and waits for a line on stdin
 *	kill		SIGKILL to itself
 *	sleep		two and a half seconds
 *	pause		a tenth of a second
 *
 * --wait: prints "done" after the last step and waits for a line. Prints "start failed: N" if CUPTI
 * refuses the subscription; like PyTorch it then has profiles without records for ever. A buffer
 * that it does not know, or a record without times, is an error (status 9).
 */
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../target/cupti/cupti.h"

#define BYTES 65536
#define BUFFERS 64
#define DECLARE(name, args) int name args;
CUPTI_FUNCS(DECLARE, DECLARE)

/* Calls the function by the loader's slot, or by what dlsym() gave at the begin. */
static struct cupti found;
static bool by_pointers;
#define CUPTI(name) (by_pointers ? found.name : name)

static uint8_t *buffers[BUFFERS];
static _Atomic int nbuffers;
static _Atomic long records;
static _Atomic uint32_t launches;
static long launches_at_start;
static bool subscribed, failed, alone, late_clock;
static void *subscriber;
static cudaKernel_t kernel;
static pthread_barrier_t barrier;

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "profiles: %s: error %d\n", what, err);
	_exit(9);
}

static uint64_t realtime(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	int n = atomic_fetch_add(&nbuffers, 1);

	*buffer = n < BUFFERS ? malloc(BYTES) : NULL;
	check(!*buffer, "memory");
	buffers[n] = *buffer;
	*size = BYTES;
	*max_records = 0;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	void *record = NULL;
	bool known = false;

	(void)context, (void)stream, (void)size;
	for (int i = 0; i < BUFFERS && !known; i++)
		known = buffers[i] == buffer;
	check(!known, "a buffer that is not ours");
	while (valid && !CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record)) {
		struct cupti_kernel k;
		uint32_t kind;

		memcpy(&kind, record, sizeof(kind));
		if (kind != CUPTI_KIND_KERNEL)
			continue;
		memcpy(&k, record, sizeof(k));
		/* an hour is more than a test takes */
		check(!k.start || k.start + 3600000000000ULL < realtime(), "a kernel's time");
		records++;
	}
}

static void callback(void *user, int domain, uint32_t id, const void *data)
{
	(void)user, (void)domain, (void)id, (void)data;
}

static void start(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!alone && !subscribed && !failed) {
		err = CUPTI(cuptiSubscribe)(&subscriber, callback, NULL);
		subscribed = !err;
		failed = err;
		if (err)
			printf("start failed: %d\n", err);
	}
	pthread_mutex_unlock(&lock);
	if (failed)
		return;
	check(CUPTI(cuptiActivityRegisterCallbacks)(request, complete), "buffers");
	if (late_clock)
		check(CUPTI(cuptiActivityRegisterTimestampCallback)(realtime), "clock");
	check(CUPTI(cuptiActivityEnable)(CUPTI_KIND_MEMCPY), "copies");
	check(CUPTI(cuptiActivityEnable)(CUPTI_KIND_KERNEL), "kernels");
}

static void *start_in_thread(void *arg)
{
	pthread_barrier_wait(&barrier);
	start();
	return arg;
}

static void disable(void)
{
	if (failed)
		return;
	check(CUPTI(cuptiActivityDisable)(CUPTI_KIND_KERNEL), "disable");
	check(CUPTI(cuptiActivityDisable)(CUPTI_KIND_MEMCPY), "disable");
}

static void flush(void)
{
	if (!failed)
		check(CUPTI(cuptiActivityFlushAll)(1), "flush");
}

static void print(void)
{
	printf("profile %ld of %ld\n", records, launches - launches_at_start);
}

static void stop(void)
{
	disable();
	flush();
	print();
}

static void begin_session(void)
{
	records = 0;
	launches_at_start = launches;
}

static void *launch(void *arg)
{
	check(cudaLaunchKernel((const void *)kernel, (dim3){ 1, 1, 1 }, (dim3){ 32, 1, 1 }, NULL, 0,
			       NULL),
	      "launch");
	launches++;
	return arg;
}

static void work(const char *step)
{
	char *rest;
	long n = strtol(step, &rest, 10);
	pthread_t thread;

	for (long i = 0; i < n; i++) {
		if (!*rest)
			launch(NULL);
		else if (pthread_create(&thread, NULL, launch, NULL) || pthread_join(thread, NULL))
			abort();
	}
}

static void both(void)
{
	pthread_t threads[2];

	begin_session();
	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, start_in_thread, NULL))
			abort();
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void settings(void)
{
	uint64_t ns = 0;
	int type = -1;

	check(CUPTI(cuptiGetThreadIdType)(&type), "type of thread ids");
	check(CUPTI(cuptiGetTimestamp)(&ns), "clock");
	printf("settings %d %d\n", type,
	       ns + 1000000000 > realtime() && ns < realtime() + 1000000000);
}

static void wait_for_line(void)
{
	char line[8];

	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

static void into_child(void)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (!pid)
		return;
	waitpid(pid, &status, 0);
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 8);
}

static void step(const char *what)
{
	if (*what >= '0' && *what <= '9') {
		work(what);
	} else if (!strcmp(what, "start")) {
		begin_session();
		start();
	} else if (!strcmp(what, "both")) {
		both();
	} else if (!strcmp(what, "stop")) {
		stop();
	} else if (!strcmp(what, "disable")) {
		disable();
	} else if (!strcmp(what, "flush")) {
		flush();
	} else if (!strcmp(what, "print")) {
		print();
	} else if (!strcmp(what, "unsubscribe") && subscribed) {
		check(CUPTI(cuptiUnsubscribe)(subscriber), "unsubscribe");
		subscribed = false;
	} else if (!strcmp(what, "finalize")) {
		check(CUPTI(cuptiFinalize)(), "finalize");
		subscribed = false;
	} else if (!strcmp(what, "settings")) {
		settings();
	} else if (!strcmp(what, "fork")) {
		into_child();
	} else if (!strcmp(what, "ready")) {
		printf("ready %d\n", (int)getpid());
		wait_for_line();
	} else if (!strcmp(what, "kill")) {
		kill(getpid(), SIGKILL);
	} else if (!strcmp(what, "sleep")) {
		usleep(2500000);
	} else if (!strcmp(what, "pause")) {
		usleep(100000);
	} else {
		check(2, what);
	}
	fflush(stdout);
}

static void find_pointers(void)
{
#define FIND(name, args) found.name = (__typeof__(found.name))dlsym(RTLD_DEFAULT, #name);
	CUPTI_FUNCS(FIND, FIND)
	by_pointers = true;
}

/* Maps, without access, all that is free within the reach of a jump from libcupti. */
static void fill(void)
{
	uintptr_t at = (uintptr_t)dlsym(RTLD_DEFAULT, "cuptiSubscribe") & ~(uintptr_t)0xfff;

	for (intptr_t by = -(2L << 30); by < 2L << 30; by += 1 << 16)
		mmap((void *)(at + (uintptr_t)by), 1 << 16, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

int main(int argc, char **argv)
{
	cudaLibrary_t library;
	bool waits = false;
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		waits |= !strcmp(argv[i], "--wait");
		alone |= !strcmp(argv[i], "-a");
		late_clock |= !strcmp(argv[i], "-l");
		if (!strcmp(argv[i], "-d"))
			find_pointers();
		if (!strcmp(argv[i], "-f"))
			fill();
	}
	/* a program that uses CUPTI before CUDA is started */
	for (; i < argc && !strcmp(argv[i], "start"); i++)
		step(argv[i]);
	check(cudaSetDevice(0), "cudaSetDevice");
	check(cudaLibraryLoadData(&library, "code", NULL, NULL, 0, NULL, NULL, 0), "library");
	check(cudaLibraryGetKernel(&kernel, library, "_Z7vec_mulPfi"), "kernel");
	for (; i < argc; i++)
		step(argv[i]);
	if (waits) {
		printf("done\n");
		wait_for_line();
	}
	return 0;
}
