/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tensors.h - where the tensors are among the arguments of PyTorch's operators, and where a tensor
 * keeps its shape and type. Both are taken from the library itself: from the code of functions that
 * it exports, from the operator's schema, and from its mangled name. What does not agree is not
 * known, and then nothing is read. The file is untrusted.
 */
#ifndef CT_TENSORS_PLAN_H
#define CT_TENSORS_PLAN_H

#include "../../api/layers/symbol.h"
#include "../../proc/elf_read.h"

/* Where a tensor keeps its shape, as CT_TENSORS_*() in wire/control.h read it. plan 0: not known. */
struct tensors_layout {
	uint32_t plan;
	uint8_t undefined; /* the type of a tensor that is none */
};

/* Looks at the functions that the library exports. Returns 0, -ENOMEM or -ETIME. */
int tensors_layout(const struct elf_file *, struct tensors_layout *);

/* What an operator's schema says, "mm(Tensor self, Tensor mat2) -> Tensor": written from its
 * parenthesis on, within `len` bytes. 0: nothing is known. Never more than TENSORS_SCHEMA_MAX. */
#define TENSORS_SCHEMA_MAX 0xffff
uint32_t tensors_schema(const char *text, size_t len);

/* How many arguments a function has by its mangled name; 0: none, or it is not known. */
unsigned tensors_params(const char *symbol);
/* How many of a schema. */
#define TENSORS_SCHEMA_ARGS(schema) ((schema)&0xff)

/* Fills in what is to be read at calls of this function. schema: of tensors_schema(). */
void tensors_plan(const struct tensors_layout *, const char *symbol, uint32_t schema,
		  struct symbol_args *out);

#endif
