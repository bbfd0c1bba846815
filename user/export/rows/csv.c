/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * csv.c - a row for each record, calls and device work in one table, for spreadsheets and data
 * frames:
 *
 *   type,start_ns,duration_ns,pid,tid,process,name,number,...
 *   call,1234018000,112400,12345,12345,train,cudaLaunchKernel,17,...
 *   kernel,1234120000,8960,12345,,train,"vecAdd(float const*, int)",17,...
 *
 * Cells are quoted as in RFC 4180; a text that a spreadsheet would take as a formula gets a '
 * before it (docs/exports.md). Lines end with a newline, without a carriage return. A cell without a value is empty.
 * The columns are those of columns.def. A stack's text is in the first row that has the stack only; `stack_id` is in each. A sample of several metrics is a row for each of them.
 * Calls that were counted in windows have no rows: a row of type muted says how many there were.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../flow/about.h"
#include "../../render/column_cells.h"
#include "../../flow/row.h"

struct csv {
	struct row w;
	struct text cell;
	struct cells cells;
	uint8_t *written; /* a bit for each stack whose text was written */
};

/* ---- cells ---- */

static void put_quoted(struct csv *c, const char *s, size_t n)
{
	/* A spreadsheet would take it as a formula. Numbers do not come here. */
	bool formula = n && memchr("=+-@\t\r", *s, 6);

	if (!memchr(s, ',', n) && !memchr(s, '"', n) && !memchr(s, '\n', n) &&
	    !memchr(s, '\r', n)) {
		row_mem(&c->w, "'", formula);
		row_mem(&c->w, s, n);
		return;
	}
	row_room(&c->w, 8);
	*c->w.p++ = '"';
	row_mem(&c->w, "'", formula);
	while (n) {
		const char *quote = memchr(s, '"', n);
		size_t part = quote ? (size_t)(quote - s) + 1 : n;

		row_mem(&c->w, s, part);
		row_room(&c->w, 8);
		if (quote)
			*c->w.p++ = '"';
		s += part;
		n -= part;
	}
	*c->w.p++ = '"';
}

/* What was written into the cell's text. */
static void csv_put_text(struct csv *c)
{
	if (c->cell.len && !c->cell.bad)
		put_quoted(c, c->cell.s, c->cell.len);
	c->cell.len = 0;
	c->cell.bad = false;
}

static void put_cell(struct csv *c, const struct cell *cell)
{
	switch (cell->kind) {
	case CELL_UINT: c->w.p = put_u64(c->w.p, cell->u); break;
	case CELL_INT: c->w.p = put_i64(c->w.p, cell->i); break;
	case CELL_DOUBLE: c->w.p = put_double(c->w.p, cell->f, false); break;
	case CELL_WORD: put_quoted(c, cell->s, strlen(cell->s)); break;
	case CELL_MADE: put_quoted(c, c->cells.made.s + cell->u, cell->max); break;
	case CELL_RAW:
		text_plain(&c->cell, cell->s, cell->max);
		csv_put_text(c);
		break;
	case CELL_STACK:
		if (columns_stack_new(c->written, cell->stack))
			columns_stack(&c->cell, c->cells.o, cell->stack);
		csv_put_text(c);
		break;
	}
}

static void put_row(struct csv *c)
{
	for (int i = 0; i < COLUMNS_CSV; i++) {
		row_room(&c->w, 128);
		if (cells_have(&c->cells, i))
			put_cell(c, &c->cells.cell[i]);
		row_room(&c->w, 1);
		*c->w.p++ = i + 1 < COLUMNS_CSV ? ',' : '\n';
	}
}

/* ---- the sink ---- */

static int csv_event(struct sink *s, const struct event *ev)
{
	uint32_t n = columns_rows(ev);
	struct csv *c = s->priv;

	if (!n)
		return 0;
	row_begin(&c->w, s->opts->out);
	for (uint32_t i = 0; i < n; i++) {
		columns_fill(&c->cells, ev, i);
		put_row(c);
	}
	row_end(&c->w);
	if (s->opts->out->error)
		return s->opts->out->error;
	return about_is_call(ev->rec) || kind_is(ev->rec->kind, KIND_DEVICE);
}

static int csv_open(struct sink *s, const struct sink_opts *opts)
{
	struct csv *c = calloc(1, sizeof(*c));

	s->opts = opts;
	s->priv = c;
	if (!c)
		return -ENOMEM;
	c->written = calloc(COLUMNS_STACKS_MAX / 8, 1);
	if (!c->written)
		return -ENOMEM;
	c->cells.o = opts;
	for (int i = 0; i < COLUMNS_CSV; i++)
		out_fmt(opts->out, "%s%c", column_about[i].title, i + 1 < COLUMNS_CSV ? ',' : '\n');
	return 0;
}

static int csv_close(struct sink *s, const struct sink_end *end)
{
	struct csv *c = s->priv;

	(void)end;
	if (!c)
		return 0;
	text_free(&c->cell);
	text_free(&c->cells.made);
	free(c->written);
	free(c);
	s->priv = NULL;
	return s->opts->out->error;
}

const struct sink_ops sink_csv = {
	.name = "csv",
	.open = csv_open,
	.event = csv_event,
	.close = csv_close,
};
