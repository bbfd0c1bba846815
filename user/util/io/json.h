/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.h - writes JSON: commas, quotes and escapes are made here, and every object or array that
 * was opened is closed. A key is a word of ours; it is NULL in an array and at the top. Values are
 * untrusted bytes. Code that writes a row for each event does it in its own way (export/rows),
 * because its time is measured in nanoseconds.
 */
#ifndef CT_JSON_H
#define CT_JSON_H

#include "out.h"

#define JSON_DEPTH 16 /* how deep objects and arrays may be nested */

struct json {
	struct out *out;
	uint32_t arrays, filled; /* bit i: what is open at depth i is an array; has a member */
	unsigned int depth;
	const char *line; /* written before the next member; NULL: nothing */
};

static inline struct json json_to(struct out *o)
{
	return (struct json){ .out = o };
}

void json_open_object(struct json *, const char *key);
void json_open_array(struct json *, const char *key);
/* Closes the object or array that was opened last. */
void json_end(struct json *);
/* The next member is written on a line of its own, after these blanks. */
void json_line(struct json *, const char *blanks);

void json_put_u64(struct json *, const char *key, uint64_t);
void json_put_i64(struct json *, const char *key, int64_t);
/* Writes 0x... in quotes, because JavaScript's numbers cannot hold an address. */
void json_put_hex(struct json *, const char *key, uint64_t);
void json_put_bool(struct json *, const char *key, bool);
void json_put_null(struct json *, const char *key);
/* With this number of decimals; null if v is not a number. */
void json_put_real(struct json *, const char *key, int decimals, double);
/* With this number of significant digits, without zeros at the end; null if v is not a number. */
void json_put_digits(struct json *, const char *key, int digits, double);
/* As out_double() writes it. */
void json_put_double(struct json *, const char *key, double);
/* The bytes up to a NUL, at most 64 KiB of them; null if s is NULL. */
void json_put_str(struct json *, const char *key, const char *);
/* A string of n bytes. */
void json_put_bytes(struct json *, const char *key, const char *, size_t n);

#endif
