/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * patch_trace.h - makes a recording of another version: changes function definitions in the
 * blocks of a file and sets the sums right again, as whoever wrote such a file would have had
 * them.
 */
#ifndef CT_PATCH_TRACE_H
#define CT_PATCH_TRACE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "../../user/trace/format.h"

/* In one column of uncompressed bytes: the definition of the function `from` gets the name `to`
 * (of the same length), and with `layout` another sum of its layout. Returns how many. */
static inline int patch_column(char *col, size_t len, const char *from, const char *to, int layout)
{
	size_t n = strlen(from);
	int found = 0;

	for (char *p = col; (p = memmem(p, len - (size_t)(p - col), from, n)); p += n) {
		char *def;
		struct trace_func_def d;

		/* the strings are domain, class, name: the definition lies before them */
		for (def = p - 1; def > col && def > p - 64; def--) {
			if (def < col + sizeof(d))
				break;
			memcpy(&d, def - sizeof(d), sizeof(d));
			if (d.name_len == n && def + d.domain_len + d.class_len == p)
				break;
		}
		if (def < col + sizeof(d) || d.name_len != n ||
		    def + d.domain_len + d.class_len != p)
			continue;
		memcpy(p, to, n);
		d.layout += (uint64_t)layout;
		memcpy(def - sizeof(d), &d, sizeof(d));
		found++;
	}
	return found;
}

/* The body of a TRACE_DATA block, rewritten into `out` with its columns as they are. Returns the
 * new length. */
static inline size_t patch_body(const char *body, char *out, const char *from, const char *to,
				int layout, int *found)
{
	uint32_t n[COL_END][2];
	const char *at = body + 1 + sizeof(n);
	char *o = out + 1 + sizeof(n);

	memcpy(n, body + 1, sizeof(n));
	for (int i = 0; i < COL_END; i++) {
		if (n[i][0] == n[i][1])
			memcpy(o, at, n[i][0]);
		else if (ZSTD_decompress(o, n[i][0], at, n[i][1]) != n[i][0])
			return 0;
		at += n[i][1];
		n[i][1] = n[i][0];
		if (i == COL_OTHER)
			*found += patch_column(o, n[i][0], from, to, layout);
		o += n[i][0];
	}
	out[0] = COL_END;
	memcpy(out + 1, n, sizeof(n));
	return (size_t)(o - out);
}

/* The length of the body with its columns as they are. */
static inline size_t patch_length(const char *body, const struct trace_block *b)
{
	uint32_t n[COL_END][2];
	size_t sum = b->len;

	if (b->type != TRACE_DATA || b->len < 1 + sizeof(n))
		return sum;
	memcpy(n, body + 1, sizeof(n));
	for (int i = 0; i < COL_END; i++)
		sum += n[i][0];
	return sum;
}

/* The blocks of a file, changed, into *out, which grows. Returns the number of definitions that
 * were changed, or -1. */
static inline int patch_blocks(const char *in, size_t size, char **out, size_t *o, const char *from,
			       const char *to, int layout)
{
	int found = 0;

	for (size_t at = TRACE_MAGIC_LEN; at < size;) {
		struct trace_block b;
		const char *body = in + at + sizeof(b);
		char *more;

		if (size - at < sizeof(b))
			return -1;
		memcpy(&b, in + at, sizeof(b));
		if (size - at - sizeof(b) < b.len)
			return -1;
		at += sizeof(b) + b.len;
		if (b.type == TRACE_INDEX)
			continue;
		more = realloc(*out, *o + sizeof(b) + patch_length(body, &b));
		if (!more)
			return -1;
		*out = more;
		more += *o + sizeof(b);
		if (b.type == TRACE_DATA && b.len < 1 + sizeof(uint32_t[COL_END][2]))
			return -1;
		if (b.type == TRACE_DATA) {
			b.len = (uint32_t)patch_body(body, more, from, to, layout, &found);
			if (!b.len)
				return -1;
		} else {
			memcpy(more, body, b.len);
		}
		b.body_crc = (uint32_t)crc32(0, (const void *)more, b.len);
		b.head_crc = (uint32_t)crc32(0, (const void *)&b,
					     offsetof(struct trace_block, head_crc));
		memcpy(*out + *o, &b, sizeof(b));
		*o += sizeof(b) + b.len;
	}
	return found;
}

/* A file's index is left out. Returns the number of definitions that were changed, or -1: it is
 * as it was, or there is no file. */
static inline int patch_trace(const char *path, const char *from, const char *to, int layout)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	size_t size = f && !fstat(fileno(f), &st) ? (size_t)st.st_size : 0, o = TRACE_MAGIC_LEN;
	char *in = malloc(size + 1), *out = malloc(TRACE_MAGIC_LEN);
	int found = -1;

	if (in && out && f && size >= TRACE_MAGIC_LEN && fread(in, 1, size, f) == size) {
		memcpy(out, in, TRACE_MAGIC_LEN);
		found = patch_blocks(in, size, &out, &o, from, to, layout);
	}
	if (f)
		fclose(f);
	f = found < 0 ? NULL : fopen(path, "we");
	if (f) {
		bool whole = fwrite(out, 1, o, f) == o;

		if (fclose(f) || !whole)
			found = -1;
	}
	free(in);
	free(out);
	return f ? found : -1;
}

#endif
