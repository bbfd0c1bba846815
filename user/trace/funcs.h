/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * funcs.h - functions as a file names them. The rows of the table have other numbers in other
 * versions. So a file has each function's name and a checksum of what its capture spec reads, and
 * this file finds the row of this version from them. Knows no block and no file.
 */
#ifndef CT_TRACE_FUNCS_H
#define CT_TRACE_FUNCS_H

#include "format.h"

#define FUNCS_MAX (2 * CT_MAX_FUNCS) /* of one file; a file with more is not a recording */
#define FUNCS_DEF_MAX 256

enum funcs_fit {
	FUNCS_KNOWN,   /* `row` is the function */
	FUNCS_UNKNOWN, /* this version has no such function */
	/* this version captures other data of the function, or the file is from another
	 * architecture */
	FUNCS_CHANGED,
};

struct trace_func {
	char name[128], domain[32], class[32];
	uint64_t layout;
	uint16_t since;
	int row;	/* -1: see `fit` */
	uint8_t fit;	/* enum funcs_fit */
	uint64_t calls; /* free for the caller, who may count calls here */
};

struct funcs;
struct funcs *funcs_open(void); /* NULL: no memory */
void funcs_close(struct funcs *);

/* Returns a checksum of the layout of the row's calls: words, reads, architecture. */
uint64_t funcs_layout(int row);
/* Writes the definition of a row: at most FUNCS_DEF_MAX bytes. Returns their number. */
size_t funcs_define(int row, void *out);
/* Reads a definition of at most `left` bytes, and stores its size in *used. NULL: it is malformed,
 * there is no memory, or there are too many functions. */
struct trace_func *funcs_read(struct funcs *, const void *def, size_t left, size_t *used);
/* Returns the functions that were read, in the order in which they came. */
struct trace_func *funcs_at(struct funcs *, int i); /* NULL: no more */

#endif
