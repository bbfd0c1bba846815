/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * victims.c - functions to be hooked, built by both compilers with several flags. They call what they
 * are given, so that tests decide what happens inside a call.
 */
#include <stdarg.h>

#define VICTIM __attribute__((noinline, noclone, visibility("default")))
#ifdef __clang__
#undef VICTIM
#define VICTIM __attribute__((noinline, visibility("default")))
#endif

static volatile long sink;

VICTIM long victim_add(long a, long b)
{
	long kept[4] = { a, b, a, b };

	sink = (long)&kept;
	return kept[0] + kept[1];
}

/* A seventh and eighth argument are on the stack. */
VICTIM long victim_eight(long a, long b, long c, long d, long e, long f, long g, long h)
{
	sink = a;
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

VICTIM long victim_ten(long a, long b, long c, long d, long e, long f, long g, long h, long i,
		       long j)
{
	sink = a + b + c + d + e + f + g + h;
	return j - i;
}

VICTIM double victim_double(double a, float b, long c)
{
	sink = c;
	return a * b + (double)c;
}

struct pair {
	long a, b;
};
VICTIM struct pair victim_pair(long a, long b)
{
	sink = a;
	return (struct pair){ b, a };
}

struct large {
	long at[6];
};
VICTIM struct large victim_large(long a)
{
	struct large l;

	for (int i = 0; i < 6; i++)
		l.at[i] = a + i;
	return l;
}

VICTIM long victim_variadic(int n, ...)
{
	double sum = 0;
	va_list args;

	va_start(args, n);
	for (int i = 0; i < n; i++)
		sum += i & 1 ? va_arg(args, double) : (double)va_arg(args, long);
	va_end(args);
	return (long)sum;
}

VICTIM long victim_call(long (*f)(void *), void *arg)
{
	long r = f(arg);

	sink = r;
	return r + 1;
}

VICTIM long victim_call2(long (*f)(void *), void *arg)
{
	long r = f(arg);

	sink = r;
	return r + 10;
}

/* Ends with a jump to another victim, with -O2. */
VICTIM long victim_tail(long a, long b)
{
	sink = a;
	return victim_add(a + 1, b);
}

VICTIM long victim_recurse(long n)
{
	long kept = n;

	sink = (long)&kept;
	return n ? victim_recurse(n - 1) + 1 : 100;
}

VICTIM long victim_many(long a, long b, long c, long d, long (*f)(long))
{
	long x = f(a) + b, y = f(b) + c, z = f(c) + d, w = f(d) + a;

	return x * y + z * w + f(x + y) + f(z + w);
}
