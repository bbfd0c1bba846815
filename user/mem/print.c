/* SPDX-License-Identifier: BSD-2-Clause */
/* print.c - what text and JSON share: words, and the order of rows. */
#include <stdlib.h>
#include <string.h>

#include "print.h"

const char *mem_where_name(enum ledger_where where)
{
	static const char *const names[] = { "device", "host", "addresses" };

	return names[where];
}

const char *mem_end_name(enum ledger_end end)
{
	static const char *const names[] = { "exited", "execed", "context", "replaced" };

	return names[end];
}

const char *mem_fault_name(enum ledger_fault_what what)
{
	static const char *const names[] = { "double_free", "wrong_free", "invalid_free", "unseen_allocation" };

	return names[what];
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

void mem_frame_text(struct text *t, const struct site_frame *f, bool whole, mem_put_fn put)
{
	if (f->function)
		put(t, f->function, MEM_NAME_BYTES);
	else
		text_hex(t, f->address);
	if (f->file) {
		text_str(t, whole ? " " : " at ");
		put(t, whole ? f->file : base_of(f->file), MEM_NAME_BYTES);
		if (f->line) {
			text_str(t, ":");
			text_u64(t, f->line);
		}
	} else if (f->object) {
		text_str(t, whole ? " " : " in ");
		put(t, whole ? f->object : base_of(f->object), MEM_NAME_BYTES);
	}
}

void mem_site_text(struct text *t, const struct site *s, mem_put_fn put)
{
	if (s->nframes)
		mem_frame_text(t, &s->frames[0], false, put);
	else if (!s->func)
		text_str(t, "not known");
	for (uint32_t i = 1; i < s->nframes; i++) {
		if (s->frames[i].kind != CT_FRAME_PYTHON)
			continue;
		text_str(t, ", for ");
		mem_frame_text(t, &s->frames[i], false, put);
		break;
	}
	if (!s->func)
		return;
	text_str(t, s->nframes ? " (" : "");
	text_str(t, s->func);
	text_str(t, s->nframes ? ")" : "");
}

static int larger(const void *a, const void *b)
{
	const struct ledger_row *x = *(const struct ledger_row *const *)a, *y = *(const struct ledger_row *const *)b;

	if (x->by == LEDGER_LEAK && x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->where != y->where)
		return x->where < y->where ? -1 : 1;
	if (x->peak != y->peak)
		return x->peak > y->peak ? -1 : 1;
	if (x->taken != y->taken)
		return x->taken > y->taken ? -1 : 1;
	return x < y ? -1 : x > y; /* in the order in which they came */
}

const struct ledger_row **mem_rows(const struct ledger *l, enum ledger_by by, uint32_t *n)
{
	const struct ledger_row **rows;
	uint32_t count = 0;

	for (uint32_t i = 0; i < l->nrows; i++)
		count += l->rows[i].by == by;
	*n = 0;
	rows = count ? malloc(count * sizeof(*rows)) : NULL;
	if (!rows)
		return NULL;
	for (uint32_t i = 0; i < l->nrows; i++)
		if (l->rows[i].by == by)
			rows[(*n)++] = &l->rows[i];
	qsort(rows, count, sizeof(*rows), larger);
	return rows;
}
