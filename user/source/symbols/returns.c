/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * returns.c - see returns.h. The lengths are those of the opcode maps of Intel's manual, volume 2,
 * appendix A. Instructions that no compiler writes into a program's function are not known here.
 */
#include "returns.h"

#include <string.h>

/* What follows an opcode. */
enum {
	NOT = 0x00,   /* not known */
	BARE = 0x01,  /* nothing */
	MODRM = 0x02, /* a ModRM byte, and what it asks for */
	IMM8 = 0x04,
	IMMZ = 0x08, /* 4 bytes, 2 with the prefix 66 */
	IMMV = 0x10, /* the same, and 8 with REX.W */
	REL4 = 0x20, /* 4 bytes; with the prefix 66 processors differ */
	MOFFS = 0x40,
	GROUP3 = 0x80, /* an immediate only with the first two operations of the group */
};

/* One bit for each opcode of a row of 16. */
#define HAS(set, op) ((set)[(op) >> 4] >> ((op)&15) & 1)

static unsigned one_byte(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) < 4    ? MODRM
		       : (op & 7) == 4 ? BARE | IMM8
		       : (op & 7) == 5 ? BARE | IMMZ
				       : NOT;
	if (op >= 0x50 && op < 0x60)
		return BARE;
	if (op >= 0x70 && op < 0x80)
		return BARE | IMM8;
	if (op >= 0x84 && op < 0x8f)
		return MODRM;
	if (op >= 0x90 && op < 0xa0)
		return op == 0x9a ? NOT : BARE;
	if (op >= 0xb0 && op < 0xc0)
		return BARE | (op < 0xb8 ? IMM8 : IMMV);
	if (op >= 0xd0 && op < 0xd4)
		return MODRM;
	if (op >= 0xd8 && op < 0xe0)
		return MODRM;
	switch (op) {
	case 0x63: return MODRM;
	case 0x68:
	case 0xa9: return BARE | IMMZ;
	case 0x6a:
	case 0xa8:
	case 0xe3:
	case 0xeb: return BARE | IMM8;
	case 0x69:
	case 0x81:
	case 0xc7: return MODRM | IMMZ;
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xc0:
	case 0xc1:
	case 0xc6: return MODRM | IMM8;
	case 0xa0:
	case 0xa1:
	case 0xa2:
	case 0xa3: return BARE | MOFFS;
	case 0xa4:
	case 0xa5:
	case 0xa6:
	case 0xa7:
	case 0xaa:
	case 0xab:
	case 0xac:
	case 0xad:
	case 0xae:
	case 0xaf:
	case 0xc3:
	case 0xc9:
	case 0xf5:
	case 0xf8:
	case 0xf9:
	case 0xfc:
	case 0xfd: return BARE;
	case 0xe8:
	case 0xe9: return BARE | REL4;
	case 0xf6: return MODRM | GROUP3 | IMM8;
	case 0xf7: return MODRM | GROUP3 | IMMZ;
	case 0xfe:
	case 0xff: return MODRM;
	default: return NOT;
	}
}

/* Behind 0F, and of VEX and EVEX with map 1. */
static unsigned two_bytes(uint8_t op)
{
	static const uint16_t with_imm8[16] = {
		[7] = 0x000f, [10] = 0x1010, [11] = 0x0400, [12] = 0x0074
	};
	static const uint16_t bare[16] = {
		[0] = 0x0820, [3] = 0x0002, [7] = 0x0080, [10] = 0x0307, [12] = 0xff00
	};
	static const uint16_t unknown[16] = {
		[0] = 0xd7dc, [2] = 0x00ff, [3] = 0xfffd, [7] = 0x0300, [10] = 0x04c0
	};

	if (op >= 0x80 && op < 0x90)
		return BARE | REL4;
	if (HAS(unknown, op))
		return NOT;
	if (HAS(bare, op))
		return BARE;
	return MODRM | (HAS(with_imm8, op) ? IMM8 : 0u);
}

struct walk {
	const uint8_t *code;
	size_t len, at;
	bool word, wide; /* the prefix 66, and REX.W */
};

/* What a ModRM byte asks for. */
static bool skip_modrm(struct walk *w, uint8_t *modrm)
{
	uint8_t mod, rm, base = 0;

	if (w->at >= w->len)
		return false;
	*modrm = w->code[w->at++];
	mod = *modrm >> 6;
	rm = *modrm & 7;
	if (mod == 3)
		return true;
	if (rm == 4) {
		if (w->at >= w->len)
			return false;
		base = w->code[w->at++] & 7;
	}
	if (mod == 1)
		w->at += 1;
	else if (mod == 2 || rm == 5 || (rm == 4 && base == 5))
		w->at += 4;
	return true;
}

static unsigned returns_finish(struct walk *w, unsigned what)
{
	uint8_t modrm = 0;

	if (what == NOT || (what & MODRM && !skip_modrm(w, &modrm)))
		return 0;
	if (what & GROUP3 && (modrm >> 3 & 7) > 1)
		what &= ~(unsigned)(IMM8 | IMMZ);
	if (what & REL4 && w->word && !w->wide)
		return 0;
	if (what & IMM8)
		w->at += 1;
	if (what & IMMZ)
		w->at += w->word && !w->wide ? 2 : 4;
	if (what & IMMV)
		w->at += w->wide ? 8 : w->word ? 2 : 4;
	if (what & REL4)
		w->at += 4;
	if (what & MOFFS)
		w->at += 8;
	return w->at <= w->len && w->at <= 15 ? (unsigned)w->at : 0;
}

/* Of the maps 1 to 3 of VEX, and 1 to 3, 5 and 6 of EVEX. */
static unsigned of_map(struct walk *w, unsigned map, uint8_t op)
{
	if (map == 1)
		return returns_finish(w, op >= 0x80 && op < 0x90 ? NOT : two_bytes(op));
	if (map == 2 || map == 5 || map == 6)
		return returns_finish(w, MODRM);
	return returns_finish(w, map == 3 ? MODRM | IMM8 : NOT);
}

static unsigned vector(struct walk *w, uint8_t first)
{
	unsigned head = first == 0xc5 ? 1 : first == 0xc4 ? 2 : 3, map = 1;
	const uint8_t *more = w->code + w->at;

	if (w->at + head + 1 > w->len || w->word)
		return 0;
	if (first == 0xc4)
		map = more[0] & 31;
	else if (first == 0x62)
		map = more[0] & 7;
	w->at += head + 1;
	return of_map(w, map, more[head]);
}

unsigned returns_length(const uint8_t *code, size_t len)
{
	struct walk w = { .code = code, .len = len };
	uint8_t op = 0;

	for (; w.at < len; w.at++) {
		op = code[w.at];
		if (op == 0x66)
			w.word = true;
		else if (op != 0xf0 && op != 0xf2 && op != 0xf3 && op != 0x2e && op != 0x36 &&
			 op != 0x3e && op != 0x26 && op != 0x64 && op != 0x65)
			break;
	}
	if ((op & 0xf0) == 0x40 && w.at < len) {
		w.wide = op & 8;
		w.at++;
	}
	if (w.at >= len)
		return 0;
	op = code[w.at++];
	if (op == 0xc4 || op == 0xc5 || op == 0x62)
		return vector(&w, op);
	if (op != 0x0f)
		return returns_finish(&w, one_byte(op));
	if (w.at >= len)
		return 0;
	op = code[w.at++];
	if (op != 0x38 && op != 0x3a)
		return returns_finish(&w, two_bytes(op));
	w.at++;
	return returns_finish(&w, op == 0x3a ? MODRM | IMM8 : MODRM);
}

#if defined(__aarch64__)
int returns_find(const uint8_t *code, size_t len, uint32_t at[RETURNS_MAX])
{
	int n = 0;

	for (size_t i = 0; i + 4 <= len; i += 4) {
		uint32_t insn;

		memcpy(&insn, code + i, 4);
		if (insn != 0xd65f03c0 && insn != 0xd65f0bff &&
		    insn != 0xd65f0fff) /* ret, retaa, retab */
			continue;
		if (n == RETURNS_MAX)
			return 0;
		at[n++] = (uint32_t)i;
	}
	return n;
}
#else
int returns_find(const uint8_t *code, size_t len, uint32_t at[RETURNS_MAX])
{
	unsigned size;
	int n = 0;

	for (size_t i = 0; i < len; i += size) {
		size = returns_length(code + i, len - i);
		if (!size)
			return 0;
		/* ret, and rep ret */
		if (code[i] != 0xc3 && !(code[i] == 0xf3 && size == 2 && code[i + 1] == 0xc3))
			continue;
		if (n == RETURNS_MAX)
			return 0;
		at[n++] = (uint32_t)i;
	}
	return n;
}
#endif
