/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thrift.h - the bytes of Thrift's compact protocol, in which Parquet describes its files. A field's
 * number is written as the difference to the one before. Knows no format.
 */
#ifndef CT_THRIFT_H
#define CT_THRIFT_H

#include "../../util/text.h"

enum { THRIFT_I32 = 5, THRIFT_I64 = 6, THRIFT_BINARY = 8, THRIFT_LIST = 9, THRIFT_STRUCT = 12 };

static inline void thrift_varint(struct text *t, uint64_t v)
{
	unsigned char bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (unsigned char)(v | 0x80);
	bytes[n++] = (unsigned char)v;
	text_mem(t, bytes, n);
}

static inline void thrift_byte(struct text *t, unsigned int v)
{
	unsigned char byte = (unsigned char)v;

	text_mem(t, &byte, 1);
}

/* The head of field `id`; *last is the field before it in its struct, from 0 on. */
static inline void thrift_field(struct text *t, int *last, int id, unsigned int type)
{
	thrift_byte(t, (unsigned int)(id - *last) << 4 | type);
	*last = id;
}

static inline void thrift_end(struct text *t)
{
	thrift_byte(t, 0);
}

static inline void thrift_number(struct text *t, int64_t v)
{
	thrift_varint(t, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

static inline void thrift_i32(struct text *t, int *last, int id, int32_t v)
{
	thrift_field(t, last, id, THRIFT_I32);
	thrift_number(t, v);
}

static inline void thrift_i64(struct text *t, int *last, int id, uint64_t v)
{
	thrift_field(t, last, id, THRIFT_I64);
	thrift_number(t, (int64_t)v);
}

static inline void thrift_bytes(struct text *t, const void *s, size_t n)
{
	thrift_varint(t, n);
	text_mem(t, s, n);
}

static inline void thrift_binary(struct text *t, int *last, int id, const void *s, size_t n)
{
	thrift_field(t, last, id, THRIFT_BINARY);
	thrift_bytes(t, s, n);
}

/* The head of a list of n elements, which follow. */
static inline void thrift_list(struct text *t, int *last, int id, unsigned int type, size_t n)
{
	thrift_field(t, last, id, THRIFT_LIST);
	thrift_byte(t, (n < 15 ? (unsigned int)n : 15) << 4 | type);
	if (n >= 15)
		thrift_varint(t, n);
}

#endif
