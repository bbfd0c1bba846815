/* SPDX-License-Identifier: BSD-2-Clause */
/* kinds.c - see kinds.h. */
#include "kinds.h"

#define K(name, type, its_word, its_json, its_flags)  \
	[CT_##name] = { .word = its_word,             \
			.json = its_json,             \
			.fixed = sizeof(struct type), \
			.flags = its_flags },
const struct kind record_kinds[CT_KIND_END] = {
#include "kinds.def"
};

/* Each kind has its row. */
#undef K
#define K(name, ...) +1
_Static_assert(0
#include "kinds.def"
		       == CT_KIND_END - 1,
	       "a kind without a row in kinds.def");
