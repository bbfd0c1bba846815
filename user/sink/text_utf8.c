/* SPDX-License-Identifier: BSD-2-Clause */
/* text_utf8.c - see text_utf8.h. */
#include "text_utf8.h"
#include "../util/utf8.h"

/* How many bytes from s on are well-formed. */
static size_t good(const char *s, size_t n)
{
	uint32_t code;
	size_t i = 0;

	while (i < n) {
		int len = (unsigned char)(s[i] - 1) < 0x7f ? 1 : s[i] ? utf8_next(s + i, n - i, &code) : 0;

		if (!len)
			break;
		i += (size_t)len;
	}
	return i;
}

bool text_is_utf8(const char *s, size_t n)
{
	return good(s, n) == n;
}

void text_utf8(struct text *t, const char *s, size_t n)
{
	while (n) {
		size_t len = good(s, n);

		text_mem(t, s, len);
		s += len;
		n -= len;
		if (!n)
			break;
		text_mem(t, "\xef\xbf\xbd", 3);
		s++;
		n--;
	}
}
