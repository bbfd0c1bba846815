/* SPDX-License-Identifier: BSD-2-Clause */
/* table.c - see table.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../util/text.h"
#include "../util/units.h"
#include "table.h"

#define COLUMNS_MAX 1088 /* counters have one for each metric */
#define NAME_BYTES 4096

static bool is_shown(const struct table *t, const struct table_column *c)
{
	return (c->needs & t->have) == c->needs && !(c->unless & t->have);
}

/* The columns that text, or CSV, shows, in their order. Returns their number. */
static size_t in_order(const struct table *t, bool csv, const struct table_column **order)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n && n < COLUMNS_MAX; i++) {
		const struct table_column *c = &t->columns[i];
		size_t at = n;

		if (!(csv ? c->csv : c->text) || !is_shown(t, c))
			continue;
		for (; at && (csv ? order[at - 1]->csv > c->csv : order[at - 1]->text > c->text);
		     at--)
			order[at] = order[at - 1];
		order[at] = c;
		n++;
	}
	return n;
}

static struct table_at at_of(const struct table *t, const struct table_column *c, const void *row)
{
	return (struct table_at){ .row = row, .ctx = t->ctx, .column = c, .table = t };
}

/* ---- values ---- */

static struct cell member_of(const struct table_column *c, const void *row)
{
	const char *of = row;
	const void *p;

	if (c->through)
		memcpy(&of, of + c->through - 1, sizeof(of));
	p = of + c->offset;
	switch (c->member) {
	case TABLE_BOOL: return cell_bool(*(const bool *)p);
	case TABLE_U8: return cell_number(*(const uint8_t *)p);
	case TABLE_U16: return cell_number(*(const uint16_t *)p);
	case TABLE_U32: return cell_number(*(const uint32_t *)p);
	case TABLE_U64: return cell_number(*(const uint64_t *)p);
	case TABLE_INT: return cell_signed(*(const int *)p);
	case TABLE_I64: return cell_signed(*(const int64_t *)p);
	case TABLE_DOUBLE: return cell_real(*(const double *)p);
	case TABLE_STRING: return cell_string(*(const char *const *)p);
	case TABLE_CHARS: return cell_string(p);
	default: return cell_none();
	}
}

static bool is_nothing(const struct cell *cell)
{
	switch (cell->is) {
	case CELL_NUMBER:
	case CELL_SIGNED:
	case CELL_BYTES:
	case CELL_PLAIN: return !cell->number;
	case CELL_REAL: return cell->real == 0;
	case CELL_STRING:
	case CELL_WORD: return !*cell->s;
	case CELL_TRUE: return false;
	default: return true;
	}
}

static struct cell table_value_of(const struct table_at *at)
{
	const struct table_column *c = at->column;
	struct cell cell = c->get ? c->get(at) : member_of(c, at->row);

	return c->if_any && is_nothing(&cell) ? cell_none() : cell;
}

/* ---- text ---- */

static const char *number_text(const struct table_column *c, double v, char buf[TABLE_CELL])
{
	switch (c->unit) {
	case TABLE_NS: return print_duration(buf, TABLE_CELL, v);
	case TABLE_BYTES: return print_bytes(buf, TABLE_CELL, v);
	case TABLE_SHARE: snprintf(buf, TABLE_CELL, "%.*f", c->digits, 100 * v); break;
	case TABLE_DIGITS: snprintf(buf, TABLE_CELL, "%.*g", c->digits, v); break;
	default: snprintf(buf, TABLE_CELL, "%.*f", c->digits, v);
	}
	return buf;
}

/* What a column shows if that is a word or a number; NULL: a name of any length. */
static const char *short_text(const struct table_at *at, char buf[TABLE_CELL])
{
	const struct table_column *c = at->column;
	struct cell cell;

	if (c->write)
		return NULL;
	if (c->show)
		return c->show(at, buf);
	cell = table_value_of(at);
	switch (cell.is) {
	case CELL_NONE:
	case CELL_NULL: return c->none ? c->none : "-";
	case CELL_NUMBER:
		if (c->unit != TABLE_NUMBER)
			return number_text(c, (double)cell.number, buf);
		snprintf(buf, TABLE_CELL, "%llu", (unsigned long long)cell.number);
		return buf;
	case CELL_SIGNED: snprintf(buf, TABLE_CELL, "%lld", (long long)cell.number); return buf;
	case CELL_REAL: return number_text(c, cell.real, buf);
	case CELL_TRUE: return "yes";
	case CELL_FALSE: return "no";
	default: return NULL;
	}
}

/* A name as a terminal may have it. */
static void name_text(struct text *t, const struct table_column *c, const struct cell *cell)
{
	size_t most = c->most ? c->most : NAME_BYTES;

	if (cell->is == CELL_PLAIN)
		text_mem(t, cell->s, cell->number);
	else if (cell->is == CELL_STRING || cell->is == CELL_WORD)
		text_plain(t, cell->s, most);
	else
		text_plain(t, cell->s, cell->number < most ? cell->number : most);
}

/* before: the blanks between it and the column before it. */
static void text_cell(const struct table_at *at, struct out *o, int before)
{
	const struct table_column *c = at->column;
	struct text name = { 0 };
	struct cell cell;
	char buf[TABLE_CELL];
	const char *s = short_text(at, buf);
	int pad;

	out_fmt(o, "%*s", before, "");
	if (s && c->width) {
		out_fmt(o, "%*s", c->width, s);
		return;
	}
	if (c->write) {
		c->write(o, at);
		return;
	}
	cell = s ? cell_bytes(s, strlen(s), true) : table_value_of(at);
	name_text(&name, c, &cell);
	pad = (size_t)abs(c->width) > name.len ? abs(c->width) - (int)name.len : 0;
	out_fmt(o, "%*s", c->width > 0 ? pad : 0, "");
	out_mem(o, name.s, name.len);
	out_fmt(o, "%*s", c->width < 0 ? pad : 0, "");
	text_free(&name);
}

static int blanks_before(const struct table *t, const struct table_column *c, size_t i)
{
	return !i && t->edge ? 0 : c->width ? 1 : 2;
}

static void heads_line(const struct table *t, struct out *o,
		       const struct table_column *const *order, size_t n, bool under)
{
	out_str(o, t->indent ? t->indent : "");
	for (size_t i = 0; i < n; i++) {
		const char *head = under ? order[i]->under : order[i]->head;

		if (head)
			out_fmt(o, "%*s%*s", blanks_before(t, order[i], i), "", order[i]->width,
				head);
	}
	out_char(o, '\n');
}

void table_text_heads(const struct table *t, struct out *o)
{
	const struct table_column *order[COLUMNS_MAX];
	size_t n = in_order(t, false, order);
	bool under = false;

	for (size_t i = 0; i < n; i++)
		under |= order[i]->under != NULL;
	heads_line(t, o, order, n, false);
	if (under)
		heads_line(t, o, order, n, true);
}

void table_text_row(const struct table *t, struct out *o, const void *row)
{
	const struct table_column *order[COLUMNS_MAX];
	size_t n = in_order(t, false, order);

	out_str(o, t->indent ? t->indent : "");
	for (size_t i = 0; i < n; i++) {
		const struct table_at at = at_of(t, order[i], row);

		text_cell(&at, o, blanks_before(t, order[i], i));
	}
	out_char(o, '\n');
}

static void line_begin(struct out *o, const struct table *t, const char *head)
{
	out_fmt(o, "%s%-*s ", t->indent ? t->indent : "", t->label, head);
}

void table_text_line(struct out *o, const struct table_at *at)
{
	if (*at->lines)
		out_char(o, '\n');
	line_begin(o, at->table, *at->lines ? "" : at->column->head);
	++*at->lines;
}

/* A name is printed without escapes: what is no glyph is a question mark. */
static void text_line(struct out *o, const struct table_at *at)
{
	const struct table_column *c = at->column;
	char buf[TABLE_CELL];
	struct cell cell = cell_none();
	const char *s = NULL;

	if (c->show) {
		s = c->show(at, buf);
		if (!s)
			return;
	} else {
		cell = table_value_of(at);
		if (!c->none && (cell.is <= CELL_NULL || (c->brief && is_nothing(&cell))))
			return;
		s = short_text(at, buf);
	}
	line_begin(o, at->table, c->head);
	if (s)
		out_str(o, s);
	else
		out_plain(o, cell.s,
			  cell.is == CELL_STRING || cell.is == CELL_WORD ? strlen(cell.s)
									 : cell.number);
	out_char(o, '\n');
}

void table_text_lines(const struct table *t, struct out *o, const void *row)
{
	const struct table_column *order[COLUMNS_MAX];
	size_t n = in_order(t, false, order);

	for (size_t i = 0; i < n; i++) {
		struct table_at at = at_of(t, order[i], row);
		unsigned int lines = 0;

		at.lines = &lines;
		if (!order[i]->write)
			text_line(o, &at);
		else
			order[i]->write(o, &at);
		if (lines)
			out_char(o, '\n');
	}
}

/* ---- JSON ---- */

static void json_member(struct json *j, const struct table_column *c, struct cell cell)
{
	switch (cell.is) {
	case CELL_NULL: json_put_null(j, c->key); break;
	case CELL_NUMBER: json_put_u64(j, c->key, cell.number); break;
	case CELL_SIGNED: json_put_i64(j, c->key, (int64_t)cell.number); break;
	case CELL_REAL:
		if (c->json_digits == TABLE_EXACT)
			json_put_double(j, c->key, cell.real);
		else if (c->significant)
			json_put_digits(j, c->key, c->json_digits, cell.real);
		else
			json_put_real(j, c->key, c->json_digits, cell.real);
		break;
	case CELL_TRUE:
	case CELL_FALSE: json_put_bool(j, c->key, cell.is == CELL_TRUE); break;
	case CELL_STRING:
	case CELL_WORD: json_put_str(j, c->key, cell.s); break;
	case CELL_BYTES:
	case CELL_PLAIN: json_put_bytes(j, c->key, cell.s, cell.number); break;
	default: break;
	}
}

void table_json_members(const struct table *t, struct json *j, const void *row)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct table_at at = at_of(t, &t->columns[i], row);

		if (!is_shown(t, at.column))
			continue;
		if (at.column->put)
			at.column->put(j, &at);
		else if (at.column->key && !at.column->no_json)
			json_member(j, at.column, table_value_of(&at));
	}
}

void table_json_row(const struct table *t, struct json *j, const char *blanks, const void *row)
{
	if (blanks)
		json_line(j, blanks);
	json_open_object(j, NULL);
	table_json_members(t, j, row);
	json_end(j);
}

/* ---- CSV ---- */

void table_csv_text(struct out *o, const char *s, size_t n)
{
	out_char(o, '"');
	/* a spreadsheet must not take it as a formula */
	if (n && memchr("=+-@\t\r", *s, 6))
		out_char(o, '\'');
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '"')
			out_char(o, '"');
		out_char(o, s[i]);
	}
	out_char(o, '"');
}

static void csv_cell(struct out *o, const struct table_column *c, struct cell cell)
{
	switch (cell.is) {
	case CELL_NUMBER: out_fmt(o, "%llu", (unsigned long long)cell.number); break;
	case CELL_SIGNED: out_fmt(o, "%lld", (long long)cell.number); break;
	case CELL_REAL: out_fmt(o, "%.*f", c->json_digits, cell.real); break;
	case CELL_TRUE:
	case CELL_FALSE: out_str(o, cell.is == CELL_TRUE ? "true" : "false"); break;
	case CELL_WORD: out_str(o, cell.s); break;
	case CELL_STRING: table_csv_text(o, cell.s, strlen(cell.s)); break;
	case CELL_BYTES:
	case CELL_PLAIN: table_csv_text(o, cell.s, cell.number); break;
	default: break;
	}
}

void table_csv_heads(const struct table *t, struct out *o)
{
	const struct table_column *order[COLUMNS_MAX];
	size_t n = in_order(t, true, order);

	for (size_t i = 0; i < n; i++)
		out_fmt(o, "%s%s", i ? "," : "", order[i]->key);
	out_str(o, t->end ? t->end : "\r\n");
}

void table_csv_row(const struct table *t, struct out *o, const void *row)
{
	const struct table_column *order[COLUMNS_MAX];
	size_t n = in_order(t, true, order);

	for (size_t i = 0; i < n; i++) {
		const struct table_at at = at_of(t, order[i], row);

		if (i)
			out_char(o, ',');
		csv_cell(o, order[i], table_value_of(&at));
	}
	out_str(o, t->end ? t->end : "\r\n");
}

/* ---- Markdown ---- */

void table_markdown_text(struct out *o, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] && strchr("|`<>*_[]&", s[i]))
			out_fmt(o, "&#%d;", s[i]);
		else
			out_char(o, s[i]);
}

void table_markdown_heads(const struct table *t, struct out *o)
{
	const struct table_column *order[COLUMNS_MAX];
	size_t n = in_order(t, false, order);

	out_str(o, "|");
	for (size_t i = 0; i < n; i++)
		out_fmt(o, " %s |", order[i]->head);
	out_str(o, "\n|");
	for (size_t i = 0; i < n; i++)
		out_str(o, order[i]->width > 0 ? "--:|" : "---|");
	out_char(o, '\n');
}

void table_markdown_row(const struct table *t, struct out *o, const void *row)
{
	const struct table_column *order[COLUMNS_MAX];
	size_t n = in_order(t, false, order);

	out_str(o, "|");
	for (size_t i = 0; i < n; i++) {
		const struct table_at at = at_of(t, order[i], row);
		struct text name = { 0 };
		struct cell cell;
		char buf[TABLE_CELL];
		const char *s = short_text(&at, buf);

		out_char(o, ' ');
		if (order[i]->write) {
			order[i]->write(o, &at);
		} else if (s) {
			out_str(o, s);
		} else {
			cell = table_value_of(&at);
			name_text(&name, order[i], &cell);
			table_markdown_text(o, name.s, name.len);
			text_free(&name);
		}
		out_str(o, " |");
	}
	out_char(o, '\n');
}
