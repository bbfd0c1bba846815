/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi.h - call frame information: how to find a function's caller from an address in the function,
 * according to .eh_frame or .debug_frame.
 *
 * libdw interprets the tables. Its result for an address is kept as a row, so that the next stack
 * with that address needs only a look-up. Knows objects; knows no process and no stack.
 */
#ifndef CT_CFI_H
#define CT_CFI_H

#include "object.h"

/* DWARF's register numbers for the architecture. */
#if defined(__aarch64__)
#define CFI_REGS 33
#define CFI_SP 31
#define CFI_BP 29
#else
#define CFI_REGS 17
#define CFI_SP 7
#define CFI_BP 6
#endif

enum cfi_how {
	CFI_UNDEFINED, /* the value cannot be known; for the return address: there is no caller */
	CFI_SAME,
	CFI_SAVED,	/* at CFA + offset */
	CFI_VALUE,	/* is CFA + offset */
	CFI_REGISTER,	/* is in register reg, plus offset */
	CFI_SAVED_EXPR, /* at the address that the expression gives */
	CFI_VALUE_EXPR, /* is what the expression gives */
};

/* One operation of an expression. */
struct cfi_op {
	uint8_t op; /* DW_OP_ */
	uint64_t arg, arg2;
	int to; /* for a branch: the index of the operation that it goes to */
};

struct cfi_rule {
	uint8_t how, reg;
	uint16_t nops, first; /* of the row's ops */
	int64_t offset;
};

struct cfi_row {
	bool signal; /* the frame of a signal: its caller did not make a call, it was interrupted */
	uint8_t ra;  /* the column of the return address */
	uint16_t nops;
	struct cfi_rule cfa, regs[CFI_REGS];
	struct cfi_op *ops;
};

/* Finds the row for an address in an object; NULL: there is none, or the object is lent. Valid until the next call for the
 * same object. */
const struct cfi_row *cfi_find(struct object *, uint64_t address);
/* Finds where the function that contains an address begins, as the index of .eh_frame has it. False: it is not known, or
 * the object is lent. */
bool cfi_begin(struct object *, uint64_t address, uint64_t *begin);
void cfi_close(struct cfi_rows *); /* takes NULL */

#endif
