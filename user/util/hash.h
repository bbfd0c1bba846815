/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hash.h - hashes of bytes, for tables in memory.
 *
 * They use a secret of this process, so a program that chooses names, addresses or handles cannot
 * choose them so that they collide. The same bytes have another hash in each run: a hash is never
 * stored, and no output may depend on the order of hashes. Two different inputs may still have the
 * same hash, so users compare the bytes too.
 */
#ifndef CT_HASH_H
#define CT_HASH_H

#include <string.h>

#include "types.h"

/* The secret: random from the beginning of the process on. The second word is odd. */
extern uint64_t hash_key[2];

/* Makes hashes the same in each run, for tests and fuzzing. Call it before any table is filled. */
void hash_fix_key(void);

/* Adds a word to a hash. The product has 128 bits, and its halves are added without carry: each bit
 * of the word reaches the low bits of the result in a way that depends on the secret. */
static inline uint64_t hash_word(uint64_t h, uint64_t word)
{
	unsigned __int128 p = (unsigned __int128)(h ^ word) * hash_key[1];

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* The hash of one number. The second round is for numbers that differ in only a few bits. */
static inline uint64_t hash_number(uint64_t number)
{
	return hash_word(hash_word(hash_key[0], number), hash_key[0]);
}

static inline uint64_t hash_bytes(const void *bytes, size_t n)
{
	uint64_t h = hash_key[0] + n, word;
	const char *at = bytes;

	for (; n >= 8; at += 8, n -= 8) {
		memcpy(&word, at, 8);
		h = hash_word(h, word);
	}
	word = 0;
	memcpy(&word, at, n);
	return hash_word(hash_word(h, word), hash_key[0]);
}

#endif
