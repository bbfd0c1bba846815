/* SPDX-License-Identifier: BSD-2-Clause */
/* html_pack.c - see html_pack.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "html_pack.h"

#define LEVEL 5 /* level 9 takes three times as long and saves only 2 % */
#define MOST (256u << 20)

void pack_u64(struct text *t, uint64_t v)
{
	char *p = text_room(t, 10);

	if (!p)
		return;
	for (; v > 127; v >>= 7)
		*p++ = (char)(v | 128);
	*p++ = (char)v;
	t->len = (size_t)(p - t->s);
}

void pack_i64(struct text *t, int64_t v)
{
	pack_u64(t, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

void pack_f64(struct text *t, double v)
{
	uint64_t bits;
	char *p = text_room(t, 8);

	if (!p)
		return;
	memcpy(&bits, &v, 8);
	for (int i = 0; i < 8; i++)
		*p++ = (char)(bits >> 8 * i);
	t->len += 8;
}

static void base64(struct out *out, const unsigned char *s, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	while (n) {
		size_t part = n < 12288 ? n : 12288; /* a multiple of 3 */
		char *begin = out_reserve(out, part / 3 * 4 + 4), *p = begin;

		n -= part;
		for (; part > 2; s += 3, part -= 3) {
			*p++ = digits[s[0] >> 2];
			*p++ = digits[(s[0] & 3) << 4 | s[1] >> 4];
			*p++ = digits[(s[1] & 15) << 2 | s[2] >> 6];
			*p++ = digits[s[2] & 63];
		}
		if (part) {
			*p++ = digits[s[0] >> 2];
			*p++ = digits[(s[0] & 3) << 4 | (part == 2 ? s[1] >> 4 : 0)];
			*p++ = part == 2 ? digits[(s[1] & 15) << 2] : '=';
			*p++ = '=';
		}
		out_commit(out, (size_t)(p - begin));
	}
}

int pack_write(struct out *out, const char *class, uint64_t first, const void *data, size_t len)
{
	unsigned char *packed;
	uLongf n;
	int err;

	if (len > MOST)
		return -E2BIG;
	n = compressBound(len);
	packed = malloc(n);
	if (!packed)
		return -ENOMEM;
	err = compress2(packed, &n, data, len, LEVEL);
	if (err == Z_OK) {
		out_fmt(out, "<script type=\"text/plain\" class=\"%s\" data-first=\"%llu\">", class,
			(unsigned long long)first);
		base64(out, packed, n);
		out_str(out, "</script>\n");
	}
	free(packed);
	return err == Z_OK ? out->error : -ENOMEM;
}
