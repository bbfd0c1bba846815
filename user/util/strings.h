/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * strings.h - strings of bytes that are stored once each and have a number, up to a limit. Knows no
 * format and no domain.
 *
 * Strings that need not stay in memory after they are written have another table
 * (export/nsys/nsys_strings.c).
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
	} * entries;	 /* and one more entry, the end of the last string */
	uint32_t *table; /* index + 1, by hash; 0: free; twice cap_n */
};

/* Prepares a table of at most `most` strings with together `most_bytes` bytes. Returns 0 or
 * -ENOMEM; strings_free() may be called in both cases. */
int strings_init(struct strings *, uint32_t most_bytes, uint32_t most);
void strings_free(struct strings *); /* safe when zeroed */
/* Returns the number of the n bytes: 0, 1, 2... in the order in which they first came, or
 * STRINGS_NONE if there is no room. If the struct's `n` has changed, the string is new. */
uint32_t strings_add(struct strings *, const void *, size_t n);
/* Returns the string, followed by a NUL. Valid until the next strings_add(). */
static inline const char *strings_get(const struct strings *s, uint32_t number)
{
	return s->bytes + s->entries[number - s->first].at;
}
/* Forgets all strings. A number is never given twice: a string that comes again gets a new one. */
void strings_forget(struct strings *);

#endif
