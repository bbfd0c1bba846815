/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stub_x86.c - see call_stub.h. From the stub's begin:
 *
 *	 0	*jmp* *way*			the way that calls take; COUNTS: `test $way, %al` in its place
 *	 2	mov %fs:hooks_counting, %r10	COUNTS
 *		test %r10, %r10; jz ENTRY
 *		mov (%r10), %r10
 *		test %r10, %r10; jz ENTRY
 *		mov $*number*, %r11d
 *		incq (%r10, %r11, 8)
 *	34	the first instruction; jmp next	GO
 *	49	mov $n, %r11d; jmp hooks_entry	ENTRY (at 69 in a wide stub)
 *	69	mov $engine_within, %r10	FOLDS (not in all stubs)
 *		mov (%rsp), %r11		the return address
 *		sub (%r10), %r11; cmp 8(%r10), %r11
 *		jae *otherwise*			COUNTS or ENTRY
 *		mov %fs:hooks_counting, %r10
 *		test %r10, %r10; jz ENTRY
 *		mov (%r10), %r10
 *		test %r10, %r10; jz ENTRY
 *		incq HOOK_FOLDED * 8(%r10)
 *		jmp GO
 *
 * What is between stars is a byte that changes. Instructions and their lengths stay the same, so a
 * thread may be at any instruction. r10, r11 and the flags have no meaning at a function's begin.
 */
#include <string.h>

#include "../common/emit_x86.h"
#include "../common/pads.h"
#include "../common/call_stub.h"
#include "../common/code_text.h"

#define COUNTS 2
#define GO 34
#define ENTRY 49
#define FOLDS 69
#define ENTRY_WIDE 69
#define GO_BYTES (ENTRY - GO)
#define ENTRY_BYTES 20

#define JUMP_AT 0
#define WAY_AT 1
#define NO_WORD_AT 15
#define NO_COUNTS_AT 23
#define NUMBER_AT 26
#define OTHERWISE_AT 91
/* A jump of two bytes whose displacement is at `at`. */
#define SHORT_TO(to, at) ((__u8)((to) - ((at) + 1)))

/* clang-format off */
static const __u8 counts_code[] = {
	0x64, 0x4c, 0x8b, 0x14, 0x25, 0, 0, 0, 0, /* mov %fs:0, %r10 */
	0x4d, 0x85, 0xd2,                         /* test %r10, %r10 */
	0x74, SHORT_TO(ENTRY, NO_WORD_AT),        /* jz */
	0x4d, 0x8b, 0x12,                         /* mov (%r10), %r10 */
	0x4d, 0x85, 0xd2,                         /* test %r10, %r10 */
	0x74, SHORT_TO(ENTRY, NO_COUNTS_AT),      /* jz */
	0x41, 0xbb, 0, 0, 0, 0,                   /* mov $0, %r11d */
	0x4b, 0xff, 0x04, 0xda,                   /* incq (%r10, %r11, 8) */
};
/* clang-format on */
_Static_assert(COUNTS + sizeof(counts_code) == GO, "what is counted is then executed");

#define FOLDED_AT (HOOK_FOLDED * 8)
/* clang-format off */
static const __u8 folds_code[] = {
	0x49, 0xba, 0, 0, 0, 0, 0, 0, 0, 0,       /* mov $0, %r10 */
	0x4c, 0x8b, 0x1c, 0x24,                   /* mov (%rsp), %r11 */
	0x4d, 0x2b, 0x1a,                         /* sub (%r10), %r11 */
	0x4d, 0x3b, 0x5a, 0x08,                   /* cmp 8(%r10), %r11 */
	0x73, SHORT_TO(ENTRY, OTHERWISE_AT),      /* jae */
	0x64, 0x4c, 0x8b, 0x14, 0x25, 0, 0, 0, 0, /* mov %fs:0, %r10 */
	0x4d, 0x85, 0xd2,                         /* test %r10, %r10 */
	0x74, SHORT_TO(ENTRY, 105),               /* jz */
	0x4d, 0x8b, 0x12,                         /* mov (%r10), %r10 */
	0x4d, 0x85, 0xd2,                         /* test %r10, %r10 */
	0x74, SHORT_TO(ENTRY, 113),               /* jz */
	0x49, 0xff, 0x82, FOLDED_AT & 0xff, FOLDED_AT >> 8, 0, 0, /* incq FOLDED_AT(%r10) */
	0xeb, SHORT_TO(GO, 122),                  /* jmp */
};
/* clang-format on */
_Static_assert(FOLDS + sizeof(folds_code) <= CHUNK_SLOT, "room");
_Static_assert(offsetof(struct hook_within, lo) == 0 && offsetof(struct hook_within, bytes) == 8 &&
		       offsetof(struct counting, counts) == 0,
	       "as the code has them");

/* Returns the offset of the thread's word from its control block, which is the same in all
 * threads. */
static __s32 word_at(void)
{
	__u64 block;

	__asm__("mov %%fs:0, %0" : "=r"(block));
	return (__s32)((__u64)(uintptr_t)&hooks_counting - block);
}

/* Writes the first instruction, and the jump back to the function. Returns the number of bytes. */
static unsigned int put_go(__u8 *code, __u64 at, const struct stub_first *first)
{
	__u64 end = at + first->n;
	__s32 displacement;

	memcpy(code, first->bytes, first->n);
	if (first->disp_at) {
		displacement = (__s32)(first->to - end);
		memcpy(code + first->disp_at, &displacement, 4);
	}
	if (pads_reach(end + 5, first->next))
		return first->n + put_jump(code + first->n, end, first->next);
	return first->n + put_jump_far(code + first->n, first->next);
}

static bool is_wide(__u64 at, const struct stub_first *first)
{
	__u64 end = at + GO + first->n;

	return first->n + (pads_reach(end + 5, first->next) ? 5 : JUMP_FAR) > GO_BYTES;
}

unsigned int stub_bytes(const struct stub *s, const struct stub_first *first, bool folds)
{
	if (first->disp_at && !pads_reach(s->at + GO + first->n, first->to))
		return 0;
	if (is_wide(s->at, first))
		return ENTRY_WIDE + ENTRY_BYTES;
	return folds ? FOLDS + sizeof(folds_code) : ENTRY + ENTRY_BYTES;
}

void stub_make(struct stub *s, const struct stub_first *first, unsigned int number,
	       unsigned int bytes)
{
	const struct hook_within *within = &engine_within;
	__u8 code[CHUNK_SLOT];
	__s32 word = word_at();

	memset(code, INSN_INT3, sizeof(code));
	memcpy(code + COUNTS, counts_code, sizeof(counts_code));
	memcpy(code + COUNTS + 5, &word, 4);
	s->bytes = (__u8)bytes;
	s->go = s->at + GO;
	s->wide = is_wide(s->at, first);
	s->folds = !s->wide && bytes >= FOLDS + sizeof(folds_code);
	put_go(code + GO, s->go, first);
	if (s->wide) {
		code[NO_WORD_AT] = SHORT_TO(ENTRY_WIDE, NO_WORD_AT);
		code[NO_COUNTS_AT] = SHORT_TO(ENTRY_WIDE, NO_COUNTS_AT);
	}
	if (s->folds) {
		memcpy(code + FOLDS, folds_code, sizeof(folds_code));
		memcpy(code + FOLDS + 2, &within, 8);
		memcpy(code + FOLDS + 28, &word, 4);
	}
	put_entry(code + (s->wide ? ENTRY_WIDE : ENTRY), number);
	s->jump = code[JUMP_AT] = INSN_JMP_SHORT;
	s->way = code[WAY_AT] = SHORT_TO(s->wide ? ENTRY_WIDE : ENTRY, WAY_AT);
	s->number = code[NUMBER_AT];
	s->otherwise = code[OTHERWISE_AT];
	text_make(s->at, code, bytes);
}

static int change(const struct stub *s, unsigned int at, __u8 *was, __u8 to)
{
	int err = *was == to ? 0 : text_write(s->at + at, &to, 1);

	if (!err)
		*was = to;
	return err;
}

int stub_lead(struct stub *s, __u32 flags)
{
	unsigned int entry = s->wide ? ENTRY_WIDE : ENTRY;
	bool folds = flags & HOOK_FOLDS && s->folds,
	     counts = flags & HOOK_COUNT && !(flags & HOOK_FOLDS);
	int err = 0;

	if (!s->at)
		return 0;
	if (flags & HOOK_COUNT)
		err = change(s, NUMBER_AT, &s->number, (__u8)HOOK_COUNTED_IN(flags));
	if (!err && folds)
		err = change(s, OTHERWISE_AT, &s->otherwise,
			     SHORT_TO(flags & HOOK_COUNT ? COUNTS : ENTRY, OTHERWISE_AT));
	if (!err && !counts)
		err = change(s, WAY_AT, &s->way, SHORT_TO(folds ? FOLDS : entry, WAY_AT));
	return err ? err : change(s, JUMP_AT, &s->jump, counts ? INSN_TEST_AL : INSN_JMP_SHORT);
}
