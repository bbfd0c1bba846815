/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * strings.h - strings of bytes that are kept once and known by a number, up to a limit. Knows no
 * format and no domain.
 *
 * Strings that need not stay in memory once they are written have a table of another kind
 * (sink/nsys_strings.c).
 */
#ifndef CT_STRINGS_H
#define CT_STRINGS_H

#include "types.h"

#define STRINGS_NONE UINT32_MAX

struct strings {
	size_t len; /* bytes of all strings together, with a NUL for each */
	uint32_t n;
	/* the rest is its own */
	uint32_t first; /* number of the first one */
	uint32_t most, cap_n, most_bytes;
	size_t cap;
	char *bytes; /* one after the other, each with a NUL */
	struct strings_entry {
		uint32_t at, hash;
	} * entries;	 /* and one more, which ends the last string */
	uint32_t *table; /* index + 1, by hash; 0: free; twice cap_n */
};

/* At most `most` strings of `most_bytes` bytes together. Returns 0 or -ENOMEM; strings_free() is
 * safe then. */
int strings_init(struct strings *, uint32_t most_bytes, uint32_t most);
void strings_free(struct strings *); /* safe when zeroed */
/* The number of the n bytes: 0, 1, 2... in the order in which they first came. STRINGS_NONE: no
 * room. Where `n` of the struct has changed, the string is new. */
uint32_t strings_add(struct strings *, const void *, size_t n);
/* The string with a NUL behind it. Valid until the next strings_add(). */
static inline const char *strings_get(const struct strings *s, uint32_t number)
{
	return s->bytes + s->entries[number - s->first].at;
}
/* Forgets them all. Numbers are never given twice: what comes again gets a new one. */
void strings_forget(struct strings *);

#endif
