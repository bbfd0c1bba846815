/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.h - rows that a command prints, as text, JSON, CSV and Markdown. What a column is called, what it
 * shows and how wide it is stands once, in a struct table_column; the order of the list is that of
 * JSON's members. What there is only one of, as the facts of a recording, is a table with one row: text
 * has a line for each of its columns. Knows no record and no command.
 *
 *   static const struct table_column columns[] = {
 *   	{ .key = "name", .head = "Name", .text = 9, .get = row_name },
 *   	{ .key = "bytes", .head = "Bytes", .text = 1, .width = 10, .unit = TABLE_BYTES, TABLE_AT(struct row, bytes) },
 *   };
 */
#ifndef CT_RENDER_TABLE_H
#define CT_RENDER_TABLE_H

#include <stddef.h>

#include "../util/io/json.h"
#include "../util/io/out.h"

/* A value. */
enum cell_is {
	CELL_NONE, /* text: `none` of the column; JSON: no member; CSV: empty */
	CELL_NULL, /* the same, but JSON: null */
	CELL_NUMBER,
	CELL_SIGNED,
	CELL_REAL,
	CELL_TRUE,
	CELL_FALSE,
	CELL_STRING, /* up to a NUL, untrusted bytes */
	CELL_WORD,   /* up to a NUL, a word or a number of ours: CSV has it without quotes */
	CELL_BYTES,  /* `number` untrusted bytes */
	CELL_PLAIN,  /* the same, but safe to print already */
};
struct cell {
	uint8_t is; /* enum cell_is */
	uint64_t number;
	double real;
	const char *s;
};

static inline struct cell cell_none(void)
{
	return (struct cell){ .is = CELL_NONE };
}
static inline struct cell cell_number(uint64_t n)
{
	return (struct cell){ .is = CELL_NUMBER, .number = n };
}
static inline struct cell cell_signed(int64_t n)
{
	return (struct cell){ .is = CELL_SIGNED, .number = (uint64_t)n };
}
static inline struct cell cell_real(double v)
{
	return (struct cell){ .is = CELL_REAL, .real = v };
}
static inline struct cell cell_bool(bool flag)
{
	return (struct cell){ .is = flag ? CELL_TRUE : CELL_FALSE };
}
static inline struct cell cell_string(const char *s) /* NULL: null in JSON */
{
	return (struct cell){ .is = s ? CELL_STRING : CELL_NULL, .s = s };
}
static inline struct cell cell_word(const char *s)
{
	return (struct cell){ .is = CELL_WORD, .s = s };
}
static inline struct cell cell_bytes(const char *s, size_t n, bool plain)
{
	return (struct cell){ .is = plain ? CELL_PLAIN : CELL_BYTES, .s = s, .number = n };
}
static inline struct cell cell_flag(bool flag) /* JSON has it only where it is true */
{
	return (struct cell){ .is = flag ? CELL_TRUE : CELL_NONE };
}

/* How text shows a number; files have it as it is. */
enum table_unit {
	TABLE_NUMBER,
	TABLE_NS,     /* "1.234 ms" */
	TABLE_BYTES,  /* "1.0 MiB" */
	TABLE_SHARE,  /* a share of 1, as percent with `digits` decimals */
	TABLE_FIXED,  /* with `digits` decimals */
	TABLE_DIGITS, /* with `digits` significant digits */
};

/* Where the value of a column is a member of the row itself. */
enum table_member {
	TABLE_NO_MEMBER,
	TABLE_BOOL,
	TABLE_U8,
	TABLE_U16,
	TABLE_U32,
	TABLE_U64,
	TABLE_INT,
	TABLE_I64,
	TABLE_DOUBLE,
	TABLE_STRING, /* a pointer, which may be NULL */
	TABLE_CHARS,  /* an array of char, with a NUL */
};
/* clang-format off */
#define TABLE_AT(type, of)                                                     \
	.member = _Generic(&((type *)0)->of,                                   \
			   bool *: TABLE_BOOL, uint8_t *: TABLE_U8, uint16_t *: TABLE_U16, uint32_t *: TABLE_U32, \
			   unsigned long *: TABLE_U64, unsigned long long *: TABLE_U64, int *: TABLE_INT, \
			   long *: TABLE_I64, long long *: TABLE_I64, double *: TABLE_DOUBLE, \
			   char **: TABLE_STRING, const char **: TABLE_STRING), \
	.offset = offsetof(type, of)
#define TABLE_CHARS_AT(type, of) .member = TABLE_CHARS, .offset = offsetof(type, of)
/* The same of what a member of the row points to. */
#define TABLE_THROUGH(type, pointer, target, of) TABLE_AT(target, of), .through = offsetof(type, pointer) + 1
/* clang-format on */

/* What the functions of a column are given. */
struct table_at {
	const void *row, *ctx;
	const struct table_column *column;
	const struct table *table;
	unsigned int *lines; /* how many lines table_text_line() has begun */
};
/* A function that gives a value of a row. */
#define TABLE_GET(name, type, row_name, value)             \
	static struct cell name(const struct table_at *at) \
	{                                                  \
		const type *row_name = at->row;            \
                                                           \
		return value;                              \
	}

#define TABLE_EXACT 255 /* of json_digits: as many as tell the value from its neighbours */
#define TABLE_CELL 320	/* bytes of a cell that a column prints itself */
struct table_column {
	const char *key;   /* in files; NULL: not in them */
	bool no_json;	   /* only in CSV */
	const char *head;  /* in text and Markdown */
	const char *under; /* a second line of the head, where any column has one */
	uint8_t text;	   /* its place in text, from 1 on; 0: it is not there */
	uint8_t csv;	   /* the same in CSV */
	int16_t width; /* in text; negative: aligned to the left; 0: no padding, and two blanks before it */
	uint8_t unit;		     /* enum table_unit */
	uint8_t digits, json_digits; /* json_digits: of a real: decimals */
	bool significant;	     /* json_digits are significant digits */
	uint16_t most;		     /* bytes of a name in text; 0: 4096 */
	const char *none;	     /* what text shows if the value is not known; NULL: "-" */
	uint32_t needs,
		unless; /* bits of struct table.have: the column is there if all of `needs` are set and none of `unless` */
	uint8_t member;	  /* enum table_member; the value, unless get() has it */
	bool if_any;	  /* a member that is 0, or a text that is empty: as CELL_NONE */
	bool brief;	  /* text_lines: a line only if it is not 0 */
	uint32_t through; /* of the pointer to what has it, + 1; 0: the row has it */
	uint32_t offset;  /* of the member; else for get(), if several columns share it */
	const char *name; /* the same */
	struct cell (*get)(const struct table_at *);
	/* in the place of get(): text has another value, or a file has other members than the one */
	const char *(*show)(const struct table_at *, char buf[TABLE_CELL]); /* NULL: not known */
	/* text of any length; of text_lines it calls table_text_line() first, or there is no line */
	void (*write)(struct out *, const struct table_at *);
	void (*put)(struct json *, const struct table_at *);
};

/* A function that shows a text of ours, or nothing (NULL). */
#define TABLE_SAY(name, type, row_name, text)                                    \
	static const char *name(const struct table_at *at, char buf[TABLE_CELL]) \
	{                                                                        \
		const type *row_name = at->row;                                  \
                                                                                 \
		(void)buf;                                                       \
		return text;                                                     \
	}

struct table {
	const struct table_column *columns;
	size_t n;
	uint32_t have;	    /* bits: what this table has */
	const void *ctx;    /* for the columns' functions */
	const char *indent; /* of text; NULL: none */
	bool edge;	    /* text: the first column begins the line, without a blank before it */
	uint8_t label;	    /* text_lines: the width of what stands before the values */
	const char *end;    /* of a line of CSV; NULL: CR and LF */
};
#define TABLE_OF(list, bits, context)                                                     \
	{                                                                                 \
		.columns = (list), .n = ARRAY_LEN(list), .have = (bits), .ctx = (context) \
	}

void table_text_heads(const struct table *, struct out *);
void table_text_row(const struct table *, struct out *, const void *row);
/* A line for each column that text has: its head, as the label, and its value. What has no value has no
 * line, unless the column says what to show then. */
void table_text_lines(const struct table *, struct out *, const void *row);
/* Of write() there: begins a line, the first one with the label. */
void table_text_line(struct out *, const struct table_at *);
/* Writes the members of an object that is open. */
void table_json_members(const struct table *, struct json *, const void *row);
/* Writes an object. blanks: it begins a new line, with these before it; NULL: it does not. */
void table_json_row(const struct table *, struct json *, const char *blanks, const void *row);
void table_csv_heads(const struct table *, struct out *);
void table_csv_row(const struct table *, struct out *, const void *row);
/* The columns are in the order of text. */
void table_markdown_heads(const struct table *, struct out *);
void table_markdown_row(const struct table *, struct out *, const void *row);

/* Writes a text in quotes, so that no spreadsheet takes it for a formula. */
void table_csv_text(struct out *, const char *s, size_t n);
/* Writes a text in which Markdown finds no marks of its own. */
void table_markdown_text(struct out *, const char *s, size_t n);

#endif
