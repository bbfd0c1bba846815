/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * symbol.h - the functions that rows for many functions stand for, by their C++ names, and the
 * numbers that such names get. A number is valid within one run. Any thread may call these.
 */
#ifndef CT_SYMBOL_H
#define CT_SYMBOL_H

#include "../../util/types.h"
#include "../../../wire/control.h"

/* Writes "at::_ops::relu::call" for a symbol as compilers mangle it: names inside of names, without
 * templates and operators. Returns its length; 0: it is another sort of symbol, or longer. */
size_t symbol_name(const char *symbol, char *buf, size_t len);

#define SYMBOL_ARGS 48 /* arguments of an operator, with the end of the list */

/* What is read of an operator's arguments. */
struct symbol_args {
	uint32_t plan;	   /* CT_TENSORS_*(); 0: nothing */
	uint8_t undefined; /* the type of a tensor that is none */
	/* one for each: T a tensor, O one that may be absent, L several: what follows the word of
	 * CT_LAYER_BEGIN has them in this order. Not read: ? a tensor, l several, s a scalar, a several
	 * scalars, - something else */
	char codes[SYMBOL_ARGS];
};

/* The number of a name, the same each time. 0: there are too many, or no memory. args: NULL: none. The
 * same name has several numbers if its arguments are read in several ways, as of two libraries. */
uint32_t symbol_number(const char *name, const struct symbol_args *args);
/* The name; NULL: there is no such number. It is valid until the program ends. */
const char *symbol_text(uint64_t number);
/* The same for its arguments; plan 0 if they are not read. */
const struct symbol_args *symbol_args(uint64_t number);

#endif
