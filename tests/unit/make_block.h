/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * make_block.h - the body of a recording's block, built column by column, as no writer of ours builds it. fresh() begins one, and body()
 * returns it.
 */
#ifndef CT_MAKE_BLOCK_H
#define CT_MAKE_BLOCK_H

#include <stdlib.h>
#include <string.h>

#include "../../user/trace/funcs.h"

#define COLUMN_MAX (1u << 20) /* as in decode.c */

/* The columns of a block, each with some room. */
static struct {
	uint8_t *at[COL_END];
	size_t n[COL_END];
} b;

static inline void fresh(void)
{
	for (int i = 0; i < COL_END; i++) {
		b.n[i] = 0;
		if (!b.at[i] && !(b.at[i] = malloc(COLUMN_MAX + 64)))
			abort();
	}
}

static inline void put(enum trace_column c, const void *bytes, size_t n)
{
	memcpy(b.at[c] + b.n[c], bytes, n);
	b.n[c] += n;
}

static inline void byte(enum trace_column c, uint8_t value)
{
	put(c, &value, 1);
}

static inline void step(uint32_t op)
{
	for (; op > 0x7f; op >>= 7)
		byte(COL_OP, (uint8_t)(op | 0x80));
	byte(COL_OP, (uint8_t)op);
}

static inline void lane(void)
{
	struct trace_lane l = { .pid = 100, .tid = 101 };

	step(TRACE_OP_LANE);
	put(COL_OTHER, &l, sizeof(l));
}

static inline void function(const char *name)
{
	char def[FUNCS_DEF_MAX];

	step(TRACE_OP_FUNC);
	put(COL_OTHER, def, funcs_define(api_next(name, -1), def));
}

static inline void pattern(uint16_t lane, uint16_t func, uint16_t kind, size_t size)
{
	struct trace_pattern p = {
		.lane = lane, .func = func, .kind = kind, .size = (uint16_t)size
	};

	step(TRACE_OP_NEW);
	put(COL_OTHER, &p, sizeof(p));
}

/* The body in exactly as much memory as it takes: AddressSanitizer notices what is read behind it. */
static inline uint8_t *body(size_t *len)
{
	uint8_t *all, *at;
	uint32_t n[2];

	*len = 1 + COL_END * 8;
	for (int i = 0; i < COL_END; i++)
		*len += b.n[i];
	all = malloc(*len);
	if (!all)
		abort();
	all[0] = COL_END;
	at = all + 1 + COL_END * 8;
	for (int i = 0; i < COL_END; i++) {
		n[0] = n[1] = (uint32_t)b.n[i];
		memcpy(all + 1 + i * 8, n, sizeof(n));
		memcpy(at, b.at[i], b.n[i]);
		at += b.n[i];
	}
	return all;
}

static inline void drop_columns(void)
{
	for (int i = 0; i < COL_END; i++)
		free(b.at[i]);
}

#endif
