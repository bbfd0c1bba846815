/* SPDX-License-Identifier: BSD-2-Clause */
/* seed.c - a small library with what fuzz_elf.c looks for: functions, inlined ones, a variable
 * with the name of a kernel's handle; and a struct with what fuzz_dwarf.c asks for. */
extern long cudaSeed(long);
extern long _Z6kernelPf(long);
long _ZZ14__device_stub__Z6kernelPfE8__handle;

enum seed_kind { SEED_ONE, SEED_TWO };
struct seed {
	int rank;
	long counts[3];
	enum seed_kind kind;
} the_seed;

static inline __attribute__((always_inline)) long twice(long n)
{
	return n * 2 + _ZZ14__device_stub__Z6kernelPfE8__handle;
}

long _Z6kernelPf(long n)
{
	return n > 3 ? twice(n) + _Z6kernelPf(n - 1) : n;
}

long cudaSeed(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += twice(i) ^ _Z6kernelPf(i);
	return sum;
}
