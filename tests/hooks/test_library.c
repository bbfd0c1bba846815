/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_library.c - all functions of a library on and off while threads call some of them:
 * test_library FILE LEAST CYCLES NAME..., where each NAME is a function int (int *) that may be called.
 * LEAST: of 1000 exported functions so many can be hooked at the least.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "exported.h"
#include "hooktest.h"

#define CALLERS 8
#define CALLBACK __attribute__((target("general-regs-only")))

static char **names;
static int nnames, least, cycles;
static const char *file;
static atomic_int stop;
static atomic_ulong wrong, seen, calls;
static int (*fs[16])(int *);
static int want[16];

static CALLBACK bool entry(struct hook_frame *f, const struct hook_regs *r)
{
	(void)r;
	f->data[0] = f->number;
	return true;
}

static CALLBACK void leave(struct hook_frame *f, __u64 result)
{
	(void)result;
	if (f->data[0] != f->number)
		wrong++;
	seen++;
}

static const struct hook_ops ops = { .entry = entry, .leave = leave };

static void *caller(void *arg)
{
	unsigned long n = 0;
	int out;

	(void)arg;
	while (!stop) {
		for (int i = 0; i < nnames; i++)
			if (fs[i](&out) != want[i])
				wrong++;
		n += (unsigned long)nnames;
	}
	calls += n;
	return NULL;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void others(bool there)
{
	if (there) {
		printf("another tracer of this machine has probes on the library\n");
		fflush(stdout);
		_exit(77);
	}
}

static void test_library(void)
{
	static struct hook_spec specs[4096];
	static enum hook_result results[4096];
	static unsigned char before[4096][16];
	unsigned int n, refused[HOOK_RESULTS] = { 0 };
	void *lib = dlopen(file, RTLD_NOW);
	struct hook_leftover left;
	struct link_map *map;
	pthread_t t[CALLERS];
	double on = 0, off = 0;
	__u64 kept = 0;
	int hooked = 0, out;

	if (!lib) {
		printf("%s\n", dlerror());
		_exit(77);
	}
	CHECK(!dlinfo(lib, RTLD_DI_LINKMAP, &map));
	for (int i = 0; i < nnames; i++) {
		fs[i] = (int (*)(int *))dlsym(lib, names[i]);
		CHECK(fs[i]);
		want[i] = fs[i](&out);
	}
	n = exported(file, map->l_addr, specs, 4096);
	CHECK(n);
	for (unsigned int i = 0; i < n; i++)
		memcpy(before[i], (void *)specs[i].address, 16);
	CHECK_EQ(0, engine_open(&ops));
	for (int i = 0; i < CALLERS; i++)
		CHECK(!pthread_create(&t[i], NULL, caller, NULL));
	for (int c = 0; c < cycles; c++) {
		double a = now_ms(), b;

		hooked = engine_install(specs, n, results);
		b = now_ms();
		CHECK_EQ(0, engine_remove(&left));
		others(left.foreign);
		CHECK_EQ(0, left.gone + left.inside);
		if (c) {
			on += b - a;
			off += now_ms() - b;
		}
		for (unsigned int i = 0; i < n; i++) {
			const unsigned char *is = (void *)specs[i].address;

			others(*is == 0xcc || before[i][0] == 0xcc);
			if (memcmp(before[i], is, 16)) {
				printf("%u: round %d, result %d; %02x %02x, was %02x ... %02x\n", i,
				       c, results[i], is[0], is[4], before[i][0], before[i][4]);
				CHECK(!"the bytes are the original ones");
			}
		}
		if (c == 1)
			kept = left.kept_bytes;
	}
	CHECK_EQ(kept, left.kept_bytes);
	stop = 1;
	for (int i = 0; i < CALLERS; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(0, wrong);
	/* And on, without fire: each call is seen. */
	hooked = engine_install(specs, n, results);
	seen = 0;
	for (int i = 0; i < nnames; i++)
		CHECK_EQ(want[i], fs[i](&out));
	CHECK((int)seen >= nnames);
	for (unsigned int i = 0; i < n; i++)
		refused[results[i]]++;
	others(refused[HOOK_BREAKPOINT]);
	printf("%s: %d of %u functions hooked; on %.2f ms, off %.2f ms (means of %d, %d callers)\n",
	       file, hooked, n, on / (cycles - 1), off / (cycles - 1), cycles - 1, CALLERS);
	for (int i = 1; i < HOOK_RESULTS; i++)
		if (refused[i])
			printf("  %u: %s\n", refused[i], hook_result_text((enum hook_result)i));
	CHECK(hooked * 1000 >= (int)n * least);
	CHECK_EQ(0, engine_remove(&left));
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	file = argv[1];
	least = atoi(argv[2]);
	cycles = atoi(argv[3]);
	names = argv + 4;
	nnames = argc - 4;
	run("library", test_library, NULL);
	return failed;
}
