/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks.c - what a hook adds to a call, without a reader: hooks LIBRARY FUNCTION [ROUNDS [CALLS [THREADS]]]
 *
 * Rounds of four ways (bare, count, entry alone, entry and return with a record of 128 bytes and two readings of
 * the processor's counter) follow each other, on one thread, on two, and on as many as there are processors, at most 16; the
 * medians of what each adds to the bare call of its own round are printed, with the quartiles, and how many times a whole call
 * of one thread one of many takes. Time is that of the thread: others may want the processors. A round makes CALLS calls in each
 * thread, or those of ROUND_MS: a runtime may have a word that all its threads write to, and then each call takes microseconds.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../target/engine/engine.h"

#define CALLBACK __attribute__((target("general-regs-only")))
#define RING (1 << 20)
#define MOST 16
#define ROUNDS_MAX 101
#define ROUND_MS 40
#define AT_ONCE 500 /* calls, before it is asked how late it is */

enum way { BARE, COUNT, ENTRY, RECORD, WAYS };
static const char *const names[WAYS] = { "bare", "count", "entry alone", "entry, return, record" };
static const __u32 flags[WAYS] = { 0, HOOK_COUNT, HOOK_ENTRY_ONLY, 0 };

struct thread {
	__u64 at;
	__u64 counts[HOOK_COUNTS];
	__u64 ring[RING / 8];
};
static struct thread threads[MOST];
static __thread int me;

static CALLBACK __u64 ticks(void)
{
	unsigned int lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (__u64)hi << 32 | lo;
}

static CALLBACK void begin(struct hook_thread *t)
{
	t->data = (__u64)(size_t)&threads[me];
	hook_count_into(t, threads[me].counts);
}

static CALLBACK bool entry(struct hook_frame *f, const struct hook_regs *r)
{
	f->data[0] = ticks();
	for (int i = 0; i < HOOK_ARGS; i++)
		f->data[1 + i] = r->args[i];
	return true;
}

static CALLBACK void leave(struct hook_frame *f, __u64 result)
{
	struct thread *t = (struct thread *)(size_t)hook_self()->data;
	__u64 was = 16, *r;

	__asm__ volatile("xaddq %0, %1" : "+r"(was), "+m"(t->at) : : "cc");
	r = &t->ring[was % (RING / 8)];
	r[0] = f->id;
	r[1] = f->data[0];
	r[2] = ticks();
	r[3] = result;
	r[4] = f->ip;
	r[5] = f->sp;
	for (int i = 0; i < HOOK_ARGS; i++)
		r[6 + i] = f->data[1 + i];
}

static const struct hook_ops ops = { entry, leave, NULL, begin, NULL };
static int (*f)(int *);
static long calls = 300000;
static int rounds = 21, nthreads;
static double alone[WAYS]; /* what a whole call takes on one thread */
static double ns[MOST][WAYS][ROUNDS_MAX];
static pthread_barrier_t all;

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double loop(long n)
{
	double until = now(CLOCK_MONOTONIC) + ROUND_MS * 1e6, from = now(CLOCK_THREAD_CPUTIME_ID);
	long done = 0;
	int out;

	while (done < n && (!done || now(CLOCK_MONOTONIC) < until)) {
		for (int i = 0; i < AT_ONCE; i++)
			f(&out);
		done += AT_ONCE;
	}
	return (now(CLOCK_THREAD_CPUTIME_ID) - from) / (double)done;
}

static void set(enum way way)
{
	struct hook_spec spec = { .address = (__u64)(size_t)f, .id = 1, .flags = flags[way] };
	struct hook_leftover left;
	enum hook_result result;

	if (way == BARE) {
		engine_remove(&left);
	} else if (engine_install(&spec, 1, &result) != 1) {
		fprintf(stderr, "not hooked: %s\n", hook_result_text(result));
		exit(1);
	}
}

static void *work(void *arg)
{
	me = (int)(long)arg;
	for (int r = 0; r < rounds; r++)
		for (int w = 0; w < WAYS; w++) {
			pthread_barrier_wait(&all);
			if (!me)
				set((enum way)w);
			pthread_barrier_wait(&all);
			loop(2000);
			ns[me][w][r] = loop(calls);
		}
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	return v[n / 2];
}

/* Threads write no line of the cache in common: their calls take as long as those of one. */
static void print_whole(void)
{
	for (int w = 0; w < WAYS; w++) {
		double v[MOST * ROUNDS_MAX], ns_each;
		int n = 0;

		for (int t = 0; t < nthreads; t++)
			for (int r = 0; r < rounds; r++)
				v[n++] = ns[t][w][r];
		ns_each = median(v, n);
		if (nthreads == 1)
			alone[w] = ns_each;
		else
			printf("%d threads  %-22s  %6.1f ns in all, x%.2f of one thread's\n",
			       nthreads, names[w], ns_each, ns_each / alone[w]);
	}
}

static void print(void)
{
	for (int w = 0; w < WAYS; w++) {
		double v[MOST * ROUNDS_MAX];
		int n = 0;

		for (int t = 0; t < nthreads; t++)
			for (int r = 0; r < rounds; r++)
				v[n++] = ns[t][w][r] - (w ? ns[t][BARE][r] : 0);
		qsort(v, (size_t)n, sizeof(*v), by_value);
		printf("%d thread%s  %-22s %s%6.1f ns  (quartiles %.1f to %.1f)\n", nthreads,
		       nthreads == 1 ? " " : "s", names[w], w ? "+" : " ", v[n / 2], v[n / 4],
		       v[3 * n / 4]);
	}
}

int main(int argc, char **argv)
{
	void *lib = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int steps[] = { 1, 2, (int)sysconf(_SC_NPROCESSORS_ONLN) };
	pthread_t t[MOST];

	f = lib ? (int (*)(int *))dlsym(lib, argv[2]) : NULL;
	if (!f) {
		fprintf(stderr, "usage: hooks LIBRARY FUNCTION [ROUNDS [CALLS [THREADS]]]\n");
		return 2;
	}
	if (argc > 3 && atoi(argv[3]) > 0 && atoi(argv[3]) <= ROUNDS_MAX)
		rounds = atoi(argv[3]);
	if (argc > 4 && atol(argv[4]) > 0)
		calls = atol(argv[4]);
	if (argc > 5 && atoi(argv[5]) > 0)
		steps[2] = atoi(argv[5]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (engine_open(&ops)) {
		fprintf(stderr, "the engine cannot be opened here\n");
		return 1;
	}
	for (int s = 0; s < 3; s++) {
		nthreads = steps[s] > MOST ? MOST : steps[s];
		if (s == 2 && nthreads <= 2)
			break;
		pthread_barrier_init(&all, NULL, (unsigned int)nthreads);
		for (long i = 0; i < nthreads; i++)
			if (pthread_create(&t[i], NULL, work, (void *)i))
				return 1;
		for (int i = 0; i < nthreads; i++)
			pthread_join(t[i], NULL);
		pthread_barrier_destroy(&all);
		print();
		print_whole();
	}
	return 0;
}
