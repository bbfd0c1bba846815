/* SPDX-License-Identifier: BSD-2-Clause */
/* table.c - see table.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../util/text.h"
#include "../util/units.h"
#include "table.h"

#define COLUMNS_MAX 32
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
static const char *short_text(const struct table *t, const struct table_column *c, const void *row,
			      char buf[TABLE_CELL])
{
	struct cell cell;

	if (c->write)
		return NULL;
	if (c->show)
		return c->show(row, t->ctx, buf);
	cell = c->get(row, t->ctx);
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
	default: return NULL;
	}
}

/* A name as a terminal may have it. */
static void name_text(struct text *t, const struct table_column *c, const struct cell *cell)
{
	size_t most = c->most ? c->most : NAME_BYTES;

	if (cell->is == CELL_PLAIN)
		text_mem(t, cell->s, cell->number);
	else if (cell->is == CELL_STRING)
		text_plain(t, cell->s, most);
	else
		text_plain(t, cell->s, cell->number < most ? cell->number : most);
}

static void text_cell(const struct table *t, const struct table_column *c, struct out *o,
		      const void *row)
{
	struct text name = { 0 };
	struct cell cell;
	char buf[TABLE_CELL];
	const char *s = short_text(t, c, row, buf);
	int pad;

	if (s && c->width) {
		out_fmt(o, " %*s", c->width, s);
		return;
	}
	if (c->write) {
		out_str(o, "  ");
		c->write(o, row, t->ctx);
		return;
	}
	cell = s ? cell_bytes(s, strlen(s), true) : c->get(row, t->ctx);
	name_text(&name, c, &cell);
	pad = (size_t)abs(c->width) > name.len ? abs(c->width) - (int)name.len : 0;
	out_fmt(o, "%*s", (c->width ? 1 : 2) + (c->width > 0 ? pad : 0), "");
	out_mem(o, name.s, name.len);
	out_fmt(o, "%*s", c->width < 0 ? pad : 0, "");
	text_free(&name);
}

void table_text_heads(const struct table *t, struct out *o)
{
	const struct table_column *order[COLUMNS_MAX];
	size_t n = in_order(t, false, order);

	out_str(o, t->indent ? t->indent : "");
	for (size_t i = 0; i < n; i++)
		if (order[i]->width)
			out_fmt(o, " %*s", order[i]->width, order[i]->head);
		else if (order[i]->head)
			out_fmt(o, "  %s", order[i]->head);
	out_char(o, '\n');
}

void table_text_row(const struct table *t, struct out *o, const void *row)
{
	const struct table_column *order[COLUMNS_MAX];
	size_t n = in_order(t, false, order);

	out_str(o, t->indent ? t->indent : "");
	for (size_t i = 0; i < n; i++)
		text_cell(t, order[i], o, row);
	out_char(o, '\n');
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
	case CELL_TRUE: json_put_bool(j, c->key, true); break;
	case CELL_STRING: json_put_str(j, c->key, cell.s); break;
	case CELL_BYTES:
	case CELL_PLAIN: json_put_bytes(j, c->key, cell.s, cell.number); break;
	default: break;
	}
}

void table_json_members(const struct table *t, struct json *j, const void *row)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct table_column *c = &t->columns[i];

		if (!is_shown(t, c))
			continue;
		if (c->put)
			c->put(j, row, t->ctx);
		else if (c->key && !c->no_json)
			json_member(j, c, c->get(row, t->ctx));
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
	case CELL_TRUE: out_str(o, "true"); break;
	case CELL_STRING: out_str(o, cell.s); break; /* a word of ours */
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
	out_str(o, "\r\n");
}

void table_csv_row(const struct table *t, struct out *o, const void *row)
{
	const struct table_column *order[COLUMNS_MAX];
	size_t n = in_order(t, true, order);

	for (size_t i = 0; i < n; i++) {
		if (i)
			out_char(o, ',');
		csv_cell(o, order[i], order[i]->get(row, t->ctx));
	}
	out_str(o, "\r\n");
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
		struct text name = { 0 };
		struct cell cell;
		char buf[TABLE_CELL];
		const char *s = short_text(t, order[i], row, buf);

		out_char(o, ' ');
		if (order[i]->write) {
			order[i]->write(o, row, t->ctx);
		} else if (s) {
			out_str(o, s);
		} else {
			cell = order[i]->get(row, t->ctx);
			name_text(&name, order[i], &cell);
			table_markdown_text(o, name.s, name.len);
			text_free(&name);
		}
		out_str(o, " |");
	}
	out_char(o, '\n');
}
