/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_cold.c - what hooks add to a call when the caches and predictors have forgotten them: hooks_cold [ROUNDS [KIB...]]
 *
 * A program does other work between two calls of CUDA, and calls another function each time. So 256 functions are called in
 * random order, each once a round, and before each call so many KiB of other code are executed and as many of data read (64 and
 * 1024, where nothing else is said). Rounds of three ways follow each other: bare; counted alone, as a function that is
 * muted is (a half of the functions, which are recorded otherwise); and recorded by the code of target/hooks/capture.c into a ring, from
 * which nobody reads (the other half). Each call is timed by itself, between
 * fences, so nothing of it overlaps with other work, as it would in a program. What a way adds is taken for each
 * function: the mean of the middle half of its calls, less that of its bare calls. Of these the median and quartiles over all
 * functions are printed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../target/hooks/capture.h"
#include "../../target/common/prologue.h"

#define CALLBACK __attribute__((target("general-regs-only")))
#define FUNCS 256
#define ROUNDS_MAX 201
#define MOST_KIB 16384
#define LINE 64
#define RING (1u << 20)
#define WORDS 6

enum way { BARE, COUNT, RECORD, WAYS };
static const char *const names[WAYS] = { "bare", "counted alone", "recorded" };

/* ---- the functions ---- */

typedef long (*called)(long, long, long, long, long, long);
#define ONE(n)                                                                                   \
	static __attribute__((noinline, aligned(256))) long f##n(long a, long b, long c, long d, \
								 long e, long f)                 \
	{                                                                                        \
		PUSHES();                                                                        \
		return a + b * 0x##n + c + d + e + f;                                            \
	}
#define FOUR(X, n) X(n##0) X(n##1) X(n##2) X(n##3)
#define SIXTEEN(X, n) FOUR(X, n##0) FOUR(X, n##1) FOUR(X, n##2) FOUR(X, n##3)
#define MANY(X, n) SIXTEEN(X, n##0) SIXTEEN(X, n##1) SIXTEEN(X, n##2) SIXTEEN(X, n##3)
#define EACH(X) MANY(X, 0) MANY(X, 1) MANY(X, 2) MANY(X, 3)
EACH(ONE)
#define NAME(n) f##n,
static const called funcs[FUNCS] = { EACH(NAME) };

/* ---- other work ---- */

static char *code, *data; /* of MOST_KIB each */
static unsigned int noise = 1;

static unsigned int some(unsigned int below)
{
	noise = noise * 1103515245u + 12345u;
	return (noise >> 8) % below;
}

static void shuffle(unsigned int *order, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		order[i] = i;
	for (unsigned int i = n - 1; i; i--) {
		unsigned int k = some(i + 1), was = order[i];

		order[i] = order[k];
		order[k] = was;
	}
}

/* Code of so many bytes: each line has a branch that depends on the argument, and jumps to another line; the last one
 * returns. */
static void write_code(size_t bytes)
{
	unsigned int n = (unsigned int)(bytes / LINE), *order = malloc(n * sizeof(*order));

	if (!order)
		exit(1);
	shuffle(order, n);
	for (unsigned int i = 0; i < n; i++)
		if (order[i] == 0) { /* it is entered at its begin */
			order[i] = order[0];
			order[0] = 0;
		}
	for (unsigned int i = 0; i < n; i++) {
		char *at = code + (size_t)order[i] * LINE;
		unsigned int bit = 1u << (i % 16);
		int to = i + 1 < n ? (int)(order[i + 1] * LINE) - (int)(order[i] * LINE + 17) : 0;

		memcpy(at, "\xf7\xc7", 2); /* test $bit, %edi */
		memcpy(at + 2, &bit, 4);
		memcpy(at + 6, "\x74\x02\x01\xf8\x90\x90", 6); /* jz +2; add %edi, %eax */
		at[12] = (char)(i + 1 < n ? 0xe9 : 0xc3);
		memcpy(at + 13, &to, 4);
	}
	free(order);
}

static void other_work(size_t bytes)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < bytes; i += LINE)
		sum += (unsigned char)data[i];
	((void (*)(unsigned int))(size_t)code)(some(1 << 16) + (sum & 1));
}

/* ---- at the hooks ---- */

static CALLBACK bool entry(struct hook_frame *f, const struct hook_regs *r)
{
	return capture_enters(f, r, f->id);
}

static CALLBACK void leave(struct hook_frame *f, __u64 result)
{
	capture_leaves(f, f->id, result);
}

static const struct hook_ops ops = { .entry = entry, .leave = leave, .counts = capture_counts };
static struct hooks_area *area;

static void open_area(void)
{
	struct hooks_start s = {
		.version = HOOKS_VERSION, .flags = HOOKS_S_TSC, .threads = 4, .ring_bytes = RING
	};
	size_t bytes = hooks_area_bytes(s.threads, s.ring_bytes, 0);
	int fd = memfd_create("bench", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) || capture_open(fd, &s))
		exit(1);
	area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (area == MAP_FAILED)
		exit(1);
	for (unsigned int i = 0; i < FUNCS; i++)
		capture_spec(i, &(struct ct_spec){ .nwords = WORDS,
						   .flags = CT_S_SHOWN | CT_S_ERROR });
	area->phase = CT_PHASE_RUNNING;
}

/* Does what a reader does that keeps up. Returns whether something has been recorded. */
static bool empty_ring(void)
{
	struct hooks_thread *t = hooks_block(area, 0, RING);
	bool any = t->tail != t->head;

	t->tail = t->head;
	return any;
}

static void set(enum way way)
{
	static struct hook_spec specs[FUNCS];
	static enum hook_result results[FUNCS];
	struct hook_leftover left;

	if (way == BARE) {
		engine_remove(&left);
		return;
	}
	for (unsigned int i = 0; i < FUNCS; i++)
		specs[i] = (struct hook_spec){ .address = (__u64)(size_t)funcs[i],
					       .id = i,
					       .flags = i < FUNCS / 2 ? HOOK_COUNTABLE : 0 };
	if (engine_install(specs, FUNCS, results) != FUNCS) {
		fprintf(stderr, "not all functions are hooked\n");
		exit(1);
	}
	if (way == COUNT)
		capture_mutes();
	for (unsigned int i = 0; i < FUNCS / 2; i++)
		engine_count(~0u, i, way == COUNT ? HOOK_COUNT_IN(i % HOOKS_MUTED) : 0);
}

/* ---- measuring ---- */

static inline unsigned long long ticks(void)
{
	unsigned int lo, hi;

	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(lo), "=d"(hi) : : "memory");
	return (unsigned long long)hi << 32 | lo;
}

static double ns_of_tick(void)
{
	struct timespec a, b;
	unsigned long long from = ticks();

	clock_gettime(CLOCK_MONOTONIC, &a);
	do
		clock_gettime(CLOCK_MONOTONIC, &b);
	while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < 50000000);
	return 5e7 / (double)(ticks() - from);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double took[WAYS][FUNCS][ROUNDS_MAX];

static void one_round(enum way way, size_t bytes, int round)
{
	static unsigned int order[FUNCS];
	unsigned long long from, to;
	bool recorded;

	set(way);
	funcs[0](1, 2, 3, 4, 5, 6); /* the thread gets what it has for itself */
	empty_ring();
	shuffle(order, FUNCS);
	for (unsigned int i = 0; i < FUNCS; i++) {
		called f = funcs[order[i]];

		other_work(bytes);
		from = ticks();
		f(1, 2, 3, 4, 5, 6);
		to = ticks();
		took[way][order[i]][round] = (double)(to - from);
	}
	recorded = empty_ring();
	if (recorded != (way != BARE)) {
		fprintf(stderr, "%s: calls were%s recorded\n", names[way], recorded ? "" : " not");
		exit(1);
	}
}

/* The mean of the middle half: the processor's counter may count in steps of ten nanoseconds. */
static double middle(double *v, int n)
{
	int from = n / 4, to = n - n / 4;
	double sum = 0;

	qsort(v, (size_t)n, sizeof(*v), by_value);
	for (int i = from; i < to; i++)
		sum += v[i];
	return sum / (to - from);
}

static void measure(size_t kib, int rounds, double ns)
{
	double add[FUNCS / 2];

	write_code(kib << 10);
	for (int r = 0; r < rounds; r++)
		for (int w = 0; w < WAYS; w++)
			one_round((enum way)w, kib << 10, r);
	for (int w = 0; w < WAYS; w++) {
		int from = w == RECORD ? FUNCS / 2 : 0, n = FUNCS / 2;

		for (int i = 0; i < n; i++)
			add[i] = (middle(took[w][from + i], rounds) -
				  (w ? middle(took[BARE][from + i], rounds) : 0)) *
				 ns;
		qsort(add, (size_t)n, sizeof(*add), by_value);
		printf("cold, %4zu KiB between   %-22s %s%6.1f ns  (quartiles %.1f to %.1f)\n", kib,
		       names[w], w ? "+" : " ", add[n / 2], add[n / 4], add[3 * n / 4]);
	}
}

int main(int argc, char **argv)
{
	static const size_t usual[] = { 64, 1024 };
	int rounds = argc > 1 ? atoi(argv[1]) : 15;
	double ns = ns_of_tick();

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: hooks_cold [ROUNDS [KIB...]]\n");
		return 2;
	}
	code = mmap(NULL, MOST_KIB << 10, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	data = malloc(MOST_KIB << 10);
	if (code == MAP_FAILED || !data || engine_open(&ops)) {
		fprintf(stderr, "the engine cannot be opened here\n");
		return 1;
	}
	memset(data, 1, MOST_KIB << 10);
	open_area();
	for (int i = 2; i < argc; i++)
		if (atoi(argv[i]) > 0 && atoi(argv[i]) <= MOST_KIB)
			measure((size_t)atoi(argv[i]), rounds, ns);
	for (size_t i = 0; argc < 3 && i < sizeof(usual) / sizeof(*usual); i++)
		measure(usual[i], rounds, ns);
	return 0;
}
