/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reload.c - reload [--wait] LIBRARY...: opens each library, calls its run(), closes it. With
 * --wait the first time the last of them stays open; once a line has come in its run() is called
 * again, and after another line it is closed and the others take its place: all of which a
 * tracer sees that was attached in between.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "phases.h"

static void *open_one;

static int use(const char *path, int keep)
{
	int (*run)(void);
	Dl_info info;

	if (open_one)
		dlclose(open_one);
	open_one = dlopen(path, RTLD_NOW);
	if (!open_one) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	run = (int (*)(void))dlsym(open_one, "run");
	if (!run || run())
		return 1;
	if (dladdr((void *)run, &info))
		printf("base %p\n", info.dli_fbase);
	fflush(stdout);
	if (!keep) {
		dlclose(open_one);
		open_one = NULL;
	}
	return 0;
}

static int work(int argc, char **argv, int again)
{
	int err = 0;

	/* what was kept is used once more before it goes */
	if (again && open_one) {
		int (*run)(void) = (int (*)(void))dlsym(open_one, "run");

		err = run();
		phase_line();
	}
	for (int i = 1; i < argc && !err; i++)
		err = use(argv[i], !again && i == argc - 1);
	return err;
}

int main(int argc, char **argv)
{
	return phases(&argc, argv, work);
}
