/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parquet_file.c - see parquet_file.h. The numbers are those of parquet.thrift, which Parquet's
 * format is defined by.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "parquet_file.h"
#include "thrift.h"

#define LEVEL 1		 /* of zstd */
#define STATISTIC_MAX 64 /* bytes of a text that is stored as the least or the largest */

enum { TYPE_INT32 = 1, TYPE_INT64 = 2, TYPE_DOUBLE = 5, TYPE_BYTES = 6 };
/* polars reads columns that are declared as JSON as bytes */
enum { AS_UTF8 = 0, AS_UINT32 = 13, AS_UINT64 = 14, AS_IS = -1 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_DICTIONARY = 8 };
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { CODEC_ZSTD = 6, OPTIONAL = 1 };

static const struct {
	int type, as;
} types[] = {
	[COLUMN_U32] = { TYPE_INT32, AS_UINT32 }, [COLUMN_U64] = { TYPE_INT64, AS_UINT64 },
	[COLUMN_I64] = { TYPE_INT64, AS_IS },	  [COLUMN_DOUBLE] = { TYPE_DOUBLE, AS_IS },
	[COLUMN_TEXT] = { TYPE_BYTES, AS_UTF8 },  [COLUMN_JSON] = { TYPE_BYTES, AS_UTF8 },
};

static void file_put(struct parquet_file *f, const void *s, size_t n)
{
	out_mem(&f->out, s, n);
	f->at += n;
}

int parquet_file_open(struct parquet_file *f, const struct safe_place *at)
{
	int fd = safe_place_open(at, at->name, NULL, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666),
	    err = fd < 0 ? fd : out_open_fd(&f->out, fd, "a table");

	if (err) {
		if (fd >= 0)
			close(fd);
		return err;
	}
	f->out.owned = true;
	f->open = true;
	f->zstd = ZSTD_createCCtx();
	if (!f->zstd)
		return -ENOMEM;
	file_put(f, "PAR1", 4);
	return 0;
}

void parquet_file_close(struct parquet_file *f)
{
	if (f->open)
		out_close(&f->out);
	ZSTD_freeCCtx(f->zstd);
	text_free(&f->groups);
	text_free(&f->page);
	text_free(&f->packed);
	text_free(&f->head);
	*f = (struct parquet_file){ .open = false };
}

/* ---- pages ---- */

static void put_dictionary(struct text *t, const struct chunk *c)
{
	for (uint32_t i = 0; i < chunk_texts(c); i++) {
		size_t n;
		const char *s = chunk_text(c, i, &n);
		uint32_t len = (uint32_t)n;

		text_mem(t, &len, sizeof(len));
		text_mem(t, s, n);
	}
}

/* Which rows have a value: a run of equal ones, or a bit for each. */
static void put_levels(struct text *t, const struct chunk *c, uint32_t rows)
{
	size_t at = t->len;
	uint32_t len = 0;

	text_mem(t, &len, sizeof(len));
	if (!c->there || c->there == rows) {
		thrift_varint(t, (uint64_t)rows << 1);
		thrift_byte(t, c->there != 0);
	} else {
		thrift_varint(t, ((uint64_t)rows + 7) / 8 << 1 | 1);
		text_mem(t, c->valid, (rows + 7) / 8);
	}
	if (t->bad)
		return;
	len = (uint32_t)(t->len - at - sizeof(len));
	memcpy(t->s + at, &len, sizeof(len));
}

/* The numbers of texts, each in as many bits as the largest needs, in groups of eight. */
static void put_numbers(struct text *t, const struct chunk *c, uint32_t rows)
{
	uint32_t n = c->there, most = chunk_texts(c) - 1, held = 0;
	unsigned int width = most ? 32 - (unsigned int)__builtin_clz(most) : 1;
	size_t bytes = ((size_t)n + 7) / 8 * width;
	uint64_t bits = 0;
	char *p;

	thrift_byte(t, width);
	thrift_varint(t, ((uint64_t)n + 7) / 8 << 1 | 1);
	p = text_room(t, bytes + 8);
	if (!p)
		return;
	memset(p, 0, bytes);
	for (uint32_t row = 0; row < rows; row++) {
		uint32_t number;

		if (n < rows && !chunk_has(c, row))
			continue;
		memcpy(&number, c->values + row * sizeof(number), sizeof(number));
		bits |= (uint64_t)number << held;
		held += width;
		if (held >= 32) {
			memcpy(p, &bits, 4);
			p += 4;
			held -= 32;
			bits >>= 32;
		}
	}
	for (; held; held -= held < 8 ? held : 8, bits >>= 8)
		*p++ = (char)bits;
	t->len += bytes;
}

static void put_json(struct text *t, const struct chunk *c, uint32_t rows)
{
	uint32_t ends[2], len;

	for (uint32_t row = 0; row < rows; row++) {
		if (!chunk_has(c, row))
			continue;
		memcpy(ends, c->values + row * sizeof(*ends), sizeof(ends));
		len = ends[1] - ends[0];
		text_mem(t, &len, sizeof(len));
		text_mem(t, c->json.s + ends[0], len);
	}
}

static void put_values(struct text *t, const struct chunk *c, uint32_t rows)
{
	size_t width = chunk_width(c);
	char *p;

	if (c->type == COLUMN_JSON) {
		put_json(t, c, rows);
		return;
	}
	if (c->there == rows) {
		text_mem(t, c->values, rows * width);
		return;
	}
	p = text_room(t, c->there * width + 8);
	if (!p)
		return;
	t->len += c->there * width;
	for (uint32_t row = 0; row < rows; row++) {
		if (!chunk_has(c, row))
			continue;
		memcpy(p, c->values + row * width, 8);
		p += width;
	}
}

/* What the end of the file says about a column of a group. */
struct said {
	uint64_t full, packed; /* bytes, with the pages' heads */
	uint64_t data_at, dictionary_at;
	bool dictionary;
};

/* Compresses and writes f->page. Returns 0 or -ENOMEM. */
static int write_page(struct parquet_file *f, int type, uint32_t values, int encoding,
		      struct said *said)
{
	size_t most = ZSTD_compressBound(f->page.len), n;
	int last = 0, inner = 0;

	f->packed.len = f->head.len = 0;
	if (f->page.bad || !text_room(&f->packed, most + 1))
		return -ENOMEM;
	n = ZSTD_compressCCtx(f->zstd, f->packed.s, most, f->page.len ? f->page.s : "", f->page.len,
			      LEVEL);
	if (ZSTD_isError(n))
		return -ENOMEM;
	thrift_i32(&f->head, &last, 1, type);
	thrift_i32(&f->head, &last, 2, (int32_t)f->page.len);
	thrift_i32(&f->head, &last, 3, (int32_t)n);
	thrift_field(&f->head, &last, type == PAGE_DATA ? 5 : 7, THRIFT_STRUCT);
	thrift_i32(&f->head, &inner, 1, (int32_t)values);
	thrift_i32(&f->head, &inner, 2, encoding);
	if (type == PAGE_DATA) {
		thrift_i32(&f->head, &inner, 3, ENCODING_RLE);
		thrift_i32(&f->head, &inner, 4, ENCODING_RLE);
	}
	thrift_end(&f->head);
	thrift_end(&f->head);
	if (f->head.bad)
		return -ENOMEM;
	said->full += f->head.len + f->page.len;
	said->packed += f->head.len + n;
	file_put(f, f->head.s, f->head.len);
	file_put(f, f->packed.s, n);
	f->page.len = 0;
	return 0;
}

static int write_column(struct parquet_file *f, const struct chunk *c, uint32_t rows,
			struct said *said)
{
	int err = 0;

	*said = (struct said){ .dictionary = c->type == COLUMN_TEXT && c->there };
	f->page.len = 0;
	f->page.bad = false;
	if (said->dictionary) {
		said->dictionary_at = f->at;
		put_dictionary(&f->page, c);
		err = write_page(f, PAGE_DICTIONARY, chunk_texts(c), ENCODING_PLAIN, said);
	}
	if (err)
		return err;
	said->data_at = f->at;
	put_levels(&f->page, c, rows);
	if (said->dictionary)
		put_numbers(&f->page, c, rows);
	else if (c->there)
		put_values(&f->page, c, rows);
	return write_page(f, PAGE_DATA, rows,
			  said->dictionary ? ENCODING_DICTIONARY : ENCODING_PLAIN, said);
}

/* ---- statistics ---- */

/* The least and the largest number, as the column orders them. */
static void number_bounds(const struct chunk *c, uint32_t rows, uint64_t bounds[2])
{
	/* signed numbers are moved to where unsigned ones have the same order */
	uint64_t top = c->type == COLUMN_I64 ? 1ull << 63 : 0, least = UINT64_MAX, largest = 0;
	size_t width = chunk_width(c);

	for (uint32_t row = 0; row < rows; row++) {
		uint64_t v;

		if (c->there < rows && !chunk_has(c, row))
			continue;
		memcpy(&v, c->values + row * width, 8);
		v = (width == 4 ? (uint32_t)v : v) ^ top;
		least = v < least ? v : least;
		largest = v > largest ? v : largest;
	}
	bounds[0] = least ^ top;
	bounds[1] = largest ^ top;
}

static int parquet_file_compare(const char *a, size_t na, const char *b, size_t nb)
{
	int order = memcmp(a, b, na < nb ? na : nb);

	return order ? order : (na > nb) - (na < nb);
}

static void put_text_bounds(struct text *t, int *last, const struct chunk *c)
{
	size_t least_n, largest_n, n;
	const char *least = chunk_text(c, 0, &least_n), *largest = chunk_text(c, 0, &largest_n), *s;

	for (uint32_t i = 1; i < chunk_texts(c); i++) {
		s = chunk_text(c, i, &n);
		if (parquet_file_compare(s, n, least, least_n) < 0) {
			least = s;
			least_n = n;
		}
		if (parquet_file_compare(s, n, largest, largest_n) > 0) {
			largest = s;
			largest_n = n;
		}
	}
	if (largest_n <= STATISTIC_MAX)
		thrift_binary(t, last, 5, largest, largest_n);
	if (least_n <= STATISTIC_MAX)
		thrift_binary(t, last, 6, least, least_n);
}

static void put_statistics(struct text *t, const struct chunk *c, uint32_t rows)
{
	uint64_t bounds[2];
	int last = 0;

	thrift_i64(t, &last, 3, rows - c->there);
	if (c->there && c->type == COLUMN_TEXT) {
		put_text_bounds(t, &last, c);
	} else if (c->there && c->type <= COLUMN_I64) {
		number_bounds(c, rows, bounds);
		thrift_binary(t, &last, 5, &bounds[1], chunk_width(c));
		thrift_binary(t, &last, 6, &bounds[0], chunk_width(c));
	}
	thrift_end(t);
}

/* ---- groups ---- */

static void parquet_file_describe(struct text *t, const struct chunk *c, int col, uint32_t rows,
				  const struct said *s)
{
	const struct column_about *about = &column_about[col];
	int outer = 0, last = 0;

	thrift_i64(t, &outer, 2, 0);
	thrift_field(t, &outer, 3, THRIFT_STRUCT);
	thrift_i32(t, &last, 1, types[about->type].type);
	thrift_list(t, &last, 2, THRIFT_I32, s->dictionary ? 3 : 2);
	thrift_number(t, ENCODING_PLAIN);
	thrift_number(t, ENCODING_RLE);
	if (s->dictionary)
		thrift_number(t, ENCODING_DICTIONARY);
	thrift_list(t, &last, 3, THRIFT_BINARY, 1);
	thrift_bytes(t, about->title, strlen(about->title));
	thrift_i32(t, &last, 4, CODEC_ZSTD);
	thrift_i64(t, &last, 5, rows);
	thrift_i64(t, &last, 6, s->full);
	thrift_i64(t, &last, 7, s->packed);
	thrift_i64(t, &last, 9, s->data_at);
	if (s->dictionary)
		thrift_i64(t, &last, 11, s->dictionary_at);
	thrift_field(t, &last, 12, THRIFT_STRUCT);
	put_statistics(t, c, rows);
	thrift_end(t);
	thrift_end(t);
}

int parquet_file_group(struct parquet_file *f, struct batch *b)
{
	uint64_t full = 0;
	int last = 0;

	if (batch_even(b))
		return -ENOMEM;
	thrift_list(&f->groups, &last, 1, THRIFT_STRUCT, b->n);
	for (unsigned int i = 0; i < b->n; i++) {
		struct said said;
		int err = write_column(f, &b->chunks[i], b->rows, &said);

		if (err)
			return err;
		full += said.full;
		parquet_file_describe(&f->groups, &b->chunks[i], b->col[i], b->rows, &said);
	}
	thrift_i64(&f->groups, &last, 2, full);
	thrift_i64(&f->groups, &last, 3, b->rows);
	thrift_end(&f->groups);
	f->ngroups++;
	f->rows += b->rows;
	batch_clear(b);
	return f->groups.bad ? -ENOMEM : f->out.error;
}

/* ---- the end ---- */

static void put_schema(struct text *t, int *outer, const struct batch *b)
{
	int last = 0;

	thrift_list(t, outer, 2, THRIFT_STRUCT, b->n + 1u);
	thrift_binary(t, &last, 4, "schema", 6);
	thrift_i32(t, &last, 5, b->n);
	thrift_end(t);
	for (unsigned int i = 0; i < b->n; i++) {
		const struct column_about *about = &column_about[b->col[i]];

		last = 0;
		thrift_i32(t, &last, 1, types[about->type].type);
		thrift_i32(t, &last, 3, OPTIONAL);
		thrift_binary(t, &last, 4, about->title, strlen(about->title));
		if (types[about->type].as != AS_IS)
			thrift_i32(t, &last, 6, types[about->type].as);
		thrift_end(t);
	}
}

static void put_metadata(struct text *t, const struct parquet_file *f, const struct batch *b,
			 const char *version)
{
	static const char key[] = COLUMNS_VERSION_KEY, value[] = SINK_NAMES_VERSION;
	int last = 0, inner = 0;
	struct text by = { 0 };

	thrift_i32(t, &last, 1, 1);
	put_schema(t, &last, b);
	thrift_i64(t, &last, 3, f->rows);
	thrift_list(t, &last, 4, THRIFT_STRUCT, f->ngroups);
	text_mem(t, f->groups.s, f->groups.len);
	thrift_list(t, &last, 5, THRIFT_STRUCT, 1);
	thrift_binary(t, &inner, 1, key, sizeof(key) - 1);
	thrift_binary(t, &inner, 2, value, sizeof(value) - 1);
	thrift_end(t);
	text_str(&by, "cudatrace version ");
	text_str(&by, version ? version : "");
	thrift_binary(t, &last, 6, by.s, by.len);
	t->bad |= by.bad;
	text_free(&by);
	/* each column's bounds follow its type's own order: a union, of whose members the first is empty */
	thrift_list(t, &last, 7, THRIFT_STRUCT, b->n);
	for (unsigned int i = 0; i < b->n; i++) {
		inner = 0;
		thrift_field(t, &inner, 1, THRIFT_STRUCT);
		thrift_end(t);
		thrift_end(t);
	}
	thrift_end(t);
}

int parquet_file_end(struct parquet_file *f, const struct batch *b, const char *version)
{
	struct text t = { 0 };
	uint32_t len;
	int err;

	put_metadata(&t, f, b, version);
	len = (uint32_t)t.len;
	file_put(f, t.s, t.len);
	file_put(f, &len, sizeof(len));
	file_put(f, "PAR1", 4);
	err = t.bad ? -ENOMEM : out_flush(&f->out);
	text_free(&t);
	if (!err && fdatasync(f->out.fd))
		err = -errno;
	f->open = false;
	if (out_close(&f->out) && !err)
		err = f->out.error ? f->out.error : -EIO;
	return err;
}
