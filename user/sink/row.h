/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * row.h - a cursor into an output buffer for one row: the sinks write at w.p, and ask for room before anything whose
 * length comes from outside. Rows may span flushes of the buffer. Knows no format.
 */
#ifndef CT_ROW_H
#define CT_ROW_H

#include "../util/out.h"
#include "../util/put.h"

#define ROW_ROOM 16384

struct row {
	struct out *out;
	char *p, *begin, *end;
};

static inline void row_begin(struct row *w, struct out *out)
{
	w->out = out;
	w->p = w->begin = out_reserve(out, ROW_ROOM);
	w->end = w->p + ROW_ROOM;
}

/* Room for n more bytes, n <= ROW_ROOM. Pointers into the row from before are void after it. */
static inline void row_room(struct row *w, size_t n)
{
	if (__builtin_expect((size_t)(w->end - w->p) >= n, 1))
		return;
	out_commit(w->out, (size_t)(w->p - w->begin));
	row_begin(w, w->out);
}

/* Bytes of any number. */
static inline void row_mem(struct row *w, const void *s, size_t n)
{
	if (!n)
		return;
	if (n <= ROW_ROOM / 2) {
		row_room(w, n);
		w->p = put_mem(w->p, s, n);
		return;
	}
	out_commit(w->out, (size_t)(w->p - w->begin));
	out_mem(w->out, s, n);
	row_begin(w, w->out);
}

static inline void row_end(struct row *w)
{
	out_commit(w->out, (size_t)(w->p - w->begin));
}

#endif
