/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * symbols.h - from an address in an object to the function, the functions inlined there, and the
 * lines of source.
 *
 * Knows objects; knows no process, no stack and no record. Everything that is handed out is
 * untrusted bytes of the file.
 */
#ifndef CT_SYMBOLS_H
#define CT_SYMBOLS_H

#include "object.h"

#define SYMBOLS_MAX 32 /* functions inlined into each other at one place, and the one around them */

/* Addresses are the object's. `exact`: the address is where a frame is; else it is a return
 * address, and what is looked up is the call before it. Offsets are of the address itself.
 * Strings live as long as the object. */
struct symbols_function {
	const char *name;
	uint64_t offset;
};

struct symbols_place {
	const char *function; /* NULL: not known */
	const char *file;     /* NULL: not known */
	uint32_t line;	      /* 0: not known */
	uint64_t offset;      /* in the function; of an inlined one: 0 */
	bool inlined;	      /* into the next place */
};

/* The function by the symbol tables. False: there is none. */
bool symbols_function(struct object *, uint64_t address, bool exact, struct symbols_function *);
/* All that is known of an address, innermost first. Returns the number of places, from 1 on (max
 * is at least 1). */
int symbols_find(struct object *, uint64_t address, bool exact, struct symbols_place *out, int max);

void symbols_close(struct symbol_index *); /* takes NULL */

#endif
