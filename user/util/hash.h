/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hash.h - a hash of bytes for tables in memory: somebody who can choose the bytes can make two of
 * them collide, so the bytes themselves are compared too. Not the same on machines of another byte
 * order: never to be stored.
 */
#ifndef CT_HASH_H
#define CT_HASH_H

#include <string.h>

#include "types.h"

static inline uint64_t hash_bytes(const void *bytes, size_t n)
{
	uint64_t h = n * 0x9e3779b97f4a7c15ULL, word;
	const char *at = bytes;

	for (; n >= 8; at += 8, n -= 8) {
		memcpy(&word, at, 8);
		h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 29;
	}
	word = 0;
	memcpy(&word, at, n);
	h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 32;
}

#endif
