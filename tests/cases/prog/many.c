/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many.c - a small library with three of CUDA's functions, of which there can be many. With
 * OTHER the same functions lie elsewhere, and where the first ones began there is the middle of
 * an instruction. With BIG it is larger than the holes between other libraries. With PUSHED its
 * functions begin as a compiler's do that uses many registers: they can have hooks.
 */
#include <stddef.h>

#ifdef BIG
extern char big[200 << 20];
char big[200 << 20];
#endif
#if defined BIG || defined PUSHED
#include "../../../target/common/prologue.h"
#else
#define PUSHES() ((void)0)
#endif

int cudaMalloc(void **p, size_t n);
int cudaFree(void *p);
int cudaStreamQuery(void *stream);

#ifdef OTHER
int other(int n);
__attribute__((noinline)) int other(int n)
{
	static volatile long a;

	for (int i = 0; i < n; i++)
		a = a * 0x1234567890123 + 0x1234567;
	return (int)a;
}
int cudaStreamQuery(void *stream)
{
	return stream ? other(3) : 600;
}
#else
int cudaStreamQuery(void *stream)
{
	PUSHES();
	return stream ? 1 : 0;
}
#endif
int cudaMalloc(void **p, size_t n)
{
	*p = NULL;
	return n ? 2 : 0;
}
int cudaFree(void *p)
{
	return p ? 1 : 0;
}
