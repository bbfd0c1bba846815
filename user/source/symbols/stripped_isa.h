/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stripped_isa.h - what is read of a runtime's machine code, for each processor: which addresses it refers
 * to, which numbers it has, and where it branches. Knows no names.
 */
#ifndef CT_STRIPPED_ISA_H
#define CT_STRIPPED_ISA_H

#include "../../util/types.h"

#define ISA_REGISTERS 32

enum isa_branch { ISA_NONE, ISA_CALL, ISA_JUMP };

/* An instruction at this address refers to another one. A negative return stops. */
typedef int (*isa_refers_fn)(void *ctx, uint64_t at, uint64_t to);

struct stripped_isa {
	uint16_t machine;  /* EM_ */
	uint32_t relative; /* the relocation of a word that gets an address of the same file */
	int times;	   /* a function has its number so often at least */
	/* Calls fn for each instruction that refers to something; those in the last len - own bytes may come again. registers: 0 at
	 * first, and passed again with the next bytes. Returns 0 or what fn returned. */
	int (*refers)(uint64_t registers[ISA_REGISTERS], const uint8_t *code, size_t len,
		      size_t own, uint64_t address, isa_refers_fn fn, void *ctx);
	/* How often the code has the number as the value of a register: of x86-64, of the one for first arguments. */
	int (*count)(const uint8_t *code, size_t len, uint32_t number);
	/* Is there a branch whose distance is at code[at]? Stores where it leads. There are 4 bytes at least. */
	enum isa_branch (*branch)(const uint8_t *code, size_t at, uint64_t address, uint64_t *to);
	size_t step; /* branches are at multiples of this */
};

/* NULL: this processor's code is not known. */
const struct stripped_isa *stripped_isa(uint16_t machine);

#endif
