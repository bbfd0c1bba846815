/* SPDX-License-Identifier: BSD-2-Clause */
/* utf8.h - takes untrusted bytes apart. */
#ifndef CT_UTF8_H
#define CT_UTF8_H

#include "types.h"

/* Length (1 to 4) of the well-formed UTF-8 sequence at s (RFC 3629: no surrogates, no overlong
 * forms), at most n bytes; 0 when there is none. *code gets the code point. */
int utf8_next(const char *s, size_t n, uint32_t *code);

/* True when a terminal shows the code point as a glyph: no control (C0, C1, DEL), no
 * bidirectional override, no line or paragraph separator, no private or unassigned plane. */
bool utf8_is_safe(uint32_t code);

/* Writes a '?' over what a terminal does not show as a glyph, in place. */
void utf8_plain(char *s);

#endif
