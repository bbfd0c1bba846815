/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * funcs.h - functions as a file names them. Rows of the table change their numbers from version
 * to version, so that a file has each function's name and a sum of what its capture reads; here
 * they find the row of this version. Knows no block and no file.
 */
#ifndef CT_TRACE_FUNCS_H
#define CT_TRACE_FUNCS_H

#include "format.h"

#define FUNCS_MAX (2 * CT_MAX_FUNCS) /* of one file: what has more is no recording */
#define FUNCS_DEF_MAX 256

enum funcs_fit {
	FUNCS_KNOWN,   /* `row` is the function */
	FUNCS_UNKNOWN, /* this version has no such function */
	/* it captures something else of it now, or the file is of another architecture */
	FUNCS_CHANGED,
};

struct trace_func {
	char name[128], domain[32], class[32];
	uint64_t layout;
	uint16_t since;
	int row;	/* -1: see `fit` */
	uint8_t fit;	/* enum funcs_fit */
	uint64_t calls; /* for whoever counts */
};

struct funcs;
struct funcs *funcs_open(void); /* NULL: no memory */
void funcs_close(struct funcs *);

/* A sum of what calls of the row look like: words, reads, architecture. */
uint64_t funcs_layout(int row);
/* Writes the definition of a row: at most FUNCS_DEF_MAX bytes. Returns their number. */
size_t funcs_define(int row, void *out);
/* Reads a definition of `left` bytes at most. *used: its bytes. NULL: malformed, no memory, or
 * too many. */
struct trace_func *funcs_read(struct funcs *, const void *def, size_t left, size_t *used);
/* All that were read, in the order of their coming. */
struct trace_func *funcs_at(struct funcs *, int i); /* NULL: no more */

#endif
