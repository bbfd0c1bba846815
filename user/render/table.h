/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.h - rows that a command prints, as text, JSON, CSV and Markdown. What a column is called, what it
 * shows and how wide it is stands once, in a struct table_column; the order of the list is that of
 * JSON's members. Knows no record and no command.
 *
 *   static struct cell row_bytes(const void *row, const void *ctx) ...
 *   static const struct table_column columns[] = {
 *   	{ .key = "name", .head = "Name", .text = 9, .get = row_name },
 *   	{ .key = "bytes", .head = "Bytes", .text = 1, .width = 10, .unit = TABLE_BYTES, .get = row_bytes },
 *   };
 */
#ifndef CT_RENDER_TABLE_H
#define CT_RENDER_TABLE_H

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
	CELL_STRING, /* up to a NUL, untrusted bytes */
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
static inline struct cell cell_real(double v)
{
	return (struct cell){ .is = CELL_REAL, .real = v };
}
static inline struct cell cell_string(const char *s) /* NULL: null in JSON */
{
	return (struct cell){ .is = s ? CELL_STRING : CELL_NULL, .s = s };
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

#define TABLE_EXACT 255 /* of json_digits: as many as tell the value from its neighbours */
#define TABLE_CELL 320	/* bytes of a cell that a column prints itself */
struct table_column {
	const char *key;  /* in files; NULL: not in them */
	bool no_json;	  /* only in CSV */
	const char *head; /* in text and Markdown */
	uint8_t text;	  /* its place in text, from 1 on; 0: it is not there */
	uint8_t csv;	  /* the same in CSV */
	int8_t width; /* in text; negative: to the left; 0: as long as it is, after two blanks */
	uint8_t unit; /* enum table_unit */
	uint8_t digits, json_digits; /* json_digits: of a real: decimals */
	bool significant;	     /* json_digits are significant digits */
	uint16_t most;		     /* bytes of a name in text; 0: 4096 */
	const char *none;	     /* of what is not known, in text; NULL: "-" */
	uint32_t needs, unless;	     /* bits of struct table.have: all; none */
	struct cell (*get)(const void *row, const void *ctx);
	/* in the place of get(): text has another value, or a file has other members than the one */
	const char *(*show)(const void *row, const void *ctx, char buf[TABLE_CELL]);
	void (*write)(struct out *, const void *row, const void *ctx); /* text of any length */
	void (*put)(struct json *, const void *row, const void *ctx);
};

struct table {
	const struct table_column *columns;
	size_t n;
	uint32_t have;	    /* bits: what this table has */
	const void *ctx;    /* for the columns' functions */
	const char *indent; /* of text; NULL: none */
};
#define TABLE_OF(list, bits, context)                                                     \
	{                                                                                 \
		.columns = (list), .n = ARRAY_LEN(list), .have = (bits), .ctx = (context) \
	}

void table_text_heads(const struct table *, struct out *);
void table_text_row(const struct table *, struct out *, const void *row);
/* The members of an object that is open. */
void table_json_members(const struct table *, struct json *, const void *row);
/* An object; blanks: before it, on a line of its own; NULL: on the same line. */
void table_json_row(const struct table *, struct json *, const char *blanks, const void *row);
void table_csv_heads(const struct table *, struct out *);
void table_csv_row(const struct table *, struct out *, const void *row);
/* In the order of text. */
void table_markdown_heads(const struct table *, struct out *);
void table_markdown_row(const struct table *, struct out *, const void *row);

/* What a spreadsheet must not take for a formula, and quotes. */
void table_csv_text(struct out *, const char *s, size_t n);
/* With what Markdown would take for its own made harmless. */
void table_markdown_text(struct out *, const char *s, size_t n);

#endif
