/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * put.h - writes numbers and text at a pointer and returns the new end. This is the hot path of
 * the text formats: no printf, no length checks; the caller has reserved the room
 * (out_reserve). Knows nothing of what it writes.
 */
#ifndef CT_PUT_H
#define CT_PUT_H

#include <string.h>

#include "types.h"

#define PUT_U64_MAX 20 /* digits of the largest u64 */
#define PUT_HEX_MAX 18 /* with 0x */

extern const char put_digits[201]; /* "00" to "99" */

static inline char *put_mem(char *p, const void *s, size_t n)
{
	memcpy(p, s, n);
	return p + n;
}

#define put_lit(p, lit) put_mem(p, "" lit, sizeof(lit) - 1)

static inline char *put_str(char *p, const char *s)
{
	return put_mem(p, s, strlen(s));
}

static inline char *put_char(char *p, char c)
{
	*p = c;
	return p + 1;
}

static inline char *put_u64(char *p, uint64_t v)
{
	char tmp[PUT_U64_MAX], *t = tmp + sizeof(tmp);

	if (v < 10)
		return put_char(p, (char)('0' + v));
	while (v >= 100) {
		t -= 2;
		memcpy(t, put_digits + v % 100 * 2, 2);
		v /= 100;
	}
	if (v >= 10) {
		t -= 2;
		memcpy(t, put_digits + v * 2, 2);
	} else {
		*--t = (char)('0' + v);
	}
	return put_mem(p, t, (size_t)(tmp + sizeof(tmp) - t));
}

static inline char *put_i64(char *p, int64_t v)
{
	if (v >= 0)
		return put_u64(p, (uint64_t)v);
	*p = '-';
	return put_u64(p + 1, -(uint64_t)v);
}

/* Three digits, for the part after a decimal point: v < 1000. */
static inline char *put_3digits(char *p, unsigned int v)
{
	*p++ = (char)('0' + v / 100);
	return put_mem(p, put_digits + v % 100 * 2, 2);
}

/* Bare digits without 0x and without leading zeros. */
static inline char *put_hexdigits(char *p, uint64_t v)
{
	int n = v ? (67 - __builtin_clzll(v)) / 4 : 1;

	for (int i = n - 1; i >= 0; i--) {
		p[i] = "0123456789abcdef"[v & 15];
		v >>= 4;
	}
	return p + n;
}

static inline char *put_hex(char *p, uint64_t v)
{
	*p++ = '0';
	*p++ = 'x';
	return put_hexdigits(p, v);
}

/* The fewest digits that give the same number when they are read again; whole numbers in full.
 * `single`: the number came from a 4-byte float, and the digits only have to give the same
 * float. Needs at most PUT_DOUBLE_MAX bytes; v is finite. */
#define PUT_DOUBLE_MAX 32
char *put_double(char *p, double v, bool single);

/* Spaces until the text that began at `from` is `width` bytes wide. */
static inline char *put_pad(char *p, const char *from, int width)
{
	while (p - from < width)
		*p++ = ' ';
	return p;
}

#endif
