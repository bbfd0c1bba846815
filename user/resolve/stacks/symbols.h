/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * symbols.h - finds, for an address in an object, the function, the functions inlined there, and
 * the source lines.
 *
 * Knows objects; knows no process, no stack and no record. All returned strings are untrusted bytes
 * of the file.
 */
#ifndef CT_SYMBOLS_H
#define CT_SYMBOLS_H

#include "object.h"

/* functions inlined into each other at one place, including the outermost one */
#define SYMBOLS_MAX 32

/* Addresses are the object's linked ones. `exact`: the address is where a frame is; else it is a
 * return address, and the call before it is looked up. Offsets are those of the address itself.
 * Strings live as long as the object. */
struct symbols_function {
	const char *name;
	uint64_t offset;
};

struct symbols_place {
	const char *function; /* NULL: not known */
	const char *file;     /* NULL: not known */
	uint32_t line;	      /* 0: not known */
	uint64_t offset;      /* offset in the function; 0 for an inlined one */
	bool inlined;	      /* it is inlined into the next place */
};

/* Finds the function in the symbol tables. False: there is none, or the object is lent. */
bool symbols_function(struct object *, uint64_t address, bool exact, struct symbols_function *);
/* Finds everything that is known of an address, innermost first. Returns the number of places,
 * which is at least 1 (max is at least 1); 0: the object is lent. */
int symbols_find(struct object *, uint64_t address, bool exact, struct symbols_place *out, int max);

void symbols_close(struct symbol_index *); /* takes NULL */

#endif
