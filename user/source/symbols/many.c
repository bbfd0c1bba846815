/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many.c - see many.h.
 *
 * PyTorch's operator add.Tensor is the class at::_ops::add_Tensor: its name does not say where the
 * name of the overload begins. But the library contains the schema of each operator as text,
 * "add.Tensor(Tensor self, ...". These texts are looked for among its constants.
 */
#include "many.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../api/layers/symbol.h"
#include "../../util/now.h"
#include "../../util/table/memo.h"
#include "tensors.h"

#define NAME_LEN 256
#define PIECE (1 << 20)		     /* bytes that are read at a time */
#define CONSTANTS_MAX (256ULL << 20) /* bytes of a section in which schemas are looked for */
#define SCHEMA_LEN 8192		     /* bytes of a schema */
#define NOT_SPLIT 0

/* What is known of an operator: where the name of its overload begins in its class's name; what its
 * schema says of its arguments. */
#define SPLIT(known) ((known)&0xffff)
#define SCHEMA(known) ((uint32_t)((known) >> 16) & TENSORS_SCHEMA_MAX)
#define KNOWN_WHOLE (1ULL << 40)		  /* of a text that is nothing but this schema */
#define KNOWN_TWICE (1ULL << 41)		  /* several texts differ */
#define PARAMS(known) ((unsigned)((known) >> 48)) /* of its mangled name */
#define KNOWN_PARAMS(n) ((uint64_t)((n)&0xff) << 48)
#define KNOWN(split, schema) ((uint64_t)(split) | (uint64_t)(schema) << 16)

struct many {
	struct memo *splits; /* of a class's name */
	struct tensors_layout layout;
	bool wanted;
};

struct many *many_open(void)
{
	struct many *m = calloc(1, sizeof(*m));

	if (m)
		m->splits = memo_open();
	if (m && m->splits)
		return m;
	free(m);
	return NULL;
}

void many_close(struct many *m)
{
	if (!m)
		return;
	memo_close(m->splits);
	free(m);
}

static struct memo_key many_key_of(const char *name, size_t len)
{
	struct memo_key key = memo_begin(0);

	memo_add_bytes(&key, name, len);
	return key;
}

/* The part of a function's name that the row's `*` stands for: writes it. False: it has none. */
static bool middle(const struct api_func *f, const char *symbol, char out[NAME_LEN])
{
	char name[NAME_LEN];
	const char *star = strchr(f->name, '*');
	size_t n = symbol_name(symbol, name, sizeof(name)), before, after;

	if (!star || !n)
		return false;
	before = (size_t)(star - f->name);
	after = strlen(star + 1);
	if (n <= before + after)
		return false;
	n -= before + after;
	memcpy(out, name + before, n);
	out[n] = '\0';
	return true;
}

int many_add(struct many *m, const struct api_func *f, const char *symbol)
{
	char name[NAME_LEN];

	if (f->layer != API_LAYER_OPERATOR || !middle(f, symbol, name))
		return 0;
	m->wanted = true;
	return memo_put(m->splits, many_key_of(name, strlen(name)),
			KNOWN_PARAMS(tensors_params(symbol)));
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* The two texts of an operator, put together: one that is nothing but its schema counts. */
static uint64_t merge(uint64_t known, uint64_t said)
{
	bool whole = known & KNOWN_WHOLE, now_whole = said & KNOWN_WHOLE;

	if (!SPLIT(known) && !SCHEMA(known) && !(known & KNOWN_TWICE))
		return said | KNOWN_PARAMS(PARAMS(known));
	if (whole != now_whole)
		return whole ? known : said | KNOWN_PARAMS(PARAMS(known));
	if (SPLIT(known) == SPLIT(said) && SCHEMA(known) == SCHEMA(said))
		return known;
	/* with the first one's name, as it is more likely, and without arguments */
	return (known & ~KNOWN(0, TENSORS_SCHEMA_MAX)) | KNOWN_TWICE;
}

/* Is "name.overload" or "name" at `begin`, and is it an operator of this file? whole: no name precedes
 * it. dot: NULL: it has no overload. schema: of what follows. */
static int many_learn(struct many *m, const char *begin, const char *dot, const char *end,
		      bool whole, uint32_t schema)
{
	size_t len = (size_t)(end - begin);
	uint64_t known, split = dot ? (uint64_t)(dot - begin) : NOT_SPLIT;
	char name[NAME_LEN];
	struct memo_key key;

	memcpy(name, begin, len);
	if (dot)
		name[dot - begin] = '_';
	key = many_key_of(name, len);
	if (!memo_find(m->splits, key, &known))
		return 0;
	/* the end of another operator's: sspaddmm(..., and _scaled_addmm( with more arguments */
	if (schema && TENSORS_SCHEMA_ARGS(schema) != PARAMS(known))
		schema = 0;
	if (!dot && !schema)
		return 0;
	return memo_put(m->splits, key,
			merge(known, KNOWN(split, schema) | (whole ? KNOWN_WHOLE : 0)));
}

/* Looks for "name.overload(" and "name(". The linker keeps "log_softmax.int(..." as the end of
 * "_sparse_log_softmax.int(...". What begins behind `from` is looked at with the next piece. */
static int many_look(struct many *m, const char *text, size_t len, size_t from)
{
	const char *at = text, *begin, *dot, *end = text + len, *last;
	uint32_t schema;
	int err = 0;

	while (!err && (at = memchr(at, '(', (size_t)(end - at)))) {
		if ((size_t)(at - text) > from)
			return 0;
		for (begin = at; begin > text && is_name(begin[-1]) && at - begin < NAME_LEN - 1;)
			begin--;
		if (begin == text || begin[-1] || begin == at) {
			at++;
			continue;
		}
		dot = memchr(begin, '.', (size_t)(at - begin));
		schema = tensors_schema(at, (size_t)(end - at));
		last = dot ? dot : at;
		for (const char *b = begin; b < last && !(dot && dot + 1 == at) && !err; b++)
			err = many_learn(m, b, dot, at, b == begin, schema);
		at++;
	}
	return err;
}

static int look_through(struct many *m, const struct elf_file *file, const Elf64_Shdr *s,
			char *piece)
{
	uint64_t left = s->sh_size < CONSTANTS_MAX ? s->sh_size : CONSTANTS_MAX, at = s->sh_offset;
	int err = 0;

	while (!err && left > NAME_LEN) {
		uint64_t n = left < PIECE ? left : PIECE;

		if (file->until_ns && now_ns() > file->until_ns)
			return -ETIME;
		if (elf_read(file, piece, n, at))
			return 0; /* operators have the names of their classes */
		err = many_look(m, piece, n, n == left ? n : n - SCHEMA_LEN);
		if (n == left)
			break;
		/* what is cut is looked at with the next piece */
		at += n - SCHEMA_LEN - NAME_LEN;
		left -= n - SCHEMA_LEN - NAME_LEN;
	}
	return err;
}

int many_schemas(struct many *m, const struct elf_file *file)
{
	char *piece;
	int err = 0;

	if (!m->wanted)
		return 0;
	err = tensors_layout(file, &m->layout);
	if (err)
		return err;
	piece = malloc(PIECE);
	if (!piece)
		return -ENOMEM;
	for (uint32_t i = 0; i < file->nshdr && !err; i++)
		if (file->shdr[i].sh_type == SHT_PROGBITS &&
		    !strncmp(elf_section_name(file, i), ".rodata", 7))
			err = look_through(m, file, &file->shdr[i], piece);
	free(piece);
	return err;
}

uint32_t many_symbol(const struct many *m, const struct api_func *f, const char *symbol)
{
	char name[NAME_LEN], text[2 * NAME_LEN];
	struct symbol_args args = { 0 };
	uint64_t known = 0;

	if (!middle(f, symbol, name))
		return 0;
	if (f->layer == API_LAYER_OPERATOR &&
	    memo_find(m->splits, many_key_of(name, strlen(name)), &known)) {
		tensors_plan(&m->layout, symbol, SCHEMA(known), &args);
		if (SPLIT(known) != NOT_SPLIT)
			name[SPLIT(known)] = '.';
	}
	snprintf(text, sizeof(text), "%s%s", f->named, name);
	return symbol_number(text, &args);
}

uint32_t many_tensors(uint32_t symbol)
{
	return symbol_args(symbol)->plan;
}

int many_returns(const struct elf_file *file, uint64_t offset, uint32_t size,
		 uint64_t at[RETURNS_MAX])
{
	uint32_t found[RETURNS_MAX];
	uint8_t *code;
	int n = 0;

	if (!size || size > RETURNS_CODE)
		return 0;
	code = malloc(size);
	if (!code)
		return 0;
	if (!elf_read(file, code, size, offset))
		n = returns_find(code, size, found);
	free(code);
	for (int i = 0; i < n; i++)
		at[i] = offset + found[i];
	return n;
}
