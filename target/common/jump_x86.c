/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jump_x86.c - the punned jump. Of a function's first five bytes only the first one is changed, to
 * e9. This makes a jump whose displacement is the four bytes that follow, and these are not
 * changed. The bytes determine where the jump lands, and we put a pad there. All instructions after
 * the first one stay unchanged and in place, so it does not matter where a thread is while the byte
 * changes.
 */
#include <string.h>

#include "emit_x86.h"
#include "insn.h"
#include "jump.h"
#include "pads.h"

#define SCAN_MAX 4096

void jump_begin(const struct text_maps *maps)
{
	pads_avoid(maps);
}

__u8 jump_byte(void)
{
	return INSN_JMP;
}

__u64 jump_bytes(void)
{
	return pads_bytes();
}

void jump_release(void)
{
	pads_release();
}

static __u64 landing(__u64 at, const __u8 *bytes, unsigned int changed, __u8 to)
{
	__s32 displacement;
	__u8 b[5];

	memcpy(b, bytes, 5);
	b[changed] = to;
	memcpy(&displacement, b + 1, 4);
	return at + 5 + (__u64)(__s64)displacement;
}

/* Finds where instructions begin in the first five bytes (as bits), and the other value that the
 * fifth byte may have. */
struct first_five {
	unsigned int begins;
	__u8 rex_free;
	enum hook_result result;
};

static struct first_five look_at(const __u8 *bytes, unsigned int first_len)
{
	struct first_five five = { .begins = 0, .result = HOOK_ON };
	struct insn insn = { .kind = INSN_PLAIN };

	for (unsigned int at = first_len; at < 5; at += insn.len) {
		if (insn.kind == INSN_END) {
			five.result = HOOK_SHORT;
			break;
		}
		five.begins |= 1u << at;
		insn = insn_decode(bytes + at, 16 - at);
		if (insn.kind == INSN_TRAP) {
			five.result = HOOK_BREAKPOINT;
			break;
		}
		if (insn.kind == INSN_UNKNOWN)
			break; /* it is not known where the next instruction begins */
		if (at == 4)
			five.rex_free = insn.rex_free;
	}
	return five;
}

/* Returns whether the function seems to jump to its own first byte: such a jump would be counted as
 * a call. Bytes that only look like such a jump are treated as one. */
static bool jumps_to_begin(__u64 at, const struct hook_spec *spec)
{
	__u8 code[SCAN_MAX];
	unsigned int n = spec->size < sizeof(code) ? (unsigned int)spec->size : sizeof(code);
	__s32 far;

	if (n < 2 || text_look(at, code, n))
		return false;
	for (unsigned int i = 0; i + 2 <= n; i++) {
		if ((code[i] == 0xeb || (code[i] & 0xf0) == 0x70 || (code[i] & 0xfc) == 0xe0) &&
		    (int)i + 2 + (__s8)code[i + 1] == 0)
			return true;
		if (i + 5 > n)
			continue;
		memcpy(&far, code + i + 1, 4);
		if ((code[i] == INSN_JMP ||
		     (i && code[i - 1] == 0x0f && (code[i] & 0xf0) == 0x80)) &&
		    (__s64)i + 5 + far == 0)
			return true;
	}
	return false;
}

static void write_pad(__u64 pad, __u64 slot)
{
	__u8 code[PAD_BYTES];

	put_jump(code, pad, slot);
	text_make(pad, code, sizeof(code));
}

/*
 * A debugger or a uprobe may put an int3 on an instruction within the five bytes, after the first.
 * This changes the displacement. Pads at the places where the jump lands then lead to the same
 * slot, and the program still reaches the int3. This is done only if there is room.
 */
static void write_spare_pads(struct jump *j, const __u8 *bytes, __u64 slot)
{
	for (unsigned int i = 1; i < 5; i++) {
		__u64 pad = landing(j->at, bytes, i, INSN_INT3);

		if ((j->begins >> i & 1) && pads_reach(pad + 5, slot) && pads_take(pad)) {
			write_pad(pad, slot);
			j->spared |= (__u8)(1u << i);
		}
	}
}

/* Describes the first instruction for the function's stub. */
static struct stub_first first_of(const struct insn *first, __u64 at, const __u8 *bytes)
{
	struct stub_first moved = { .bytes = bytes, .n = first->len, .next = at + first->len };
	__s32 displacement;

	if (first->kind == INSN_RELATIVE) {
		memcpy(&displacement, bytes + first->disp_at, 4);
		moved.disp_at = first->disp_at;
		moved.to = moved.next + (__u64)(__s64)displacement;
	}
	return moved;
}

static enum hook_result make_at(struct jump *j, __u64 at, const __u8 *bytes,
				const struct hook_spec *spec, unsigned int number)
{
	struct insn first = insn_decode(bytes, 16);
	struct stub_first moved = first_of(&first, at, bytes);
	struct first_five five;
	struct stub stub = { .at = 0 };
	__u64 near[4], pad = 0;
	unsigned int n = 0, must;
	__u8 spelled[16];

	switch (first.kind) {
	case INSN_TRAP: return HOOK_BREAKPOINT;
	case INSN_UNKNOWN: return HOOK_UNKNOWN;
	case INSN_BRANCH:
	case INSN_END: return HOOK_BRANCH;
	default: break;
	}
	five = look_at(bytes, first.len);
	if (five.result)
		return five.result;
	if (!first.pushes && jumps_to_begin(at, spec))
		return HOOK_LOOP;
	memcpy(spelled, bytes, sizeof(spelled));
	for (unsigned int change = 0; change < 16 && !pad; change++) {
		if (change & ~five.rex_free)
			continue;
		spelled[4] = (__u8)(bytes[4] ^ change);
		pad = landing(at, spelled, 4, spelled[4]);
		if (!pads_take(pad))
			pad = 0;
	}
	if (!pad)
		return HOOK_ZONE;
	/* First the addresses that must be within reach of the stub, then those that should be. */
	near[n++] = pad;
	if (moved.disp_at)
		near[n++] = moved.to;
	must = n;
	near[n++] = at;
	near[n++] = landing(at, spelled, 4, INSN_INT3);
	for (; n >= must && !stub.at; n--)
		stub.at = pads_slot(near, n);
	if (!stub.at) {
		pads_give(pad);
		return first.kind == INSN_RELATIVE ? HOOK_FAR : HOOK_ZONE;
	}
	/* The moved instruction has the bytes of the program (bytes, not spelled). */
	stub_make(&stub, &moved, number, CHUNK_SLOT);
	write_pad(pad, stub.at);
	j->at = at;
	j->stub = stub;
	memcpy(j->was, bytes, sizeof(j->was));
	j->spelled = spelled[4];
	j->begins = (__u8)five.begins;
	j->spares = true;
	j->spared = 0;
	return HOOK_ON;
}

/* If there is room, the stub itself becomes the pad, which saves a jump and a page on the way. This
 * is done only for functions that may be called very often, because pads of libraries that are
 * mapped later may need the room. */
static void widen(struct jump *j, __u64 pad, unsigned int number, bool folds)
{
	struct insn first = insn_decode(j->was, sizeof(j->was));
	struct stub_first moved = first_of(&first, j->at, j->was);
	struct stub stub = { .at = pad };
	unsigned int n = stub_bytes(&stub, &moved, folds);

	if (!n || !pads_widen(pad, n))
		return;
	pads_slot_give(j->stub.at);
	stub_make(&stub, &moved, number, n);
	j->stub = stub;
}

void jump_spare(struct jump *j, const struct hook_spec *spec, unsigned int n)
{
	__u8 spelled[sizeof(j->was)];

	if (!j->spares)
		return;
	j->spares = false;
	memcpy(spelled, j->was, sizeof(spelled));
	spelled[4] = j->spelled;
	if (spec->flags & HOOK_COUNTABLE)
		widen(j, landing(j->at, spelled, 4, j->spelled), n, spec->flags & HOOK_FOLDS);
	write_spare_pads(j, spelled, j->stub.at);
}

void jump_free(const struct jump *j)
{
	__u8 spelled[sizeof(j->was)];
	__u64 pad;

	if (!j->at)
		return;
	memcpy(spelled, j->was, sizeof(spelled));
	spelled[4] = j->spelled;
	pad = landing(j->at, spelled, 4, j->spelled);
	pads_give_bytes(pad, j->stub.at == pad ? j->stub.bytes : PAD_BYTES);
	for (unsigned int i = 1; i < 5; i++)
		if (j->spared >> i & 1)
			pads_give(landing(j->at, spelled, i, INSN_INT3));
	if (j->stub.at != pad)
		pads_slot_give(j->stub.at);
}

enum hook_result jump_make(struct jump *j, const struct hook_spec *spec, unsigned int n)
{
	static const __u8 endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned int nfile = spec->nfile < 16 ? spec->nfile : 16;
	enum hook_result result;
	__u8 bytes[32];

	if (spec->size && spec->size < 5)
		return HOOK_SHORT;
	if (text_look(spec->address, bytes, 16))
		return HOOK_NOT_CODE;
	if (memcmp(bytes, spec->file, nfile))
		return bytes[0] == INSN_INT3 ? HOOK_BREAKPOINT : HOOK_DIFFERS;
	result = make_at(j, spec->address, bytes, spec, n);
	/* If the function begins with endbr64, the jump can also be put after it. */
	if (result == HOOK_ZONE && !memcmp(bytes, endbr64, 4) && (!spec->size || spec->size >= 9) &&
	    !text_look(spec->address + 4, bytes, 16))
		result = make_at(j, spec->address + 4, bytes, spec, n);
	return result;
}

int jump_write(const struct jump *j, bool on, __u8 *found)
{
	int err = 0;
	__u8 other;

	/* The other spelling is written before the jump and removed after it; both spellings mean
	 * the same. */
	if (on && j->spelled != j->was[4]) {
		err = text_swap(j->at + 4, j->was[4], j->spelled, found);
		if (err == 1 && *found == j->spelled)
			err = 0;
	}
	if (err)
		return err;
	err = on ? text_swap(j->at, j->was[0], INSN_JMP, found)
		 : text_swap(j->at, INSN_JMP, j->was[0], found);
	if (err == 1 && *found == (on ? INSN_JMP : j->was[0]))
		err = 0;
	if (!on && j->spelled != j->was[4])
		text_swap(j->at + 4, j->spelled, j->was[4], &other);
	return err;
}
