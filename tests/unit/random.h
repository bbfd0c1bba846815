/* SPDX-License-Identifier: BSD-2-Clause */
/* random.h - numbers that look random and are the same in each run, for tests, fuzzing's first inputs and benchmarks. */
#ifndef CT_TESTS_RANDOM_H
#define CT_TESTS_RANDOM_H

#include <stdint.h>

/* A state to begin with; every other one but 0 will do as well. */
#define RANDOM_SEED 88172645463325252ULL

/* Returns the next number, which is also the new state (Marsaglia's xorshift64). */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

#endif
