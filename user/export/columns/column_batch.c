/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * column_batch.c - see column_batch.h. Most columns have no value in most rows: what has no value stays as the
 * zeros that the memory begins with, and costs nothing.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "column_batch.h"

#define DICT_BYTES (256u << 20) /* far more than a batch has before batch_full() is true */
#define DICT_TEXTS (16u << 20)

#define ROWS_FIRST 1024
#define LINE 64 /* of the cache */

/* ---- rows of a column ---- */

/*
 * Memory for `bytes` bytes, of which those that have not come yet are zeros. Large memory begins at a page: without a
 * shift of its own for each column, the cells of a row would all want the same few places of the processor's cache.
 */
static bool column_batch_more(uint8_t **room, uint8_t **at, size_t before, size_t bytes,
			      size_t shift)
{
	uint8_t *now = calloc(1, bytes + shift);

	if (!now)
		return false;
	if (before)
		memcpy(now + shift, *at, before);
	free(*room);
	*room = now;
	*at = now + shift;
	return true;
}

static bool column_batch_grow(struct chunk *c, uint32_t cap)
{
	size_t width = chunk_width(c);

	/* one value more: where the last text of JSON ends */
	if (!column_batch_more(&c->room[0], &c->valid, c->cap / 8, cap / 8, c->shift) ||
	    !column_batch_more(&c->room[1], &c->values, c->cap * width, (cap + 1) * width,
			       c->shift + LINE))
		return false;
	c->cap = cap;
	return true;
}

/* JSON: the rows up to `rows` begin here. */
static void begin_json(struct chunk *c, uint32_t rows)
{
	uint32_t at = (uint32_t)c->json.len;

	for (; c->json_rows < rows; c->json_rows++)
		memcpy(c->values + c->json_rows * sizeof(at), &at, sizeof(at));
}

/* ---- texts ---- */

/* Where a text is looked for first: by its address, or by its bytes if it was made for this row. */
static struct chunk_lately *lately_at(struct chunk *c, const void *s)
{
	uint64_t hash = (uint64_t)(uintptr_t)s * 0x9e3779b97f4a7c15ull;

	return &c->lately[hash >> 40 & (CHUNK_LATELY - 1)];
}

static struct chunk_lately *lately_of(struct chunk *c, const char *s, size_t n)
{
	uint64_t a = 0, b = 0;

	memcpy(&a, s, n < 8 ? n : 8);
	memcpy(&b, s + (n < 8 ? 0 : n - 8), n < 8 ? n : 8);
	return lately_at(c, (const void *)(uintptr_t)(a ^ b << 1 ^ n));
}

/* The number of a safe text; STRINGS_NONE: no memory. */
static uint32_t keep_text(struct batch *b, struct chunk *c, const char *s, size_t n)
{
	uint32_t before = c->dict.n, number = strings_add(&c->dict, s, n);

	if (c->dict.n != before)
		b->text_bytes += n;
	return number == STRINGS_NONE ? number : number - c->dict.first;
}

/* The number of a text that is safe as it is, or not: it is made safe then. It remembers the first. */
static uint32_t column_batch_learn(struct batch *b, struct chunk *c, struct chunk_lately *l,
				   const struct cell *cell, const char *s, size_t n)
{
	uint32_t number;

	if (cell->kind == CELL_RAW) {
		b->scratch.len = 0;
		text_plain(&b->scratch, s, cell->max);
		if (b->scratch.bad)
			return STRINGS_NONE;
		if (b->scratch.len != n || memcmp(b->scratch.s, s, n))
			return keep_text(b, c, b->scratch.s, b->scratch.len);
	}
	number = keep_text(b, c, s, n);
	if (number != STRINGS_NONE)
		*l = (struct chunk_lately){ .word = cell->kind == CELL_WORD ? s : NULL,
					    .number = number + 1 };
	return number;
}

static uint32_t text_number(struct batch *b, struct chunk *c, const struct cells *cells,
			    const struct cell *cell)
{
	bool made = cell->kind == CELL_MADE;
	const char *s = made ? cells->made.s + cell->u : cell->s, *was;
	struct chunk_lately *l = made ? lately_of(c, s, cell->max) : lately_at(c, s);
	size_t n;

	if (l->word && l->word == s)
		return l->number - 1;
	if (l->number) {
		was = chunk_text(c, l->number - 1, &n);
		/* no text that is kept has a NUL within */
		if (made ? n == cell->max && !memcmp(was, s, n) : !strcmp(was, s))
			return l->number - 1;
	}
	return column_batch_learn(b, c, l, cell, s, made ? cell->max : strlen(s));
}

static uint32_t stack_number(struct batch *b, struct chunk *c, const struct cells *cells,
			     const struct stack *s)
{
	uint32_t place = s->id & (CHUNK_LATELY - 1), number;

	if (c->stacks[place].number && c->stacks[place].id == s->id)
		return c->stacks[place].number - 1;
	b->scratch.len = 0;
	columns_stack(&b->scratch, cells->o, s);
	number = b->scratch.bad
			 ? STRINGS_NONE
			 : keep_text(b, c, b->scratch.len ? b->scratch.s : "", b->scratch.len);
	if (number != STRINGS_NONE) {
		c->stacks[place].id = s->id;
		c->stacks[place].number = number + 1;
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
	begin_json(c, b->rows + 1);
	text_mem(&c->json, cells->made.s + cell->u, cell->max);
	b->text_bytes += cell->max;
}

static void put_cell(struct batch *b, struct chunk *c, const struct cells *cells,
		     const struct cell *cell)
{
	const uint32_t row = b->rows;
	uint32_t number;
	double value;

	/* no time and no size; arguments that do not fit are in `args` */
	if (c->type == COLUMN_I64 && cell->kind == CELL_UINT && cell->u > INT64_MAX)
		return;
	if (row >= c->cap && !column_batch_grow(c, b->cap)) {
		b->no_room = true;
		return;
	}
	switch (c->type) {
	case COLUMN_JSON: put_json(b, c, cells, cell); break;
	case COLUMN_TEXT:
		number = cell->kind == CELL_STACK ? stack_number(b, c, cells, cell->stack)
						  : text_number(b, c, cells, cell);
		b->no_room |= number == STRINGS_NONE;
		memcpy(c->values + row * 4, &number, 4);
		break;
	case COLUMN_DOUBLE:
		value = as_double(cell);
		memcpy(c->values + row * 8, &value, 8);
		break;
	case COLUMN_U32: memcpy(c->values + row * 4, &cell->u, 4); break;
	default: memcpy(c->values + row * 8, &cell->u, 8);
	}
	c->valid[row / 8] |= (uint8_t)(1u << row % 8);
	c->there++;
}

int batch_add(struct batch *b, const struct cells *cells)
{
	if (cells->no_room)
		return -ENOMEM;
	if (b->rows == b->cap)
		b->cap = b->cap ? 2 * b->cap : ROWS_FIRST;
	for (int w = 0; w < CELLS_WORDS; w++) {
		uint64_t left = cells->there[w] & b->has[w];

		for (; left; left &= left - 1) {
			int col = w * 64 + __builtin_ctzll(left);

			put_cell(b, &b->chunks[b->at[col]], cells, &cells->cell[col]);
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
		b->chunks[i].shift = (uint16_t)(i * 2 % 60 * LINE);
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

		free(c->room[0]);
		free(c->room[1]);
		text_free(&c->json);
		strings_free(&c->dict);
	}
	free(b->chunks);
	text_free(&b->scratch);
	*b = (struct batch){ .n = 0 };
}

int batch_even(struct batch *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		struct chunk *c = &b->chunks[i];

		if (!c->there)
			continue;
		if (c->cap < b->rows && !column_batch_grow(c, b->cap))
			return -ENOMEM;
		if (c->type == COLUMN_JSON)
			begin_json(c, b->rows + 1);
		b->no_room |= c->json.bad;
	}
	return b->no_room ? -ENOMEM : 0;
}

static void clear(struct chunk *c, uint32_t rows)
{
	if (rows > c->cap)
		rows = c->cap;
	if (c->there) {
		memset(c->valid, 0, (rows + 7) / 8);
		memset(c->values, 0, (rows + 1) * chunk_width(c));
	}
	c->there = c->json_rows = 0;
	c->json.len = 0;
	if (c->type != COLUMN_TEXT)
		return;
	strings_forget(&c->dict);
	memset(c->lately, 0, sizeof(c->lately));
	memset(c->stacks, 0, sizeof(c->stacks));
}

void batch_clear(struct batch *b)
{
	for (unsigned int i = 0; i < b->n; i++)
		clear(&b->chunks[i], b->rows);
	b->rows = 0;
	b->text_bytes = 0;
}
