/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arrow_ipc.c - see arrow_ipc.h. The metadata of a message is a FlatBuffer, which is built from its
 * end to its begin, since a table's offsets point forward only: a position is a number of bytes
 * before the end. Little-endian machines only, as all of cudatrace.
 */
#include <errno.h>
#include <string.h>

#include "arrow_ipc.h"

#define SLOTS 8
#define VERSION_5 4
#define CONTINUATION 0xffffffffu

enum { HEADER_SCHEMA = 1, HEADER_BATCH = 3 };
enum { TYPE_INT = 2, TYPE_FLOAT = 3, TYPE_UTF8 = 5 };

/* 64 columns need less than a third of it. */
struct flat {
	unsigned char buf[32768];
	size_t n;	    /* bytes used, at the end of buf */
	size_t begin;	    /* of the open table */
	size_t slot[SLOTS]; /* positions of its fields; 0: absent */
};

static void put(struct flat *f, const void *s, size_t n)
{
	f->n += n;
	if (n)
		memcpy(f->buf + sizeof(f->buf) - f->n, s, n);
}

/* Fills up, so that after n more bytes the position is a multiple of `align`. */
static void pad(struct flat *f, size_t n, size_t align)
{
	while ((f->n + n) % align)
		put(f, "", 1);
}

static size_t put_uint(struct flat *f, uint64_t v, size_t size)
{
	pad(f, size, size);
	put(f, &v, size);
	return f->n;
}

static size_t put_ref(struct flat *f, size_t to)
{
	pad(f, 4, 4);
	return put_uint(f, f->n + 4 - to, 4);
}

static size_t put_string(struct flat *f, const char *s)
{
	size_t n = strlen(s);

	pad(f, n + 1, 4);
	put(f, "", 1);
	put(f, s, n);
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
	put(f, pairs, n * sizeof(*pairs));
	return put_uint(f, n, 4);
}

static void table_begin(struct flat *f)
{
	f->begin = f->n;
	memset(f->slot, 0, sizeof(f->slot));
}

static size_t table_end(struct flat *f)
{
	size_t table, last = 0;
	int32_t to_vtable;

	for (size_t i = 0; i < SLOTS; i++)
		last = f->slot[i] ? i + 1 : last;
	table = put_uint(f, 0, 4);
	for (size_t i = last; i--;)
		put_uint(f, f->slot[i] ? table - f->slot[i] : 0, 2);
	put_uint(f, table - f->begin, 2);
	put_uint(f, 4 + 2 * last, 2);
	to_vtable = (int32_t)(f->n - table);
	memcpy(f->buf + sizeof(f->buf) - table, &to_vtable, 4);
	return table;
}

/* Writes the message's head and the metadata; the body follows. */
static void send(struct out *o, struct flat *f, unsigned int kind, size_t header, uint64_t body)
{
	uint32_t prefix[2] = { CONTINUATION, 0 };
	size_t message;

	table_begin(f);
	f->slot[3] = put_uint(f, body, 8);
	f->slot[2] = put_ref(f, header);
	f->slot[0] = put_uint(f, VERSION_5, 2);
	f->slot[1] = put_uint(f, kind, 1);
	message = table_end(f);
	pad(f, 4, 8);
	put_ref(f, message);
	prefix[1] = (uint32_t)f->n;
	out_mem(o, prefix, sizeof(prefix));
	out_mem(o, f->buf + sizeof(f->buf) - f->n, f->n);
}

/* ---- the schema ---- */

static size_t put_type(struct flat *f, enum arrow_type type)
{
	table_begin(f);
	if (type == ARROW_DOUBLE) {
		f->slot[0] = put_uint(f, 2, 2); /* double precision */
	} else if (type != ARROW_TEXT) {
		f->slot[0] = put_uint(f, 64, 4);
		f->slot[1] = put_uint(f, type == ARROW_I64, 1);
	}
	return table_end(f);
}

static size_t put_field(struct flat *f, const struct arrow_column *c)
{
	size_t name = put_string(f, c->name), type = put_type(f, c->type),
	       children = put_refs(f, NULL, 0);

	table_begin(f);
	f->slot[0] = put_ref(f, name);
	f->slot[3] = put_ref(f, type);
	f->slot[5] = put_ref(f, children);
	f->slot[1] = put_uint(f, 1, 1); /* cells may be empty */
	f->slot[2] = put_uint(f,
			      c->type == ARROW_TEXT	? TYPE_UTF8
			      : c->type == ARROW_DOUBLE ? TYPE_FLOAT
							: TYPE_INT,
			      1);
	return table_end(f);
}

void arrow_schema(struct out *o, const struct arrow_column *cols, size_t n, const char *key,
		  const char *value)
{
	size_t fields[ARROW_COLUMNS_MAX], list, keys, values, pair;
	struct flat f = { .n = 0 };

	for (size_t i = 0; i < n; i++)
		fields[i] = put_field(&f, &cols[i]);
	list = put_refs(&f, fields, n);
	keys = put_string(&f, key);
	values = put_string(&f, value);
	table_begin(&f);
	f.slot[0] = put_ref(&f, keys);
	f.slot[1] = put_ref(&f, values);
	pair = table_end(&f);
	pair = put_refs(&f, &pair, 1);
	table_begin(&f);
	f.slot[1] = put_ref(&f, list);
	f.slot[2] = put_ref(&f, pair);
	send(o, &f, HEADER_SCHEMA, table_end(&f), 0);
}

/* ---- rows ---- */

struct parts {
	uint64_t at[ARROW_COLUMNS_MAX * 3][2];
	size_t n;
	uint64_t end;
};

static size_t filled(size_t n)
{
	return (n + 7) / 8 * 8;
}

static void part(struct parts *p, const struct text *t)
{
	p->at[p->n][0] = p->end;
	p->at[p->n++][1] = t->len;
	p->end += filled(t->len);
}

static void write_part(struct out *o, const struct text *t)
{
	static const char zeros[8];

	out_mem(o, t->s, t->len);
	out_mem(o, zeros, filled(t->len) - t->len);
}

int arrow_batch(struct out *o, struct arrow_column *cols, size_t n)
{
	uint64_t nodes[ARROW_COLUMNS_MAX][2];
	struct flat f = { .n = 0 };
	struct parts p = { .n = 0 };
	size_t node, buffers;

	for (size_t i = 0; i < n; i++) {
		if (cols[i].valid.bad || cols[i].values.bad || cols[i].ends.bad)
			return -ENOMEM;
		nodes[i][0] = cols[i].nrows;
		nodes[i][1] = cols[i].nulls;
		part(&p, &cols[i].valid);
		if (cols[i].type == ARROW_TEXT)
			part(&p, &cols[i].ends);
		part(&p, &cols[i].values);
	}
	node = put_pairs(&f, nodes, n);
	buffers = put_pairs(&f, p.at, p.n);
	table_begin(&f);
	f.slot[0] = put_uint(&f, n ? cols[0].nrows : 0, 8);
	f.slot[1] = put_ref(&f, node);
	f.slot[2] = put_ref(&f, buffers);
	send(o, &f, HEADER_BATCH, table_end(&f), p.end);
	for (size_t i = 0; i < n; i++) {
		write_part(o, &cols[i].valid);
		if (cols[i].type == ARROW_TEXT)
			write_part(o, &cols[i].ends);
		write_part(o, &cols[i].values);
		cols[i].valid.len = cols[i].values.len = cols[i].ends.len = 0;
		cols[i].nrows = cols[i].nulls = 0;
	}
	return 0;
}

void arrow_end(struct out *o)
{
	static const uint32_t end[2] = { CONTINUATION, 0 };

	out_mem(o, end, sizeof(end));
}

/* ---- cells ---- */

/* n bytes of zeros. */
static void add_zeros(struct text *t, size_t n)
{
	char *p = text_room(t, n);

	if (!p)
		return;
	memset(p, 0, n);
	t->len += n;
}

/* Where the texts of n rows end: none of them adds to the texts any more. */
static void add_ends(struct arrow_column *c, uint64_t n)
{
	uint32_t end = (uint32_t)c->values.len;
	char *p;

	if (!c->nrows)
		add_zeros(&c->ends, sizeof(end));
	p = text_room(&c->ends, n * sizeof(end));
	if (!p)
		return;
	for (uint64_t i = 0; i < n; i++)
		memcpy(p + i * sizeof(end), &end, sizeof(end));
	c->ends.len += n * sizeof(end);
}

/* A row whose value was appended. */
static void add_row(struct arrow_column *c)
{
	if (!(c->nrows % 8))
		add_zeros(&c->valid, 1);
	if (!c->valid.bad)
		c->valid.s[c->nrows / 8] |= (char)(1u << c->nrows % 8);
	if (c->type == ARROW_TEXT)
		add_ends(c, 1);
	c->nrows++;
}

void arrow_put(struct arrow_column *c, uint64_t bits)
{
	char *p = text_room(&c->values, sizeof(bits));

	if (p) {
		memcpy(p, &bits, sizeof(bits));
		c->values.len += sizeof(bits);
	}
	add_row(c);
}

void arrow_put_text(struct arrow_column *c, const char *s, size_t n)
{
	text_mem(&c->values, s, n);
	add_row(c);
}

void arrow_null(struct arrow_column *c, uint64_t nrows)
{
	uint64_t n = nrows - c->nrows;

	if (c->nrows >= nrows)
		return;
	add_zeros(&c->valid, (nrows + 7) / 8 - (c->nrows + 7) / 8);
	if (c->type == ARROW_TEXT)
		add_ends(c, n);
	else
		add_zeros(&c->values, n * 8);
	c->nrows = nrows;
	c->nulls += n;
}

void arrow_free(struct arrow_column *c)
{
	text_free(&c->valid);
	text_free(&c->values);
	text_free(&c->ends);
}
