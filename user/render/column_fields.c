/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * column_fields.c - see column_cells.h: the fields of an event into the columns that columns.def has for
 * them, and the rest as JSON. A value that does not fit its column is in the JSON.
 */
#include <math.h>
#include <string.h>

#include "json_fields.h"
#include "column_cells.h"

#define WORD_MAX_BYTES 1024
#define SEEN COLUMNS

/* ANY: all of these. ADDRESS: an address or a handle; NUMBER, BITS: a number; TRIPLE: three columns, from
 * this one on; RATE: bytes a second; WORD: a name. */
enum form { FORM_ANY, FORM_ADDRESS, FORM_NUMBER, FORM_BITS, FORM_TRIPLE, FORM_RATE, FORM_WORD };

enum records {
	OF_CALL = 0x1,
	OF_KERNEL = 0x2,
	OF_COPY = 0x4,
	OF_SET = 0x8,
	OF_WORK = 0x10,
	OF_SCOPE = 0x20,
	OF_PROCESS = 0x40,
	OF_DEVICE = 0x80,
	OF_OTHER = 0x100, /* what has fields of devices, and no rule */
	OF_STATE = 0x200, /* of a thread; no rule */
};

static const struct rule {
	uint8_t col, of, form;
	const char *names; /* separated by spaces */
} rules[] = {
#define COLUMN_SEEN SEEN
#define F(col, of, form, names) { COLUMN_##col, OF_##of, FORM_##form, names },
#include "columns.def"
#undef F
};
#define RULES ARRAY_LEN(rules)

/* The rules for a field's name, found by its address: the same names come again and again. Two names may have one
 * place after each other, so there are two for them: a new name moves the one before to the second. */
#define KNOWN 4096 /* a power of two */
struct known {
	char name[32]; /* a name that is longer has no rule */
	uint64_t rules;
	int col; /* that has its name; COLUMNS: none */
};
_Static_assert(RULES <= 64, "a bit for each rule");

static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += n)
		if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

static void column_fields_learn(struct known *k, const char *name, size_t n)
{
	memcpy(k->name, name, n + 1);
	k->rules = 0;
	for (size_t i = 0; i < RULES; i++)
		if (has_word(rules[i].names, name))
			k->rules |= 1ull << i;
	for (k->col = 0; k->col < COLUMNS && strcmp(column_about[k->col].title, name);)
		k->col++;
}

/* NULL: the name has neither a rule nor a column. */
static const struct known *known_of(const char *name)
{
	static struct known table[KNOWN];
	uint64_t hash = (uint64_t)(uintptr_t)name * 0x9e3779b97f4a7c15ull >> 32;
	struct known *k = &table[hash & (KNOWN - 2)];
	size_t n;

	if (*name && !strcmp(k[0].name, name))
		return &k[0];
	if (*name && !strcmp(k[1].name, name))
		return &k[1];
	n = strlen(name);
	if (!n || n >= sizeof(k->name))
		return NULL;
	k[1] = k[0];
	column_fields_learn(&k[0], name, n);
	return &k[0];
}

static unsigned int records_of(uint16_t kind)
{
	switch (kind) {
	case CT_CALL: return OF_CALL;
	case CT_KERNEL: return OF_KERNEL | OF_WORK;
	case CT_COPY: return OF_COPY | OF_WORK;
	case CT_SET: return OF_SET | OF_WORK;
	case CT_MARKER:
	case CT_SCOPE_END: return OF_SCOPE;
	case CT_PROCESS:
	case CT_EXEC:
	case CT_EXIT: return OF_PROCESS;
	case CT_DEVICE: return OF_DEVICE;
	case CT_HOST_SEGMENT: return OF_STATE;
	case CT_OVERHEAD: return 0; /* its device, context and stream stay in `args` */
	default:
		return kind_is(kind, KIND_WORK)	    ? OF_WORK
		       : kind_is(kind, KIND_DEVICE) ? OF_OTHER
						    : 0;
	}
}

/* Does the number fit the column? */
static bool column_fields_fits(int col, bool is_signed, const struct field *f)
{
	switch (column_about[col].type) {
	case COLUMN_U32: return f->u <= UINT32_MAX;
	case COLUMN_U64: return !is_signed || f->i >= 0;
	case COLUMN_I64: return is_signed || f->u <= INT64_MAX;
	default: return false;
	}
}

static bool column_fields_put_number(struct cells *c, int col, const struct field *f)
{
	bool is_signed = f->type == FIELD_INT;

	if (!column_fields_fits(col, is_signed, f))
		return false;
	*cells_put(c, col) = (struct cell){ .kind = is_signed ? CELL_INT : CELL_UINT, .u = f->u };
	return true;
}

static bool column_fields_put_word(struct cells *c, int col, const struct field *f)
{
	size_t from = c->made.len;
	const char *name;

	if (f->type == FIELD_ENUM || f->type == FIELD_WORD) {
		name = f->xlat ? xlat_name(f->xlat, f->i) : NULL;
		cells_word(c, col, name);
		return name != NULL;
	}
	if (f->type != FIELD_STR || f->cut || !f->str_len || f->str_len > WORD_MAX_BYTES)
		return false;
	/* text_plain() needs a NUL at the end */
	char copy[WORD_MAX_BYTES + 1];

	memcpy(copy, f->str, f->str_len);
	copy[f->str_len] = '\0';
	text_plain(&c->made, copy, WORD_MAX_BYTES);
	cells_made(c, col, from);
	return true;
}

/* Puts the field into the column. False: it is not of that form, or does not fit. */
static bool put_as(struct cells *c, const struct rule *r, const struct field *f)
{
	switch (r->form) {
	case FORM_ADDRESS:
		return (f->type == FIELD_PTR || f->type == FIELD_STREAM || f->type == FIELD_FUNC) &&
		       column_fields_put_number(c, r->col, f);
	case FORM_BITS:
		return (f->type == FIELD_FLAGS || f->type == FIELD_UINT) &&
		       column_fields_put_number(c, r->col, f);
	case FORM_NUMBER:
		return (f->type == FIELD_INT || f->type == FIELD_UINT || f->type == FIELD_SIZE ||
			f->type == FIELD_BOOL) &&
		       column_fields_put_number(c, r->col, f);
	case FORM_RATE:
		if (f->type != FIELD_RATE || !isfinite(f->f))
			return false;
		*cells_put(c, r->col) = (struct cell){ .kind = CELL_DOUBLE, .f = f->f };
		return true;
	case FORM_WORD: return column_fields_put_word(c, r->col, f);
	case FORM_TRIPLE:
		if (f->type != FIELD_DIM3)
			return false;
		for (int i = 0; i < 3; i++)
			cells_uint(c, r->col + i, f->dim[i]);
		return true;
	default: return true;
	}
}

/* Puts the field into the column that has its name. False: it is not of that type, or does not fit. */
static bool put_by_name(struct cells *c, int col, const struct field *f)
{
	static const uint8_t forms[] = { [COLUMN_U32] = FORM_NUMBER,
					 [COLUMN_U64] = FORM_NUMBER,
					 [COLUMN_I64] = FORM_NUMBER,
					 [COLUMN_DOUBLE] = FORM_RATE,
					 [COLUMN_TEXT] = FORM_WORD };
	const struct rule r = { .col = (uint8_t)col, .form = forms[column_about[col].type] };

	return put_as(c, &r, f);
}

/* Puts the field into its column. False: it has none. tables: bits of the tables that the record is in. */
static bool field_to_column(struct cells *c, unsigned int of, unsigned int tables,
			    const struct field *f)
{
	const struct known *k = f->name ? known_of(field_key(f)) : NULL;

	if (!k)
		return false;
	for (uint64_t left = c->fields ? k->rules : 0; left; left &= left - 1) {
		const struct rule *r = &rules[__builtin_ctzll(left)];

		if (!(r->of & of))
			continue;
		if (r->col == SEEN)
			return true;
		if (!f->absent && !cells_have(c, r->col) && put_as(c, r, f))
			return true;
	}
	return of & ~(unsigned int)OF_CALL && k->col < (c->fields ? COLUMN_ARGS : COLUMNS_CSV) &&
	       !f->absent && column_about[k->col].tables & tables && !cells_have(c, k->col) &&
	       put_by_name(c, k->col, f);
}

void columns_fields(struct cells *c, const struct event *ev, const struct field *f, int n)
{
	unsigned int of = records_of(ev->rec->kind), depth = 0, tables = 1u << columns_table(ev);
	struct field rest[EVENT_MAX_FIELDS];
	size_t from = c->made.len;
	struct row w;
	int nrest = 0;

	if (!c->fields && !(of & ~(unsigned int)OF_CALL)) /* csv has no rules */
		return;
	for (int i = 0; i < n; i++) {
		depth -= f[i].type == FIELD_CLOSE && depth;
		if (depth || f[i].type == FIELD_OPEN || f[i].type == FIELD_CLOSE ||
		    !field_to_column(c, of, tables, &f[i]))
			rest[nrest++] = f[i];
		depth += f[i].type == FIELD_OPEN && !f[i].absent;
	}
	if (!nrest || !c->fields)
		return;
	from = c->made.len;
	row_begin_text(&w, &c->made);
	w.p = put_char(w.p, '{');
	json_fields(&w, rest, nrest);
	row_room(&w, 1);
	w.p = put_char(w.p, '}');
	row_end(&w);
	cells_made(c, COLUMN_ARGS, from);
}
