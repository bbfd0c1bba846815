/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * column_batch.h - rows, column by column, until they are written: arrow's batches and parquet's
 * groups of rows. Texts are stored once in each batch. Knows no event and no format.
 */
#ifndef CT_COLUMN_BATCH_H
#define CT_COLUMN_BATCH_H

#include "../../util/strings.h"
#include "../../render/column_cells.h"

/* The texts that were added last, so that they are not searched for again. */
#define CHUNK_LATELY 64 /* a power of two */

/* One column of a batch. A row's value lies at its place in `values`, and rows without one have zeros
 * there. A column without any value takes no memory. */
struct chunk {
	uint8_t type;	  /* enum column_type */
	uint32_t there;	  /* rows that have a value */
	uint32_t cap;	  /* rows that there is memory for; 0: none yet */
	uint8_t *room[2]; /* the memory of the next two */
	uint16_t shift;	  /* where they begin in it */
	uint8_t *valid;	  /* a bit for each row that has a value */
	uint8_t *values;  /* chunk_width() bytes for each row; of a text its number in dict */
	struct text
		json; /* JSON: the texts; a row's begins at its value, and ends where the next one begins */
	uint32_t json_rows;  /* JSON: the rows whose begin is known */
	struct strings dict; /* COLUMN_TEXT */
	struct chunk_lately {
		const char *word; /* a text that is never freed, or NULL */
		uint32_t number;  /* in dict, + 1; 0: none */
		uint32_t text_len;
	} lately[CHUNK_LATELY];
	struct {
		uint32_t id, number;
	} stacks[CHUNK_LATELY]; /* number: as in lately */
};

struct batch {
	uint8_t n, col[COLUMNS]; /* the columns that it has, by their place in enum column */
	uint8_t at[COLUMNS];	 /* where each of them is in col and chunks */
	uint64_t has[CELLS_WORDS];
	struct chunk *chunks; /* one for each of them */
	uint32_t rows, cap;
	size_t text_bytes; /* of the texts that were kept */
	struct text scratch;
	bool no_room; /* there was no memory for a cell */
};

/* Prepares a batch with the columns of `tables` (bits), or with 0 all those of arrow. Returns 0
 * or -ENOMEM; batch_close() may be called in both cases. */
int batch_open(struct batch *, uint32_t tables);
void batch_close(struct batch *); /* safe when zeroed */
/* Adds a row. Returns 0 or -ENOMEM. */
int batch_add(struct batch *, const struct cells *);
/* Gives each column that has a value memory for all rows, before the batch is written. Returns 0 or -ENOMEM: a cell is missing. */
int batch_even(struct batch *);
/* Empties it. */
void batch_clear(struct batch *);
/* Whether it is time to write it. */
static inline bool batch_full(const struct batch *b, uint32_t rows)
{
	return b->rows >= rows || b->text_bytes >= 16u << 20;
}

/* The bytes of a value of the column. */
static inline size_t chunk_width(const struct chunk *c)
{
	return c->type == COLUMN_U32 || c->type >= COLUMN_TEXT ? 4 : 8;
}
/* Whether the row has a value. */
static inline bool chunk_has(const struct chunk *c, uint32_t row)
{
	return c->valid[row / 8] >> row % 8 & 1;
}
/* How many texts the column has, and one of them. */
static inline uint32_t chunk_texts(const struct chunk *c)
{
	return c->dict.n;
}
static inline const char *chunk_text(const struct chunk *c, uint32_t i, size_t *n)
{
	*n = c->dict.entries[i + 1].at - c->dict.entries[i].at - 1;
	return c->dict.bytes + c->dict.entries[i].at;
}

#endif
