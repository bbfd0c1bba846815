/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arrow_ipc.h - writes a stream of Apache Arrow (IPC format, metadata version 5): a schema, batches
 * of rows, an end. Columns are typed and may have empty cells. Knows no record.
 */
#ifndef CT_ARROW_IPC_H
#define CT_ARROW_IPC_H

#include "../../util/io/out.h"
#include "../../util/text.h"

#define ARROW_COLUMNS_MAX 64

/* ARROW_TEXT is UTF-8. */
enum arrow_type { ARROW_U64, ARROW_I64, ARROW_DOUBLE, ARROW_TEXT };

struct arrow_column {
	const char *name;
	enum arrow_type type;
	uint64_t nrows, nulls; /* of this batch */
	struct text valid;     /* a bit a row */
	struct text values;    /* 8 bytes a row, or the texts one after another */
	struct text ends;      /* ARROW_TEXT: where each text ends, 4 bytes a row, after a 0 */
};

/* Writes the schema; `key` and `value` are its metadata. n is at most ARROW_COLUMNS_MAX. */
void arrow_schema(struct out *, const struct arrow_column *, size_t n, const char *key,
		  const char *value);
/* Writes the rows, of which each column must have the same number, and empties the columns.
 * Returns 0 or -ENOMEM: there was no memory for all cells. */
int arrow_batch(struct out *, struct arrow_column *, size_t n);
/* Writes the end of the stream. */
void arrow_end(struct out *);

/* Append a cell. The value of a row may be left out: arrow_null() fills up to `nrows` rows. */
void arrow_put(struct arrow_column *, uint64_t bits);
void arrow_put_text(struct arrow_column *, const char *, size_t n);
void arrow_null(struct arrow_column *, uint64_t nrows);
void arrow_free(struct arrow_column *);

#endif
