/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * insn.c - lengths of instructions, from the opcode maps of the Intel manual, volume 2, appendix A.
 * These instructions are refused: those that read or pop the return address, change the control
 * flow, are meant to fault, or were never seen at the begin of a function (VEX, EVEX, strings,
 * segments, the x87).
 */
#include "insn.h"

#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

enum form {
	NO,	/* refused */
	BARE,	/* nothing follows the opcode */
	REG,	/* nothing follows; a register is in the opcode's low bits */
	MODRM,	/* a ModRM byte, whose reg field is a register */
	GROUP,	/* a ModRM byte, whose reg field is part of the opcode */
	IMM8,	/* with an immediate of one byte */
	IMMZ,	/* of 4 bytes, or of 2 with the prefix 66 */
	IMMV,	/* of 8 bytes with REX.W, else as IMMZ; a register in the opcode */
	BYTE_R, /* IMM8 and a register in the opcode */
	MODRM8, /* MODRM and an immediate */
	MODRMZ,
	GROUP8,
	GROUPZ,
	TEST8, /* F6, F7: there is an immediate only if reg is 0 or 1 */
	TESTZ,
	JUMP8, /* conditional */
	JUMPZ,
	AWAY, /* always: ret, jmp */
	AWAY8,
	AWAYZ,
	CALL,
	TRAP,
};

static enum form form_one(__u8 op)
{
	if (op < 0x40)
		switch (op & 7) {
		case 0:
		case 1:
		case 2:
		case 3: return MODRM;
		case 4: return IMM8;
		case 5: return IMMZ;
		default: return NO;
		}
	switch (op) {
	case 0x50 ... 0x57: return REG;
	case 0x63: return MODRM;
	case 0x68: return IMMZ;
	case 0x69: return MODRMZ;
	case 0x6a: return IMM8;
	case 0x6b: return MODRM8;
	case 0x70 ... 0x7f: return JUMP8;
	case 0x80: return GROUP8;
	case 0x81: return GROUPZ;
	case 0x83: return GROUP8;
	case 0x84 ... 0x8b: return MODRM;
	case 0x8d: return MODRM;
	case 0x90 ... 0x97: return REG;
	case 0x98:
	case 0x99: return BARE;
	case 0xa8: return IMM8;
	case 0xa9: return IMMZ;
	case 0xb0 ... 0xb7: return BYTE_R;
	case 0xb8 ... 0xbf: return IMMV;
	case 0xc0:
	case 0xc1: return GROUP8;
	case 0xc2: return AWAYZ; /* its immediate of 2 bytes is handled below */
	case 0xc3: return AWAY;
	case 0xc6: return GROUP8;
	case 0xc7: return GROUPZ;
	case 0xcc: return TRAP;
	case 0xd0 ... 0xd3: return GROUP;
	case 0xe0 ... 0xe3: return JUMP8;
	case 0xe8: return CALL;
	case 0xe9: return AWAYZ;
	case 0xeb: return AWAY8;
	case 0xf6: return TEST8;
	case 0xf7: return TESTZ;
	case 0xfe:
	case 0xff: return GROUP;
	default: return NO;
	}
}

/* The form of an opcode after 0F. f2, f3: there is this prefix, which is a part of the opcode with
 * SSE; word: there is the prefix 66. */
static enum form form_two(__u8 op, bool word, bool f2, bool f3)
{
	bool repeat = f2 || f3;

	switch (op) {
	case 0x10:
	case 0x11:
	case 0x2a:
	case 0x2c:
	case 0x2d:
	case 0x51:
	case 0x58 ... 0x5a:
	case 0x5c ... 0x5f: return MODRM;
	case 0x70: return MODRM8;
	case 0x6f:
	case 0x7e:
	case 0x7f: return f2 ? NO : MODRM;
	case 0x1e: /* endbr64 and similar ones */
	case 0x1f: return GROUP;
	case 0xbc:
	case 0xbd: return f2 ? NO : MODRM;
	default: break;
	}
	if (repeat)
		return NO;
	switch (op) {
	case 0x6c:
	case 0x6d:
	case 0xd6: return word ? MODRM : NO;
	case 0x14:
	case 0x15:
	case 0x28:
	case 0x29:
	case 0x2e:
	case 0x2f:
	case 0x40 ... 0x4f:
	case 0x54 ... 0x57:
	case 0x60 ... 0x6b:
	case 0x6e:
	case 0x74 ... 0x76: return MODRM;
	case 0x80 ... 0x8f: return JUMPZ;
	case 0x90 ... 0x9f: return GROUP;
	case 0xa3:
	case 0xaf:
	case 0xb6:
	case 0xb7:
	case 0xbe:
	case 0xbf: return MODRM;
	case 0xba: return GROUP8;
	case 0xc6: return MODRM8;
	case 0xd4:
	case 0xd5:
	case 0xdb:
	case 0xdf:
	case 0xeb:
	case 0xef:
	case 0xfa ... 0xfe: return MODRM;
	default: return NO;
	}
}

/* The members of instruction groups that are refused, or that continue at another address. */
static enum insn_kind group_kind(bool two, __u8 op, __u8 reg, bool memory)
{
	if (two)
		return op == 0xba && reg < 4 ? INSN_UNKNOWN : INSN_PLAIN;
	switch (op) {
	case 0xc0:
	case 0xc1:
	case 0xd0 ... 0xd3: return reg == 6 ? INSN_UNKNOWN : INSN_PLAIN;
	case 0xc6:
	case 0xc7: return reg ? INSN_UNKNOWN : INSN_PLAIN;
	case 0xfe: return reg > 1 ? INSN_UNKNOWN : INSN_PLAIN;
	case 0xff:
		if (reg == 2)
			return INSN_BRANCH;
		if (reg == 4)
			return INSN_END;
		return reg == 0 || reg == 1 || (reg == 6 && !memory) ? INSN_PLAIN : INSN_UNKNOWN;
	default: return INSN_PLAIN;
	}
}

struct cursor {
	const __u8 *bytes;
	unsigned int at, n;
	bool out; /* the decoder has read beyond the end */
};

static __u8 next(struct cursor *c)
{
	if (c->at >= c->n) {
		c->out = true;
		return 0;
	}
	return c->bytes[c->at++];
}

/* ModRM, SIB and displacement. */
struct modrm {
	__u8 mod, reg, rm;
	bool sib;
	__u8 relative_at; /* position of a displacement from %rip; 0: none */
};

static struct modrm read_modrm(struct cursor *c)
{
	__u8 b = next(c), base;
	struct modrm m = { .mod = b >> 6, .reg = b >> 3 & 7, .rm = b & 7 };

	if (m.mod == 3)
		return m;
	base = m.rm;
	if (m.rm == 4) {
		m.sib = true;
		base = next(c) & 7;
	}
	if (m.mod == 0 && base == 5) {
		if (!m.sib)
			m.relative_at = (__u8)c->at;
		c->at += 4;
	} else if (m.mod == 1) {
		c->at += 1;
	} else if (m.mod == 2) {
		c->at += 4;
	}
	return m;
}

static bool has_modrm(enum form f)
{
	return f == MODRM || f == GROUP || f == MODRM8 || f == MODRMZ || f == GROUP8 ||
	       f == GROUPZ || f == TEST8 || f == TESTZ;
}

static unsigned int immediate(enum form f, bool word, bool wide, __u8 reg)
{
	unsigned int z = word && !wide ? 2 : 4;

	switch (f) {
	case IMM8:
	case BYTE_R:
	case MODRM8:
	case GROUP8:
	case JUMP8:
	case AWAY8: return 1;
	case IMMZ:
	case MODRMZ:
	case GROUPZ: return z;
	case JUMPZ:
	case AWAYZ:
	case CALL: return 4;
	case IMMV: return wide ? 8 : z;
	case TEST8: return reg < 2 ? 1 : 0;
	case TESTZ: return reg < 2 ? z : 0;
	default: return 0;
	}
}

static __u8 free_bits(enum form f, const struct modrm *m, __u8 op, bool two)
{
	if (f == REG && !two && op < 0x58) /* push has 64 bits with and without W */
		return REX_W | REX_R | REX_X;
	if (f == REG || f == BYTE_R || f == IMMV)
		return REX_R | REX_X;
	if (!has_modrm(f) || m->relative_at)
		return 0;
	return (m->sib ? 0 : REX_X) |
	       (!two && (f == GROUP || f == GROUP8 || f == GROUPZ || f == TEST8 || f == TESTZ)
			? REX_R
			: 0);
}

struct insn insn_decode(const __u8 *bytes, unsigned int n)
{
	struct cursor c = { bytes, 0, n < 15 ? n : 15, false };
	struct insn insn = { .kind = INSN_UNKNOWN };
	struct modrm m = { 0 };
	bool word = false, f2 = false, f3 = false, two = false;
	__u8 op = next(&c), rex = 0;
	enum form f;

	while (op == 0x66 || op == 0xf2 || op == 0xf3) {
		word |= op == 0x66;
		f2 |= op == 0xf2;
		f3 |= op == 0xf3;
		op = next(&c);
	}
	if ((op & 0xf0) == 0x40) {
		rex = op;
		op = next(&c);
	}
	if (op == 0x0f) {
		two = true;
		op = next(&c);
	}
	f = two ? form_two(op, word, f2, f3) : form_one(op);
	/* the prefixes of bnd ret, bnd jmp and rep ret change nothing; the prefix 66 would */
	if (f == NO || word + f2 + f3 > 1 ||
	    ((f2 || f3) && !two && f != AWAY && f != AWAYZ && op != 0x90) ||
	    (word && (f == JUMPZ || f == AWAYZ || f == AWAY || f == AWAY8 || f == JUMP8 ||
		      f == CALL || op == 0x68 || (!two && f == REG && op < 0x58))))
		return insn;
	if (has_modrm(f))
		m = read_modrm(&c);
	c.at += op == 0xc2 && !two ? 2 : immediate(f, word, rex & REX_W, m.reg);
	if (c.out || c.at > c.n)
		return insn;
	insn.len = (__u8)c.at;
	switch (f) {
	case AWAY:
	case AWAY8:
	case AWAYZ: insn.kind = INSN_END; break;
	case JUMP8:
	case JUMPZ:
	case CALL: insn.kind = INSN_BRANCH; break;
	case TRAP: insn.kind = INSN_TRAP; break;
	case GROUP:
	case GROUP8:
	case GROUPZ: insn.kind = group_kind(two, op, m.reg, m.mod != 3); break;
	case MODRM: /* lea of a register is not a valid instruction */
		insn.kind = !two && op == 0x8d && m.mod == 3 ? INSN_UNKNOWN : INSN_PLAIN;
		break;
	default: insn.kind = INSN_PLAIN;
	}
	if (insn.kind == INSN_PLAIN && m.relative_at) {
		insn.kind = INSN_RELATIVE;
		insn.disp_at = m.relative_at;
	}
	insn.pushes = (f == REG && !two && op < 0x58) || (two && op == 0x1e);
	if (insn.kind == INSN_PLAIN && rex && bytes[0] == rex)
		insn.rex_free = free_bits(f, &m, op, two);
	return insn;
}
