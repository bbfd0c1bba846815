/* SPDX-License-Identifier: BSD-2-Clause */
/* strings.h - texts that are kept once and known by a number from 0 on, up to a limit of bytes. Knows no format. */
#ifndef CT_STRINGS_H
#define CT_STRINGS_H

#include "../util/types.h"

#define STRINGS_NONE UINT32_MAX

struct strings {
	char *bytes;	 /* one after the other, each with a NUL */
	size_t len, cap, most;
	size_t *at;	 /* where each begins */
	uint32_t n, cap_n;
	uint32_t *table; /* number + 1, by hash; 0: free; twice cap_n */
};

/* `most`: bytes of all texts together. Returns 0 or -ENOMEM; strings_free() is safe then. */
int strings_init(struct strings *, size_t most);
void strings_free(struct strings *);
/* The number of the first n bytes of s, which have no NUL. STRINGS_NONE: no room. */
uint32_t strings_add(struct strings *, const char *s, size_t n);
const char *strings_get(const struct strings *, uint32_t i);

#endif
