/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proto.h - writes the wire format of Protocol Buffers at a pointer and returns the new end. Only
 * for the hot path: an event with nine arguments takes protobuf-c half a microsecond, and this code
 * a tenth of that. The caller has reserved the room. Knows no message.
 */
#ifndef CT_PROTO_H
#define CT_PROTO_H

#include <string.h>

#include "types.h"

#define PROTO_FIELD_MAX 16 /* tag and number, or tag and length */

enum proto_wire { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2 };

static inline size_t proto_varint_len(uint64_t v)
{
	return 1 + (63 - (size_t)__builtin_clzll(v | 1)) / 7;
}

static inline char *proto_varint(char *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (char)(v | 0x80);
		v >>= 7;
	}
	*p++ = (char)v;
	return p;
}

static inline char *proto_tag(char *p, uint32_t field, enum proto_wire wire)
{
	return proto_varint(p, field << 3 | wire);
}

static inline char *proto_u64(char *p, uint32_t field, uint64_t v)
{
	return proto_varint(proto_tag(p, field, PROTO_VARINT), v);
}

static inline char *proto_fixed64(char *p, uint32_t field, uint64_t v)
{
	p = proto_tag(p, field, PROTO_FIXED64);
	for (int i = 0; i < 8; i++, v >>= 8)
		*p++ = (char)v;
	return p;
}

static inline char *proto_double(char *p, uint32_t field, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return proto_fixed64(p, field, bits);
}

static inline char *proto_bytes(char *p, uint32_t field, const void *s, size_t n)
{
	p = proto_varint(proto_tag(p, field, PROTO_BYTES), n);
	if (n) /* s may be NULL then */
		memcpy(p, s, n);
	return p + n;
}

/* Begins a submessage: it consists of what is written from the returned pointer on until
 * proto_close(). */
static inline char *proto_open(char *p, uint32_t field)
{
	return proto_tag(p, field, PROTO_BYTES) + 1;
}

/* `begin` is what proto_open() returned, p the end of the submessage: up to 4 bytes more are
 * needed for a long one. */
static inline char *proto_close(char *begin, char *p)
{
	size_t n = (size_t)(p - begin), more = 0;

	for (size_t v = n; v >= 0x80; v >>= 7)
		more++;
	if (more)
		memmove(begin + more, begin, n);
	proto_varint(begin - 1, n);
	return p + more;
}

#endif
