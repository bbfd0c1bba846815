/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_on.c - how long it takes to put hooks on and off: hooks_on ROUNDS LIBRARY...
 *
 * All functions that the libraries export are hooked at once, and the hooks taken off again, ROUNDS times, by a process that
 * does nothing else; of the first round, in which all that the hooks lead to is made, and of the later ones (medians with
 * quartiles). Time is the clock's, as a program that is attached to waits for it.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../hooks/exported.h"

#define ROUNDS_MAX 1001

static struct hook_spec specs[HOOK_FUNCS];
static enum hook_result results[HOOK_FUNCS];
static unsigned int nspecs;
static const struct hook_ops ops;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool add(const char *file)
{
	void *lib = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
	struct link_map *map;
	unsigned int n;

	if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map)) {
		fprintf(stderr, "%s\n", dlerror());
		return false;
	}
	n = exported(map->l_name, map->l_addr, specs + nspecs, HOOK_FUNCS - nspecs);
	for (unsigned int i = 0; i < n; i++)
		specs[nspecs + i].id = nspecs + i;
	nspecs += n;
	return n;
}

static void print(const char *what, double *ms, int n)
{
	qsort(ms, (size_t)n, sizeof(*ms), by_value);
	printf("%-22s %6.2f ms  (quartiles %.2f to %.2f)\n", what, ms[n / 2], ms[n / 4],
	       ms[3 * n / 4]);
}

int main(int argc, char **argv)
{
	static double on[ROUNDS_MAX], off[ROUNDS_MAX];
	int rounds = argc > 2 ? atoi(argv[1]) : 0, hooked = 0;
	struct hook_leftover left;

	if (rounds < 2 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: hooks_on ROUNDS LIBRARY...\n");
		return 2;
	}
	for (int i = 2; i < argc; i++)
		if (!add(argv[i]))
			return 1;
	if (engine_open(&ops))
		return 1;
	for (int r = 0; r < rounds; r++) {
		double a = now_ms(), b;

		hooked = engine_install(specs, nspecs, results);
		b = now_ms();
		on[r] = b - a;
		engine_remove(&left);
		off[r] = now_ms() - b;
	}
	printf("%d of %u functions are hooked\n", hooked, nspecs);
	print("made and put on", on, 1);
	print("put on again", on + 1, rounds - 1);
	print("taken off", off, rounds);
	return 0;
}
