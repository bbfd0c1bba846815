/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * symbol.h - the functions that rows for many functions stand for, by their C++ names, and the
 * numbers that such names get. A number is valid within one run. Any thread may call these.
 */
#ifndef CT_SYMBOL_H
#define CT_SYMBOL_H

#include "../../util/types.h"
#include "../../../bpf/control.h"

/* Writes "at::_ops::relu::call" for a symbol as compilers mangle it: names inside of names, without
 * templates and operators. Returns its length; 0: it is another sort of symbol, or longer. */
size_t symbol_name(const char *symbol, char *buf, size_t len);

/* The number of a name, the same each time. 0: there are too many, or no memory. */
uint32_t symbol_number(const char *name);
/* The name; NULL: there is no such number. It is valid until the program ends. */
const char *symbol_text(uint64_t number);

#endif
