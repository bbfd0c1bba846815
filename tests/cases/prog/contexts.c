/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contexts.c - the target of a test about contexts: launches in turn in the device's own context of
 * device 0 and in one that it makes on device 1, by the driver's functions.
 *
 * 	contexts ROUNDS PAUSE_MS
 *
 * Prints "ready" before the rounds. Built against the stand-in's headers.
 */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev);

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "contexts: %s: error %d\n", what, err);
	_exit(9);
}

int main(int argc, char **argv)
{
	CUcontext own, made;
	CUmodule module;
	CUfunction f;

	if (argc != 3)
		return 2;
	check(cuInit(0), "cuInit");
	check(cuDevicePrimaryCtxRetain(&own, 0), "cuDevicePrimaryCtxRetain");
	check(cuCtxCreate_v2(&made, 0, 1), "cuCtxCreate_v2");
	check(cuModuleLoadData(&module, "code"), "cuModuleLoadData");
	check(cuModuleGetFunction(&f, module, "_Z7vec_mulPfi"), "cuModuleGetFunction");
	puts("ready");
	fflush(stdout);
	for (int i = atoi(argv[1]); i; i--) {
		check(cuCtxSetCurrent(own), "cuCtxSetCurrent");
		check(cuLaunchKernel(f, 4, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
		check(cuCtxSetCurrent(made), "cuCtxSetCurrent");
		check(cuLaunchKernel(f, 2, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
		usleep((useconds_t)atoi(argv[2]) * 1000);
	}
	return 0;
}
