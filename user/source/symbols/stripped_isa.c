/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stripped_isa.c - see stripped_isa.h. Opcodes are those of Intel's manual and of Arm's Architecture Reference
 * Manual. Code is not decoded as a whole: bytes that only look like an instruction are taken for one, so what is found has
 * to be proven.
 */
#include "stripped_isa.h"

#include <elf.h>
#include <string.h>

/* ---- x86-64 ---- */

/* Which of 16 bytes may be a ModRM byte of an operand relative to %rip, behind one of the opcodes that is_reference() knows? A bit for
 * each. The byte before the first one is read, too. */
static unsigned int may_refer(const uint8_t *c)
{
	typedef uint8_t bytes __attribute__((vector_size(16)));
	typedef uint64_t words __attribute__((vector_size(16)));
	bytes modrm, opcode, found;
	unsigned int bits = 0;
	words w;

	memcpy(&modrm, c, sizeof(modrm));
	memcpy(&opcode, c - 1, sizeof(opcode));
	found = (bytes)((modrm & 0xc7) == 0x05) &
		(bytes)((opcode == 0x8d) | (opcode == 0x8b) | (opcode == 0x7e));
	w = (words)found;
	if (!(w[0] | w[1]))
		return 0;
	for (int i = 0; i < 16; i++)
		bits |= (found[i] & 1u) << i;
	return bits;
}

/* Does an instruction that takes an address, or loads a word, end with such a byte at c[at]? lea and mov with
 * REX.W, movq to %xmm. */
static bool is_reference(const uint8_t *c, size_t at)
{
	if ((c[at] & 0xc7) != 0x05)
		return false;
	return ((c[at - 1] == 0x8d || c[at - 1] == 0x8b) && (c[at - 2] & 0xfb) == 0x48) ||
	       (c[at - 1] == 0x7e && c[at - 2] == 0x0f);
}

static int x86_refers(uint64_t *registers, const uint8_t *code, size_t len, size_t own,
		      uint64_t address, isa_refers_fn fn, void *ctx)
{
	int err = 0;

	(void)registers, (void)own;
	for (size_t i = 3; i + 5 <= len && !err;) {
		bool whole = i + 16 <= len;
		unsigned int bits = whole ? may_refer(code + i) : 1;
		size_t next = i + (whole ? 16 : 1);

		for (; bits && !err; bits &= bits - 1) {
			size_t at = i + (size_t)__builtin_ctz(bits);
			int32_t by;

			if (at + 5 > len || !is_reference(code, at))
				continue;
			memcpy(&by, code + at + 1, 4);
			err = fn(ctx, address + at, address + at + 5 + (uint64_t)(int64_t)by);
		}
		i = next;
	}
	return err;
}

/* mov $number, %edi */
static int x86_count(const uint8_t *code, size_t len, uint32_t number)
{
	uint8_t insn[5] = { 0xbf };
	int n = 0;

	memcpy(insn + 1, &number, 4);
	for (const uint8_t *at = code; (at = memmem(at, len - (size_t)(at - code), insn, 5));
	     at += 5)
		n++;
	return n;
}

static enum isa_branch x86_branch(const uint8_t *code, size_t at, uint64_t address, uint64_t *to)
{
	int32_t by;

	if (!at || (code[at - 1] != 0xe8 && code[at - 1] != 0xe9))
		return ISA_NONE;
	memcpy(&by, code + at, 4);
	*to = address + at + 4 + (uint64_t)(int64_t)by;
	return code[at - 1] == 0xe8 ? ISA_CALL : ISA_JUMP;
}

/* ---- aarch64 ---- */

/* The lowest n bits, with a sign. */
static int64_t with_sign(uint32_t bits, int n)
{
	return (int64_t)((uint64_t)bits << (64 - n)) >> (64 - n);
}

/* adr and adrp; add and sub with a number; ldr of 8 bytes: which register gets which address. */
static int arm_refers(uint64_t *registers, const uint8_t *code, size_t len, size_t own,
		      uint64_t address, isa_refers_fn fn, void *ctx)
{
	int err = 0;

	for (size_t i = 0; i < own && i + 4 <= len && !err; i += 4) {
		uint64_t at = address + i, to = 0, from;
		uint32_t insn, number;

		memcpy(&insn, code + i, 4);
		from = registers[insn >> 5 & 31];
		number = insn >> 10 & 0xfff;
		if ((insn & 0x1f000000) == 0x10000000) {
			int64_t by = with_sign((insn >> 5 & 0x7ffff) << 2 | (insn >> 29 & 3), 21);

			to = insn >> 31 ? (at & ~0xfffULL) + ((uint64_t)by << 12)
					: at + (uint64_t)by;
			registers[insn & 31] = to;
		} else if ((insn & 0xbf800000) == 0x91000000 && from) {
			uint64_t by = (uint64_t)number << (insn >> 22 & 1 ? 12 : 0);

			to = insn >> 30 & 1 ? from - by : from + by;
			registers[insn & 31] = to;
		} else if ((insn & 0xffc00000) == 0xf9400000 && from) {
			to = from + number * 8ULL;
			registers[insn & 31] = 0;
		}
		err = to ? fn(ctx, at, to) : 0;
	}
	return err;
}

/* mov register, #number: of 32 or 64 bits */
static int arm_count(const uint8_t *code, size_t len, uint32_t number)
{
	int n = 0;

	for (size_t i = 0; i + 4 <= len; i += 4) {
		uint32_t insn;

		memcpy(&insn, code + i, 4);
		n += (insn & 0x7fe00000) == 0x52800000 && (insn >> 5 & 0xffff) == number;
	}
	return n;
}

static enum isa_branch arm_branch(const uint8_t *code, size_t at, uint64_t address, uint64_t *to)
{
	uint32_t insn;

	memcpy(&insn, code + at, 4);
	if ((insn & 0x7c000000) != 0x14000000)
		return ISA_NONE;
	*to = address + at + (uint64_t)(with_sign(insn & 0x3ffffff, 26) * 4);
	return insn >> 31 ? ISA_CALL : ISA_JUMP;
}

const struct stripped_isa *stripped_isa(uint16_t machine)
{
	/* a function reports its number when it begins and when it ends; on aarch64 it keeps it in a register */
	static const struct stripped_isa all[] = {
		{ EM_X86_64, R_X86_64_RELATIVE, 2, x86_refers, x86_count, x86_branch, 1 },
		{ EM_AARCH64, R_AARCH64_RELATIVE, 1, arm_refers, arm_count, arm_branch, 4 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i].machine == machine)
			return &all[i];
	return NULL;
}
