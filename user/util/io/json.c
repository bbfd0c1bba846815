/* SPDX-License-Identifier: BSD-2-Clause */
/* json.c - see json.h. */
#include <math.h>
#include <string.h>

#include "../text.h"
#include "json.h"

#define STRING_MAX 65536
#define PIECE 4096 /* bytes of a string that are escaped at a time */

/* The comma, the line and the key before a value. */
static void json_begin(struct json *j, const char *key)
{
	uint32_t here = 1u << j->depth;

	INVARIANT(!j->depth || !key == !!(j->arrays & here));
	if (j->depth && j->filled & here)
		out_char(j->out, ',');
	j->filled |= here;
	if (j->line)
		out_fmt(j->out, "\n%s", j->line);
	j->line = NULL;
	if (key)
		out_fmt(j->out, "\"%s\":", key);
}

static void open_one(struct json *j, const char *key, bool array)
{
	uint32_t inside;

	json_begin(j, key);
	out_char(j->out, array ? '[' : '{');
	INVARIANT(j->depth + 1 < JSON_DEPTH);
	inside = 1u << ++j->depth;
	j->filled &= ~inside;
	j->arrays = array ? j->arrays | inside : j->arrays & ~inside;
}

void json_open_object(struct json *j, const char *key)
{
	open_one(j, key, false);
}

void json_open_array(struct json *j, const char *key)
{
	open_one(j, key, true);
}

void json_end(struct json *j)
{
	INVARIANT(j->depth);
	out_char(j->out, j->arrays & 1u << j->depth-- ? ']' : '}');
}

void json_line(struct json *j, const char *blanks)
{
	j->line = blanks;
}

void json_put_u64(struct json *j, const char *key, uint64_t v)
{
	json_begin(j, key);
	out_fmt(j->out, "%llu", (unsigned long long)v);
}

void json_put_i64(struct json *j, const char *key, int64_t v)
{
	json_begin(j, key);
	out_fmt(j->out, "%lld", (long long)v);
}

void json_put_hex(struct json *j, const char *key, uint64_t v)
{
	json_begin(j, key);
	out_fmt(j->out, "\"0x%llx\"", (unsigned long long)v);
}

void json_put_bool(struct json *j, const char *key, bool v)
{
	json_begin(j, key);
	out_str(j->out, v ? "true" : "false");
}

void json_put_null(struct json *j, const char *key)
{
	json_begin(j, key);
	out_str(j->out, "null");
}

void json_put_real(struct json *j, const char *key, int decimals, double v)
{
	json_begin(j, key);
	if (isfinite(v))
		out_fmt(j->out, "%.*f", decimals, v);
	else
		out_str(j->out, "null");
}

void json_put_digits(struct json *j, const char *key, int digits, double v)
{
	json_begin(j, key);
	if (isfinite(v))
		out_fmt(j->out, "%.*g", digits, v);
	else
		out_str(j->out, "null");
}

void json_put_double(struct json *j, const char *key, double v)
{
	json_begin(j, key);
	out_double(j->out, v);
}

void json_put_bytes(struct json *j, const char *key, const char *s, size_t n)
{
	size_t len;

	json_begin(j, key);
	out_char(j->out, '"');
	for (size_t at = 0; at < n; at += len) {
		char *p = out_reserve(j->out, PIECE * 6);

		len = n - at <= PIECE ? n - at : text_cut(s + at, PIECE);
		out_commit(j->out, (size_t)(escape_json(p, s + at, len) - p));
	}
	out_char(j->out, '"');
}

void json_put_str(struct json *j, const char *key, const char *s)
{
	size_t n = s ? strnlen(s, STRING_MAX + 1) : 0;

	if (!s)
		json_put_null(j, key);
	else
		json_put_bytes(j, key, s, n > STRING_MAX ? text_cut(s, STRING_MAX) : n);
}
