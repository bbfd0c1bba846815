// SPDX-License-Identifier: BSD-2-Clause
// throw.cc - throws exceptions through a call that calls back: N times, then M plain calls. A program does this when a
// callback of its own fails. Prints how often the destructor between and the handler outside ran.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

extern "C" cudaError_t cudaStreamAddCallback(cudaStream_t, cudaStreamCallback_t, void *, unsigned int);

static int destroyed, caught;

struct guard {
	~guard() { destroyed++; }
};

static void fail(cudaStream_t, cudaError_t, void *)
{
	throw std::runtime_error("callback");
}

static void call()
{
	guard g;

	cudaStreamAddCallback(nullptr, fail, nullptr, 0);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1, m = argc > 2 ? atol(argv[2]) : 1;

	for (long i = 0; i < n; i++) {
		try {
			call();
		} catch (const std::runtime_error &) {
			caught++;
		}
	}
	for (long i = 0; i < m; i++)
		cudaStreamQuery(nullptr);
	printf("destroyed %d caught %d\n", destroyed, caught);
	return 0;
}
