// SPDX-License-Identifier: BSD-2-Clause
// throws.cu - throws [--wait] [N]: launches a kernel, and has an exception go through the frames that called it, N times.
#include "phases.h"

#include <cuda_runtime.h>

#include <cstdlib>
#include <stdexcept>

__global__ void thrower(int *p)
{
	*p = 1;
}

static int destroyed, caught;

struct guard {
	~guard()
	{
		destroyed++;
		thrower<<<1, 1>>>(0); // a launch while an exception is under way
	}
};

__attribute__((noinline)) static void deep(int depth)
{
	guard g;

	if (depth)
		deep(depth - 1);
	thrower<<<1, 1>>>(0);
	throw std::runtime_error("after the launch");
}

static int work(int argc, char **argv, int)
{
	int n = argc > 1 ? atoi(argv[1]) : 3;

	for (int i = 0; i < n; i++) {
		try {
			deep(3);
		} catch (const std::runtime_error &) {
			caught++;
		}
	}
	printf("destroyed %d caught %d\n", destroyed, caught);
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	return phases(&argc, argv, work);
}
