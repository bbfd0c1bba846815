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

#define NAME_LEN 256
#define PIECE (1 << 20)		     /* bytes that are read at a time */
#define CONSTANTS_MAX (256ULL << 20) /* bytes of a section in which schemas are looked for */
#define NOT_SPLIT 0

struct many {
	struct memo *splits; /* of a class's name: where its overload's begins */
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

static struct memo_key key_of(const char *name, size_t len)
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
	return memo_put(m->splits, key_of(name, strlen(name)), NOT_SPLIT);
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Is "name.overload" at `begin`, and is it an operator of this file? whole: no name precedes it. */
static int learn(struct many *m, const char *begin, const char *dot, const char *end, bool whole)
{
	size_t len = (size_t)(end - begin);
	char name[NAME_LEN];
	struct memo_key key;
	uint64_t known;

	memcpy(name, begin, len);
	name[dot - begin] = '_';
	key = key_of(name, len);
	if (!memo_find(m->splits, key, &known) || (!whole && known != NOT_SPLIT))
		return 0;
	return memo_put(m->splits, key, (uint64_t)(dot - begin));
}

/* Looks for "name.overload(". The linker keeps "log_softmax.int(..." as the end of
 * "_sparse_log_softmax.int(...". */
static int look(struct many *m, const char *text, size_t len)
{
	const char *at = text, *begin, *dot, *end = text + len;
	int err = 0;

	while (!err && (at = memchr(at, '(', (size_t)(end - at)))) {
		for (begin = at; begin > text && is_name(begin[-1]) && at - begin < NAME_LEN - 1;)
			begin--;
		dot = begin > text && !begin[-1] ? memchr(begin, '.', (size_t)(at - begin)) : NULL;
		for (const char *b = begin; dot && dot + 1 < at && b < dot && !err; b++)
			err = learn(m, b, dot, at, b == begin);
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
		err = look(m, piece, n);
		if (n == left)
			break;
		/* what is cut is looked at again with the next piece */
		at += n - NAME_LEN;
		left -= n - NAME_LEN;
	}
	return err;
}

int many_schemas(struct many *m, const struct elf_file *file)
{
	char *piece;
	int err = 0;

	if (!m->wanted)
		return 0;
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
	uint64_t split = NOT_SPLIT;

	if (!middle(f, symbol, name))
		return 0;
	if (f->layer == API_LAYER_OPERATOR &&
	    memo_find(m->splits, key_of(name, strlen(name)), &split) && split != NOT_SPLIT)
		name[split] = '.';
	snprintf(text, sizeof(text), "%s%s", f->named, name);
	return symbol_number(text);
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
