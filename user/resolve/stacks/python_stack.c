/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * python_stack.c - see python_stack.h. A hash table of limited size: when it is full, the oldest
 * entries are dropped first.
 *
 * Knows two formats of CPython, both from its documentation: the characters of a str (PEP 393) and
 * the location table of a code object (Objects/locations.md in 3.11, Objects/lnotab_notes.txt in 3.10; the C API's
 * PyCode_Addr2Line() gives the same lines). Opens no process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../util/hash.h"
#include "../../util/table/chains.h"
#include "python_stack.h"

#define MAX_CODES 65536
#define MAX_BYTES (64u << 20)

struct code {
	struct chain_link link;
	struct code *newer, *older;
	uint64_t code, check;
	uint32_t pid, first_line, version;
	uint32_t bytes;			 /* memory that this entry takes */
	uint32_t file, table, table_len; /* where they begin in text[]; the name begins at 0 */
	bool cut;			 /* the table is not complete */
	char text[];
};

struct python {
	struct chains codes; /* of struct code */
	struct code *newest, *oldest;
	uint32_t bytes;
	uint32_t held[1024]; /* number of code objects of the processes with this pid modulo 1024 */
};

struct python *python_open(void)
{
	return calloc(1, sizeof(struct python));
}

static uint64_t hash_of(uint32_t pid, uint64_t code, uint64_t check)
{
	return hash_bytes((uint64_t[]){ pid, code, check }, 3 * sizeof(uint64_t));
}

/* NULL: it is not known. */
static struct code *python_stack_find(const struct python *p, uint32_t pid, uint64_t code,
				      uint64_t check)
{
	struct chain_link *at = chains_find(&p->codes, hash_of(pid, code, check));

	for (; at; at = chains_again(at)) {
		struct code *c = (struct code *)at;

		if (c->code == code && c->check == check && c->pid == pid)
			return c;
	}
	return NULL;
}

static void forget(struct python *p, struct code *c)
{
	chains_remove(&p->codes, &c->link);
	*(c->newer ? &c->newer->older : &p->newest) = c->older;
	*(c->older ? &c->older->newer : &p->oldest) = c->newer;
	p->bytes -= c->bytes;
	p->held[c->pid % ARRAY_LEN(p->held)]--;
	free(c);
}

void python_close(struct python *p)
{
	if (!p)
		return;
	while (p->oldest)
		forget(p, p->oldest);
	chains_close(&p->codes);
	free(p);
}

void python_drop(struct python *p, uint32_t pid)
{
	struct code *c = p->held[pid % ARRAY_LEN(p->held)] ? p->oldest : NULL;

	while (c) {
		struct code *newer = c->newer;

		if (c->pid == pid)
			forget(p, c);
		c = newer;
	}
}

/* ---- a str's characters as UTF-8 ---- */

static size_t put_char(char *to, uint32_t c)
{
	/* What UTF-8 cannot hold: NUL would end the string, surrogates stand for bytes that were
	 * not UTF-8. */
	if (!c || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* The maximum that decode() writes: a character of one byte becomes two bytes, a NUL three. */
#define UTF8_MAX(len) (3 * (size_t)(len) + 1)

/* Writes the string and its NUL; returns the bytes written. */
static size_t decode(char *to, const char *from, size_t len, uint8_t kind)
{
	size_t width = kind ? kind : 1, n = 0;

	for (size_t i = 0; i + width <= len; i += width) {
		uint32_t c = 0;

		/* CPython's order is the machine's, and both kinds of ours are little-endian */
		for (size_t k = 0; k < width; k++)
			c |= (uint32_t)(uint8_t)from[i + k] << 8 * k;
		n += put_char(to + n, c);
	}
	to[n++] = '\0';
	return n;
}

/* ---- learning ---- */

static size_t round8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

static bool kind_is_known(uint8_t kind)
{
	return kind == 0 || kind == 1 || kind == 2 || kind == 4;
}

static struct code *code_new(const struct ct_py_code *r)
{
	const char *name = r->bytes, *file = name + round8(r->name_len),
		   *table = file + round8(r->file_len);
	size_t max = UTF8_MAX(r->name_len) + UTF8_MAX(r->file_len) + r->table_len, n;
	struct code *c = malloc(sizeof(*c) + max), *less;

	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->pid = r->h.pid;
	c->code = r->code;
	c->check = r->check;
	c->first_line = r->first_line;
	c->version = r->version;
	n = decode(c->text, name, r->name_len, r->name_kind);
	c->file = (uint32_t)n;
	n += decode(c->text + n, file, r->file_len, r->file_kind);
	c->table = (uint32_t)n;
	c->table_len = r->table_len;
	c->cut = r->table_len == CT_PY_TABLE;
	memcpy(c->text + n, table, r->table_len);
	less = realloc(c, sizeof(*c) + n + r->table_len);
	c = less ? less : c;
	c->bytes = (uint32_t)(sizeof(*c) + n + r->table_len);
	return c;
}

int python_code(struct python *p, const struct ct_py_code *r)
{
	struct code *c, *old;

	if (r->h.size < sizeof(*r) || !kind_is_known(r->name_kind) ||
	    !kind_is_known(r->file_kind) ||
	    round8(r->name_len) + round8(r->file_len) + r->table_len > r->h.size - sizeof(*r))
		return -EBADMSG;
	c = code_new(r);
	if (!c)
		return -ENOMEM;
	old = python_stack_find(p, c->pid, c->code, c->check);
	if (old)
		/* it may be another code object with the same check: the later one replaces it */
		forget(p, old);
	while (p->oldest && (p->codes.n >= MAX_CODES || p->bytes + c->bytes > MAX_BYTES))
		forget(p, p->oldest);
	if (chains_add(&p->codes, &c->link, hash_of(c->pid, c->code, c->check))) {
		free(c);
		return -ENOMEM;
	}
	c->older = p->newest;
	*(p->newest ? &p->newest->newer : &p->oldest) = c;
	p->newest = c;
	p->bytes += c->bytes;
	p->held[c->pid % ARRAY_LEN(p->held)]++;
	return 0;
}

/* ---- lines ---- */

/* Six bits a byte, the lowest first; bit 6: more follow. False: the table ends, or the number
 * has no end. */
static bool varint(const uint8_t **at, const uint8_t *end, uint32_t *out)
{
	uint32_t val = 0;

	for (unsigned int shift = 0; shift < 32 && *at < end && !(**at & 0x80); shift += 6) {
		val |= (uint32_t)(**at & 0x3f) << shift;
		if (!(*(*at)++ & 0x40)) {
			*out = val;
			return true;
		}
	}
	return false;
}

/*
 * Each entry begins with a byte whose highest bit is set: then 4 bits of form and 3 of length,
 * in instructions of two bytes, less one. What follows says by how much the line differs from
 * that of the entry before.
 */
enum { FORM_LINE_0 = 10, FORM_LINE_2 = 12, FORM_NO_COLUMNS = 13, FORM_LONG = 14, FORM_NONE = 15 };

/* The line of an instruction. False: the table is malformed, or it is too short. */
static bool line_at(const uint8_t *at, const uint8_t *end, uint32_t first_line, uint32_t instr,
		    uint32_t *line)
{
	uint32_t now = first_line, begin = 0;

	while (at < end) {
		uint8_t form = *at >> 3 & 15, bytes = 2 * ((*at & 7) + 1);
		uint32_t delta = 0;

		if (!(*at++ & 0x80))
			return false;
		if (form == FORM_LONG || form == FORM_NO_COLUMNS) {
			if (!varint(&at, end, &delta))
				return false;
			delta = delta & 1 ? -(delta >> 1) : delta >> 1;
		} else if (form >= FORM_LINE_0 && form <= FORM_LINE_2) {
			delta = form - FORM_LINE_0;
		}
		now += delta;
		begin += bytes;
		if (instr < begin) {
			*line = form == FORM_NONE || (int32_t)now < 0 ? 0 : now;
			return true;
		}
		while (at < end && !(*at & 0x80)) /* columns */
			at++;
	}
	return false;
}

/* The same in the table of 3.10: pairs of bytes, how many bytes of instructions, and by how much their
 * line differs from that of the pair before; -128: they have no line. */
static bool line_at_310(const uint8_t *at, const uint8_t *end, uint32_t first_line, uint32_t instr,
			uint32_t *line)
{
	uint32_t now = first_line, begin = 0;

	for (; end - at >= 2; at += 2) {
		int8_t delta = (int8_t)at[1];

		now += delta == INT8_MIN ? 0 : (uint32_t)delta;
		begin += at[0];
		if (instr < begin) {
			*line = delta == INT8_MIN || (int32_t)now < 0 ? 0 : now;
			return true;
		}
	}
	return false;
}

static bool line_of(const struct code *c, uint32_t instr, uint32_t *line)
{
	const uint8_t *table = (const uint8_t *)c->text + c->table;

	return (c->version >> 16 == 0x030a ? line_at_310 : line_at)(table, table + c->table_len,
								    c->first_line, instr, line);
}

bool python_frame(struct python *p, uint32_t pid, const struct ct_py_frame *f,
		  struct python_place *out)
{
	const struct code *c = f->flags & CT_PY_SHIM ? NULL
						     : python_stack_find(p, pid, f->code, f->check);

	if (!c)
		return false;
	out->function = c->text;
	out->file = c->text + c->file;
	/* Before the first instruction: the frame is being set up. 3.11 and 3.12 point to the
	 * one before the next. */
	if ((int32_t)f->instr < 0 || !line_of(c, f->instr, &out->line))
		out->line = c->cut && (int32_t)f->instr >= 0 ? 0 : c->first_line;
	return true;
}
