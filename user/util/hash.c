/* SPDX-License-Identifier: BSD-2-Clause */
/* hash.c - see hash.h. */
#include <sys/random.h>
#include <time.h>

#include "hash.h"

uint64_t hash_key[2] = { 0x243f6a8885a308d3ULL, 0x9e3779b97f4a7c15ULL };

#ifndef CT_FIXED_HASH /* for fuzzing, where an input must have the same effect each time */
/* This runs before main(), so that no table can be filled with another secret. */
static __attribute__((constructor)) void choose_key(void)
{
	uint64_t random[2];

	/* soon after the machine has started there may be no random numbers yet */
	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != sizeof(random)) {
		random[0] = (uint64_t)(uintptr_t)&random;
		random[1] = (uint64_t)time(NULL) << 32 ^ random[0] >> 4;
	}
	hash_key[0] ^= random[0];
	hash_key[1] ^= random[1];
	hash_key[1] |= 1ULL << 63 | 1;
}
#endif

void hash_fix_key(void)
{
	hash_key[0] = 0x243f6a8885a308d3ULL;
	hash_key[1] = 0x9e3779b97f4a7c15ULL;
}
