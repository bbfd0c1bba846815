/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arrow_ipc.c - see arrow_ipc.h. Each buffer of a body is compressed by zstd. The metadata of a message is a FlatBuffer, which is built from its
 * end to its begin, since a table's offsets point forward only: a position is a number of bytes
 * before the end. Little-endian machines only, as all of cudatrace.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "arrow_ipc.h"

#define FIELDS 8
#define VERSION_5 4
#define CONTINUATION 0xffffffffu

#define ZEROS 4 /* buffers of bits, of 4 and 8 bytes a row, and of the begins of texts */
#define LEVEL 1 /* of zstd: higher ones cost more time than they save room */

enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
enum { CODEC_ZSTD = 1 };
enum { TYPE_INT = 2, TYPE_FLOAT = 3, TYPE_UTF8 = 5 };

/* A column needs less than 200 bytes. */
struct flat {
	unsigned char buf[COLUMNS * 256 + 4096];
	size_t n;	      /* bytes used, at the end of buf */
	size_t begin;	      /* of the open table */
	size_t field[FIELDS]; /* positions of its fields; 0: absent */
};

static void flat_put(struct flat *f, const void *s, size_t n)
{
	f->n += n;
	if (n)
		memcpy(f->buf + sizeof(f->buf) - f->n, s, n);
}

/* Fills up, so that after n more bytes the position is a multiple of `align`. */
static void pad(struct flat *f, size_t n, size_t align)
{
	while ((f->n + n) % align)
		flat_put(f, "", 1);
}

static size_t put_uint(struct flat *f, uint64_t v, size_t size)
{
	pad(f, size, size);
	flat_put(f, &v, size);
	return f->n;
}

static size_t put_ref(struct flat *f, size_t to)
{
	pad(f, 4, 4);
	return put_uint(f, f->n + 4 - to, 4);
}

static size_t arrow_ipc_put_string(struct flat *f, const char *s)
{
	size_t n = strlen(s);

	pad(f, n + 1, 4);
	flat_put(f, "", 1);
	flat_put(f, s, n);
	return put_uint(f, n, 4);
}

static size_t put_refs(struct flat *f, const size_t *to, size_t n)
{
	for (size_t i = n; i--;)
		put_ref(f, to[i]);
	return put_uint(f, n, 4);
}

/* A vector of structs of two 64-bit numbers. */
static size_t put_pairs(struct flat *f, const uint64_t (*pairs)[2], size_t n)
{
	pad(f, n * sizeof(*pairs), 8);
	flat_put(f, pairs, n * sizeof(*pairs));
	return put_uint(f, n, 4);
}

static void table_begin(struct flat *f)
{
	f->begin = f->n;
	memset(f->field, 0, sizeof(f->field));
}

static size_t table_end(struct flat *f)
{
	size_t table, last = 0;
	int32_t to_vtable;

	for (size_t i = 0; i < FIELDS; i++)
		last = f->field[i] ? i + 1 : last;
	table = put_uint(f, 0, 4);
	for (size_t i = last; i--;)
		put_uint(f, f->field[i] ? table - f->field[i] : 0, 2);
	put_uint(f, table - f->begin, 2);
	put_uint(f, 4 + 2 * last, 2);
	to_vtable = (int32_t)(f->n - table);
	memcpy(f->buf + sizeof(f->buf) - table, &to_vtable, 4);
	return table;
}

/* Writes the message's head and the metadata; the body follows. */
static void arrow_ipc_send(struct text *o, struct flat *f, unsigned int kind, size_t header,
			   uint64_t body)
{
	uint32_t prefix[2] = { CONTINUATION, 0 };
	size_t message;

	table_begin(f);
	f->field[3] = put_uint(f, body, 8);
	f->field[2] = put_ref(f, header);
	f->field[0] = put_uint(f, VERSION_5, 2);
	f->field[1] = put_uint(f, kind, 1);
	message = table_end(f);
	pad(f, 4, 8);
	put_ref(f, message);
	prefix[1] = (uint32_t)f->n;
	text_mem(o, prefix, sizeof(prefix));
	text_mem(o, f->buf + sizeof(f->buf) - f->n, f->n);
}

/* ---- the schema ---- */

static size_t put_type(struct flat *f, enum column_type type)
{
	table_begin(f);
	if (type == COLUMN_DOUBLE) {
		f->field[0] = put_uint(f, 2, 2); /* double precision */
	} else if (type < COLUMN_DOUBLE) {
		f->field[0] = put_uint(f, type == COLUMN_U32 ? 32 : 64, 4);
		f->field[1] = put_uint(f, type == COLUMN_I64, 1);
	}
	return table_end(f);
}

/* The texts of a column are numbers in a dictionary, which has the column's place as its number. */
static size_t put_encoding(struct flat *f, uint64_t id)
{
	size_t index;

	table_begin(f);
	f->field[0] = put_uint(f, 32, 4);
	f->field[1] = put_uint(f, 1, 1);
	index = table_end(f);
	table_begin(f);
	f->field[0] = put_uint(f, id, 8);
	f->field[1] = put_ref(f, index);
	return table_end(f);
}

static size_t put_field(struct flat *f, enum column col)
{
	const struct column_about *about = &column_about[col];
	size_t name = arrow_ipc_put_string(f, about->title),
	       type = put_type(f, (enum column_type)about->type),
	       encoding = about->type == COLUMN_TEXT ? put_encoding(f, col) : 0,
	       children = put_refs(f, NULL, 0);

	table_begin(f);
	f->field[0] = put_ref(f, name);
	f->field[3] = put_ref(f, type);
	if (encoding)
		f->field[4] = put_ref(f, encoding);
	f->field[5] = put_ref(f, children);
	f->field[1] = put_uint(f, 1, 1); /* cells may be empty */
	f->field[2] = put_uint(f,
			       about->type > COLUMN_DOUBLE    ? TYPE_UTF8
			       : about->type == COLUMN_DOUBLE ? TYPE_FLOAT
							      : TYPE_INT,
			       1);
	return table_end(f);
}

void arrow_schema(struct text *o, const struct batch *b, const char *key, const char *value)
{
	size_t fields[COLUMNS], list, keys, values, pair;
	struct flat f = { .n = 0 };

	for (size_t i = 0; i < b->n; i++)
		fields[i] = put_field(&f, b->col[i]);
	list = put_refs(&f, fields, b->n);
	keys = arrow_ipc_put_string(&f, key);
	values = arrow_ipc_put_string(&f, value);
	table_begin(&f);
	f.field[0] = put_ref(&f, keys);
	f.field[1] = put_ref(&f, values);
	pair = table_end(&f);
	pair = put_refs(&f, &pair, 1);
	table_begin(&f);
	f.field[1] = put_ref(&f, list);
	f.field[2] = put_ref(&f, pair);
	arrow_ipc_send(o, &f, HEADER_SCHEMA, table_end(&f), 0);
}

/* ---- bodies ---- */

struct arrow_body {
	ZSTD_CCtx *zstd;
	struct text bytes;
	uint64_t at[COLUMNS * 3][2]; /* where each buffer lies, and its length */
	size_t n;
	/* Most columns have no value at all: the same zeros, which are compressed once. */
	struct zeros {
		size_t n;
		struct text packed;
	} zeros[ZEROS];
	unsigned int zeros_next;
};

struct arrow_body *arrow_body_open(void)
{
	struct arrow_body *b = calloc(1, sizeof(*b));

	if (b)
		b->zstd = ZSTD_createCCtx();
	if (b && !b->zstd) {
		free(b);
		return NULL;
	}
	return b;
}

void arrow_body_close(struct arrow_body *b)
{
	if (!b)
		return;
	ZSTD_freeCCtx(b->zstd);
	text_free(&b->bytes);
	for (int i = 0; i < ZEROS; i++)
		text_free(&b->zeros[i].packed);
	free(b);
}

static void body_begin(struct arrow_body *b)
{
	b->n = 0;
	b->bytes.len = 0;
	b->bytes.bad = false;
}

/* Appends the n bytes compressed, after their number. */
static void pack(struct arrow_body *b, struct text *to, const void *s, size_t n)
{
	size_t most = ZSTD_compressBound(n), took;
	char *p = text_room(to, most + 16);
	uint64_t full = n;

	if (!p)
		return;
	memcpy(p, &full, 8);
	took = ZSTD_compressCCtx(b->zstd, p + 8, most, s, n, LEVEL);
	if (ZSTD_isError(took))
		to->bad = true;
	else
		to->len += took + 8;
}

/* The buffer that was appended from `from` on; the next one begins at a multiple of 8. */
static void body_added(struct arrow_body *b, size_t from)
{
	size_t rest = -b->bytes.len & 7;

	b->at[b->n][0] = from;
	b->at[b->n++][1] = b->bytes.len - from;
	text_mem(&b->bytes, "\0\0\0\0\0\0\0", rest);
}

/* A buffer: its length in full, and its bytes compressed. An empty one has neither. */
static void body_add(struct arrow_body *b, const void *s, size_t n)
{
	size_t from = b->bytes.len;

	if (n)
		pack(b, &b->bytes, s, n);
	body_added(b, from);
}

/* A buffer of n zeros, n not 0. */
static void body_add_zeros(struct arrow_body *b, size_t n)
{
	struct zeros *z = b->zeros;
	size_t from = b->bytes.len;
	void *zeros;

	while (z < b->zeros + ZEROS && z->n != n)
		z++;
	if (z == b->zeros + ZEROS) {
		z = &b->zeros[b->zeros_next++ % ZEROS];
		zeros = calloc(1, n);
		z->n = zeros ? n : 0;
		z->packed.len = 0;
		if (zeros)
			pack(b, &z->packed, zeros, n);
		free(zeros);
		b->bytes.bad |= !zeros || z->packed.bad;
	}
	text_mem(&b->bytes, z->packed.s, z->packed.len);
	body_added(b, from);
}

/* The buffers of a column: which rows have a value, unless all have; values, or where texts begin; texts. */
static void body_add_column(struct arrow_body *b, const struct chunk *c, uint32_t rows)
{
	size_t bits = (rows + 7) / 8, values = (rows + (c->type == COLUMN_JSON)) * chunk_width(c);

	if (c->there == rows)
		body_add(b, NULL, 0);
	else if (c->there)
		body_add(b, c->valid, bits);
	else
		body_add_zeros(b, bits);
	if (c->there)
		body_add(b, c->values, values);
	else
		body_add_zeros(b, values);
	if (c->type == COLUMN_JSON)
		body_add(b, c->json.s, c->there ? c->json.len : 0);
}

static size_t put_batch(struct flat *f, const struct arrow_body *b, uint64_t rows,
			const uint64_t (*nodes)[2], size_t n)
{
	size_t node = put_pairs(f, nodes, n), buffers = put_pairs(f, b->at, b->n), codec;

	table_begin(f);
	f->field[0] = put_uint(f, CODEC_ZSTD, 1);
	codec = table_end(f);
	table_begin(f);
	f->field[0] = put_uint(f, rows, 8);
	f->field[1] = put_ref(f, node);
	f->field[2] = put_ref(f, buffers);
	f->field[3] = put_ref(f, codec);
	return table_end(f);
}

/* The texts of a column. It takes the place of the one before. */
static int write_dictionary(struct text *o, struct arrow_body *b, enum column col,
			    const struct chunk *c)
{
	uint64_t nodes[1][2] = { { chunk_texts(c), 0 } };
	struct text ends = { 0 }, bytes = { 0 };
	struct flat f = { .n = 0 };
	uint32_t end = 0;
	size_t batch;

	text_mem(&ends, &end, sizeof(end));
	for (uint32_t i = 0; i < chunk_texts(c); i++) {
		size_t n;
		const char *s = chunk_text(c, i, &n);

		text_mem(&bytes, s, n);
		end = (uint32_t)bytes.len;
		text_mem(&ends, &end, sizeof(end));
	}
	body_begin(b);
	body_add(b, NULL, 0);
	body_add(b, ends.s, ends.len);
	body_add(b, bytes.s, bytes.len);
	b->bytes.bad |= ends.bad || bytes.bad;
	text_free(&ends);
	text_free(&bytes);
	if (b->bytes.bad)
		return -ENOMEM;
	batch = put_batch(&f, b, chunk_texts(c), nodes, 1);
	table_begin(&f);
	f.field[0] = put_uint(&f, col, 8);
	f.field[1] = put_ref(&f, batch);
	arrow_ipc_send(o, &f, HEADER_DICTIONARY, table_end(&f), b->bytes.len);
	text_mem(o, b->bytes.s, b->bytes.len);
	return 0;
}

int arrow_batch(struct text *o, struct arrow_body *b, struct batch *rows)
{
	uint64_t nodes[COLUMNS][2];
	struct flat f = { .n = 0 };
	int err = batch_even(rows);

	for (size_t i = 0; i < rows->n && !err; i++)
		if (rows->chunks[i].type == COLUMN_TEXT)
			err = write_dictionary(o, b, rows->col[i], &rows->chunks[i]);
	if (err)
		return err;
	body_begin(b);
	for (size_t i = 0; i < rows->n; i++) {
		nodes[i][0] = rows->rows;
		nodes[i][1] = rows->rows - rows->chunks[i].there;
		body_add_column(b, &rows->chunks[i], rows->rows);
	}
	if (b->bytes.bad)
		return -ENOMEM;
	arrow_ipc_send(o, &f, HEADER_BATCH, put_batch(&f, b, rows->rows, nodes, rows->n),
		       b->bytes.len);
	text_mem(o, b->bytes.s, b->bytes.len);
	batch_clear(rows);
	return o->bad ? -ENOMEM : 0;
}

void arrow_end(struct text *o)
{
	static const uint32_t end[2] = { CONTINUATION, 0 };

	text_mem(o, end, sizeof(end));
}
