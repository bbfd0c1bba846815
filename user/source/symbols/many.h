/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many.h - rows that stand for many functions: what each function is called, and where it begins
 * and returns. The file is untrusted.
 */
#ifndef CT_MANY_H
#define CT_MANY_H

#include "../../api/api.h"
#include "../../proc/elf_read.h"
#include "returns.h"

struct many;
/* The names that the library's schemas give to operators. NULL: no memory. */
struct many *many_open(void);
void many_close(struct many *);
/* A function of such a row, by its symbol. Returns 0 or -ENOMEM. */
int many_add(struct many *, const struct api_func *, const char *symbol);
/* Behind the last one: looks for the schemas in the file. Returns 0, -ENOMEM or -ETIME. */
int many_schemas(struct many *, const struct elf_file *);
/* The number of the name of this function's scopes; 0: too many names. */
uint32_t many_symbol(const struct many *, const struct api_func *, const char *symbol);

/* What is read of the arguments of the one with this number: CT_TENSORS_*(); 0: nothing. */
uint32_t many_tensors(uint32_t symbol);

/* Where a function of `size` bytes at this offset of the file returns: offsets in the file. Returns
 * their number; 0: it is not known. */
int many_returns(const struct elf_file *, uint64_t offset, uint32_t size, uint64_t at[RETURNS_MAX]);

#endif
