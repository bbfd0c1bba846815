/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h - texts of any length that are made once and printed often: a growing text, the two ways
 * to make untrusted bytes harmless, and a bounded store of finished texts. Knows no format and no
 * event.
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

/* Returns room for n more bytes at the end, where put_*() may write; the caller then raises len.
 * NULL: no memory. */
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
/* The same at p, where there is room for 4 bytes for each byte of s. doubled: a backslash is
 * doubled. Returns the end. */
char *escape_plain(char *p, const char *s, size_t n, bool doubled);
/* A JSON string with its quotes; see escape_json(). Of more than `max` bytes the first ones. */
void text_json(struct text *, const char *s, size_t max);

/* Appends n bytes as well-formed UTF-8, for programs that refuse anything else: invalid parts
 * become U+FFFD, the rest is not changed. */
void text_utf8(struct text *, const char *s, size_t n);
/* True if the bytes are well-formed UTF-8. */
bool text_is_utf8(const char *s, size_t n);

/* Writes a JSON string without its quotes: invalid UTF-8 becomes U+FFFD, and a character that a
 * terminal does not show as a glyph a \u escape. Writes at most 6 bytes for each byte of s.
 * Returns the end. */
char *escape_json(char *p, const char *s, size_t n);

/* Returns how many of the first n bytes of s can be kept without cutting a UTF-8 sequence; n is
 * less than the length of s. */
size_t text_cut(const char *s, size_t n);

/*
 * A store of finished texts by key. If two keys need the same place, the later one gets it; beyond
 * some megabytes the store begins again, empty. `check` tells structs of the same key apart (NULL:
 * the key is enough).
 */
struct texts;
/* A key for a struct at an address. The text is the `check`, because another struct may come to
 * lie there. */
static inline uint64_t texts_key(const void *at, unsigned int what)
{
	return (uint64_t)(uintptr_t)at ^ (uint64_t)what << 56;
}
struct texts *texts_open(void); /* NULL: no memory */
void texts_close(struct texts *);
/* Returns the text; NULL if it is not there. */
const struct text *texts_find(const struct texts *, uint64_t key, const char *check);
/* Returns an empty text to fill in, which texts_find() returns from then on. Valid until the
 * next texts_add(). NULL: no memory. */
struct text *texts_add(struct texts *, uint64_t key, const char *check);

#endif
