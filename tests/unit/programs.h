/* SPDX-License-Identifier: BSD-2-Clause */
/* programs.h - for tests with programs that nvcc made: where they are, texts for their paths, and numbers
 * for damage that is the same in each run. */
#ifndef CT_PROGRAMS_H
#define CT_PROGRAMS_H

#include <stdarg.h>

#include "random.h"
#include "unit.h"

#define PROGRAMS ".output/programs"

static inline char *text(const char *fmt, ...)
{
	static char buf[16][4096];
	static int at;
	va_list ap;

	at = (at + 1) % 16;
	va_start(ap, fmt);
	vsnprintf(buf[at], sizeof(buf[at]), fmt, ap);
	va_end(ap);
	return buf[at];
}

static uint64_t seed = 0x2545f4914f6cdd1dULL;

static inline uint64_t any(uint64_t n)
{
	return random_next(&seed) % n;
}

#endif
