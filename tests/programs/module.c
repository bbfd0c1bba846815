/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * module.c - module [--wait] [NAME...]: for each name loads a module, gets the function of that
 * name, launches it twice and unloads the module; the stand-in gives the next one the same
 * address. With --wait the last one of the first time stays loaded; once a line has come in it
 * is launched again, and after another line it goes. Prints "function ADDRESS NAME" for each.
 */
#include <stdlib.h>

#include "cuda.h"
#include "phases.h"

static CUmodule module;
static CUfunction function;

static int launch(void)
{
	return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) != 0;
}

static int work(int argc, char **argv, int again)
{
	static char *standard[] = { "", "alpha", "beta", "gamma" };
	CUcontext ctx;
	CUdevice dev;

	if (argc < 2) {
		argv = standard;
		argc = 4;
	}
	if (!again && (cuInit(0) || cuDeviceGet(&dev, 0) || cuDevicePrimaryCtxRetain(&ctx, dev) ||
		       cuCtxSetCurrent(ctx)))
		return 1;
	if (again) {
		if (launch())
			return 1;
		phase_line();
	}
	for (int i = 1; i < argc; i++) {
		if (module && cuModuleUnload(module))
			return 1;
		if (cuModuleLoadData(&module, argv) ||
		    cuModuleGetFunction(&function, module, argv[i]) || launch() || launch())
			return 1;
		printf("function %p %s\n", (void *)function, argv[i]);
	}
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	return phases(&argc, argv, work);
}
