/* SPDX-License-Identifier: BSD-2-Clause */
/* text_utf8.h - untrusted bytes for formats whose strings must be UTF-8 and are no terminal's business. Knows no format. */
#ifndef CT_TEXT_UTF8_H
#define CT_TEXT_UTF8_H

#include "text.h"

/* Are all bytes well-formed UTF-8, without NUL? */
bool text_is_utf8(const char *s, size_t n);
/* Adds them; what is not becomes U+FFFD. */
void text_utf8(struct text *, const char *s, size_t n);

#endif
