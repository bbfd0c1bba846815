/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_columns.c - rows of typed cells, as the input says, through what writes Arrow and Parquet. Each cell must be
 * in its column as it was put there, however often memory grew, and whatever came before.
 *
 * A byte of the input is a column and what it gets is the bytes that follow; NEXT_ROW ends a row, REPEAT makes many
 * of it, WRITE writes what there is.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../user/export/columns/arrow_ipc.h"
#include "../../user/export/columns/parquet_file.h"
#include "../../user/util/io/safe_open.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WRITE = 0xfd, REPEAT = 0xfe, NEXT_ROW = 0xff };
#define ROWS_MAX 70000
#define WORD_MAX 512

static struct run {
	struct cells cells;
	struct sink_opts opts;
	struct batch batches[2]; /* all columns of Arrow, and those of calls in Parquet */
	struct arrow_body *body;
	struct text arrow, want;
	struct parquet_file file;
	struct safe_place place;	   /* of the file, which is unlinked at once */
	char texts[COLUMNS][WORD_MAX + 1]; /* of the row */
} * run;

static size_t take(const uint8_t **at, const uint8_t *end, void *to, size_t n)
{
	n = n < (size_t)(end - *at) ? n : (size_t)(end - *at);
	memcpy(to, *at, n);
	*at += n;
	return n;
}

/* A text of the length that the first byte says, untrusted or made for the row. */
static void put_text(struct run *r, int col, const uint8_t **at, const uint8_t *end)
{
	uint8_t head[2] = { 0 };
	size_t from = r->cells.made.len, n;

	take(at, end, head, 2);
	n = take(at, end, r->texts[col], head[0] * 2u);
	r->texts[col][n] = '\0';
	if (head[1] & 1 && column_about[col].type == COLUMN_TEXT) {
		cells_raw(&r->cells, col, r->texts[col], 8 + head[1] * 2u);
		return;
	}
	text_plain(&r->cells.made, r->texts[col], WORD_MAX);
	cells_made(&r->cells, col, from);
}

static void put_cell(struct run *r, int col, const uint8_t **at, const uint8_t *end)
{
	struct cell cell = { .kind = CELL_UINT };

	if (cells_have(&r->cells, col))
		return;
	if (column_about[col].type >= COLUMN_TEXT) {
		put_text(r, col, at, end);
		return;
	}
	take(at, end, &cell.u, sizeof(cell.u));
	if (column_about[col].type == COLUMN_DOUBLE)
		cell.kind = CELL_DOUBLE;
	*cells_put(&r->cells, col) = cell;
}

/* Whether the cell of the last row of the column is what was put there. */
static void check(struct run *r, const struct batch *b, const struct chunk *c, int col)
{
	const struct cell *cell = &r->cells.cell[col];
	uint32_t row = b->rows - 1, number;
	const char *got, *want;
	size_t n;

	if (!cells_have(&r->cells, col) ||
	    (c->type == COLUMN_I64 && cell->kind == CELL_UINT && cell->u > INT64_MAX)) {
		if (row < c->cap && chunk_has(c, row))
			abort();
		return;
	}
	if (row >= c->cap || !chunk_has(c, row))
		abort();
	if (c->type == COLUMN_JSON)
		return;
	if (c->type != COLUMN_TEXT) {
		if (memcmp(c->values + row * chunk_width(c), &cell->u, chunk_width(c)))
			abort();
		return;
	}
	memcpy(&number, c->values + row * sizeof(number), sizeof(number));
	if (number >= chunk_texts(c))
		abort();
	got = chunk_text(c, number, &n);
	r->want.len = 0;
	if (cell->kind == CELL_RAW)
		text_plain(&r->want, cell->s, cell->max);
	want = cell->kind == CELL_RAW ? r->want.s : r->cells.made.s + cell->u;
	if (n != (cell->kind == CELL_RAW ? r->want.len : cell->max) || memcmp(got, want, n))
		abort();
}

static void add_row(struct run *r)
{
	for (int i = 0; i < 2; i++) {
		struct batch *b = &r->batches[i];

		if (batch_add(b, &r->cells))
			abort();
		for (int k = 0; k < b->n; k++)
			check(r, b, &b->chunks[k], b->col[k]);
	}
}

static void begin_row(struct run *r)
{
	memset(r->cells.there, 0, sizeof(r->cells.there));
	r->cells.made.len = 0;
}

static void write_all(struct run *r)
{
	r->arrow.len = 0;
	if (arrow_batch(&r->arrow, r->body, &r->batches[0]) || r->arrow.len % 8)
		abort();
	if (r->batches[1].rows && parquet_file_group(&r->file, &r->batches[1]))
		abort();
}

static void open_place(void)
{
	char path[] = "/tmp/fuzz_columns.XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0 || safe_place_find(&run->place, path) || unlink(path))
		abort();
	close(fd);
}

static void open_run(void)
{
	run = calloc(1, sizeof(*run));
	if (!run || batch_open(&run->batches[0], 0) ||
	    batch_open(&run->batches[1], 1u << COLUMNS_CALLS) || !(run->body = arrow_body_open()))
		abort();
	run->cells.o = &run->opts;
	run->cells.fields = true;
	open_place();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data, *end = data + size;

	if (!run)
		open_run();
	/* the file is made anew */
	if (parquet_file_open(&run->file, &run->place))
		abort();
	unlinkat(run->place.dir, run->place.name, 0);
	begin_row(run);
	while (at < end) {
		uint8_t op = *at++, n = 0;

		if (op == REPEAT)
			take(&at, end, &n, 1);
		for (int i = 0; op >= REPEAT && i < (op == REPEAT ? n * 16 : 1) &&
				run->batches[0].rows < ROWS_MAX;
		     i++)
			add_row(run);
		if (op >= REPEAT)
			begin_row(run);
		else if (op == WRITE && run->batches[0].rows)
			write_all(run);
		else if (op < COLUMNS)
			put_cell(run, op, &at, end);
	}
	if (run->batches[0].rows)
		write_all(run);
	parquet_file_end(&run->file, &run->batches[1], "fuzz");
	parquet_file_close(&run->file);
	return 0;
}
