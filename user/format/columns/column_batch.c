/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * column_batch.c - see column_batch.h. Most columns have no value in most rows: a column gets its empty rows at
 * once, before its next value.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "column_batch.h"

#define DICT_BYTES (256u << 20) /* far more than batch_full() lets come together */
#define DICT_TEXTS (16u << 20)

/* ---- rows of a column ---- */

static void add_zeros(struct text *t, size_t n)
{
	char *p = n ? text_room(t, n) : NULL;

	if (!p)
		return;
	memset(p, 0, n);
	t->len += n;
}

static void add_word(struct text *t, uint64_t v, size_t size)
{
	char *p = text_room(t, 8);

	if (!p)
		return;
	memcpy(p, &v, 8);
	t->len += size;
}

/* JSON: the texts of n rows end here. */
static void add_ends(struct chunk *c, uint32_t n)
{
	if (!c->ends.len)
		add_word(&c->ends, 0, 4);
	for (uint32_t i = 0; i < n; i++)
		add_word(&c->ends, c->values.len, 4);
}

/* Empty cells, up to `rows` rows. */
static void fill(struct chunk *c, uint32_t rows)
{
	uint32_t n = rows - c->rows;

	if (c->rows >= rows)
		return;
	add_zeros(&c->valid, (rows + 7) / 8 - (c->rows + 7) / 8);
	if (c->type == COLUMN_JSON)
		add_ends(c, n);
	else
		add_zeros(&c->values, n * chunk_width(c));
	c->rows = rows;
	c->nulls += n;
}

/* A row whose value is there. */
static void set_valid(struct chunk *c)
{
	if (!(c->rows % 8))
		add_zeros(&c->valid, 1);
	if (!c->valid.bad)
		c->valid.s[c->rows / 8] |= (char)(1u << c->rows % 8);
	c->rows++;
}

/* ---- texts ---- */

static uint32_t slot_of(const char *s, size_t n)
{
	uint64_t a = 0, b = 0;

	memcpy(&a, s, n < 8 ? n : 8);
	memcpy(&b, s + (n < 8 ? 0 : n - 8), n < 8 ? n : 8);
	a = (a ^ b << 1 ^ n) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(a >> 40) & (CHUNK_LATELY - 1);
}

/* The number of a safe text; STRINGS_NONE: no memory. */
static uint32_t keep(struct batch *b, struct chunk *c, const char *s, size_t n)
{
	uint32_t before = c->dict.n, number = strings_add(&c->dict, s, n);

	if (c->dict.n != before)
		b->text_bytes += n;
	return number == STRINGS_NONE ? number : number - c->dict.first;
}

/* A text that came lately has the same bytes, and is safe as it is. */
static bool is_lately(const struct chunk *c, uint32_t slot, const char *s, size_t n,
		      uint32_t *number)
{
	uint32_t at = c->lately[slot];
	const char *text;
	size_t len;

	if (!at)
		return false;
	text = chunk_text(c, at - 1, &len);
	*number = at - 1;
	return len == n && !memcmp(text, s, n);
}

static uint32_t text_number(struct batch *b, struct chunk *c, const struct cells *cells,
			    const struct cell *cell)
{
	const char *s = cell->kind == CELL_MADE ? cells->made.s + cell->u : cell->s;
	size_t n = cell->kind == CELL_MADE ? cell->max : strlen(s);
	uint32_t slot = slot_of(s, n), number;

	if (is_lately(c, slot, s, n, &number))
		return number;
	if (cell->kind == CELL_RAW) {
		b->scratch.len = 0;
		text_plain(&b->scratch, s, cell->max);
		if (b->scratch.bad)
			return STRINGS_NONE;
		if (b->scratch.len != n || memcmp(b->scratch.s, s, n))
			return keep(b, c, b->scratch.s, b->scratch.len);
	}
	number = keep(b, c, s, n);
	if (number != STRINGS_NONE)
		c->lately[slot] = number + 1;
	return number;
}

static uint32_t stack_number(struct batch *b, struct chunk *c, const struct cells *cells,
			     const struct stack *s)
{
	uint32_t slot = s->id & (CHUNK_LATELY - 1), number;

	if (c->stacks[slot].number && c->stacks[slot].id == s->id)
		return c->stacks[slot].number - 1;
	b->scratch.len = 0;
	columns_stack(&b->scratch, cells->o, s);
	number = b->scratch.bad ? STRINGS_NONE
				: keep(b, c, b->scratch.len ? b->scratch.s : "", b->scratch.len);
	if (number != STRINGS_NONE) {
		c->stacks[slot].id = s->id;
		c->stacks[slot].number = number + 1;
	}
	return number;
}

/* ---- cells ---- */

static double as_double(const struct cell *cell)
{
	return cell->kind == CELL_DOUBLE ? cell->f
	       : cell->kind == CELL_INT	 ? (double)cell->i
					 : (double)cell->u;
}

static void put_json(struct batch *b, struct chunk *c, const struct cells *cells,
		     const struct cell *cell)
{
	text_mem(&c->values, cells->made.s + cell->u, cell->max);
	add_ends(c, 1);
	b->text_bytes += cell->max;
	set_valid(c);
}

static void put(struct batch *b, struct chunk *c, const struct cells *cells,
		const struct cell *cell)
{
	uint32_t number;
	double value;

	fill(c, b->rows);
	switch (c->type) {
	case COLUMN_JSON: put_json(b, c, cells, cell); return;
	case COLUMN_TEXT:
		number = cell->kind == CELL_STACK ? stack_number(b, c, cells, cell->stack)
						  : text_number(b, c, cells, cell);
		b->no_room |= number == STRINGS_NONE;
		add_word(&c->values, number, 4);
		break;
	case COLUMN_DOUBLE:
		value = as_double(cell);
		text_mem(&c->values, &value, sizeof(value));
		break;
	default: add_word(&c->values, cell->u, chunk_width(c));
	}
	set_valid(c);
}

int batch_add(struct batch *b, const struct cells *cells)
{
	if (cells->no_room)
		return -ENOMEM;
	for (int w = 0; w < CELLS_WORDS; w++) {
		uint64_t left = cells->there[w] & b->has[w];

		for (; left; left &= left - 1) {
			int col = w * 64 + __builtin_ctzll(left);

			put(b, &b->chunks[b->at[col]], cells, &cells->cell[col]);
		}
	}
	b->rows++;
	return b->no_room ? -ENOMEM : 0;
}

/* ---- the batch ---- */

static void add_column(struct batch *b, int col)
{
	b->has[col / 64] |= 1ull << col % 64;
	b->at[col] = b->n;
	b->col[b->n++] = (uint8_t)col;
}

int batch_open(struct batch *b, uint32_t tables)
{
	*b = (struct batch){ .n = 0 };
	for (int i = 0; i < COLUMNS; i++)
		if (tables ? column_about[i].tables & tables
			   : column_about[i].tables &
					     ~(1u << COLUMNS_STACKS | 1u << COLUMNS_DEVICES) ||
				     i == COLUMN_STACK)
			add_column(b, i);
	b->chunks = calloc(b->n, sizeof(*b->chunks));
	if (!b->chunks)
		return -ENOMEM;
	for (unsigned int i = 0; i < b->n; i++) {
		b->chunks[i].type = column_about[b->col[i]].type;
		if (b->chunks[i].type == COLUMN_TEXT &&
		    strings_init(&b->chunks[i].dict, DICT_BYTES, DICT_TEXTS))
			return -ENOMEM;
	}
	return 0;
}

void batch_close(struct batch *b)
{
	for (unsigned int i = 0; b->chunks && i < b->n; i++) {
		struct chunk *c = &b->chunks[i];

		text_free(&c->valid);
		text_free(&c->values);
		text_free(&c->ends);
		strings_free(&c->dict);
	}
	free(b->chunks);
	text_free(&b->scratch);
	*b = (struct batch){ .n = 0 };
}

void batch_even(struct batch *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		struct chunk *c = &b->chunks[i];

		fill(c, b->rows);
		b->no_room |= c->valid.bad || c->values.bad || c->ends.bad;
	}
}

void batch_clear(struct batch *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		struct chunk *c = &b->chunks[i];

		c->rows = c->nulls = 0;
		c->valid.len = c->values.len = c->ends.len = 0;
		if (c->type != COLUMN_TEXT)
			continue;
		strings_forget(&c->dict);
		memset(c->lately, 0, sizeof(c->lately));
		memset(c->stacks, 0, sizeof(c->stacks));
	}
	b->rows = 0;
	b->text_bytes = 0;
}
