/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * returns.h - where a function returns: its instructions are walked from the first to the last.
 *
 * A breakpoint inside an instruction would break the program. So one instruction that is not known,
 * or one that reaches over the function's end, and nothing is said of the function at all.
 */
#ifndef CT_RETURNS_H
#define CT_RETURNS_H

#include "../../util/types.h"

#define RETURNS_MAX 16	    /* of one function */
#define RETURNS_CODE 262144 /* bytes of one function */

/* Writes the offsets in code[] of the instructions that return. Returns their number; 0: there is
 * none, or it is not known where they are, or there are more. */
int returns_find(const uint8_t *code, size_t len, uint32_t at[RETURNS_MAX]);

/* The length of the x86-64 instruction at the beginning of `len` bytes; 0: it is not known. */
unsigned returns_length(const uint8_t *code, size_t len);

#endif
