// SPDX-License-Identifier: BSD-2-Clause
// kernels.cu - kernels of every kind of name that nvcc makes; launches each of them once. With --print it prints for each
// "LAUNCHED HANDLE", the first argument of the launch: with -D__NV_LEGACY_LAUNCH the host function, else the handle.
#include "phases.h"

#include <cuda_runtime.h>

#include <utility>

__global__ void plain_args(const float *a, const float *b, float *c, int n)
{
	int i = threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}
static __global__ void internal(int *p)
{
	*p = 1;
}
namespace
{
__global__ void anonymous(int *p)
{
	*p = 2;
}
} // namespace
extern "C" __global__ void unmangled(int *p)
{
	*p = 3;
}
namespace space
{
struct shape {
	int x;
};
__global__ void nested(shape *s)
{
	s->x = 4;
}
static __global__ void nested_internal(shape *s)
{
	s->x = 5;
}
template <class F> __global__ void apply(F f, int *p)
{
	*p = f(*p);
}
} // namespace space
template <class T, int N> __global__ void templated(T *p)
{
	*p = N;
}
// Overloads: the same name twice.
__global__ void overloaded(int *p)
{
	*p = 6;
}
__global__ void overloaded(float *p)
{
	*p = 7;
}

// A name of more than 2000 characters.
template <class T> __global__ void long_name(T, int *p)
{
	*p = 8;
}

void other_file(int *p); // other.cu: a static kernel that is called `internal` too

#ifdef __NV_LEGACY_LAUNCH
#define PASSED(k) ((const void *)(k))
#else
static const void *handle_of(const void *host)
{
	cudaKernel_t h = 0;

	return cudaGetKernel(&h, host) ? 0 : (const void *)h;
}
#define PASSED(k) handle_of((const void *)(k))
#endif
static int print;
#define LAUNCH(k, ...)                                      \
	do {                                                \
		k<<<1, 1>>>(__VA_ARGS__);                   \
		if (print)                                  \
			printf("launched %p\n", PASSED(k)); \
	} while (0)

static int work(int argc, char **argv, int again)
{
	int *p = 0;
	float *f = 0;

	print = argc > 1 && !strcmp(argv[1], "--print") && !again;
	LAUNCH(plain_args, f, f, f, 3);
	LAUNCH(internal, p);
	LAUNCH(anonymous, p);
	LAUNCH(unmangled, p);
	LAUNCH(space::nested, (space::shape *)p);
	LAUNCH(space::nested_internal, (space::shape *)p);
	LAUNCH((templated<int, 3>), p);
	LAUNCH((templated<float, 4>), f);
	LAUNCH(((void (*)(int *))overloaded), p);
	LAUNCH(((void (*)(float *))overloaded), f);
	LAUNCH((long_name<std::make_integer_sequence<int, 500>>), {}, p);
	space::apply<<<1, 1>>>([] __device__(int x) { return x + 1; }, p);
	space::apply<<<1, 1>>>([] __device__(int x) { return x + 2; }, p);
	other_file(p);
	return cudaGetLastError() != cudaSuccess;
}

int main(int argc, char **argv)
{
	return phases(&argc, argv, work);
}
