/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h - texts of any length that are made once and printed often: a growing text, the two
 * ways to make untrusted bytes harmless, and a bounded store of finished texts. Knows no format
 * and no event.
 */
#ifndef CT_TEXT_H
#define CT_TEXT_H

#include "types.h"

/* A growing text, not NUL-terminated. `bad`: there was no memory for all of it. All zero: empty. */
struct text {
	char *s;
	size_t len, cap;
	bool bad;
};

/* Room for n more bytes at the end, where put_*() may write; then len is to be raised. NULL: no
 * memory. */
char *text_room(struct text *, size_t n);
void text_mem(struct text *, const void *, size_t n);
void text_str(struct text *, const char *);
void text_u64(struct text *, uint64_t);
void text_hex(struct text *, uint64_t); /* with 0x */
void text_free(struct text *);

/*
 * Bytes of a name, as they may reach a terminal: invalid UTF-8 and characters that a terminal
 * does not show as a glyph become octal escapes of their bytes, a backslash is doubled. Of more
 * than `max` bytes the first ones and "...".
 */
void text_plain(struct text *, const char *s, size_t max);
/* The same at p, where there are 4 bytes of room for each byte of s. doubled: as a backslash is
 * there. Returns the end. */
char *escape_plain(char *p, const char *s, size_t n, bool doubled);
/* A JSON string with its quotes; see escape_json(). Of more than `max` bytes the first ones. */
void text_json(struct text *, const char *s, size_t max);

/* n bytes as well-formed UTF-8, for programs that refuse anything else: what is not well-formed becomes U+FFFD, the rest is not changed. */
void text_utf8(struct text *, const char *s, size_t n);
/* True if the bytes are well-formed UTF-8. */
bool text_is_utf8(const char *s, size_t n);

/* The letters and escapes of a JSON string without its quotes: what is no UTF-8 becomes U+FFFD,
 * what a terminal does not show as a glyph a \u escape. Writes at most 6 bytes for each of s.
 * Returns the end. */
char *escape_json(char *p, const char *s, size_t n);

/* How many of the first n bytes of s can be kept so that no UTF-8 sequence is torn; n is less
 * than the length of s. */
size_t text_cut(const char *s, size_t n);

/*
 * A store of finished texts by key. If two keys need the same place, the later one gets it;
 * beyond some megabytes the store begins again, empty. `check` tells things of the same key
 * apart (NULL: the key is enough).
 */
struct texts;
/* A key for a thing at an address: with its text as `check`, for another may come to lie there. */
static inline uint64_t texts_key(const void *at, unsigned int what)
{
	return (uint64_t)(uintptr_t)at ^ (uint64_t)what << 56;
}
struct texts *texts_open(void); /* NULL: no memory */
void texts_close(struct texts *);
/* The text; NULL: not there. */
const struct text *texts_find(const struct texts *, uint64_t key, const char *check);
/* An empty text to fill in, which texts_find() gives from then on. Valid until the next
 * texts_add(). NULL: no memory. */
struct text *texts_add(struct texts *, uint64_t key, const char *check);

#endif
