/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * column_cells.h - an event as a row of typed cells. csv, arrow and parquet print the same cells. Knows no
 * format.
 */
#ifndef CT_COLUMN_CELLS_H
#define CT_COLUMN_CELLS_H

#include "../flow/sink.h"
#include "../util/text.h"

/* In the metadata of arrow and parquet; its value is SINK_NAMES_VERSION. */
#define COLUMNS_VERSION_KEY "cudatrace.schema"

/* COLUMN_TEXT is UTF-8, and repeats often; COLUMN_JSON is UTF-8 that is one JSON object. */
enum column_type { COLUMN_U32, COLUMN_U64, COLUMN_I64, COLUMN_DOUBLE, COLUMN_TEXT, COLUMN_JSON };

/* The tables of parquet: title, bit. */
#define COLUMN_TABLES(T)              \
	T(CALLS, "calls")             \
	T(KERNELS, "kernels")         \
	T(COPIES, "copies")           \
	T(SETS, "sets")               \
	T(RANGES, "ranges")           \
	T(COLLECTIVES, "collectives") \
	T(OPERATORS, "operators")     \
	T(PROCESSES, "processes")     \
	T(DEVICES, "devices")         \
	T(STACKS, "stacks")           \
	T(STATES, "host")             \
	T(OTHERS, "others")
enum column_table {
#define T(id, title) COLUMNS_##id,
	COLUMN_TABLES(T)
#undef T
		COLUMN_TABLES_N
};

enum column {
#define C(id, title, type, tables) COLUMN_##id,
#include "columns.def"
#undef C
	COLUMNS
};
#define COLUMNS_CSV COLUMN_UNIX /* csv has the columns before this one */

struct column_about {
	const char *title;
	uint8_t type;	 /* enum column_type */
	uint16_t tables; /* a bit for each enum column_table */
};
extern const struct column_about column_about[COLUMNS];
extern const char *const column_tables[COLUMN_TABLES_N];

enum cell_kind {
	CELL_NONE,
	CELL_UINT,
	CELL_INT,
	CELL_DOUBLE,
	CELL_WORD, /* safe to print, NUL-terminated, not to be freed */
	CELL_RAW,  /* untrusted bytes, NUL-terminated: text_plain() with `max` makes them safe */
	CELL_MADE, /* safe to print: `max` bytes from `u` on in cells.made */
	/* a stack: columns_stack() makes its text */
	CELL_STACK,
};
struct cell {
	uint8_t kind;
	uint32_t max;
	union {
		uint64_t u;
		int64_t i;
		double f;
		const char *s;
		const struct stack *stack;
	};
};

#define CELLS_WORDS ((COLUMNS + 63) / 64)
struct cells {
	const struct sink_opts *o;
	struct cell cell[COLUMNS];
	uint64_t there[CELLS_WORDS]; /* the columns that have a value */
	struct text made;
	/* With the time of day, the stack's id, and the fields in columns of their own, or, without a
	 * column, in `args`. csv has `details` in place of it. */
	bool fields;
	bool no_room; /* there was no memory for a text */
};

/* How many rows an event is. 0: no output has it. */
uint32_t columns_rows(const struct event *);
/* The n-th of these rows. What the cells point to is valid until the next call. */
void columns_fill(struct cells *, const struct event *, uint32_t n);
/* A device's record, which is no row of csv and arrow. */
void columns_device(struct cells *, const struct event *);
/* What the process of an event is, which is no row of csv and arrow. */
void columns_process(struct cells *, const struct event *);
/* A frame of a stack. */
void columns_frame(struct cells *, const struct stack *, uint32_t frame);
/* To which table of parquet a row belongs. */
enum column_table columns_table(const struct event *);
#define COLUMNS_STACKS_MAX (1u << 26) /* ids of stacks; a recording has far fewer */
/* True if this stack comes for the first time: it is then marked in a map of COLUMNS_STACKS_MAX bits. A stack with
 * a larger id is never marked. */
bool columns_stack_new(uint8_t *marks, const struct stack *);
/* A stack as one text, a frame a line, the innermost first. */
void columns_stack(struct text *, const struct sink_opts *, const struct stack *);

static inline bool cells_have(const struct cells *c, int col)
{
	return c->there[col / 64] >> col % 64 & 1;
}

/* ---- inside: what column_cells.c and column_fields.c share ---- */

struct cell *cells_put(struct cells *, int col);
void cells_uint(struct cells *, int col, uint64_t);
void cells_word(struct cells *, int col, const char *); /* NULL: no value */
void cells_raw(struct cells *, int col, const char *, uint32_t max);
/* Returns what was appended to `made` since it had `from` bytes. If that is nothing, there is no value. */
void cells_made(struct cells *, int col, size_t from);
/* The event's fields: with cells.fields all, else those that have a column of csv. */
void columns_fields(struct cells *, const struct event *, const struct field *, int n);

#endif
