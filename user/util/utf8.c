/* SPDX-License-Identifier: BSD-2-Clause */
/* utf8.c - see utf8.h. Knows nothing of JSON or terminals beyond what a code point is. */
#include <string.h>

#include "utf8.h"

int utf8_next(const char *str, size_t n, uint32_t *code)
{
	const unsigned char *s = (const unsigned char *)str;
	static const uint32_t min[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t c;
	int len;

	if (!n)
		return 0;
	if (s[0] < 0x80) {
		*code = s[0];
		return 1;
	}
	if (s[0] < 0xc2)
		return 0;
	len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
	if (!len || n < (size_t)len)
		return 0;
	c = s[0] & (0x7fu >> len);
	for (int i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < min[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*code = c;
	return len;
}

bool utf8_is_safe(uint32_t c)
{
	if (c < 0xa0)
		return c >= ' ' && c < 0x7f;
	if (c == 0xad || c == 0x61c || c == 0xfeff)
		return false;
	if ((c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	    (c >= 0x2060 && c <= 0x206f))
		return false;
	return (c < 0xe000 || c >= 0xf900) && c < 0xe0000;
}

void utf8_plain(char *s)
{
	size_t left = strlen(s);
	char *to = s;

	while (left) {
		uint32_t code;
		int len = utf8_next(s, left, &code);

		if (len && utf8_is_safe(code)) {
			memmove(to, s, (size_t)len);
			to += len;
		} else {
			*to++ = '?';
			len = len ? len : 1;
		}
		s += len;
		left -= (size_t)len;
	}
	*to = '\0';
}
