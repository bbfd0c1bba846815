/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * row.h - a cursor into an output buffer for one row: the sinks write at w.p, and ask for room
 * before they write anything whose length comes from outside. Rows may span flushes of the buffer.
 * A row can also be written to a text, if it is to be changed before it goes out. Knows no format.
 */
#ifndef CT_ROW_H
#define CT_ROW_H

#include "../util/io/out.h"
#include "../util/put.h"
#include "../util/text.h"

#define ROW_ROOM 16384

struct row {
	struct out *out; /* NULL: to `text` */
	struct text *text;
	char *p, *begin, *end;
};

static inline void row_begin(struct row *w, struct out *out)
{
	w->out = out;
	w->p = w->begin = out_reserve(out, ROW_ROOM);
	w->end = w->p + ROW_ROOM;
}

/* Makes the row append to the text. If there is no memory, the text is `bad` and the written
 * bytes are dropped. */
void row_begin_text(struct row *, struct text *);

/* Makes what is written so far part of the output. */
static inline void row_commit(struct row *w)
{
	if (w->out)
		out_commit(w->out, (size_t)(w->p - w->begin));
	else if (!w->text->bad)
		w->text->len += (size_t)(w->p - w->begin);
}

static inline void row_again(struct row *w)
{
	row_commit(w);
	if (w->out)
		row_begin(w, w->out);
	else
		row_begin_text(w, w->text);
}

/* Makes room for n more bytes, n <= ROW_ROOM. Earlier pointers into the row are not valid after
 * it. */
static inline void row_room(struct row *w, size_t n)
{
	if (__builtin_expect((size_t)(w->end - w->p) >= n, 1))
		return;
	row_again(w);
}

/* Writes any number of bytes. */
static inline void row_mem(struct row *w, const void *s, size_t n)
{
	if (!n)
		return;
	while (n > ROW_ROOM / 2) {
		row_room(w, ROW_ROOM / 2);
		w->p = put_mem(w->p, s, ROW_ROOM / 2);
		s = (const char *)s + ROW_ROOM / 2;
		n -= ROW_ROOM / 2;
	}
	row_room(w, n);
	w->p = put_mem(w->p, s, n);
}

static inline void row_end(struct row *w)
{
	row_commit(w);
}

#endif
