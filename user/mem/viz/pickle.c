/* SPDX-License-Identifier: BSD-2-Clause */
/* pickle.c - see pickle.h. The operations are those of Python's pickletools. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pickle.h"

#define BATCH 1000 /* items of a list at a time, as Python itself writes them */
#define TEXT_MAX 4096

enum op {
	PROTO = 0x80,
	STOP = '.',
	MARK = '(',
	EMPTY_DICT = '}',
	SETITEMS = 'u',
	EMPTY_LIST = ']',
	APPENDS = 'e',
	BININT1 = 'K',
	BININT2 = 'M',
	BININT = 'J',
	LONG1 = 0x8a,
	NEWTRUE = 0x88,
	NEWFALSE = 0x89,
	TUPLE2 = 0x86,
	BINUNICODE = 'X',
	LONG_BINPUT = 'r',
	BINGET = 'h',
	LONG_BINGET = 'j',
};

static void op(struct pickle *p, enum op op)
{
	out_char(p->out, (char)op);
}

/* The lowest n bytes of a number, the lowest first. */
static void bytes(struct pickle *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out_char(p->out, (char)(v >> 8 * i));
}

static void op_with(struct pickle *p, enum op what, uint64_t v, size_t n)
{
	op(p, what);
	bytes(p, v, n);
}

int pickle_begin(struct pickle *p, struct out *o, const char *const *keys, uint32_t nkeys)
{
	*p = (struct pickle){ .out = o,
			      .keys = keys,
			      .key_kept = calloc(nkeys + 1, sizeof(*p->key_kept)) };
	op_with(p, PROTO, 2, 1);
	return p->key_kept ? 0 : -ENOMEM;
}

void pickle_end(struct pickle *p)
{
	op(p, STOP);
	text_free(&p->text);
	free(p->key_kept);
}

void pickle_number(struct pickle *p, uint64_t v)
{
	size_t n = 1;

	if (v <= UINT8_MAX) {
		op_with(p, BININT1, v, 1);
	} else if (v <= UINT16_MAX) {
		op_with(p, BININT2, v, 2);
	} else if (v <= INT32_MAX) {
		op_with(p, BININT, v, 4);
	} else {
		/* its highest bit is the sign */
		while (n < 8 && v >> (8 * n - 1))
			n++;
		n += n == 8 && v >> 63;
		op_with(p, LONG1, n, 1);
		bytes(p, v, n > 8 ? 8 : n);
		if (n > 8)
			bytes(p, 0, 1);
	}
}

void pickle_bool(struct pickle *p, bool v)
{
	op(p, v ? NEWTRUE : NEWFALSE);
}

void pickle_text(struct pickle *p, const char *s)
{
	size_t n = strnlen(s, TEXT_MAX + 1);

	p->text.len = 0;
	text_utf8(&p->text, s, n > TEXT_MAX ? text_cut(s, TEXT_MAX) : n);
	op_with(p, BINUNICODE, p->text.len, 4);
	out_mem(p->out, p->text.s, p->text.len);
}

void pickle_pair(struct pickle *p, uint64_t a, uint64_t b)
{
	pickle_number(p, a);
	pickle_number(p, b);
	op(p, TUPLE2);
}

void pickle_dict(struct pickle *p)
{
	op(p, EMPTY_DICT);
	op(p, MARK);
}

void pickle_key(struct pickle *p, uint32_t key)
{
	if (p->key_kept[key]) {
		pickle_again(p, p->key_kept[key] - 1);
		return;
	}
	pickle_text(p, p->keys[key]);
	p->key_kept[key] = pickle_keep(p) + 1;
}

void pickle_dict_end(struct pickle *p)
{
	op(p, SETITEMS);
}

void pickle_list(struct pickle *p, struct pickle_list *l)
{
	l->n = 0;
	op(p, EMPTY_LIST);
}

void pickle_item(struct pickle *p, struct pickle_list *l)
{
	if (l->n && !(l->n % BATCH))
		op(p, APPENDS);
	if (!(l->n++ % BATCH))
		op(p, MARK);
}

void pickle_list_end(struct pickle *p, struct pickle_list *l)
{
	if (l->n)
		op(p, APPENDS);
}

uint32_t pickle_keep(struct pickle *p)
{
	op_with(p, LONG_BINPUT, p->kept, 4);
	return p->kept++;
}

void pickle_again(struct pickle *p, uint32_t number)
{
	if (number <= UINT8_MAX)
		op_with(p, BINGET, number, 1);
	else
		op_with(p, LONG_BINGET, number, 4);
}
