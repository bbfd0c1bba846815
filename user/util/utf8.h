/* SPDX-License-Identifier: BSD-2-Clause */
/* utf8.h - takes untrusted bytes apart. */
#ifndef CT_UTF8_H
#define CT_UTF8_H

#include "types.h"

/* Returns the length (1 to 4) of the well-formed UTF-8 sequence at s (RFC 3629: no surrogates,
 * no overlong forms), of at most n bytes; 0 if there is none. *code is the code point. */
int utf8_next(const char *s, size_t n, uint32_t *code);

/* Whether a terminal shows the code point as a glyph: it is no control character (C0, C1, DEL),
 * no bidirectional override, no line or paragraph separator, and in no private or unassigned
 * plane. */
bool utf8_is_safe(uint32_t code);

/* Replaces each byte that a terminal does not show as part of a glyph by '?', in place. */
void utf8_plain(char *s);

#endif
