/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hooks_pack.c - see hooks_pack.h. A packed record is a word with the record's size (the low 16 bits)
 * and which of its first 48 words follow (a bit for each, above), and then these words.
 */
#include <string.h>

#include "hooks_pack.h"

#define HEAD_WORDS (sizeof(struct ct_hdr) / 8)

_Static_assert(sizeof(struct ct_hdr) % 8 == 0, "a head is whole words");

size_t hooks_pack_put(struct hooks_pack *p, void *to, const struct ct_hdr *head, const void *rest)
{
	size_t words = head->size / 8, n = 1;
	uint64_t own[HEAD_WORDS], changed = 0, *out = to;
	const uint64_t *in = rest;

	memcpy(own, head, sizeof(own));
	for (size_t i = 0; i < words; i++) {
		uint64_t word = i < HEAD_WORDS
					? own[i]
					: __atomic_load_n(&in[i - HEAD_WORDS], __ATOMIC_RELAXED);

		/* written in any case, and kept if it counts */
		out[n] = word;
		if (i < HOOKS_PACK_WORDS) {
			uint64_t differs = word != p->before[i];

			p->before[i] = word;
			changed |= differs << i;
			n += differs;
		} else {
			n++;
		}
	}
	out[0] = head->size | changed << 16;
	return n * 8;
}

size_t hooks_pack_get(struct hooks_pack *p, const void *from, void *rec)
{
	const uint64_t *in = from;
	size_t words = (in[0] & 0xffff) / 8, n = 1;
	uint64_t changed = in[0] >> 16, *out = rec;

	for (size_t i = 0; i < words; i++) {
		if (i >= HOOKS_PACK_WORDS) {
			out[i] = in[n++];
			continue;
		}
		if (changed >> i & 1)
			p->before[i] = in[n++];
		out[i] = p->before[i];
	}
	return n * 8;
}
