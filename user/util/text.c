/* SPDX-License-Identifier: BSD-2-Clause */
/* text.c - see text.h. Knows no format and no event. */
#include <stdlib.h>
#include <string.h>

#include "put.h"
#include "utf8.h"
#include "text.h"

#define ENTRIES 1024 /* a power of two */
#define STORE_BYTES (16u << 20)

/* ---- a growing text ---- */

char *text_room(struct text *t, size_t n)
{
	size_t cap = t->cap ? t->cap : 256;
	char *s;

	if (t->cap - t->len >= n)
		return t->s + t->len;
	while (cap - t->len < n)
		cap *= 2;
	s = realloc(t->s, cap);
	if (!s) {
		t->bad = true;
		return NULL;
	}
	t->s = s;
	t->cap = cap;
	return s + t->len;
}

void text_mem(struct text *t, const void *s, size_t n)
{
	char *p = text_room(t, n);

	if (!p || !n)
		return;
	memcpy(p, s, n);
	t->len += n;
}

void text_str(struct text *t, const char *s)
{
	text_mem(t, s, strlen(s));
}

void text_u64(struct text *t, uint64_t v)
{
	char *p = text_room(t, PUT_U64_MAX);

	if (p)
		t->len += (size_t)(put_u64(p, v) - p);
}

void text_hex(struct text *t, uint64_t v)
{
	char *p = text_room(t, PUT_HEX_MAX);

	if (p)
		t->len += (size_t)(put_hex(p, v) - p);
}

void text_free(struct text *t)
{
	free(t->s);
	memset(t, 0, sizeof(*t));
}

/* ---- untrusted bytes ---- */

size_t text_cut(const char *s, size_t n)
{
	size_t back = n;

	/* a byte 10xxxxxx continues the sequence before it */
	while (back && n - back < 4 && ((unsigned char)s[back] & 0xc0) == 0x80)
		back--;
	return ((unsigned char)s[back] & 0xc0) == 0xc0 ? back : n;
}

static char *put_octal(char *p, unsigned char c)
{
	*p++ = '\\';
	*p++ = (char)('0' + (c >> 6));
	*p++ = (char)('0' + (c >> 3 & 7));
	*p++ = (char)('0' + (c & 7));
	return p;
}

char *escape_plain(char *p, const char *s, size_t n, bool doubled)
{
	while (n) {
		uint32_t code;
		int len;
		bool good;

		/* most names consist only of such bytes */
		if (*s >= ' ' && *s <= '~' && *s != '\\') {
			*p++ = *s++;
			n--;
			continue;
		}
		len = utf8_next(s, n, &code);
		good = len && utf8_is_safe(code);

		len = len ? len : 1;
		for (int i = 0; i < len; i++) {
			if (!good)
				p = put_octal(p, (unsigned char)s[i]);
			else
				*p++ = s[i];
		}
		if (good && doubled && code == '\\')
			*p++ = '\\';
		s += len;
		n -= (size_t)len;
	}
	return p;
}

void text_plain(struct text *t, const char *s, size_t max)
{
	size_t all = strnlen(s, max + 1), n = all > max ? text_cut(s, max) : all;
	char *p = text_room(t, n * 4 + 3);

	if (!p)
		return;
	p = escape_plain(p, s, n, true);
	if (n < all)
		p = put_lit(p, "...");
	t->len = (size_t)(p - t->s);
}

void text_utf8(struct text *t, const char *s, size_t n)
{
	char *p = text_room(t, n * 3 + 1);

	if (!p)
		return;
	while (n) {
		uint32_t code;
		int len = utf8_next(s, n, &code);

		p = len ? put_mem(p, s, (size_t)len) : put_lit(p, "\xef\xbf\xbd");
		len = len ? len : 1;
		s += len;
		n -= (size_t)len;
	}
	t->len = (size_t)(p - t->s);
}

bool text_is_utf8(const char *s, size_t n)
{
	while (n) {
		uint32_t code;
		int len = (unsigned char)*s < 0x80 ? 1 : utf8_next(s, n, &code);

		if (!len)
			return false;
		s += len;
		n -= (size_t)len;
	}
	return true;
}

char *escape_json(char *p, const char *s, size_t n)
{
	while (n) {
		unsigned char c = (unsigned char)*s;
		uint32_t code;
		int len;

		if (c >= ' ' && c < 0x7f) {
			if (c == '"' || c == '\\')
				*p++ = '\\';
			*p++ = (char)c;
			s++, n--;
			continue;
		}
		len = utf8_next(s, n, &code);
		if (!len) {
			p = put_lit(p, "\\ufffd");
			len = 1;
		} else if (code == '\n') {
			p = put_lit(p, "\\n");
		} else if (code == '\t') {
			p = put_lit(p, "\\t");
		} else if (!utf8_is_safe(code) && code < 0x10000) {
			/* valid JSON as it is, but this may be read on a terminal */
			p = put_lit(p, "\\u");
			for (int shift = 12; shift >= 0; shift -= 4)
				*p++ = "0123456789abcdef"[code >> shift & 15];
		} else {
			p = put_mem(p, s, (size_t)len);
		}
		s += len;
		n -= (size_t)len;
	}
	return p;
}

void text_json(struct text *t, const char *s, size_t max)
{
	size_t all = strnlen(s, max + 1), n = all > max ? text_cut(s, max) : all;
	char *p = text_room(t, n * 6 + 2);

	if (!p)
		return;
	*p++ = '"';
	p = escape_json(p, s, n);
	*p++ = '"';
	t->len = (size_t)(p - t->s);
}

/* ---- the store ---- */

struct stored_text {
	uint64_t key;
	bool used;
	char *check;
	struct text text;
};

struct texts {
	struct stored_text entries[ENTRIES];
	struct stored_text *last; /* filled since it was handed out: counted when the next one is */
	size_t bytes;
};

static struct stored_text *entry_of(const struct texts *ts, uint64_t key)
{
	return (struct stored_text *)&ts->entries[key * 0x9e3779b97f4a7c15 >> 54 & (ENTRIES - 1)];
}

static size_t entry_bytes(const struct stored_text *s)
{
	return s->text.cap + (s->check ? strlen(s->check) + 1 : 0);
}

static void entry_free(struct stored_text *s)
{
	text_free(&s->text);
	free(s->check);
	memset(s, 0, sizeof(*s));
}

struct texts *texts_open(void)
{
	return calloc(1, sizeof(struct texts));
}

static void empty(struct texts *ts)
{
	for (int i = 0; i < ENTRIES; i++)
		entry_free(&ts->entries[i]);
	ts->bytes = 0;
	ts->last = NULL;
}

void texts_close(struct texts *ts)
{
	if (ts)
		empty(ts);
	free(ts);
}

const struct text *texts_find(const struct texts *ts, uint64_t key, const char *check)
{
	const struct stored_text *s = entry_of(ts, key);

	if (!s->used || s->key != key || s->text.bad ||
	    (check && (!s->check || strcmp(s->check, check))))
		return NULL;
	return &s->text;
}

struct text *texts_add(struct texts *ts, uint64_t key, const char *check)
{
	struct stored_text *s = entry_of(ts, key);

	if (ts->last)
		ts->bytes += entry_bytes(ts->last);
	ts->last = NULL;
	if (ts->bytes > STORE_BYTES)
		empty(ts);
	if (s->used)
		ts->bytes -= entry_bytes(s);
	entry_free(s);
	if (check) {
		s->check = strdup(check);
		if (!s->check)
			return NULL;
	}
	s->key = key;
	s->used = true;
	ts->last = s;
	return &s->text;
}
